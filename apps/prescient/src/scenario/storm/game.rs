//! One storm: a server, its clients, and everything that happens to them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use prescient::schema::Schema;
use prescient_codec::Profile;
use prescient_replication::{About, Config, PeerId, Place, ServerConfig, Subject, Tick, Viewer};
use prescient_sim::link::{EndpointId, Network, Time};
use prescient_transport as transport;

use super::dice::Dice;
use super::host::{Happened, Host};
use super::policy::{Policy, View};
use super::promise::{Promise, Wrong};
use super::seat::{Heard, Seat};
use super::truth::{Key, NEIGHBOUR, Truth, is_hidden};
use super::verdict::{Fault, Verdict};
use super::verify::Witness;
use super::{links, schemas};

/// Where the server is.
pub const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 4000);

/// The virtual clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock(pub Time);

impl Clock {
    /// As the transport has it.
    pub fn transport(self) -> transport::Time {
        transport::Time::from_micros(self.0.as_micros() + (1 << 40))
    }
}

/// What was said to a client at a tick, state or an event.
pub type Said = (Tick, bool, Vec<u8>);

/// A storm.
pub struct Game {
    seed: u64,
    schema: Schema,
    config: ServerConfig,
    policy: Policy,
    truth: Truth,
    host: Host,
    server: EndpointId,
    network: Network,
    seats: Vec<Seat>,
    clock: Clock,
    pub tick: Tick,
    frozen: bool,
    /// For how many ticks nothing has moved.
    still: u32,
    /// What every visit of every peer was promised.
    promises: BTreeMap<(PeerId, u32), Promise>,
    /// Where peers look from and which team they are of, whether they are here or not.
    eyes: BTreeMap<PeerId, Eye>,
    teams: BTreeMap<PeerId, u32>,
    /// What happened since the last packets: the event, its object, and for whom alone.
    announced: Vec<(u32, Key, Option<PeerId>)>,
    events: u32,
    restart_at: Option<u32>,
    /// What clients said and the server heard, by visit.
    heard: BTreeMap<(PeerId, u32), u32>,
    pub said: BTreeMap<PeerId, Vec<Said>>,
    pub verdict: Verdict,
}

#[derive(Clone, Copy)]
enum Eye {
    At([f64; 3]),
    Object(Key),
}

impl Game {
    /// The storm of a seed, with what is hidden or without.
    pub fn new(seed: u64, with_hidden: bool) -> Self {
        let mut dice = Dice::of(seed, 1);
        let (types, schema) = schemas::random(&mut dice);
        let policy = Policy::random(&mut dice);
        let config = ServerConfig {
            codec: Config {
                profile: [Profile::Default, Profile::Best][dice.below(8) / 7],
                ..Config::default()
            },
            look_every: [1, 2, 4, 7][dice.below(4)],
            cell: [1.0, 20.0, 100.0][dice.below(3)],
            resync_every: [0, 3, 30][dice.below(3)],
            ..ServerConfig::default()
        };
        let clock = Clock(Time::from_secs(1));
        let entropy = Dice::of(seed, 3);
        let host = Host::new(schema.clone(), config, policy.clone(), entropy, clock);
        let host = host.expect("a sound schema");
        let mut network = Network::new(seed);
        let server = network.add(SERVER).expect("nobody else is there");
        let peers = 1 + dice.below(3) as u64;
        let all = (1..=peers).map(PeerId).chain([NEIGHBOUR]);
        let seats = all.map(|peer| {
            let address = SocketAddr::from(([10, 0, peer.0 as u8, 1], 5000));
            let endpoint = network.add(address).expect("everybody has their own");
            let joined = network.join(endpoint, server, links::good(), links::good());
            joined.expect("both are there");
            let mut dice = Dice::of(seed, 100 + peer.0);
            Seat {
                peer,
                endpoint,
                budget: budget(&mut dice),
                stalled_until: Time::ZERO,
                away_until: Time::from_millis(
                    1000 + dice.below(2) as u64 * dice.below(2000) as u64,
                ),
                visits: 0,
                visit: None,
                dice,
            }
        });
        let seats = seats.collect();
        Self {
            seed,
            schema,
            config,
            policy,
            truth: Truth::new(seed, types, peers, with_hidden),
            host,
            server,
            network,
            seats,
            clock,
            tick: Tick(0),
            frozen: false,
            still: 0,
            promises: BTreeMap::new(),
            eyes: BTreeMap::new(),
            teams: BTreeMap::new(),
            announced: Vec::new(),
            events: 0,
            restart_at: dice.of_thousand(200).then(|| 20 + dice.below(100) as u32),
            heard: BTreeMap::new(),
            said: BTreeMap::new(),
            verdict: Verdict::default(),
        }
    }

