//! Case 34: a client joins and then sends packets of 64 events, or of 64 inputs, as fast as a
//! thread can, to a server that does not limit its rate. While the server waits for its next tick,
//! no more of these are received than may wait, and other clients are served as before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{bind, join, token};
use prescient::{
    Client, ConnectToken, PeerId, ProtocolId, Schema, ServerEvent, ServerOptions, State,
};
use prescient_channels::{ChannelId, Received};
use prescient_net::BlockingClient;
use prescient_replication::{Client as View, ClientConfig};
use prescient_transport::{ClientEvent, LinkConfig};

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Ball {
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

fn schema() -> Schema {
    Schema::of::<Ball>().expect("a sound schema")
}

/// Joins normally, and then floods until it is told to stop.
fn flood(token: ConnectToken, protocol: ProtocolId, inputs: bool, stop: &AtomicBool) {
    let net = BlockingClient::connect(token, protocol, LinkConfig::default());
    let mut net = net.expect("its token is good");
    let mut view = View::new(schema(), ClientConfig::default()).expect("a sound schema");
    let hello = view.poll_message().expect("the first");
    let sent = net.with(|client, now| client.send(ChannelId::ORDERED, &hello, now));
    sent.expect("connected");
    while !view.is_welcome() {
        if let Some(ClientEvent::Received(Received::Message { message, .. })) =
            net.wait(Duration::from_millis(5))
        {
            let _ = view.handle(&message);
        }
    }
    let told = view.send_event(None, b"flood").expect("about nothing");
    let message = [&[0x82, told.len() as u8][..], &told].concat();
    let mut tick = 0u64;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..32 {
            // First tick, then one repeated group.
            let input = [
                &[19][..],
                &[
                    tick as u8 | 128,
                    (tick >> 7) as u8 | 128,
                    (tick >> 14) as u8 | 128,
                    1,
                ],
                &[1, 1 << 6, 63],
            ];
            let body = match inputs {
                true => input.concat(),
                false => message.repeat(64),
            };
            tick += 64;
            net.with(|client, now| client.send_raw(&body, now));
        }
        while net.wait(Duration::from_millis(1)).is_some() {}
    }
}

/// Fails if `wait` accepts everything that arrives (`push_from_client` of `EventQueue` never true),
/// or if a paused client stays paused (`take_paused` left out of `poll`).
#[test]
fn other_clients_are_served_as_before() {
    for inputs in [false, true] {
        let exchange = prescient::ExchangeConfig::default()
            .with_messages_per_second(u32::MAX)
            .with_inputs_per_second(u32::MAX);
        let link = prescient::LinkConfig::default().with_exchange(exchange);
        let mut server = bind(schema(), ServerOptions::default().with_link(link));
        let known = token(&server);
        let (honest, _) = join(&mut server, move || Client::join(known, schema()));
        let mut honest = honest.expect("it is let in");
        let (attacker, protocol) = (token(&server), server.protocol());
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let flooding = thread::spawn(move || flood(attacker, protocol, inputs, &told));
        let (mut attacker, mut events_sent, mut received) = (None::<PeerId>, 0u32, 0u32);
        let (mut from_attacker, mut refused) = (0, 0);
        for _ in 0..2000 {
            if received == ENOUGH && from_attacker > 4 * MAX_WAITING_EVENTS && refused > 0 {
                break;
            }
            if events_sent < ENOUGH {
                let told = honest.send_event(None, &events_sent.to_le_bytes());
                told.expect("there is room");
                events_sent += 1;
            }
            honest.wait(Duration::ZERO);
            while honest.poll().is_some() {}
            server.wait(Duration::from_millis(20));
            while let Some(event) = server.poll() {
                match event {
                    ServerEvent::Joined { peer, .. } => attacker = Some(peer),
                    ServerEvent::Event { peer, payload, .. } if Some(peer) != attacker => {
                        assert_eq!(payload, received.to_le_bytes(), "in order, each once");
                        received += 1;
                    }
                    ServerEvent::Event { .. } | ServerEvent::Input { .. } => from_attacker += 1,
                    ServerEvent::Left { reason, .. } => panic!("{reason}"),
                    _ => {}
                }
            }
            server.send();
            let report = attacker.and_then(|peer| server.statistics(peer)?.link);
            refused = report.map_or(0, |link| link.refused + link.joined_inputs);
        }
        stop.store(true, Ordering::Relaxed);
        flooding.join().expect("no panic");
        assert_eq!(received, ENOUGH, "{from_attacker} events of the attacker");
        assert!(refused > 0, "no message was refused");
        assert!(
            from_attacker > 4 * MAX_WAITING_EVENTS,
            "{from_attacker}: it was not resumed"
        );
    }
}

/// Waiting events of one client: 1024, and the rest of the packet that contained the last.
const MAX_WAITING_EVENTS: usize = 1024 + 64;
const ENOUGH: u32 = 40;
