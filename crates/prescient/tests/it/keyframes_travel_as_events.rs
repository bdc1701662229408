//! Packed keyframes over the reliable events of a server, through a link that loses, delays and reorders.

use std::collections::BTreeMap;
use std::time::Duration;

use prescient::timeline::packed::{PackedConfig, ReceiveError, Receiver, Sender};
use prescient::timeline::{
    Edit, Keyframe, Operation, PropertyId, Span, Time, Timeline, TimelineConfig,
};
use prescient::{
    About, Change, Client, ClientEvent, ClientId, Grant, PeerId, Schema, Server, ServerEvent,
    ServerOptions, State, TokenKey, UnixTime, protocol,
};
use prescient_net::{Clock, SystemEntropy};
use prescient_sim::link::{Conditions, UdpConditioner};

use crate::common::{bind, join, run};

/// Keyframes need no entities, but a server has a schema.
#[derive(Clone, Copy, Debug, PartialEq, State)]
struct Flag {
    is_up: bool,
}

fn schema() -> Schema {
    Schema::of::<Flag>().expect("sound")
}

fn config() -> PackedConfig<[f64; 2]> {
    let interval = Span::from_millis(40);
    let config = PackedConfig::new(0.25).expect("a step").interval(interval);
    config.timeline(TimelineConfig::default())
}

/// A client that receives keyframes, and which events it pretends not to have got.
struct Watcher {
    receiver: Receiver<[f64; 2]>,
    drops: fn(usize) -> bool,
    events: usize,
    missing: usize,
}

impl Watcher {
    fn new(drops: fn(usize) -> bool) -> Self {
        Self {
            receiver: Receiver::new(config()),
            drops,
            events: 0,
            missing: 0,
        }
    }

    fn poll(&mut self, client: &mut Client) {
        while let Some(event) = client.poll() {
            let ClientEvent::Change(Change::Event {
                about: About::Nothing,
                payload,
                ..
            }) = event
            else {
                continue;
            };
            self.events += 1;
            if (self.drops)(self.events) {
                continue;
            }
            match self.receiver.handle(&payload) {
                Ok(()) => {}
                Err(ReceiveError::Missing) => self.missing += 1,
                Err(error) => panic!("{error}"),
            }
        }
        while let Some(request) = self.receiver.poll_transmit() {
            client.send_event(None, &request).expect("connected");
        }
    }
}

fn same(first: &Timeline<[f64; 2]>, second: &Timeline<[f64; 2]>) -> bool {
    first.curves().eq(second.curves())
}

/// A client that was there from the start, and misses every seventh event, and one that joins when the
/// game is half over have the curves of the server. Fails if the receiver does not ask for what it misses
/// (`ask` in `Receiver::handle`), or the sender ignores requests.
#[test]
fn late_and_forgetful_clients_have_the_curves_of_the_server() {
    let mut server = bind(schema(), ServerOptions::default());
    let address = server.address().expect("it has a socket");
    let bad = Conditions {
        latency: Duration::from_millis(5),
        jitter: Duration::from_millis(10),
        jitter_reorders: true,
        loss: 100_000,
        ..Conditions::default()
    };
    let relay = UdpConditioner::start(address, 11, bad.clone(), bad).expect("a relay");
    let joined = |server: &mut Server, number| {
        let grant = Grant {
            client: ClientId(number),
            protocol: protocol(),
            servers: vec![relay.address(), address],
            expires: UnixTime(Clock::unix().0 + 60),
            data: Vec::new(),
        };
        let key = TokenKey::insecure_for_loopback_tests();
        let mut entropy = SystemEntropy::new().expect("randomness");
        let token = grant.issue(&key, &mut entropy).expect("sound");
        let (client, events) = join(server, move || Client::join(token, schema()));
        let peer = events.into_iter().find_map(|event| match event {
            ServerEvent::Joined { peer, .. } => Some(peer),
            _ => None,
        });
        (client.expect("joined"), peer.expect("it joined"))
    };

    let mut truth = Timeline::<[f64; 2]>::default();
    let mut senders: BTreeMap<PeerId, Sender<[f64; 2]>> = BTreeMap::new();
    let mut clients = Vec::new();
    let mut watchers = [
        Watcher::new(|number| number % 7 == 0),
        Watcher::new(|_| false),
    ];
    let mut round = 0i64;
    for watching in 1..=watchers.len() {
        let (client, peer) = joined(&mut server, watching as u64);
        clients.push(client);
        let mut sender = Sender::new(config());
        for (property, curve) in truth.curves() {
            for keyframe in curve.keyframes() {
                let edit = Edit::Add(keyframe);
                sender
                    .apply(&Operation { property, edit })
                    .expect("the truth has it, too");
            }
        }
        senders.insert(peer, sender);
        let end = round + 300;
        run(&mut server, &mut clients, |server, clients| {
            round += 1;
            let now = Time::from_millis(10 * round);
            if round < end {
                let property = PropertyId((round * 7 % 20) as u32);
                let value = [(round % 50) as f64, (round / 50) as f64];
                let edit = Edit::Add(Keyframe::new(now + Span::from_millis(500), value));
                let operation = Operation { property, edit };
                truth.apply(&operation).expect("sound");
                for sender in senders.values_mut() {
                    sender.apply(&operation).expect("sound");
                }
            }
            while let Some(event) = server.poll() {
                if let ServerEvent::Event { peer, payload, .. } = event {
                    let sender = senders.get_mut(&peer).expect("it joined");
                    sender.handle(&payload).expect("a receiver wrote it");
                }
            }
            for (&peer, sender) in &mut senders {
                sender.handle_timeout(now);
                while let Some(message) = sender.poll_transmit() {
                    server.send_event(peer, &message).expect("connected");
                }
            }
            for (watcher, client) in watchers.iter_mut().zip(clients) {
                watcher.poll(client);
            }
            let all = watchers.iter().take(watching);
            round >= end
                && all
                    .clone()
                    .all(|watcher| same(watcher.receiver.timeline(), &truth))
        });
    }
    assert!(watchers[0].missing > 0, "nothing was asked for");
    assert_eq!(watchers[1].missing, 0, "events are reliable");
}