    /// Plays it to the end, when links heal and everybody must agree.
    pub fn play(mut self) -> Self {
        let length = 60 + Dice::of(self.seed, 4).below(100) as u32;
        for turn in 0..length {
            self.blow();
            self.turn(turn);
        }
        self.heal();
        for turn in 0..CALM {
            self.turn(length + turn);
        }
        self.frozen = true;
        let mut missing = Vec::new();
        for turn in 0..PATIENCE {
            self.turn(length + CALM + turn);
            missing = self.missing();
            if turn > 10 && missing.is_empty() {
                break;
            }
        }
        for story in missing {
            self.verdict.note(Fault::Failure, || {
                format!("no agreement in the end: {story}")
            });
        }
        self.conclude();
        self
    }

    /// A tick, and the time until the next.
    fn turn(&mut self, turn: u32) {
        let leap = match self.truth.dice().below(50) {
            0 if !self.frozen => 1 + self.truth.dice().below(40) as u32,
            _ => 1,
        };
        self.tick = Tick(self.tick.0 + leap);
        self.still += u32::from(self.frozen);
        if self.restart_at == Some(turn) {
            self.restart();
        } else {
            let step = self.host.stage.step(self.tick).expect("ticks grow");
            let stepped = self.truth.step(self.tick, step, self.frozen);
            stepped.expect("the world is sound");
        }
        self.publish();
        self.direct();
        self.announce();
        // Packets need not be sent as often as the world moves.
        if self.frozen || !self.truth.dice().of_thousand(100) {
            self.send();
        }
        for _ in 0..MOMENTS {
            self.clock = Clock(self.clock.0 + MOMENT);
            self.attend();
        }
    }

    /// A new server with the same world, of which nobody knows yet.
    fn restart(&mut self) {
        let entropy = Dice::of(self.seed, 5);
        *self.policy.notes() = Default::default();
        let (schema, policy) = (self.schema.clone(), self.policy.clone());
        let host = Host::new(schema, self.config, policy, entropy, self.clock);
        self.host = host.expect("a sound schema");
        self.announced.clear();
        let step = self.host.stage.step(self.tick).expect("the first tick");
        let begun = self.truth.begin_anew(self.tick, step);
        begun.expect("the world is sound");
    }

    /// Tells the policy what the server calls everybody.
    fn publish(&mut self) {
        let phase = u64::from(self.tick.0 / 40);
        let mut notes = self.policy.notes();
        let told = self.truth.now.keys().filter_map(|key| {
            let entity = self.truth.entities.get(key)?;
            Some((entity.cell(), *key))
        });
        notes.directory = told.collect();
        if !self.frozen && notes.phase != phase {
            notes.phase = phase;
            self.host.stage.look_again();
        }
    }

