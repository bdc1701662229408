//! What typed events take on the wire, beside the bytes of a serializer that knows only the types.

use std::collections::BTreeMap;

use prescient_replication::{
    Change, Client, ClientConfig, Everything, PeerId, Room, Server, ServerConfig, Tick,
};
use prescient_schema::{Event, Ref, Schema, State};

#[derive(State)]
struct Tank {
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

#[derive(State, Clone, Copy, Debug, PartialEq)]
enum Weapon {
    Gun,
    Cannon,
    Mine,
}

#[derive(Event, Clone, Debug, PartialEq)]
enum InOrder {
    Hit {
        shooter: Ref<Tank>,
        victim: Ref<Tank>,
        #[event(step = 0.5)]
        damage: f32,
        #[event(step = 0.01)]
        at: [f32; 2],
    },
    Kill {
        killer: Ref<Tank>,
        victim: Ref<Tank>,
        weapon: Weapon,
    },
    Chat {
        from: Ref<Tank>,
        text: String,
    },
}

/// The same, each coded by itself.
#[derive(Event, Clone, Debug, PartialEq)]
#[event(unordered)]
enum ByItself {
    Hit {
        shooter: Ref<Tank>,
        victim: Ref<Tank>,
        #[event(step = 0.5)]
        damage: f32,
        #[event(step = 0.01)]
        at: [f32; 2],
    },
    Kill {
        killer: Ref<Tank>,
        victim: Ref<Tank>,
        weapon: Weapon,
    },
    Chat {
        from: Ref<Tank>,
        text: String,
    },
}

impl InOrder {
    fn by_itself(&self) -> ByItself {
        match self.clone() {
            Self::Hit {
                shooter,
                victim,
                damage,
                at,
            } => ByItself::Hit {
                shooter,
                victim,
                damage,
                at,
            },
            Self::Kill {
                killer,
                victim,
                weapon,
            } => ByItself::Kill {
                killer,
                victim,
                weapon,
            },
            Self::Chat { from, text } => ByItself::Chat { from, text },
        }
    }

    /// As compact serializers write it: a byte for the variant and for an enumeration, 4 bytes for a
    /// number of an entity and for an `f32`, a byte for the length of a short text. Without any head.
    fn raw(&self) -> usize {
        match self {
            Self::Hit { .. } => 1 + 4 + 4 + 4 + 8,
            Self::Kill { .. } => 1 + 4 + 4 + 1,
            Self::Chat { text, .. } => 1 + 4 + 1 + text.len(),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Hit { .. } => "hit",
            Self::Kill { .. } => "kill",
            Self::Chat { .. } => "chat",
        }
    }
}

const PEER: PeerId = PeerId(1);

/// Exchanges what waits; returns the bytes of all messages but those of state, and the events.
fn exchange(server: &mut Server, client: &mut Client) -> (usize, Vec<InOrder>, Vec<ByItself>) {
    let (mut bytes, mut in_order, mut by_itself) = (0, Vec::new(), Vec::new());
    server.encode(&|_| Room::one(1200));
    while let Some(transmit) = server.poll_transmit(PEER) {
        let message = transmit.message();
        if !prescient_replication::is_state(message) {
            bytes += message.len();
        }
        client.handle(message).expect("an honest message");
    }
    while let Some(change) = client.poll_change() {
        if let Change::Typed(event) = change {
            in_order.extend(event.read::<InOrder>());
            by_itself.extend(event.read::<ByItself>());
        }
    }
    if let Some(message) = client.acknowledgement() {
        server.handle(PEER, &message).expect("an honest message");
    }
    (bytes, in_order, by_itself)
}

/// Fails if `RowCoder::learn` does nothing: then events in order are no shorter than by themselves.
#[test]
fn typed_events_are_small() {
    let schema = Schema::of::<Tank>().and_then(Schema::with_events::<(InOrder, ByItself)>);
    let schema = schema.expect("a sound schema");
    let config = ServerConfig::default();
    let mut server = Server::new(schema.clone(), config, Everything).expect("sound");
    let mut client = Client::new(schema, ClientConfig::default()).expect("sound");
    server.connect(PEER);
    while let Some(message) = client.poll_message() {
        server.handle(PEER, &message).expect("the same schema");
    }
    let mut step = server.step(Tick(1)).expect("in order");
    let tanks: Vec<Ref<Tank>> = (0..16)
        .map(|x| {
            let position = [x as f32, 0.0];
            step.spawn(&Tank { position }).expect("room")
        })
        .collect();
    step.finish();
    for _ in 0..3 {
        exchange(&mut server, &mut client);
    }
    let mut seed = 9u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let texts = [
        "gg",
        "to the left",
        "help",
        "I need ammunition",
        "nice shot",
    ];
    let mut sums: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for tick in 2..2_002 {
        server.step(Tick(tick)).expect("in order").finish();
        let mut tank = || tanks[random(16) as usize];
        let (one, other) = (tank(), tank());
        let event = match tick % 10 {
            0 => InOrder::Kill {
                killer: one,
                victim: other,
                weapon: [Weapon::Gun, Weapon::Gun, Weapon::Cannon, Weapon::Mine]
                    [random(4) as usize],
            },
            1 => InOrder::Chat {
                from: one,
                text: texts[random(5) as usize].into(),
            },
            _ => InOrder::Hit {
                shooter: one,
                victim: other,
                damage: 10.0 + random(20) as f32 / 2.0,
                at: [random(10_000) as f32 / 100.0, random(10_000) as f32 / 100.0],
            },
        };
        server.broadcast(&event).expect("a sound event");
        let (in_order, told, _) = exchange(&mut server, &mut client);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].name(), event.name());
        server.broadcast(&event.by_itself()).expect("a sound event");
        let (alone, _, told) = exchange(&mut server, &mut client);
        assert_eq!(told.len(), 1);
        if tick > 200 {
            let sum = sums.entry(event.name()).or_default();
            let more = [1, in_order, alone, event.raw()];
            for (sum, more) in sum.iter_mut().zip(more) {
                *sum += more;
            }
        }
    }
    for (name, [count, in_order, alone, raw]) in sums {
        let mean = |bytes: usize| bytes as f64 / count as f64;
        println!(
            "{name}: {:.1} bytes in order, {:.1} by itself; raw {:.1}, with its head {:.1}",
            mean(in_order),
            mean(alone),
            mean(raw),
            mean(raw) + 9.0
        );
        // With the head of the message, the check and the tick.
        assert!(in_order < raw, "{name}");
        assert!(alone < raw + 9 * count, "{name}");
        assert!(in_order < alone, "{name}");
    }
}
