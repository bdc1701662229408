//! A small connection, the same every time: what the golden datagrams are made of.

use prescient_transport::*;

use super::{GOOD, PROTOCOL, Random, UNIX, World, address, config, grant};

/// Plays the connection. Every datagram and the token pass through `carry` with a name, and what
/// comes out of it is what arrives.
pub fn play(carry: &mut dyn FnMut(&str, Vec<u8>) -> Vec<u8>) {
    let mut random = Random(2026);
    let now = Time::from_micros(1_000_000);
    let mut config = config();
    config.link.packets_per_key = 4;
    let (link, here) = (config.link, config.addresses[0]);
    let key = config.key.clone();
    let mut server = Server::new(config, &mut random, now);
    let token = grant(77).issue(&key, &mut random).expect("sound");
    let token = carry("token", token.to_bytes().to_vec());
    let token = ConnectToken::from_bytes(&token).expect("a token");
    let mut client =
        Client::connect(token, PROTOCOL, link, &mut random, now).expect("the same protocol");
    let mut home = address("198.51.100.7:50000");
    let mut connection = None;
    for round in 0..10u8 {
        client.handle_timeout(now);
        if round == 7 {
            home = address("[2001:db8::7]:50001");
        }
        if let Some(connection) = connection {
            client.send(&[round; 5], now).expect("connected");
            server
                .send(connection, &[round; 3], now)
                .expect("connected");
        }
        if round == 9 {
            client.close(CloseReason::Other(9), now);
        }
        while let Some(sent) = client.poll_transmit() {
            let bytes = carry("up", sent.bytes);
            server.handle_datagram(home, &bytes, now, UNIX, &mut random);
        }
        while let Some(event) = server.poll_event() {
            if let ServerEvent::Connected { connection: id, .. } = event {
                connection = Some(id);
            }
        }
        while let Some(sent) = server.poll_transmit() {
            let bytes = carry("down", sent.bytes);
            client.handle_datagram(here, &bytes, now);
        }
    }
    assert_eq!(server.clients().count(), 0, "the goodbye was understood");
    assert!(
        client
            .poll_event()
            .is_some_and(|event| { event == ClientEvent::Connected { server: here } })
    );
    refusal(&mut random, carry);
}

/// A token that has expired, and what the server says to it.
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