    /// Moves eyes, and lets players change sides.
    fn direct(&mut self) {
        let peers: Vec<PeerId> = self.seats.iter().map(|seat| seat.peer).collect();
        for peer in peers {
            let truth = &mut self.truth;
            let object = truth.any(false);
            let dice = truth.dice();
            let leaps = dice.of_thousand(30);
            let at: [f64; 3] = std::array::from_fn(|_| dice.between(-200, 200) as f64);
            let by: [f64; 3] = std::array::from_fn(|_| dice.between(-3, 3) as f64);
            let sides = dice.of_thousand(15).then(|| dice.below(3) as u32);
            let on_object = dice.of_thousand(400);
            if self.frozen {
                continue;
            }
            let eye = self.eyes.entry(peer).or_insert(Eye::At(at));
            match (leaps, &mut *eye, object) {
                (true, _, Some(object)) if on_object => *eye = Eye::Object(object),
                (true, ..) => *eye = Eye::At(at),
                (false, Eye::At(place), _) => {
                    place.iter_mut().zip(by).for_each(|(to, by)| *to += by);
                }
                (false, Eye::Object(_), _) => {}
            }
            // The neighbour's side is nobody else's business.
            if let Some(side) = sides.filter(|_| peer != NEIGHBOUR) {
                self.teams.insert(peer, side);
                self.place(peer);
            }
            self.look(peer);
        }
    }

    fn place(&mut self, peer: PeerId) {
        if self.host.visit_of(peer).is_some() {
            let team = self.teams.get(&peer).copied().unwrap_or(0);
            let set = self.host.stage.set_team(peer, team);
            set.expect("it is here");
        }
    }

    fn look(&mut self, peer: PeerId) {
        if self.host.visit_of(peer).is_none() {
            return;
        }
        let stage = &mut self.host.stage;
        let looked = match self.eyes.get(&peer) {
            Some(Eye::At(place)) => stage.look_from(peer, Place(*place)),
            Some(Eye::Object(key)) => match self.truth.entities.get(key) {
                Some(&entity) => stage.look_from_object(peer, entity),
                None => Ok(()),
            },
            None => Ok(()),
        };
        looked.expect("it is here");
    }

    /// Lets things happen to objects, and to peers.
    fn announce(&mut self) {
        for _ in 0..2 {
            let what = self.truth.dice().below(6);
            let peer = self.truth.dice().below(self.seats.len());
            let peer = self.seats[peer].peer;
            let object = self.truth.any(what == 3);
            self.events += 1;
            let number = self.events;
            match (what, object) {
                (0, _) => {
                    let payload = payload(number, 0);
                    if let Some(visit) = self.host.visit_of(peer) {
                        let told = self.host.stage.tell(peer, &payload);
                        told.expect("it is here");
                        self.promise(peer, visit).events.insert(number, 0);
                    }
                }
                (1..4, Some(key)) if self.truth.is_told(key) => {
                    let entity = self.truth.entities[&key];
                    let payload = payload(number, key);
                    let to = (what == 2).then_some(peer);
                    let stage = &mut self.host.stage;
                    let announced = match to {
                        Some(peer) => stage.announce_to(peer, entity, &payload),
                        None => stage.announce(entity, &payload),
                    };
                    announced.expect("it is there");
                    self.announced.push((number, key, to));
                }
                _ => {}
            }
        }
    }

    fn promise(&mut self, peer: PeerId, visit: u32) -> &mut Promise {
        self.promises.entry((peer, visit)).or_default()
    }

    /// Sends everybody what is new, and notes what they were to see and hear of.
    fn send(&mut self) {
        let announced = std::mem::take(&mut self.announced);
        let here: Vec<(PeerId, u32)> = (self.seats.iter())
            .filter_map(|seat| Some((seat.peer, self.host.visit_of(seat.peer)?)))
            .collect();
        let mut saw = BTreeMap::new();
        for &(peer, visit) in &here {
            let promise = self.promise(peer, visit);
            let events = announced.iter().filter(|(_, key, _)| promise.sees(*key));
            let events: Vec<u32> = events.map(|&(number, ..)| number).collect();
            saw.insert(peer, events);
        }
        let budgets: BTreeMap<PeerId, Option<usize>> = (self.seats.iter())
            .map(|seat| (seat.peer, seat.budget))
            .collect();
        let budget = |peer: PeerId| budgets.get(&peer).copied().flatten();
        let said = self.host.say(&budget, self.clock, &mut self.verdict);
        for (peer, visit) in here {
            let views = self.views(peer);
            let (tick, saw) = (self.tick, &saw[&peer]);
            let promise = self.promises.entry((peer, visit)).or_default();
            promise.show(tick, views);
            for &(number, key, to) in &announced {
                let sees = saw.contains(&number) || promise.sees(key);
                if sees && to.is_none_or(|to| to == peer) {
                    promise.events.insert(number, key);
                }
            }
        }
        for (peer, is_state, message) in said {
            let log = self.said.entry(peer).or_default();
            log.push((self.tick, is_state, message));
        }
    }

