//! A client's estimate of the server's clock, on links of every kind.

use crate::common;

use std::time::Duration;

use crate::common::{GOOD, Link, World, over_seeds};
use prescient_channels::Time;
use prescient_channels::parts::{PING, PONG, Ping, Pinger, Pong, RemoteClock};
use prescient_sim::link::{Clock, Conditions, LinkConditioner, PRESETS, Time as True};

/// A client that pings a server over a link in each direction; the estimate is checked whenever a
/// datagram arrives and every millisecond.
struct Pair {
    now: True,
    up: LinkConditioner,
    down: LinkConditioner,
    client: Clock,
    server: Clock,
    pinger: Pinger,
    estimate: RemoteClock,
    /// The number of jumps, and the last reading.
    last: Option<(u64, Time)>,
}

impl Pair {
    fn new(seed: u64, up: Conditions, down: Conditions) -> Self {
        Self {
            now: True::ZERO,
            up: LinkConditioner::new(seed * 2, up),
            down: LinkConditioner::new(seed * 2 + 1, down),
            client: Clock::with_offset(1 << 40),
            server: Clock::with_offset((1 << 41) + seed as i64 * 1_000_003),
            pinger: Pinger::new(Time::from_micros(1 << 40)),
            estimate: RemoteClock::new(),
            last: None,
        }
    }

    fn read(clock: &Clock, now: True) -> Time {
        Time::from_micros(clock.read(now).as_micros())
    }

    fn step(&mut self) {
        let now = self.now;
        let (here, there) = (Self::read(&self.client, now), Self::read(&self.server, now));
        if self.pinger.is_due(here) {
            let ping = self.pinger.ping();
            self.pinger.note(here);
            let mut bytes = Vec::new();
            ping.write(&mut bytes);
            self.up.send(now, &bytes);
        }
        while let Some(bytes) = self.up.poll(now) {
            assert_eq!(bytes[0], PING);
            let ping = Ping::read(&mut &bytes[1..]).expect("a ping");
            let mut bytes = Vec::new();
            ping.answer(there, there).write(&mut bytes);
            self.down.send(now, &bytes);
        }
        while let Some(bytes) = self.down.poll(now) {
            assert_eq!(bytes[0], PONG);
            let pong = Pong::read(&mut &bytes[1..]).expect("a pong");
            if let Some(echo) = self.pinger.handle_pong(pong, here) {
                self.estimate.observe(&echo);
            }
        }
        // The estimate always advances, at most a tenth faster or slower.
        if let Some(reading) = self.estimate.read(here) {
            let leaps = self.estimate.leaps();
            if let Some((before, last)) = self.last
                && before == leaps
            {
                assert!(reading >= last, "{reading:?} after {last:?}");
            }
            self.last = Some((leaps, reading));
        }
        let arrivals = [self.up.next_delivery(), self.down.next_delivery()];
        let next = arrivals.into_iter().flatten().min();
        let later = now + Duration::from_millis(1);
        self.now = next.map_or(later, |next| next.clamp(now + micro(), later));
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.step();
        }
    }

    /// By how many microseconds the estimate is ahead of the truth.
    fn error(&mut self) -> i64 {
        let here = Self::read(&self.client, self.now);
        let truth = self.server.read(self.now).as_micros();
        let reading = self.estimate.read(here).expect("something arrived");
        reading.as_micros() as i64 - truth as i64
    }

    /// The largest error within a span. Unless it is being corrected, it is within the reported
    /// uncertainty.
    fn worst(&mut self, span: Duration) -> i64 {
        let (end, mut worst) = (self.now + span, 0);
        while self.now < end {
            self.step();
            let error = self.error().abs();
            let here = Self::read(&self.client, self.now);
            let uncertainty = self.estimate.uncertainty(here).expect("something arrived");
            assert!(
                error <= uncertainty.as_micros() as i64 + 1,
                "{error} µs of {uncertainty:?}"
            );
            worst = worst.max(error);
        }
        worst
    }
}

fn micro() -> Duration {
    Duration::from_micros(1)
}

