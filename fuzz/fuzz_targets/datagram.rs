//! Scripts for a server and two clients: whatever the network and attackers do, nothing panics, and
//! every message that arrives was sent and arrives once.
#![no_main]

use std::collections::BTreeSet;
use std::net::SocketAddr;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_channels::*;
use prescient_fuzz::pair::{here, mix};
use prescient_transport::*;

#[derive(Arbitrary, Debug)]
enum Action {
    Wait {
        micros: u32,
    },
    Leap {
        to: u64,
        unix: u64,
    },
    Up {
        peer: bool,
        length: u16,
    },
    Down {
        peer: bool,
        length: u16,
    },
    Deliver {
        index: u8,
    },
    Repeat {
        index: u8,
    },
    Drop {
        index: u8,
    },
    Damage {
        index: u8,
        at: u16,
        by: u8,
        cut: Option<u8>,
    },
    Forge {
        to_server: bool,
        bytes: Vec<u8>,
        padded: bool,
    },
    Move {
        peer: bool,
        port: u8,
    },
    Close {
        peer: bool,
        by_server: bool,
        code: u16,
    },
}

struct Flying {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

struct World {
    now: Time,
    unix: UnixTime,
    entropy: u64,
    server: Server,
    clients: Vec<(Client, SocketAddr)>,
    flying: Vec<Flying>,
    sent: BTreeSet<Vec<u8>>,
    received: BTreeSet<Vec<u8>>,
    open: BTreeSet<ConnectionId>,
    count: u64,
}

fn channel(length: u16) -> ChannelId {
    ChannelId((length / 2000 % 5) as u8)
}

impl World {
    fn new() -> Self {
        let (mut state, now, protocol) = (1, Time::from_micros(1 << 40), ProtocolId([5; 16]));
        let mut entropy = mix(&mut state);
        let key = TokenKey::generate(&mut entropy);
        let link = LinkConfig::default().with_packets_per_key(3);
        let config = ServerConfig::new(key.clone(), protocol, vec![here()]).with_link(link.clone());
        let server = Server::new(config, &mut entropy, now).expect("it can work");
        let mut client = |number: u8| {
            let grant = Grant {
                client: ClientId(number.into()),
                protocol,
                servers: vec![here()],
                expires: UnixTime(1000),
                data: vec![number],
            };
            let token = grant.issue(&key, &mut entropy).expect("sound");
            let client = Client::connect(token, protocol, link.clone(), &mut entropy, now);
            let home = SocketAddr::from(([10, 0, 0, number], 5000));
            (client.expect("the same protocol"), home)
        };
        let clients = vec![client(0), client(1)];
        Self {
            now,
            unix: UnixTime(900),
            entropy: 2,
            server,
            clients,
            flying: Vec::new(),
            sent: BTreeSet::new(),
            received: BTreeSet::new(),
            open: BTreeSet::new(),
            count: 0,
        }
    }

    fn message(&mut self, whose: u8, length: u16) -> Vec<u8> {
        self.count += 1;
        let mut message = vec![whose];
        message.extend(self.count.to_le_bytes());
        message.resize(message.len().max(usize::from(length)), 3);
        message
    }

    fn arrive(&mut self, flying: &Flying) {
        let Flying { from, to, bytes } = flying;
        if *to == here() {
            let mut entropy = mix(&mut self.entropy);
            self.server
                .handle_datagram(*from, bytes, self.now, self.unix, &mut entropy);
        }
        for (client, home) in &mut self.clients {
            if to == home {
                client.handle_datagram(*from, bytes, self.now);
            }
        }
    }

    fn handle_message(&mut self, message: Vec<u8>, whose: u8) {
        assert_eq!(message[0], whose);
        assert!(self.sent.contains(&message), "a message that was not sent");
        assert!(
            self.received.insert(message),
            "a message that arrived twice"
        );
    }

