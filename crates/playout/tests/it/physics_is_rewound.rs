//! Algorithm 2, line by line.

use std::time::Duration;

use prescient_playout::{Physics, PhysicsRewind, Rewound};

/// A ball that moves one unit per millisecond.
#[derive(Default)]
struct Ball {
    at: i64,
    steps: Vec<(u64, u64)>,
}

impl Physics for Ball {
    type Update = i64;

    fn apply(&mut self, update: &i64) {
        self.at = *update;
    }

    fn step(&mut self, from: Duration, to: Duration) {
        self.at += (to - from).as_millis() as i64;
        self.steps
            .push((from.as_millis() as u64, to.as_millis() as u64));
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Each kind of arrival, with the expected time after it as the document's lines give it.
///
/// Fails if a late update is expected anew from now (line 12 for line 15), if missing sequence
/// numbers do not move the expected time (line 8), or if the step starts at the last update.
#[test]
fn each_line_does_what_the_document_says() {
    let mut rewind = PhysicsRewind::new(ms(100)).expect("sound");
    let mut ball = Ball::default();
    assert_eq!(
        rewind.handle_update(1, &0, ms(1000), &mut ball),
        Rewound::Snap
    );
    assert_eq!(rewind.expected_at(), ms(1100));
    // Late by 30 ms: simulated from when it was expected.
    let late = rewind.handle_update(2, &100, ms(1130), &mut ball);
    assert_eq!(
        late,
        Rewound::Simulated {
            from: ms(1100),
            to: ms(1130)
        }
    );
    assert_eq!((ball.at, rewind.expected_at()), (130, ms(1200)));
    // Out of order or repeated: skipped.
    assert_eq!(
        rewind.handle_update(2, &7, ms(1140), &mut ball),
        Rewound::Late
    );
    assert_eq!(ball.at, 130);
    // Number 3 and 4 are lost; 5 is expected two periods later, and early.
    assert_eq!(
        rewind.handle_update(5, &400, ms(1390), &mut ball),
        Rewound::Snap
    );
    assert_eq!((ball.at, rewind.expected_at()), (400, ms(1490)));
    // Exactly on time is not early.
    let on_time = rewind.handle_update(6, &500, ms(1490), &mut ball);
    assert_eq!(
        on_time,
        Rewound::Simulated {
            from: ms(1490),
            to: ms(1490)
        }
    );
    assert_eq!(rewind.expected_at(), ms(1590));
    assert_eq!(ball.steps, [(1100, 1130), (1490, 1490)]);
}

/// Absurd numbers, clocks that go backwards and long sleeps neither panic nor simulate for ever.
///
/// Fails if `max_span` is not applied, or if `expected_at` overflows.
#[test]
fn absurd_updates_are_survived() {
    let rewind = PhysicsRewind::new(ms(100)).expect("sound");
    let mut rewind = rewind.with_max_span(ms(500));
    let mut ball = Ball::default();
    rewind.handle_update(0, &0, ms(5000), &mut ball);
    rewind.handle_update(1, &0, ms(3_600_000), &mut ball);
    assert_eq!(ball.steps, [(3_599_500, 3_600_000)]);
    rewind.handle_update(2, &0, ms(0), &mut ball);
    assert_eq!(
        ball.steps[1],
        (3_599_500, 3_600_000),
        "time does not go backwards"
    );
    rewind.handle_update(u64::MAX, &9, ms(3_600_000), &mut ball);
    assert_eq!(ball.at, 9);
    assert!(PhysicsRewind::new(Duration::ZERO).is_err());
}
