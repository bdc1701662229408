//! The playback clock is as late as jitter and loss need, and never jumps for them.

use std::time::Duration;

use prescient_playout::{IntervalEstimate, PlaybackClock, PlaybackConfig};

const TICK: f64 = 33_333.0;

/// Uniform numbers from 0 to 1.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }
}

struct Played {
    /// Frames after the first seconds.
    frames: u32,
    /// Those that had nothing to draw towards.
    starved: u32,
    /// The largest and the smallest rate.
    rates: (f64, f64),
    /// Ticks that playback was behind the server at the end.
    behind: f64,
    jumps: u64,
}

/// Plays a minute: states over a link with this jitter and loss, whose clock runs this many parts
/// per million faster at the client.
fn play(jitter: impl Fn(f64) -> f64, loss: f64, drift: f64) -> Played {
    let mut dice = Dice(1);
    let interval = Duration::from_micros(TICK as u64);
    let mut clock = PlaybackClock::new(PlaybackConfig::default(), interval).expect("sound");
    let mut arrivals: Vec<(f64, u64)> = Vec::new();
    let mut last = 0.0_f64;
    for tick in 0..1800_u64 {
        let sent = tick as f64 * TICK;
        let late = jitter(sent / 1e6) * dice.roll();
        if dice.roll() >= loss {
            last = last.max(sent + 100_000.0 + late);
            arrivals.push((last, tick));
        }
    }
    let mut arrivals = arrivals.into_iter().peekable();
    let mut newest = 0;
    let mut played = Played {
        frames: 0,
        starved: 0,
        rates: (1.0, 1.0),
        behind: 0.0,
        jumps: 0,
    };
    for frame in 0..3600 {
        let now = f64::from(frame) * 16_667.0;
        let local = |time: f64| Duration::from_nanos((time * (1.0 + drift) * 1e3) as u64);
        while let Some((at, tick)) = arrivals.next_if(|(at, _)| *at <= now) {
            clock.handle_state(tick, local(at)).expect("in order");
            newest = tick;
        }
        let Some(position) = clock.advance(local(now)) else {
            continue;
        };
        if now > 10e6 {
            let rate = clock.statistics().rate;
            played.frames += 1;
            played.starved += u32::from(position > newest as f64);
            played.rates.0 = played.rates.0.max(rate);
            played.rates.1 = played.rates.1.min(rate);
            played.behind = now / TICK - position;
            played.jumps = clock.statistics().jumps;
        }
    }
    played
}

/// Without jitter playback is one tick and the margin behind what could have arrived; with jitter
/// as much more as the jitter is, and with loss a tick more.
///
/// Fails if `handle_state` measures from the state itself (`tick` for `tick - gap`), or if `needed`
/// takes the middle of what was measured.
#[test]
fn the_delay_is_what_jitter_and_loss_need() {
    let calm = play(|_| 0.0, 0.0, 0.0);
    let jittery = play(|_| 60_000.0, 0.0, 0.0);
    let lossy = play(|_| 0.0, 0.05, 0.0);
    let trip = 100_000.0 / TICK;
    assert!((calm.behind - trip - 1.0).abs() < 0.2, "{}", calm.behind);
    let more = jittery.behind - calm.behind;
    assert!((1.3..2.0).contains(&more), "{more}");
    let more = lossy.behind - calm.behind;
    assert!((0.8..2.2).contains(&more), "{more}");
    for played in [calm, jittery, lossy] {
        assert!(
            played.starved * 50 <= played.frames,
            "{} frames starved",
            played.starved
        );
        assert_eq!(played.jumps, 0);
    }
}

/// A link that becomes worse and better again bends the rate by no more than the bound.
///
/// Fails if `advance` sets the position to its target, or if `max_bend` is not applied.
#[test]
fn the_rate_bends_and_playback_never_jumps() {
    let played = play(
        |at| {
            if (20.0..40.0).contains(&at) {
                120_000.0
            } else {
                5_000.0
            }
        },
        0.02,
        0.0,
    );
    assert_eq!(played.jumps, 0);
    assert!(played.rates.0 <= 1.05 && played.rates.1 >= 0.95);
    assert!(
        played.rates.0 > 1.001 && played.rates.1 < 0.999,
        "{:?}",
        played.rates
    );
}

