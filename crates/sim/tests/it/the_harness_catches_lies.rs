//! The harness must detect wrong receivers; these tests run it with receivers that lie.

use prescient_sim::{
    baseline::{MethodOptions, build},
    harness::{
        Applied, Difference, ReceiveError, Receiver, RunError, RunOptions, Sender, TickRange, run,
    },
    world::{TickChanges, World, open},
};

type Visit<'a> = dyn FnMut(u64, u16, &[i64]) + 'a;
type Lie = fn(u64, u16, &[i64], &mut Visit<'_>);

/// Behaves as `raw`, but reports another state than it received.
struct Liar {
    honest: Box<dyn Receiver>,
    lie: Lie,
}

impl Receiver for Liar {
    fn receive(&mut self, packet: &[u8]) -> Result<Applied, ReceiveError> {
        self.honest.receive(packet)
    }

    fn acknowledgement(&mut self) -> Option<Vec<u8>> {
        self.honest.acknowledgement()
    }

    fn visit_covered(&self, visit: &mut dyn FnMut(u64, u16, &[i64])) {
        self.honest
            .visit_covered(&mut |key, class, row| (self.lie)(key, class, row, visit));
    }

    fn visit_all(&self, visit: &mut dyn FnMut(u64, u16, &[i64])) {
        self.visit_covered(visit);
    }
}

fn caught(lie: Lie) -> Difference {
    let mut source = open("world:rts?ticks=5&count=20").expect("a built-in world");
    let schema = source.schema().expect("a valid header");
    let (mut sender, honest) =
        build("raw", &MethodOptions::default(), schema).expect("a listed method");
    let options = RunOptions {
        seed: 77,
        ..RunOptions::default()
    };
    let mut liar = Liar { honest, lie };
    match run(
        source.as_mut(),
        sender.as_mut(),
        &mut liar,
        &options,
        &mut |_| {},
    ) {
        Err(RunError::Mismatch(mismatch)) => {
            assert_eq!((mismatch.tick, mismatch.seed), (0, 77));
            mismatch.what
        }
        other => panic!("not caught: {other:?}"),
    }
}

#[test]
fn a_wrong_value_is_named_with_class_and_field() {
    let difference = caught(|key, class, row, visit| {
        let mut row = row.to_vec();
        row[2] += i64::from(key == 7);
        visit(key, class, &row);
    });
    match difference {
        Difference::Value {
            class,
            field,
            expected,
            got,
        } => {
            assert_eq!(
                (class.as_str(), field.as_str(), got),
                ("unit", "x", expected + 1)
            );
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_ghost_a_missing_entity_and_a_wrong_class_are_caught() {
    let ghost =
        caught(|key, class, row, visit| visit(key + 1000 * u64::from(key == 3), class, row));
    assert_eq!(ghost, Difference::Ghost);
    let missing = caught(|key, class, row, visit| {
        if key != 5 {
            visit(key, class, row);
        }
    });
    assert_eq!(missing, Difference::Missing);
    let class = caught(|key, _, row, visit| visit(key, 1, row));
    assert!(matches!(class, Difference::Class { got: 1, .. }));
}

/// Sends the whole row of one entity per packet, in turn: the simplest method that obeys a budget.
#[derive(Default)]
struct RoundRobin {
    next: u64,
}

impl Sender for RoundRobin {
    fn send(
        &mut self,
        tick: u64,
        world: &World,
        _changes: &TickChanges,
        _budget: Option<usize>,
    ) -> Vec<u8> {
        let later = world.iter().find(|(id, _)| *id >= self.next);
        let (id, entity) = later.or_else(|| world.iter().next()).expect("never empty");
        self.next = id + 1;
        let numbers = [tick as i64, id as i64]
            .into_iter()
            .chain(entity.row.iter().copied());
        numbers.flat_map(i64::to_le_bytes).collect()
    }

    fn acknowledge(&mut self, _acknowledgement: &[u8]) {}

    fn obeys_budget(&self) -> bool {
        true
    }
}

#[derive(Default)]
struct RoundRobinReceiver {
    last: Vec<i64>,
}

impl Receiver for RoundRobinReceiver {
    fn receive(&mut self, packet: &[u8]) -> Result<Applied, ReceiveError> {
        let words = packet.chunks_exact(8);
        self.last = words
            .map(|word| i64::from_le_bytes(word.try_into().expect("eight")))
            .collect();
        Ok(Applied {
            tick: self.last[0] as u64,
            full: false,
        })
    }

    fn acknowledgement(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn visit_covered(&self, visit: &mut dyn FnMut(u64, u16, &[i64])) {
        visit(self.last[1] as u64, 0, &self.last[2..]);
    }

    fn visit_all(&self, visit: &mut dyn FnMut(u64, u16, &[i64])) {
        self.visit_covered(visit);
    }
}

#[test]
fn under_a_budget_the_stalest_entity_is_reported() {
    let mut source = open("world:idle?ticks=60&count=0&moving=10").expect("a built-in world");
    let ticks = Some(TickRange { start: 20, end: 50 });
    let options = RunOptions {
        budget: Some(48),
        ticks,
        ..RunOptions::default()
    };
    let (mut sender, mut receiver) = (RoundRobin::default(), RoundRobinReceiver::default());
    let measured = run(
        source.as_mut(),
        &mut sender,
        &mut receiver,
        &options,
        &mut |_| {},
    );
    let measured = measured.expect("it verifies");
    assert_eq!(measured.stalest_ticks, Some(9));
    assert_eq!(measured.bytes.len(), 30);

    let mut source = open("world:idle?ticks=60&count=0&moving=10").expect("a built-in world");
    let options = RunOptions {
        budget: Some(47),
        ..RunOptions::default()
    };
    let over = run(
        source.as_mut(),
        &mut sender,
        &mut receiver,
        &options,
        &mut |_| {},
    );
    assert!(matches!(
        over,
        Err(RunError::OverBudget {
            length: 48,
            budget: 47,
            ..
        })
    ));
}