fn jittery(latency: u64) -> Conditions {
    let latency = Duration::from_millis(latency);
    let jitter = Duration::from_millis(50);
    Conditions::default()
        .with_latency(latency)
        .with_reordering_jitter(jitter)
}

const SECOND: Duration = Duration::from_secs(1);

/// Fails if only the newest echo counts (`self.recent = Some(bounds)` in `observe`).
#[test]
fn five_seconds_after_the_first_answer_on_every_preset() {
    // The bounds for 19 of 20 seeds.
    let bounds = [
        ("loopback", 1),
        ("lan", 52),
        ("fibre", 252),
        ("cable", 1_200),
        ("dsl", 900),
        ("wifi", 1_400),
        ("lte", 2_200),
        ("low_orbit", 2_700),
        ("bad_wifi", 6_000),
        ("umts", 3_800),
        ("satellite", 2_000),
        ("bad_mobile", 22_000),
    ];
    assert_eq!(bounds.len(), PRESETS.len());
    for (preset, (name, bound)) in PRESETS.iter().zip(bounds) {
        assert_eq!(preset.name, name);
        let mut errors = Vec::new();
        for seed in common::seeds(40) {
            let mut pair = Pair::new(seed, preset.conditions(), preset.conditions());
            while pair.last.is_none() {
                pair.step();
            }
            pair.run(5 * SECOND);
            errors.push(pair.error().abs());
        }
        errors.sort();
        let part = |twentieths: usize| errors[(errors.len() - 1) * twentieths / 20];
        let (half, nearly, max) = (part(10), part(19), part(20));
        println!("{name}: median {half} µs, 19 of 20 within {nearly} µs, most {max} µs");
        assert!(nearly <= bound, "{name}: {nearly} µs");
        // The error of a single echo is at most half the difference between the two directions.
        let conditions = preset.conditions();
        let late = conditions.reordering.map_or(Duration::ZERO, |by| by.by);
        let jitter = (conditions.jitter + late).as_micros() as i64;
        assert!(max <= jitter / 2 + 2, "{name}: {max} µs");
    }
}

/// A thousandth too fast or too slow, on a link with 50 ms of jitter each way, for two minutes.
/// Fails if bounds do not loosen (`DRIFT` of 0).
#[test]
fn a_skew_of_a_thousandth_and_jitter_of_fifty_milliseconds() {
    over_seeds(20, |seed| {
        for skew in [-1000, 0, 1000] {
            let mut pair = Pair::new(seed, jittery(30), jittery(30));
            pair.server.set_skew(True::ZERO, skew);
            pair.run(10 * SECOND);
            let worst = pair.worst(120 * SECOND);
            assert!(worst <= 12_000, "skew {skew}: {worst} µs");
            assert_eq!(pair.estimate.leaps(), 0);
        }
    });
}

/// 120 ms in one direction, 20 ms in the other: the estimate is wrong by half the difference, and
/// its uncertainty includes that. Fails if the bounds are tighter than the echoes prove (an
/// `uncertainty` of half as much).
#[test]
fn a_path_that_is_slower_one_way_hides_half_of_the_difference() {
    over_seeds(20, |seed| {
        let mut pair = Pair::new(seed, jittery(120), jittery(20));
        pair.run(10 * SECOND);
        pair.worst(20 * SECOND);
        let error = pair.error();
        assert!((error.abs() - 50_000).abs() < 10_000, "{error} µs");
    });
}

/// Either clock jumps by an hour, forward or back, or by less than a round trip. Fails if bounds
/// survive a contradiction (`recent.or(self.recent).or(Some(bounds))` at the end of `observe`), or,
/// for the short jumps, if old bounds are kept (`WHILE` of an hour).
#[test]
fn leaps_of_either_clock() {
    const HOUR: i64 = 3_600_000_000;
    over_seeds(20, |seed| {
        let leaps = [
            (30, HOUR, 2),
            (30, -HOUR, 2),
            (300, 200_000, 40),
            (300, -200_000, 40),
        ];
        for (latency, leap, time) in leaps {
            for ours in [false, true] {
                let mut pair = Pair::new(seed, jittery(latency), jittery(latency));
                pair.run(10 * SECOND);
                let clock = if ours {
                    &mut pair.client
                } else {
                    &mut pair.server
                };
                clock.jump(pair.now, leap);
                pair.run(time * SECOND);
                let worst = pair.worst(20 * SECOND);
                assert!(worst <= 30_000, "leap {leap}: {worst} µs");
                assert!(pair.estimate.leaps() <= 2);
            }
        }
    });
}

