//! A client that shows something wrong is found out, and what is wrong has a name.

mod common;

use common::{Theatre, Unit, bad};
use prescient_replication::{
    ClientError, Everything, FromClient, PeerError, PeerId, Sight, Subject, Tick, Viewer,
};
use prescient_schema::Ref;
use prescient_tests::seeds::over_seeds;

/// Plays for a while, and returns what the first client says it shows.
fn testimony(theatre: &mut Theatre, units: &mut Vec<Ref<Unit>>) -> Vec<u8> {
    for _ in 0..60 {
        theatre.tick += 1;
        let mut step = theatre.server.step(Tick(theatre.tick)).expect("ascending");
        if units.len() < 8 {
            units.push(step.spawn(&Unit::default()).expect("sound"));
        }
        for (number, &unit) in units.iter().enumerate() {
            let target = units[theatre.dice.below(units.len() as u64) as usize];
            let unit_now = Unit {
                place: [theatre.tick as f32, number as f32],
                health: (theatre.tick / 10) as u8,
                target,
                gold: 7,
            };
            step.set(unit, &unit_now).expect("sound");
        }
        step.finish();
        theatre.exchange();
    }
    theatre.server.question(PeerId(1)).expect("it is here");
    let question = theatre.server.poll_message(PeerId(1)).expect("just asked");
    let client = &mut theatre.seats[0].client;
    client.handle(&question).expect("honest");
    client.poll_message().expect("an answer")
}

/// Fails if rows are compared with the newest tick, or if a reference that has not resolved counts
/// as wrong.
#[test]
fn an_honest_client_is_believed() {
    over_seeds(20, |seed| {
        // Some refer to what is hidden.
        let policy = |_: &Viewer, subject: &Subject, _: Option<_>| {
            let number = subject.object.index().unwrap_or_default();
            (!number.is_multiple_of(3)).then_some(Sight::PUBLIC)
        };
        let mut theatre = Theatre::new(seed, 3, bad(), policy);
        theatre.budget = (seed % 2 == 1).then_some(40);
        let message = testimony(&mut theatre, &mut Vec::new());
        let found = theatre.server.handle(PeerId(1), &message);
        let honest = FromClient::Testified {
            differences: Vec::new(),
            last: true,
        };
        assert_eq!(found, Ok(honest));
    });
}

/// Fails if `wrong_fields` stops before the last field.
#[test]
fn one_wrong_value_is_named() {
    over_seeds(20, |seed| {
        let mut theatre = Theatre::new(seed, 3, bad(), Everything);
        let mut units = Vec::new();
        let mut message = testimony(&mut theatre, &mut units);
        // Two first bytes, number, tick and class of the first entity, two coordinates, its health.
        let health = 2 + 4 + 4 + 2 + 2 * 8;
        message[health] ^= 0x40;
        let found = theatre.server.handle(PeerId(1), &message);
        let Ok(FromClient::Testified {
            differences: found,
            last: true,
        }) = found
        else {
            panic!("{found:?}");
        };
        let [found] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(found.class, "unit");
        assert_eq!(found.field.as_deref(), Some("health"));
        assert_eq!(found.truth.map(|truth| truth ^ 0x40), Some(found.shown));
        assert!(units.iter().any(|unit| Some(unit.entity()) == found.object));

        message.truncate(message.len() - 3);
        assert!(theatre.server.handle(PeerId(1), &message).is_err());
    });
}

/// A client that shows much says it in parts, and however often it is asked, little waits. Fails if
/// `testimony::write` does not look at its length, begins anew with every part, or leaves one out
/// (`slot > from`); if `Client::handle` takes another question for the answer's end; and if the server
/// takes answers that nobody asked for (`questions == 0` left out of `Server::hear`).
#[test]
fn a_long_answer_comes_in_parts() {
    let mut theatre = Theatre::new(1, 1, common::good(), Everything);
    let mut step = theatre.server.step(Tick(1)).expect("the first");
    for _ in 0..2000 {
        step.spawn(&Unit::default()).expect("sound");
    }
    step.finish();
    theatre.tick = 1;
    while theatre.seats[0].client.objects().count() < 2000 {
        theatre.exchange();
        theatre.tick += 1;
        let step = theatre.server.step(Tick(theatre.tick));
        step.expect("in order").finish();
    }
    let (server, client) = (&mut theatre.server, &mut theatre.seats[0].client);
    for _ in 0..2 {
        server.question(PeerId(1)).expect("it is here");
        let question = server.poll_message(PeerId(1)).expect("just asked");
        client.handle(&question).expect("nothing is unanswered");
        for _ in 0..1000 {
            assert_eq!(client.handle(&question), Err(ClientError::AskedAgain));
        }
        let parts = std::iter::from_fn(|| client.poll_message());
        let parts: Vec<_> = parts.take(100).collect();
        let mut rows = 0;
        for (number, part) in (1..).zip(&parts) {
            assert!(part.len() <= (16 << 10) + 2, "{} bytes", part.len());
            rows += part.len() - 2;
            let honest = FromClient::Testified {
                differences: Vec::new(),
                last: number == parts.len(),
            };
            assert_eq!(server.handle(PeerId(1), part), Ok(honest));
        }
        // Number, tick and class of each, and the four columns of its public table.
        assert_eq!(rows, 2000 * (4 + 4 + 2 + 4 * 8));
        assert!(parts.len() > 4);
        // Nobody asked for it again.
        let refused = server.handle(PeerId(1), &parts[0]);
        assert_eq!(refused, Err(PeerError::NotAsked));
    }
}
