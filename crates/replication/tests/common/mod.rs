//! A small game, and links that lose, delay and reorder.
#![allow(dead_code, reason = "every test uses another part")]

use std::collections::BTreeMap;

use prescient_replication::{
    About, Change, Client, ClientError, Object, PeerId, Relevance, Server, ServerConfig, Tick,
};
use prescient_schema::{Ref, Schema, SchemaBuilder, State};

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(rename = "unit", tables(public, private))]
pub struct Unit {
    #[state(step = 0.01, position, tables(public))]
    pub place: [f32; 2],
    #[state(tables(public))]
    pub health: u8,
    #[state(tables(public))]
    pub target: Ref<Unit>,
    #[state(tables(private))]
    pub gold: u16,
}

pub fn schema() -> Schema {
    let schema = SchemaBuilder::new().state::<Unit>().build();
    schema.expect("a sound schema")
}

/// A generator of numbers that a seed repeats.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % limit.max(1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Messages on their way. Those that may not get lost come late instead, each once.
#[derive(Default)]
pub struct Lane {
    flying: BTreeMap<(u32, u64), Vec<u8>>,
    sent: u64,
}

impl Lane {
    pub fn send(&mut self, message: Vec<u8>, due: u32) {
        self.flying.insert((due, self.sent), message);
        self.sent += 1;
    }

    pub fn receive(&mut self, now: u32) -> Option<Vec<u8>> {
        let entry = self.flying.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    pub fn is_empty(&self) -> bool {
        self.flying.is_empty()
    }
}

/// How bad a link is.
#[derive(Clone, Copy, Debug)]
pub struct Badness {
    /// Of 100 messages in each direction.
    pub loss: u64,
    /// Ticks that a message takes at least, and at most.
    pub delay: (u32, u32),
    /// Of 100 that arrive twice.
    pub repeats: u64,
    /// Losses come in runs of so many, on average; 1 for each by itself.
    pub run: u64,
}

impl Badness {
    pub const NONE: Self = Self {
        loss: 0,
        delay: (1, 1),
        repeats: 0,
        run: 1,
    };

    /// Whether a message is lost; `losing` says whether the one before was.
    fn loses(&self, losing: &mut bool, dice: &mut Dice) -> bool {
        // Gilbert and Elliott: so that of all messages `loss` of 100 are lost.
        let (leave, fine) = (1_000_000 / self.run, 100 - self.loss.min(99));
        let enter = leave * self.loss / fine;
        let change = if *losing { leave } else { enter };
        *losing ^= dice.below(1_000_000) < change;
        *losing
    }

    fn due(&self, now: u32, dice: &mut Dice) -> u32 {
        let (least, most) = self.delay;
        now + least + dice.below(u64::from(most - least) + 1) as u32
    }
}

/// An event, and the object that it was about as it was then.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    pub tick: Tick,
    pub about: About<Object>,
    pub unit: Option<Unit>,
    pub payload: Vec<u8>,
}

/// A client behind a link.
pub struct Seat {
    pub peer: PeerId,
    pub client: Client,
    pub down: Lane,
    pub up: Lane,
    pub events_down: Lane,
    /// What it was told of, as the program noted it.
    pub objects: BTreeMap<Object, Unit>,
    pub events: Vec<Heard>,
    pub bytes: usize,
    pub largest: usize,
    /// Whether the last message each way was lost.
    losing: [bool; 2],
}

impl Seat {
    pub fn new(peer: PeerId) -> Self {
        Self {
            peer,
            client: Client::new(schema(), Default::default()).expect("a sound schema"),
            down: Lane::default(),
            up: Lane::default(),
            events_down: Lane::default(),
            objects: BTreeMap::new(),
            events: Vec::new(),
            bytes: 0,
            largest: 0,
            losing: [false; 2],
        }
    }

