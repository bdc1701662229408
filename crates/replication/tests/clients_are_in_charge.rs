//! Objects that a client is in charge of: what it says of them is what everybody sees.

mod common;

use std::collections::BTreeMap;

use common::{Theatre, Unit, bad, good, schema};
use prescient_replication::{
    Change, Client, Everything, Object, PeerId, SetError, Subject, Tick, Viewer,
};
use prescient_schema::Ref;
use prescient_tests::seeds::over_seeds;

/// A theatre in which clients are in charge of objects, and say in every tick what those are like.
struct Stage {
    theatre: Theatre,
    /// What each client said last of an object.
    said: BTreeMap<(PeerId, Object), Unit>,
    /// Bytes of the reports of the last tick.
    reported: Vec<usize>,
}

impl Stage {
    fn new(seed: u64, link: prescient_sim::link::Conditions) -> Self {
        Self {
            theatre: Theatre::new(seed, 3, link, Everything),
            said: BTreeMap::new(),
            reported: Vec::new(),
        }
    }

    /// Clients say something of all that is theirs, unless they are `still`.
    fn tick(&mut self, still: bool, during: impl FnOnce(&mut prescient_replication::Step<'_>)) {
        let theatre = &mut self.theatre;
        theatre.tick += 1;
        let (tick, now) = (theatre.tick, theatre.now());
        self.reported.clear();
        for seat in &mut theatre.seats {
            let yours: Vec<_> = seat.client.objects().collect();
            for object in yours {
                if !seat.client.is_in_charge(object) {
                    continue;
                }
                let mut unit: Unit = seat.client.get(object).expect("it is shown");
                if !still {
                    unit.place[0] += 0.25 * seat.peer.0 as f32;
                    unit.gold = tick as u16;
                    unit.target = Ref::to(seat.client.reference(object).expect("shown"));
                    seat.client.set(object, &unit).expect("it is ours");
                    self.said.insert((seat.peer, object), unit);
                }
            }
            if let Some(report) = seat.client.report(Some(500)) {
                self.reported.push(report.len());
                seat.up.send(now, &report);
            }
        }
        let mut step = theatre.server.step(Tick(tick)).expect("ticks ascend");
        during(&mut step);
        step.finish();
        theatre.exchange();
    }
}

/// Fails if `Intake::apply` leaves out the last table, if references are not turned into the
/// server's (`parcel` hands on the cell), or if `Author::acknowledge` does nothing.
#[test]
fn what_a_client_says_is_what_everybody_sees() {
    over_seeds(20, |seed| {
        let mut stage = Stage::new(seed, bad());
        let mut units: Vec<Ref<Unit>> = Vec::new();
        stage.tick(true, |step| {
            for peer in 1..=3 {
                let unit = step
                    .spawn_for(PeerId(peer), &Unit::default())
                    .expect("sound");
                step.entrust(unit.entity(), Some(PeerId(peer)))
                    .expect("there");
                units.push(unit);
            }
        });
        for _ in 0..200 {
            stage.tick(false, |_| {});
        }
        stage.theatre.heal();
        for _ in 0..60 {
            stage.tick(true, |_| {});
        }
        assert_eq!(stage.said.len(), 3, "each is in charge of one");
        // What is as it was is next to free, once it is known to have arrived.
        assert!(
            stage.reported.iter().all(|&bytes| bytes < 10),
            "{:?}",
            stage.reported
        );
        for ((author, object), unit) in &stage.said {
            let theatre = &stage.theatre;
            let seat = |peer: PeerId| &theatre.seats[peer.0 as usize - 1];
            let own: Unit = seat(*author).client.get(*object).expect("it is shown");
            assert_eq!(own.place, unit.place);
            let truth = units[author.0 as usize - 1];
            let other = seat(PeerId(author.0 % 3 + 1));
            // The others call it something else, and its own object is what it aims at.
            let shown = other.client.objects().find(|&object| {
                let seen: Option<Unit> = other.client.get(object);
                seen.is_some_and(|seen| seen.place == unit.place)
            });
            let shown = shown.expect("somebody else sees it");
            let seen: Unit = other.client.get(shown).expect("shown");
            assert_eq!(other.client.resolve(seen.target.entity()), Some(shown));
            assert_eq!(seen.health, unit.health);
            let archive = theatre.server.world().archive();
            let rows = archive
                .living_slots()
                .filter_map(|slot| archive.latest(slot));
            let private =
                rows.filter(|row| matches!(row, [_, object] if *object == truth.entity().cell()));
            let gold: Vec<i64> = private.map(|row| row[0]).collect();
            assert_eq!(
                gold,
                [i64::from(unit.gold)],
                "private tables are reported, too"
            );
        }
    });
}

/// Fails if `World::dismiss` does nothing, or if clients are not told that they are no longer in charge.
#[test]
fn charge_changes_hands() {
    over_seeds(20, |seed| {
        let mut stage = Stage::new(seed, bad());
        let mut unit = None;
        stage.tick(true, |step| {
            let new = step.spawn(&Unit::default()).expect("sound");
            step.entrust(new.entity(), Some(PeerId(1))).expect("there");
            unit = Some(new);
        });
        let unit = unit.expect("spawned");
        for _ in 0..60 {
            stage.tick(false, |_| {});
        }
        stage.tick(false, |step| {
            step.entrust(unit.entity(), Some(PeerId(2))).expect("there");
        });
        for _ in 0..120 {
            stage.tick(false, |_| {});
        }
        let in_charge = |stage: &Stage, peer: usize| {
            let client = &stage.theatre.seats[peer - 1].client;
            client.objects().any(|object| client.is_in_charge(object))
        };
        assert!(!in_charge(&stage, 1) && in_charge(&stage, 2) && !in_charge(&stage, 3));
        // Who leaves is in charge of nothing, and what it said last stays.
        stage.theatre.server.disconnect(PeerId(2));
        let place = |stage: &Stage| stage.theatre.server.world().place(unit.entity());
        stage.theatre.tick += 1;
        let tick = Tick(stage.theatre.tick);
        stage
            .theatre
            .server
            .step(tick)
            .expect("ticks ascend")
            .finish();
        let left_at = place(&stage).expect("it has a place");
        assert!(left_at.0[0] > 0.0);
        let gone = stage.theatre.seats.remove(1);
        let mut ghost = gone.client;
        let object = ghost.objects().next().expect("one is shown");
        assert!(
            ghost.set(object, &Unit::default()).is_ok(),
            "it does not know yet"
        );
        for _ in 0..5 {
            stage.tick(true, |_| {});
        }
        assert_eq!(place(&stage), Some(left_at));
        // Nor is it in charge when it comes again.
        stage
            .theatre
            .seats
            .insert(1, common::Seat::new(PeerId(2), seed, &good()));
        stage.theatre.server.connect(PeerId(2));
        for _ in 0..40 {
            stage.tick(true, |_| {});
        }
        assert_eq!(stage.theatre.seats[1].client.objects().count(), 1);
        assert!(!in_charge(&stage, 2));
    });
}

/// Fails if `target` does not ask who is in charge.
#[test]
fn what_comes_too_late_changes_nothing() {
    let mut stage = Stage::new(1, good());
    let mut unit = None;
    stage.tick(true, |step| {
        let new = step.spawn(&Unit::default()).expect("sound");
        step.entrust(new.entity(), Some(PeerId(1))).expect("there");
        unit = Some(new.entity());
    });
    let unit = unit.expect("spawned");
    for _ in 0..40 {
        stage.tick(false, |_| {});
    }
    let place = |stage: &Stage| stage.theatre.server.world().place(unit);
    let client = &mut stage.theatre.seats[0].client;
    let object = client.objects().next().expect("one is shown");
    let far = Unit {
        place: [900.0, 0.0],
        ..Unit::default()
    };
    client.set(object, &far).expect("it is ours");
    let report = client.report(None).expect("something to say");
    stage.tick(true, |step| step.entrust(unit, None).expect("there"));
    let kept = place(&stage);
    let taken = stage.theatre.server.handle(PeerId(1), &report);
    taken.expect("an honest report");
    stage.tick(true, |_| {});
    assert_eq!(place(&stage), kept);
}

/// Fails if a client that is in charge of an object is not shown it (`show_whole` without `.or`).
#[test]
fn who_is_in_charge_sees_it() {
    let policy = |_: &Viewer, _: &Subject, _: Option<_>| None;
    let mut theatre = Theatre::new(1, 2, good(), policy);
    for tick in 1..20 {
        theatre.tick = tick;
        let mut step = theatre.server.step(Tick(tick)).expect("ticks ascend");
        if tick == 1 {
            let unit = step.spawn(&Unit::default()).expect("sound");
            step.entrust(unit.entity(), Some(PeerId(2))).expect("there");
        }
        step.finish();
        theatre.exchange();
    }
    assert_eq!(theatre.seats[0].client.objects().count(), 0);
    let client = &mut theatre.seats[1].client;
    let object = client.objects().next().expect("it is shown");
    assert!(client.is_in_charge(object));
}

/// Fails if a client can say something of what is not its own, or of the wrong type.
#[test]
fn nonsense_is_refused() {
    let mut theatre = Theatre::new(1, 1, good(), Everything);
    for tick in 1..10 {
        theatre.tick = tick;
        let mut step = theatre.server.step(Tick(tick)).expect("ticks ascend");
        if tick == 1 {
            let unit = step.spawn(&Unit::default()).expect("sound");
            let other = prescient_schema::EntityRef::new(77, 0);
            assert!(step.entrust(other, Some(PeerId(1))).is_err());
            assert!(step.attach(other, None).is_err());
            assert!(step.attach(unit.entity(), Some(unit.entity())).is_err());
        }
        step.finish();
        theatre.exchange();
    }
    let client = &mut theatre.seats[0].client;
    let object = client.objects().next().expect("it is shown");
    let refused = client.set(object, &Unit::default());
    assert_eq!(refused, Err(SetError::NotInCharge));
    assert_eq!(client.report(None), None);
    let mut empty = Client::new(schema(), Default::default()).expect("sound");
    assert_eq!(
        empty.set(object, &Unit::default()),
        Err(SetError::NotInCharge)
    );
    assert_eq!(empty.tell(Some(object), b"?"), None);
    let entered = std::iter::from_fn(|| empty.poll_change()).any(|c| c == Change::Entered);
    assert!(!entered);
}