    /// What a peer is to see now. The server and the policy must be of one mind, and what the policy
    /// was asked last must still be so, if it does not matter where things are or nothing moves.
    fn views(&mut self, peer: PeerId) -> BTreeMap<Key, View> {
        let world = self.host.stage.world();
        let team_of = |peer: PeerId| {
            let here = self.host.visit_of(peer).and(self.teams.get(&peer));
            here.copied().unwrap_or(0)
        };
        let viewer = Viewer {
            peer,
            team: team_of(peer),
            eye: self.eyes.get(&peer).and_then(|eye| match eye {
                Eye::At(place) => Some(Place(*place)),
                Eye::Object(key) => world.place(*self.truth.entities.get(key)?),
            }),
        };
        let is_due = self.policy.is_settled() || self.still > self.config.look_every;
        let mut views = BTreeMap::new();
        for (&key, state) in &self.truth.now {
            let Some(&object) = self.truth.entities.get(&key) else {
                continue;
            };
            let answer = self.policy.notes().answers.get(&(peer, key)).copied();
            let sees = self.host.stage.sees(peer, object);
            let subject = Subject {
                object,
                owner: state.owner,
                team: state.owner.map_or(0, team_of),
                place: world.place(object),
            };
            let due = self.policy.ask(&viewer, &subject, key, sees);
            if sees != answer.is_some() || is_due && due != answer {
                let tick = self.tick;
                self.verdict.note(Fault::Failure, || {
                    let shown = format!("object {key} is shown: {sees}, as {answer:?}");
                    format!("{peer:?}, {tick:?}: {shown}, and should be as {due:?}")
                });
            }
            if let Some(view) = answer.filter(|_| sees) {
                views.insert(key, view);
            }
        }
        views
    }

    /// Lets everybody take in what arrived.
    fn attend(&mut self) {
        let Self {
            network,
            clock,
            verdict,
            ..
        } = self;
        let happened = self.host.attend(network, self.server, *clock, verdict);
        for happened in happened {
            self.note(happened);
        }
        for at in 0..self.seats.len() {
            self.attend_seat(at);
        }
        let sent = self
            .host
            .transmit(&mut self.network, self.server, self.clock);
        self.verdict.packets += sent;
    }

    fn note(&mut self, happened: Happened) {
        match happened {
            Happened::Joined(peer, visit) => {
                // Whoever starts anew is to see what the policy says anew.
                self.policy
                    .notes()
                    .answers
                    .retain(|(who, _), _| *who != peer);
                self.promises.insert((peer, visit), Promise::default());
                self.place(peer);
                self.look(peer);
            }
            Happened::Left(peer) => {
                self.policy
                    .notes()
                    .answers
                    .retain(|(who, _), _| *who != peer);
            }
            Happened::Said(peer, visit, about, payload) => {
                let (number, key) = read(&payload);
                let heard = self.heard.entry((peer, visit)).or_default();
                *heard += 1;
                let expected = *heard;
                if number != expected {
                    let fault = match number < expected {
                        true => Fault::EventDoubled,
                        false => Fault::EventLost,
                    };
                    self.verdict.note(fault, || {
                        format!("{peer:?} said {number}, which was heard in place of {expected}")
                    });
                }
                let directory = &self.policy.notes().directory;
                let of = |entity: prescient::schema::EntityRef| directory.get(&entity.cell());
                let is_right = match about {
                    About::Nothing => key == 0,
                    About::Object(entity) => of(entity) == Some(&key),
                    About::Gone => key != 0,
                };
                if !is_right {
                    let tick = self.tick;
                    self.verdict.note(Fault::Divergence, || {
                        format!(
                            "{peer:?}, {tick:?}: said something about {key}, heard of {about:?}"
                        )
                    });
                }
            }
        }
    }