/// A blackout of a minute with the highest skew costs the drift of a minute, and only for a while.
/// Fails if bounds do not loosen: the first echo after it would contradict them.
#[test]
fn a_blackout_of_a_minute() {
    over_seeds(20, |seed| {
        let mut pair = Pair::new(seed, jittery(30), jittery(30));
        pair.client.set_skew(True::ZERO, 1000);
        pair.run(20 * SECOND);
        pair.up.set_blackout(pair.now, true);
        pair.down.set_blackout(pair.now, true);
        assert!(pair.worst(60 * SECOND) <= 75_000);
        pair.up.set_blackout(pair.now, false);
        pair.down.set_blackout(pair.now, false);
        pair.run(5 * SECOND);
        let worst = pair.worst(20 * SECOND);
        assert!(worst <= 20_000, "{worst} µs");
        assert_eq!(pair.estimate.leaps(), 0);
    });
}

/// Through connections, with 50 ms of jitter each way, 5 % loss, and clients whose clocks run a
/// thousandth faster and are an hour ahead. Fails if packets carry no pings (`pinger.is_due` left
/// out of `Exchange::poll_body`), or if pings carry attended time (`clock: self.attended` in
/// `AttendedClock::advance_both`).
#[test]
fn clients_know_the_time_of_their_server() {
    over_seeds(20, |seed| {
        let link = Link {
            loss: 5,
            delayed: 100,
            delay: 50_000,
            ..GOOD
        };
        let mut world = World::new(seed, link);
        world.client_ahead = 3_600_000_000;
        for _ in 0..3 {
            world.join();
        }
        world.connect_all();
        let mut worst = 0;
        for tick in 0..30 * 60 {
            for peer in 0..3 {
                world.client_send(peer, b"input").expect("connected");
                let connection = world.connection_of(peer).expect("connected");
                world.server_send(connection, b"state").expect("connected");
            }
            world.run_for(Duration::from_millis(33));
            world.client_ahead += 33;
            let (here, there) = (world.client_time(), world.server_time());
            for peer in 0..3 {
                let client = &mut world.peers[peer].client;
                let (shown, max) = (
                    client.server_time(here),
                    client.server_time_uncertainty(here),
                );
                if tick >= 5 * 30 {
                    let shown = shown.expect("long since").as_micros();
                    let wrong = shown.abs_diff(there.as_micros());
                    let max = max.expect("long since").as_micros() as u64;
                    assert!(wrong <= max + 1000, "{wrong} µs, but not {max}");
                    worst = worst.max(wrong);
                }
                assert_eq!(client.server_time_leaps(), 0);
            }
        }
        assert!(worst <= 15_000, "{worst} µs");
    });
}

/// Both ends of an idle connection measure the round trip. Fails if a keep-alive is no ping
/// (`PacketKind::KeepAlive` for all in `Connection::wake`).
#[test]
fn round_trips_are_known_of_who_says_nothing() {
    over_seeds(20, |seed| {
        let latency = 5_000 + seed * 4_000;
        let mut world = World::new(seed, Link { latency, ..GOOD });
        for _ in 0..3 {
            world.join();
        }
        world.connect_all();
        world.run_for(Duration::from_secs(40));
        for peer in 0..3 {
            let connection = world.connection_of(peer).expect("connected");
            for statistics in [world.statistics(peer), world.server_statistics(connection)] {
                let smoothed = statistics.round_trip.expect("measured").smoothed;
                let wrong = smoothed.abs_diff(Duration::from_micros(2 * latency));
                assert!(wrong <= Duration::from_millis(1), "{wrong:?}");
            }
        }
    });
}