    fn settle(&mut self) {
        self.server.handle_timeout(self.now);
        for number in 0..2 {
            let (client, home) = &mut self.clients[number];
            client.handle_timeout(self.now);
            while let Some(Transmit { to, bytes, .. }) = client.poll_transmit(self.now) {
                let from = *home;
                self.flying.push(Flying {
                    from,
                    to,
                    bytes: bytes.into_vec(),
                });
            }
            let events: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
            for event in events {
                if let ClientEvent::Received(Received::Message { message, .. }) = event {
                    self.handle_message(message, 10 + number as u8);
                }
            }
        }
        while let Some(Transmit { to, bytes, .. }) = self.server.poll_transmit(self.now) {
            assert!(bytes.len() <= MAX_DATAGRAM);
            let from = here();
            self.flying.push(Flying {
                from,
                to,
                bytes: bytes.into_vec(),
            });
        }
        while let Some(event) = self.server.poll_event() {
            match event {
                ServerEvent::Connected {
                    connection,
                    client,
                    data,
                    ..
                } => {
                    assert_eq!(data, [client.0 as u8]);
                    assert!(self.open.insert(connection));
                }
                ServerEvent::Received {
                    connection,
                    received,
                } => {
                    assert!(self.open.contains(&connection));
                    if let Received::Message { message, .. } = received {
                        let whose = message[0];
                        assert!(whose < 2);
                        self.handle_message(message, whose);
                    }
                }
                ServerEvent::Moved { connection, .. }
                | ServerEvent::Info { connection, .. }
                | ServerEvent::Plays { connection, .. }
                | ServerEvent::Silent { connection }
                | ServerEvent::Resumed { connection } => {
                    assert!(self.open.contains(&connection));
                }
                ServerEvent::Closed { connection, .. } => assert!(self.open.remove(&connection)),
                other => panic!("an event that this target does not know: {other:?}"),
            }
        }
        assert!(self.server.footprint().connections <= 2);
        self.flying.truncate(200);
    }

    fn connection(&self, peer: bool) -> Option<ConnectionId> {
        let wanted = ClientId(peer.into());
        let found = self.server.clients().find(|(_, client)| *client == wanted);
        found.map(|(connection, _)| connection)
    }

    fn take(&mut self, index: u8) -> Option<Flying> {
        let index = usize::from(index).checked_rem(self.flying.len())?;
        Some(self.flying.remove(index))
    }

    fn step(&mut self, step: Action) {
        let now = self.now;
        match step {
            Action::Wait { micros } => {
                self.now = now.after(std::time::Duration::from_micros(micros.into()))
            }
            Action::Leap { to, unix } => {
                self.now = Time::from_micros(to);
                self.unix = UnixTime(unix);
            }
            Action::Up { peer, length } => {
                let message = self.message(peer.into(), length % 2000);
                let client = &mut self.clients[usize::from(peer)].0;
                if client.send(channel(length), &message, now).is_ok() {
                    self.sent.insert(message);
                }
            }
            Action::Down { peer, length } => {
                let message = self.message(10 + u8::from(peer), length % 2000);
                let connection = self.connection(peer).unwrap_or(ConnectionId(length.into()));
                let said = self.server.send(connection, channel(length), &message, now);
                if said.is_ok() {
                    self.sent.insert(message);
                }
            }
            Action::Deliver { index } => {
                if let Some(flying) = self.take(index) {
                    self.arrive(&flying);
                }
            }
            Action::Repeat { index } => {
                if let Some(flying) = self.take(index) {
                    self.arrive(&flying);
                    self.flying.push(flying);
                }
            }
            Action::Drop { index } => drop(self.take(index)),
            Action::Damage { index, at, by, cut } => {
                if let Some(mut flying) = self.take(index) {
                    let at = usize::from(at) % flying.bytes.len();
                    flying.bytes[at] ^= by;
                    let cut = cut.map_or(usize::MAX, usize::from);
                    flying.bytes.truncate(cut);
                    self.arrive(&flying);
                }
            }
            Action::Forge {
                to_server,
                mut bytes,
                padded,
            } => {
                if padded {
                    bytes.resize(BASE_DATAGRAM, 0);
                }
                let home = self.clients[0].1;
                let (from, to) = if to_server {
                    (home, here())
                } else {
                    (here(), home)
                };
                self.arrive(&Flying { from, to, bytes });
            }
            Action::Move { peer, port } => self.clients[usize::from(peer)].1.set_port(port.into()),
            Action::Close {
                peer,
                by_server,
                code,
            } => match (by_server, self.connection(peer)) {
                (true, Some(connection)) => {
                    self.server.close(connection, CloseReason::Other(code), now)
                }
                _ => self.clients[usize::from(peer)]
                    .0
                    .close(CloseReason::Other(code), now),
            },
        }
        self.settle();
    }
}

fuzz_target!(|script: (bool, Vec<Action>)| {
    let (connected, steps) = script;
    let mut world = World::new();
    world.settle();
    if connected {
        for _ in 0..12 {
            world.step(Action::Deliver { index: 0 });
        }
    }
    for step in steps.into_iter().take(300) {
        world.step(step);
    }
});