    fn attend_seat(&mut self, at: usize) {
        let (clock, seat) = (self.clock, &mut self.seats[at]);
        if seat.stalled_until > clock.0 {
            return;
        }
        if seat.visit.is_none() && seat.away_until <= clock.0 {
            seat.come(self.schema.clone(), self.config.codec, clock);
        }
        let (peer, visit) = (seat.peer, seat.visits);
        let promise = self.promises.entry((peer, visit)).or_default();
        let truth = &self.truth;
        let witness = Witness {
            truth,
            promise,
            peer,
            settled: false,
        };
        let mut look = |visit: &super::seat::Visit, verdict: &mut Verdict| {
            witness.compare(&visit.view, verdict);
        };
        let over = seat.attend(&mut self.network, clock, &mut self.verdict, &mut look);
        if let Some(visit) = &mut seat.visit {
            for heard in visit.poll(peer, &mut self.verdict) {
                hear(heard, &visit.view, truth, promise, peer, &mut self.verdict);
            }
            self.verdict.packets += visit.transmit(&mut self.network, seat.endpoint, clock);
        }
        if over {
            seat.visit = None;
            seat.away_until = clock.0 + Duration::from_millis(seat.dice.below(300) as u64);
        }
    }

    /// Whatever can happen to those who are far away.
    fn blow(&mut self) {
        let (server, clock) = (self.server, self.clock);
        for seat in &mut self.seats {
            let dice = &mut seat.dice;
            let ways = [(seat.endpoint, server), (server, seat.endpoint)];
            for (from, to) in ways {
                let link = self.network.link_mut(from, to).expect("they are joined");
                if dice.of_thousand(30) {
                    link.change(clock.0, links::random(dice));
                }
                // One way alone: what is said arrives, and nobody knows.
                if dice.of_thousand(15) {
                    let length = Duration::from_millis(100 + dice.below(900) as u64);
                    let dark = link.conditions().clone();
                    link.change(clock.0, dark.with_blackout(clock.0, length));
                }
            }
            if dice.of_thousand(10) {
                let address = ([10, dice.below(250) as u8, seat.peer.0 as u8, 2], 5000);
                // Where it is already, it stays.
                let _ = self
                    .network
                    .rebind(seat.endpoint, SocketAddr::from(address));
            }
            if dice.of_thousand(15) {
                let length = Duration::from_millis(dice.below(900) as u64);
                seat.stalled_until = clock.0 + length;
            }
            if dice.of_thousand(60) {
                seat.budget = budget(dice);
            }
            let (speaks, picks) = (dice.of_thousand(300), dice.below(1 << 20));
            if let Some(visit) = &mut seat.visit {
                if dice.of_thousand(15) {
                    visit.confuse();
                }
                if speaks && visit.connected {
                    let objects: Vec<_> = visit.view.objects().collect();
                    let about = objects.get(picks % (objects.len() + 1)).copied();
                    let witness = Witness {
                        truth: &self.truth,
                        promise: &Promise::default(),
                        peer: seat.peer,
                        settled: false,
                    };
                    let key = about.and_then(|about| witness.key_of(&visit.view, about));
                    visit.say(about, &payload(visit.said + 1, key.unwrap_or(0)), clock);
                }
            }
            let leaves = seat.dice.of_thousand(12);
            if leaves {
                let politely = seat.dice.of_thousand(500);
                seat.go(politely, &mut self.network, clock);
                let pause = Duration::from_millis(seat.dice.below(700) as u64);
                seat.away_until = clock.0 + pause;
            }
        }
    }

    fn heal(&mut self) {
        for seat in &mut self.seats {
            for (from, to) in [(seat.endpoint, self.server), (self.server, seat.endpoint)] {
                let link = self.network.link_mut(from, to).expect("they are joined");
                link.change(self.clock.0, links::good());
            }
            seat.budget = Some(1100);
            seat.stalled_until = self.clock.0;
            seat.away_until = self.clock.0;
        }
    }

