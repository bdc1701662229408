//! A rate of change may have a rate of change itself, in any order of declaration, even in a cycle.
//!
//! Mutation tried: all rates in the order of their declaration (fails: the receiver takes an old
//! acceleration for the new one and shows wrong values).

use crate::pair::{Pair, int};
use prescient_schema::{Class, Derivative};

#[test]
fn acceleration_comes_before_speed_and_speed_before_place() {
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for order in orders {
        // Position, velocity and acceleration, in the columns that `order` gives.
        let at = |what: usize| order.iter().position(|&w| w == what).unwrap();
        let mut fields = [int("place", 32), int("speed", 32), int("push", 32)];
        for rate in [1, 2] {
            fields[rate].derivative_of = Some(Derivative {
                of: at(rate - 1) as u16,
                numerator: 1,
                denominator: 1,
            });
        }
        let fields = order.iter().map(|&what| fields[what].clone()).collect();
        let mut pair = Pair::new(Class::new("rocket", fields), &[&[0, 0, 0]]);
        pair.exchange(None);
        let [mut place, mut speed, mut push] = [0i64; 3];
        for time in 0..400 {
            let (old_push, old_speed) = (push, speed);
            push = (time / 50 % 3) * time * 40 % 4000;
            speed += (old_push + push + 1).div_euclid(2);
            place += (old_speed + speed + 1).div_euclid(2);
            (place, speed) = (place % (1 << 28), speed % (1 << 28));
            let truth = [place, speed, push];
            let row = order.map(|what| truth[what]);
            pair.capture([(0, &row[..])]);
            pair.exchange(None);
            assert_eq!(pair.shown(0), row, "{order:?}, {time}");
        }
    }
}

#[test]
fn a_circle_of_rates_is_followed_nowhere_too_early() {
    let mut fields = vec![int("this", 32), int("that", 32), int("third", 32)];
    for (at, field) in fields.iter_mut().enumerate() {
        field.derivative_of = Some(Derivative {
            of: (at as u16 + 1) % 3,
            numerator: 1,
            denominator: 3,
        });
    }
    let mut pair = Pair::new(Class::new("circle", fields), &[&[30, 60, 90]]);
    pair.exchange(None);
    let mut row = [30i64, 60, 90];
    for time in 0..400i64 {
        let old = row;
        for at in 0..3 {
            let rate = (at + 2) % 3;
            let step = (old[rate] + row[rate]).div_euclid(6) + i64::from(time % 40 == 0);
            row[at] = (row[at] + step) % (1 << 20);
        }
        pair.capture([(0, &row[..])]);
        pair.exchange(None);
        assert_eq!(pair.shown(0), row, "{time}");
    }
}
