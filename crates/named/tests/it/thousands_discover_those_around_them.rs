//! Discovery by regions: peers walk over a plane, and each knows those around it, whatever the number of others.
//!
//! A hub stands for the forwarders, which have tests of their own: packets arrive a step later at those that have
//! registered a prefix of their names.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::common::{Random, name};
use prescient_named::*;
use prescient_tests::seeds::over_seeds;

const SECOND: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(20);
const UNIX: u64 = 1_700_000_000;
const SIDE: f64 = 100.0;
const RADIUS: f64 = 40.0;

struct Walker {
    regions: Regions,
    position: [f64; 2],
    boot: u64,
    prefixes: BTreeSet<Name>,
    known: BTreeMap<Name, u64>,
}

struct Plane {
    now: Time,
    grid: Grid,
    walkers: Vec<Walker>,
    /// Who has registered a prefix.
    routes: BTreeMap<Name, BTreeSet<usize>>,
    /// Who waits for Data.
    pending: BTreeMap<Name, BTreeSet<usize>>,
    flights: Vec<(usize, Vec<u8>)>,
}

impl Plane {
    fn new() -> Self {
        Self {
            now: Time::from_micros(1_000_000),
            grid: Grid::new(SIDE, RADIUS).expect("positive lengths"),
            walkers: Vec::new(),
            routes: BTreeMap::new(),
            pending: BTreeMap::new(),
            flights: Vec::new(),
        }
    }

    fn add(&mut self, position: [f64; 2]) {
        let number = self.walkers.len();
        self.walkers.push(Walker {
            regions: self.regions(number, UNIX),
            position,
            boot: UNIX,
            prefixes: BTreeSet::new(),
            known: BTreeMap::new(),
        });
        self.move_to(number, position);
    }

    fn regions(&self, number: usize, boot: u64) -> Regions {
        let profile = Profile {
            key: [number as u8; 32],
            fingerprint: [7; 16],
            details: number.to_be_bytes().to_vec(),
        };
        let peer = name(&format!("/peer/{number}"));
        let config = DiscoveryConfig::new(name("/plane"), peer, boot, profile);
        let unix = UNIX + self.now.as_micros() / 1_000_000;
        let key = [number as u8 ^ (number >> 8) as u8; 16];
        Regions::new(self.now, unix, config.expect("short names"), key)
    }

    fn move_to(&mut self, number: usize, position: [f64; 2]) {
        let (region, near) = (self.grid.region(position), self.grid.near(position));
        let walker = &mut self.walkers[number];
        walker.position = position;
        let entered = walker.regions.enter(self.now, &region, &near);
        entered.expect("few regions");
        self.register(number);
    }

    fn register(&mut self, number: usize) {
        let walker = &mut self.walkers[number];
        while let Some(change) = walker.regions.poll_prefix() {
            match change {
                PrefixChange::Register(prefix) => {
                    assert!(walker.prefixes.insert(prefix.clone()));
                    self.routes.entry(prefix).or_default().insert(number);
                }
                PrefixChange::Unregister(prefix) => {
                    assert!(walker.prefixes.remove(&prefix));
                    let routes = self.routes.get_mut(&prefix).expect("registered");
                    routes.remove(&number);
                }
            }
        }
    }

    fn run(&mut self, span: Duration) {
        let end = self.now.after(span);
        while self.now < end {
            self.now = self.now.after(STEP);
            self.deliver();
            for number in 0..self.walkers.len() {
                self.serve(number);
            }
        }
    }

    fn deliver(&mut self) {
        for (sender, packet) in std::mem::take(&mut self.flights) {
            if let Ok(interest) = Interest::decode(&packet) {
                let prefix = interest.name().prefix(4);
                if let Some(members) = self.routes.get(&prefix.to_name()) {
                    for &member in members.iter().filter(|it| **it != sender) {
                        let regions = &mut self.walkers[member].regions;
                        assert!(regions.handle_interest(self.now, &interest));
                    }
                    continue;
                }
                // A request for a profile: `/peer/<number>/plane/...`.
                let number = interest.name().get(1).expect("a peer's name").value;
                let number: usize = std::str::from_utf8(number)
                    .ok()
                    .and_then(|it| it.parse().ok())
                    .expect("a number");
                let waiting = self.pending.entry(interest.name().to_name()).or_default();
                waiting.insert(sender);
                let owner = &mut self.walkers[number].regions;
                owner.handle_interest(self.now, &interest);
            } else {
                let data = Data::decode(&packet).expect("our own");
                let waiting = self.pending.remove(&data.name().to_name());
                for member in waiting.unwrap_or_default() {
                    self.walkers[member].regions.handle_data(self.now, &data);
                }
            }
        }
    }

    fn serve(&mut self, number: usize) {
        let now = self.now;
        let walker = &mut self.walkers[number];
        if walker.regions.next_timeout().is_some_and(|due| due <= now) {
            walker.regions.handle_timeout(now);
        }
        let mut bytes = Vec::new();
        while walker.regions.poll_transmit(&mut bytes) {
            self.flights.push((number, bytes.clone()));
        }
        while let Some(event) = walker.regions.poll_event() {
            match event {
                DiscoveryEvent::Joined { member, .. } => {
                    assert_eq!(walker.known.insert(member.name, member.boot), None);
                }
                DiscoveryEvent::Left { member } => {
                    assert_eq!(walker.known.remove(&member.name), Some(member.boot));
                }
                _ => {}
            }
        }
        let members = walker.regions.members();
        let members = members.map(|(member, _)| (member.name.clone(), member.boot));
        assert!(members.eq(walker.known.clone()));
        self.register(number);
    }