    /// Polls everything, as a program would, and keeps a picture of its own.
    pub fn poll(&mut self) {
        while let Some(change) = self.client.poll_change() {
            match change {
                Change::Created(object) => {
                    let unit = self.client.get(object).expect("it was just created");
                    assert_eq!(self.objects.insert(object, unit), None, "created twice");
                }
                Change::Updated(object) => {
                    let unit = self.client.get(object).expect("it was just updated");
                    let known = self.objects.insert(object, unit);
                    assert!(known.is_some(), "updated before it was created");
                }
                Change::Removed(object) => {
                    assert!(self.objects.remove(&object).is_some(), "removed, not known");
                }
                Change::Event {
                    tick,
                    about,
                    payload,
                } => {
                    let unit = match about {
                        About::Object(object) => {
                            let unit = self.objects.get(&object);
                            Some(unit.expect("no stranger").clone())
                        }
                        About::Nothing | About::Gone => None,
                    };
                    self.events.push(Heard {
                        tick,
                        about,
                        unit,
                        payload,
                    });
                }
            }
        }
    }
}

/// A server, its clients, and the links between them.
pub struct Theatre {
    pub server: Server,
    pub seats: Vec<Seat>,
    pub dice: Dice,
    pub badness: Badness,
    pub budget: Option<usize>,
    pub tick: u32,
}

impl Theatre {
    pub fn new(seed: u64, peers: u64, badness: Badness, policy: impl Relevance + 'static) -> Self {
        let config = ServerConfig::default();
        let mut server = Server::new(schema(), config, policy).expect("a sound schema");
        let seats = (1..=peers).map(|peer| Seat::new(PeerId(peer))).collect();
        (1..=peers).for_each(|peer| server.connect(PeerId(peer)));
        Self {
            server,
            seats,
            dice: Dice::new(seed),
            badness,
            budget: None,
            tick: 0,
        }
    }

    /// Sends what is new of the tick that was stepped last, and lets everything arrive that is due.
    pub fn exchange(&mut self) {
        let (now, badness, budget) = (self.tick, self.badness, self.budget);
        let messages = self.server.encode(&|_| budget);
        for (peer, message) in messages {
            let seat = self.seats.iter_mut().find(|seat| seat.peer == peer);
            let seat = seat.expect("everybody sits somewhere");
            seat.bytes += message.len();
            seat.largest = seat.largest.max(message.len());
            if !badness.loses(&mut seat.losing[0], &mut self.dice) {
                seat.down
                    .send(message.clone(), badness.due(now, &mut self.dice));
            }
            if self.dice.chance(badness.repeats) {
                seat.down.send(message, badness.due(now, &mut self.dice));
            }
        }
        for seat in &mut self.seats {
            while let Some(event) = self.server.poll_event(seat.peer) {
                let late = if self.dice.chance(badness.loss) { 7 } else { 0 };
                let due = badness.due(now, &mut self.dice) + late;
                seat.events_down.send(event, due);
            }
            while let Some(message) = seat.down.receive(now) {
                match seat.client.handle(&message) {
                    Ok(()) => {}
                    Err(ClientError::State(prescient_codec::DecodeError::Late)) => {}
                    Err(error) => panic!("an honest packet was refused: {error}"),
                }
            }
            while let Some(event) = seat.events_down.receive(now) {
                seat.client.handle(&event).expect("an honest event");
            }
            if let Some(ack) = seat.client.acknowledgement()
                && !badness.loses(&mut seat.losing[1], &mut self.dice)
            {
                seat.up.send(ack, badness.due(now, &mut self.dice));
            }
            while let Some(message) = seat.up.receive(now) {
                self.server
                    .handle(seat.peer, &message)
                    .expect("an honest answer");
            }
            seat.poll();
        }
    }
}

/// Runs a test for every seed; `PRESCIENT_SEED` picks one, `PRESCIENT_SEEDS` says how many.
pub fn for_seeds(test: impl Fn(u64)) {
    let read = |name: &str| std::env::var(name).ok()?.parse().ok();
    let seeds = match read("PRESCIENT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..read("PRESCIENT_SEEDS").unwrap_or(20),
    };
    for seed in seeds {
        let run = std::panic::AssertUnwindSafe(|| test(seed));
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("replay with PRESCIENT_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