/// A client whose clock is 1000 ppm off stays as far behind as any other.
///
/// Fails if waits are measured from the first state instead of a window (`WINDOW` unbounded).
#[test]
fn a_drifting_clock_is_followed() {
    let sound = play(|_| 20_000.0, 0.0, 0.0);
    for drift in [-1e-3, 1e-3] {
        let drifting = play(|_| 20_000.0, 0.0, drift);
        let gap = drifting.behind - sound.behind;
        assert!(gap.abs() < 0.6, "{gap} ticks");
        assert_eq!(drifting.jumps, 0);
    }
}

/// A server that stops for a while is waited for, and playback goes on from where it does.
///
/// Fails if `furthest` is not applied: playback runs ahead and comes back with a jump.
#[test]
fn playback_waits_for_a_silent_server() {
    let interval = Duration::from_millis(50);
    let mut clock = PlaybackClock::new(PlaybackConfig::default(), interval).expect("sound");
    let mut now = Duration::ZERO;
    for tick in 0..40_u64 {
        now = interval * tick as u32;
        clock.handle_state(tick, now).expect("in order");
        clock.advance(now);
    }
    let mut before = clock.position().expect("it runs");
    for _ in 0..200 {
        now += Duration::from_millis(10);
        let position = clock.advance(now).expect("it runs");
        assert!(position >= before);
        before = position;
    }
    assert!(before <= 39.0 + 5.0 + 1e-9, "{before}");
}

/// A server that skips ticks, as after loading a map, is followed at once; what was measured before
/// does not hold playback back.
///
/// Fails if `handle_state` keeps the waits of before.
#[test]
fn ticks_that_jump_are_followed() {
    let interval = Duration::from_micros(TICK as u64);
    let mut clock = PlaybackClock::new(PlaybackConfig::default(), interval).expect("sound");
    let mut play = |first: u32, ticks: std::ops::Range<u32>| {
        let mut position = 0.0;
        for number in ticks {
            let now = interval * number;
            let state = clock.handle_state(u64::from(first + number), now);
            state.expect("in order");
            position = clock.advance(now).expect("states arrived");
        }
        position
    };
    let before = play(0, 0..300);
    assert!((before - 298.0).abs() < 0.2, "{before}");
    let after = play(1_000_000, 300..310);
    assert!((after - 1_000_308.0).abs() < 0.5, "{after}");
    assert_eq!(clock.statistics().jumps, 1);
}

/// A server that does not tell how long its ticks take is played back as late as one that does, at
/// any rate, also after a pause.
///
/// Fails if a pause counts as ticks (`clear` left out), or if `adjust_interval` keeps the position.
#[test]
fn an_interval_is_estimated() {
    let guess = Duration::from_micros(TICK as u64);
    for hertz in [20.0, 60.0, 144.0] {
        let tick = 1.0 / hertz;
        let mut dice = Dice(3);
        let mut clock = PlaybackClock::new(PlaybackConfig::default(), guess).expect("sound");
        let mut estimate = IntervalEstimate::new(guess);
        let (mut paused, mut furthest) = (0.0, 0.0_f64);
        for number in 1..2400_u32 {
            if number == 1000 {
                paused = 60.0;
            }
            let now = paused + f64::from(number) * tick + 0.004 * dice.roll();
            let now = Duration::from_secs_f64(now);
            let interval = estimate.handle_state(number.into(), now);
            clock.adjust_interval(interval).expect("above zero");
            clock.handle_state(number.into(), now).expect("in order");
            let position = clock.advance(now).expect("states arrived");
            let is_settled = (400..1000).contains(&number) || number > 2000;
            if is_settled {
                furthest = furthest.max((f64::from(number) - position).abs() * tick);
                let wrong = interval.as_secs_f64() / tick - 1.0;
                assert!(wrong.abs() < 0.02, "{hertz} Hz: {interval:?}");
            }
        }
        assert!(furthest < tick + 0.03, "{hertz} Hz: {furthest} s behind");
    }
}