    /// Whom each of them should know: those in the regions that it observes.
    fn expected(&self) -> Vec<BTreeMap<Name, u64>> {
        let mut inside: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
        for (number, walker) in self.walkers.iter().enumerate() {
            let region = self.grid.region(walker.position);
            inside.entry(region).or_default().push(number);
        }
        let walkers = self.walkers.iter().enumerate();
        let expected = walkers.map(|(number, walker)| {
            let near = self.grid.near(walker.position);
            let near = near.iter().filter_map(|region| inside.get(region));
            let others = near.flatten().filter(|other| **other != number);
            let others =
                others.map(|other| (name(&format!("/peer/{other}")), self.walkers[*other].boot));
            others.collect()
        });
        expected.collect()
    }
}

/// Two thousand peers over four hundred regions: after three seconds each knows all around it and nobody else. A peer
/// receives as many vectors as peers are around it, not as there are in the game.
///
/// Fails if an observer sends vectors (`is_observer` not asked in `Discovery::poll_transmit`: everybody is then known
/// one region further), or if everybody observes everything (`Grid::near` with a larger radius).
#[test]
fn each_of_two_thousand_knows_its_surroundings() {
    let mut plane = Plane::new();
    let mut random = Random(5);
    for _ in 0..2000 {
        plane.add([0, 1].map(|_| random.below(200_000) as f64 / 100.0));
    }
    plane.run(3 * SECOND);
    let expected = plane.expected();
    for (walker, expected) in plane.walkers.iter().zip(&expected) {
        assert_eq!(&walker.known, expected);
    }
    let around = expected.iter().map(BTreeMap::len);
    let (sum, most) = (around.clone().sum::<usize>(), around.max());
    let received = plane.walkers.iter();
    let received = received.map(|walker| walker.regions.statistics().syncs_received);
    let received = received.sum::<u64>() as f64 / 2000.0 / 3.0;
    let mean = sum as f64 / 2000.0;
    println!(
        "2000 peers, {mean:.1} around each, at most {most:?}: {received:.1} vectors/s at each"
    );
    assert!((10.0..40.0).contains(&mean));
    assert!(received < 2.0 * mean, "{received} vectors per second");
}

/// Peers walk from region to region, out of sight and back, and one starts again elsewhere. Whoever stays within
/// sight remains known, and in the end each knows exactly those around it.
///
/// Fails if a region that is entered again is started with old sequence numbers (`continue_after` left out in
/// `enter`), if a region is forgotten at once (`until` set to `now`: peers that cross a border at the same time lose
/// each other), or if an older start stays (`other.boot < member.boot` never true).
#[test]
fn walkers_are_known_where_they_are() {
    over_seeds(10, |seed| {
        let mut plane = Plane::new();
        let mut random = Random(seed);
        for _ in 0..40 {
            plane.add([0, 1].map(|_| random.below(300) as f64));
        }
        // A pair that walks together, around the world and back.
        plane.add([5.0, 5.0]);
        plane.add([7.0, 5.0]);
        let pair = [40, 41];
        plane.run(3 * SECOND);
        for second in 0..60 {
            for number in 0..40 {
                let [x, y] = plane.walkers[number].position;
                let mut step = |at: f64| (at + random.below(41) as f64 - 20.0).clamp(0.0, 299.0);
                plane.move_to(number, [step(x), step(y)]);
            }
            let away = f64::from(30 - i32::abs(30 - second));
            for (place, number) in pair.into_iter().enumerate() {
                plane.move_to(number, [5.0 + 10.0 * away + 2.0 * place as f64, 5.0]);
            }
            if second == 30 {
                plane.walkers[0].boot += 100;
                plane.walkers[0].regions = plane.regions(0, UNIX + 100);
                let prefixes = std::mem::take(&mut plane.walkers[0].prefixes);
                for prefix in prefixes {
                    let routes = plane.routes.get_mut(&prefix).expect("registered");
                    routes.remove(&0);
                }
                plane.walkers[0].known.clear();
                plane.move_to(0, [295.0, 295.0]);
            }
            plane.run(SECOND);
            for (number, other) in [(40, 41), (41, 40)] {
                let other = name(&format!("/peer/{other}"));
                let known = &plane.walkers[number].known;
                assert!(known.contains_key(&other), "second {second}, seed {seed}");
            }
        }
        plane.run(14 * SECOND);
        let expected = plane.expected();
        for (number, expected) in expected.iter().enumerate() {
            assert_eq!(&plane.walkers[number].known, expected, "{number} {seed}");
        }
    });
}

/// Fails if a limit is not compared.
#[test]
fn regions_have_limits() {
    assert_eq!(Grid::new(0.0, 1.0), Err(DiscoveryError::RegionSize));
    assert_eq!(Grid::new(1.0, f64::NAN), Err(DiscoveryError::RegionSize));
    let refused = Grid::new(1.0, 3.5);
    assert_eq!(refused, Err(DiscoveryError::TooManyRegions(81)));
    let grid = Grid::new(1.0, 3.0).expect("64 regions");
    for position in [[0.0, 0.0], [-7.3, 1e300], [f64::NAN, f64::INFINITY]] {
        assert!(grid.near(position).len() <= MAX_REGIONS);
    }
    let mut plane = Plane::new();
    plane.add([0.0, 0.0]);
    let many: Vec<Name> = (0..65).map(|number| name(&format!("/{number}"))).collect();
    let regions = &mut plane.walkers[0].regions;
    let refused = regions.enter(plane.now, &many[0], &many);
    assert_eq!(refused, Err(DiscoveryError::TooManyRegions(65)));
    // However far it jumps, it is in a bounded number of groups.
    for jump in 0..200 {
        plane.move_to(0, [f64::from(jump) * 1e4, 0.0]);
    }
    assert!(plane.walkers[0].prefixes.len() <= 2 * MAX_REGIONS);
}
