//! Cases 9 and 11: state is sent less and less to peers of which nothing is heard, and all of it once
//! they are back.

mod common;

use common::battle::Battle;
use common::{Theatre, good};
use prescient_replication::{Everything, PeerId};
use prescient_sim::link::Conditions;
use prescient_tests::seeds::over_seeds;

/// Nothing passes.
fn down() -> Conditions {
    good().with_loss(1_000_000)
}

/// Three clients of a battle, who have seen it for a while.
fn play(seed: u64) -> (Battle, Theatre) {
    let mut battle = Battle::new();
    let mut theatre = Theatre::new(seed, 3, good(), Everything);
    for _ in 0..60 {
        battle.step(&mut theatre);
        theatre.exchange();
        battle.check(&theatre);
    }
    (battle, theatre)
}

fn packets(theatre: &Theatre) -> [u64; 3] {
    let packets = |peer| {
        let statistics = theatre.server.statistics(PeerId(peer));
        statistics.expect("it is there").packets
    };
    [1, 2, 3].map(packets)
}

/// Goes on until everybody shows all of the tick before the last, which is how long links take.
fn recover(battle: &mut Battle, theatre: &mut Theatre, most: u32) {
    for _ in 0..most {
        battle.step(theatre);
        theatre.exchange();
        let now = theatre.tick;
        let is_shown = |seat: &common::Seat| {
            seat.client.tick().is_some_and(|tick| tick.0 + 1 >= now) && battle.agrees(seat)
        };
        if theatre.seats.iter().all(is_shown) {
            return;
        }
    }
    panic!("not within {most} ticks");
}

/// From now on everybody is shown every tick.
fn go_on(battle: &mut Battle, theatre: &mut Theatre) {
    for _ in 0..60 {
        battle.step(theatre);
        theatre.exchange();
        battle.check(theatre);
    }
}

/// A blackout of 30 seconds at 30 Hz: few packets are made for nobody, and whoever
/// is heard of again is shown everything in a round trip and one more packet. Fails if
/// `Pace::turn` is always `Whole`, or if `Pace::resume` does nothing (a second).
#[test]
fn a_blackout_ends_with_the_next_tick() {
    over_seeds(20, |seed| {
        let (mut battle, mut theatre) = play(seed);
        let now = theatre.now();
        for seat in &mut theatre.seats {
            seat.down.change(now, down());
            seat.up.change(now, down());
        }
        let before = packets(&theatre);
        for _ in 0..900 {
            battle.step(&mut theatre);
            theatre.exchange();
        }
        let after = packets(&theatre);
        for (before, after) in before.into_iter().zip(after) {
            assert!(after - before <= 120, "{} packets", after - before);
        }
        theatre.heal();
        for peer in (1..=3).map(PeerId) {
            theatre.server.resume(peer).expect("it is there");
        }
        recover(&mut battle, &mut theatre, 5);
        go_on(&mut battle, &mut theatre);
    });
}

/// The same where nobody says that a peer is back: a probe finds out within a second. Fails if
/// `Pace::turn` clamps the pause to more than `probe_every`, or if `Encoder::settle` goes by the window
/// alone (an acknowledgement of a packet whose log was dropped, `oldest` left out of `floor`).
#[test]
fn a_probe_finds_out_who_is_back() {
    over_seeds(20, |seed| {
        let (mut battle, mut theatre) = play(seed);
        let now = theatre.now();
        theatre.seats.iter_mut().for_each(|seat| {
            seat.up.change(now, down());
        });
        let silence = 100 + seed as u32 * 40;
        for _ in 0..silence {
            battle.step(&mut theatre);
            theatre.exchange();
        }
        theatre.heal();
        recover(&mut battle, &mut theatre, 35);
        go_on(&mut battle, &mut theatre);
    });
}