    /// What is still to come before everybody agrees.
    fn missing(&mut self) -> Vec<String> {
        let mut missing = Vec::new();
        for seat in &self.seats {
            let peer = seat.peer;
            let Some(visit) = seat.visit.as_ref().filter(|visit| visit.connected) else {
                missing.push(format!("{peer:?} is not here"));
                continue;
            };
            let tick = visit.view.complete_tick();
            let behind = tick.is_none_or(|tick| tick.0 + 6 < self.tick.0);
            if behind {
                missing.push(format!("{peer:?} shows {tick:?} at {:?}", self.tick));
                continue;
            }
            let promise = &self.promises[&(peer, seat.visits)];
            let silent = promise.lost(true);
            if !silent.is_empty() {
                missing.push(format!("{peer:?} did not hear of {silent:?}"));
            }
            let heard = self.heard.get(&(peer, seat.visits)).copied().unwrap_or(0);
            if heard != visit.said {
                missing.push(format!("{peer:?} said {}, heard were {heard}", visit.said));
            }
            let mut verdict = Verdict::default();
            let witness = Witness {
                truth: &self.truth,
                promise,
                peer,
                settled: true,
            };
            witness.compare(&visit.view, &mut verdict);
            missing.extend(verdict.stories);
        }
        missing
    }

    /// What every visit missed.
    fn conclude(&mut self) {
        let current: Vec<_> = (self.seats.iter())
            .map(|seat| (seat.peer, seat.visits))
            .collect();
        for (visit, promise) in &self.promises {
            for number in promise.lost(current.contains(visit)) {
                let about = promise.events[&number];
                self.verdict.note(Fault::EventLost, || {
                    format!(
                        "{:?} did not hear of event {number} about object {about}",
                        visit.0
                    )
                });
            }
        }
    }
}

/// Holds an event against what was promised.
fn hear(
    heard: Heard,
    view: &prescient_replication::Client,
    truth: &Truth,
    promise: &mut Promise,
    peer: PeerId,
    verdict: &mut Verdict,
) {
    let Heard {
        tick,
        about,
        payload,
    } = heard;
    let (number, key) = read(&payload);
    let story = || format!("{peer:?}, {tick:?}: event {number} about object {key}");
    match promise.hear(number) {
        Ok(_) => {}
        Err(Wrong::NotMeant) => verdict.note(Fault::Leak, || story() + " was not meant for it"),
        Err(Wrong::Again) => verdict.note(Fault::EventDoubled, story),
        Err(Wrong::OutOfOrder) => verdict.note(Fault::Failure, || story() + " came too late"),
    }
    let since = promise.since.get(&key);
    let is_right = match about {
        About::Nothing => key == 0,
        About::Object(object) => {
            let witness = Witness {
                truth,
                promise,
                peer,
                settled: false,
            };
            witness.key_of(view, object) == Some(key)
        }
        // It was there all the time.
        About::Gone => key != 0 && since.is_none_or(|since| *since > tick),
    };
    if !is_right {
        verdict.note(Fault::Divergence, || {
            story() + &format!(" is said to be about {about:?}")
        });
    }
    if view.tick() < Some(tick) || is_hidden(key) && peer != NEIGHBOUR {
        verdict.note(Fault::Failure, || {
            story() + " was handed out too early, or to the wrong one"
        });
    }
}

fn payload(number: u32, key: Key) -> Vec<u8> {
    [number.to_le_bytes(), key.to_le_bytes()].concat()
}

fn read(payload: &[u8]) -> (u32, Key) {
    let number = |at: usize| {
        let bytes = payload
            .get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(u32::MAX, u32::from_le_bytes)
    };
    (number(0), number(4))
}

fn budget(dice: &mut Dice) -> Option<usize> {
    match dice.below(6) {
        0 | 1 => None,
        2 | 3 => Some(1100),
        4 => Some(30 + dice.below(300)),
        _ => Some(dice.below(60)),
    }
}

/// How finely time passes.
const MOMENT: Duration = Duration::from_millis(5);
/// Moments in a tick.
const MOMENTS: u32 = 8;
/// Ticks for which the world goes on when links have healed.
const CALM: u32 = 6;
/// Ticks after which everybody must agree.
const PATIENCE: u32 = 150;
