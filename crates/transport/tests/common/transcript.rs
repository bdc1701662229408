//! A deterministic connection, of which the golden datagrams are made.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use std::time::Duration;

use prescient_channels::*;

use prescient_transport::*;

use super::{GOOD, KEY, PROTOCOL, Random, UNIX, World, address, config, grant};

/// Runs the connection. Every datagram and the token pass through `carry` with a name; its result
/// is delivered.
pub fn play(carry: &mut dyn FnMut(&str, Vec<u8>) -> Vec<u8>) {
    let mut random = Random(2026);
    let mut now = Time::from_micros(1_000_000);
    let mut events = Vec::new();
    let link = LinkConfig::default().with_packets_per_key(4);
    let info = ServerInfo {
        name: Text::new("golden").expect("short"),
        update_period: Duration::from_micros(16_667),
        ..ServerInfo::default()
    };
    let config = config().with_link(link.clone()).with_info(info);
    let here = config.addresses()[0];
    let key = TokenKey::new(KEY).expect("not the public one");
    let mut server = Server::new(config, &mut random, now).expect("it can work");
    let token = grant(77).issue(&key, &mut random).expect("sound");
    let token = carry("token", token.to_bytes().to_vec());
    let token = ConnectToken::from_bytes(&token).expect("a token");
    let mut client =
        Client::connect(token, PROTOCOL, link, &mut random, now).expect("the same protocol");
    client.set_info(player("first"), now);
    let mut home = address("198.51.100.7:50000");
    let mut connection = None;
    for round in 0..16u8 {
        // The roster is sent once a second.
        let pause = if round == 14 { 1000 } else { 7 };
        now = now.after(Duration::from_millis(pause));
        client.handle_timeout(now);
        server.handle_timeout(now);
        if round == 7 {
            home = address("[2001:db8::7]:50001");
        }
        if let Some(connection) = connection {
            speak(round, &mut client, &mut server, connection, now);
        }
        if round == 15 {
            client.close(CloseReason::Other(9), now);
        }
        while let Some(sent) = client.poll_transmit(now) {
            let bytes = carry("up", sent.bytes.into_vec());
            server.handle_datagram(home, &bytes, now, UNIX, &mut random);
        }
        while let Some(event) = server.poll_event() {
            match event {
                ServerEvent::Connected { connection: id, .. } => connection = Some(id),
                ServerEvent::Received {
                    connection,
                    received: Received::Request { request, message },
                } => server
                    .respond(connection, request, &message, now)
                    .expect("connected"),
                _ => {}
            }
        }
        while let Some(sent) = server.poll_transmit(now) {
            let bytes = carry("down", sent.bytes.into_vec());
            client.handle_datagram(here, &bytes, now);
        }
        while let Some(event) = client.poll_event() {
            match event {
                ClientEvent::Received(Received::BlobOffered { blob, .. }) => {
                    client.accept_blob(blob, now).expect("small enough");
                }
                ClientEvent::Info(_) | ClientEvent::Reset(_) => {
                    assert!(client.loaded(now));
                }
                _ => {}
            }
            events.push(event);
        }
    }
    assert_eq!(server.clients().count(), 0, "the goodbye was understood");
    assert_eq!(events[0], ClientEvent::Connected { server: here });
    let arrived = |event: &ClientEvent| matches!(event, ClientEvent::Received(Received::BlobArrived { bytes, .. }) if bytes.len() == 1500);
    assert!(events.iter().any(arrived));
    let answered = |event: &ClientEvent| matches!(event, ClientEvent::Received(Received::Answer { answer: Ok(answer), .. }) if answer == b"why?");
    assert!(events.iter().any(answered));
    let welcomes = |event: &&ClientEvent| matches!(event, ClientEvent::Welcome(_));
    assert_eq!(events.iter().filter(welcomes).count(), 2);
    assert_eq!(client.roster().len(), 1);
    refusal(&mut random, carry);
    reset(&mut random, carry);
}

fn player(name: &str) -> ClientInfo {
    ClientInfo {
        name: Text::new(name).expect("short"),
        data: Bytes::new([1, 2, 3]).expect("short"),
    }
}

/// Messages on every channel, long ones, a request, a blob, inputs and lobby messages.
fn speak(round: u8, client: &mut Client, server: &mut Server, connection: ConnectionId, now: Time) {
    let channel = ChannelId(round % 4);
    let short = [0x40 | round; 5];
    client.send(channel, &short, now).expect("connected");
    let next = ChannelId((round + 1) % 4);
    client.send(next, &[], now).expect("connected");
    server
        .send(connection, channel, &[round; 3], now)
        .expect("connected");
    let keys = [round / 3, 77].into_iter().collect();
    let input = Input {
        keys_down: keys,
        pressed: if round.is_multiple_of(3) {
            keys
        } else {
            Keys::NONE
        },
        pointer: [i32::from(round) * 5, -9],
        fields: vec![round / 4; 2],
    };
    let tick = InputTick(u64::from(round) + 100);
    client.push_input(tick, input, now).expect("connected");
    match round {
        8 => {
            let long = [8; 1300];
            client
                .send(ChannelId::ORDERED, &long, now)
                .expect("connected");
            client
                .send(ChannelId::UNRELIABLE, &long, now)
                .expect("connected");
        }
        9 => drop(client.request(b"why?", Duration::from_secs(1), now)),
        10 => drop(server.offer_blob(connection, b"map", vec![10; 1500], now)),
        11 => server.reset(ServerInfo::default(), now),
        12 => client.set_info(player("second"), now),
        _ => {}
    }
}

/// An expired token, and the server's denial.
fn refusal(random: &mut Random, carry: &mut dyn FnMut(&str, Vec<u8>) -> Vec<u8>) {
    let mut world = World::new(random.next(), GOOD);
    let mut old = grant(78);
    old.expires = UNIX;
    let token = world.issue(&old);
    let peer = world.join_with(token, LinkConfig::default(), "198.51.100.8:1");
    world.run_for(super::SECOND);
    let expired = Some(ConnectError::Denied(Denial::Expired));
    assert_eq!(world.peers[peer].error(), expired);
    let denied = world.sent.last().expect("the refusal").bytes.clone();
    carry("denied", denied);
}

/// A restarted server, and its stateless reset for an unknown connection.
fn reset(random: &mut Random, carry: &mut dyn FnMut(&str, Vec<u8>) -> Vec<u8>) {
    let mut world = World::new(random.next(), GOOD);
    let peer = world.join();
    world.connect_all();
    world.restart_server();
    let told = |world: &World| world.peers[peer].closed().is_some();
    assert!(world.run_until(2 * super::SECOND, told));
    let reason = Some(CloseReason::StatelessReset);
    assert_eq!(world.peers[peer].closed(), reason);
    let reset = world.sent.last().expect("the reset").bytes.clone();
    carry("reset", reset);
}
