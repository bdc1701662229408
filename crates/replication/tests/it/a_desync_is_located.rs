//! An audit finds a client's wrong values and names them.

use crate::common;

use crate::common::{TestWorld, Unit, bad, poll};
use prescient_replication::{
    Candidate, ClientError, Everything, FromClient, Observer, PeerError, PeerId, Tick, Visibility,
};
use prescient_schema::Ref;
use prescient_tests::seeds::over_seeds;

/// Plays for a while, and returns the first client's audit report.
fn audit_report(test_world: &mut TestWorld, units: &mut Vec<Ref<Unit>>) -> Vec<u8> {
    for _ in 0..60 {
        test_world.tick += 1;
        let mut step = test_world
            .server
            .step(Tick(test_world.tick.into()))
            .expect("ascending");
        if units.len() < 8 {
            units.push(step.spawn(&Unit::default()).expect("sound"));
        }
        for (number, &unit) in units.iter().enumerate() {
            let target = units[test_world.dice.below(units.len() as u64) as usize];
            let unit_now = Unit {
                position: [test_world.tick as f32, number as f32],
                health: (test_world.tick / 10) as u8,
                target,
                gold: 7,
            };
            step.set(unit, &unit_now).expect("sound");
        }
        step.finish();
        test_world.exchange();
    }
    test_world.server.audit(PeerId(1)).expect("it is here");
    let audit_request = poll(&mut test_world.server, PeerId(1)).expect("just asked");
    let client = &mut test_world.clients[0].client;
    client.handle(&audit_request).expect("honest");
    client.poll_message().expect("an answer")
}

/// Fails if rows are compared with the newest tick, or if an unresolved reference counts as wrong.
#[test]
fn an_honest_client_is_believed() {
    over_seeds(20, |seed| {
        // Some units refer to hidden ones.
        let policy = |_: &Observer, candidate: &Candidate, _: Option<_>| {
            let number = candidate.entity.index().unwrap_or_default();
            (!number.is_multiple_of(3)).then_some(Visibility::PUBLIC)
        };
        let mut test_world = TestWorld::new(seed, 3, bad(), policy);
        test_world.budget = (seed % 2 == 1).then_some(40);
        let message = audit_report(&mut test_world, &mut Vec::new());
        let found = test_world.server.handle(PeerId(1), &message);
        let honest = FromClient::AuditReport {
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
        let mut test_world = TestWorld::new(seed, 3, bad(), Everything);
        let mut units = Vec::new();
        let mut message = audit_report(&mut test_world, &mut units);
        // The two bytes of the message, then id, tick and class of the first entity, two
        // coordinates, its health.
        let health = 2 + 4 + 8 + 2 + 2 * 8;
        message[health] ^= 0x40;
        let found = test_world.server.handle(PeerId(1), &message);
        let Ok(FromClient::AuditReport {
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
        assert!(
            units
                .iter()
                .any(|unit| Some(unit.entity_ref()) == found.entity)
        );

        message.truncate(message.len() - 3);
        assert!(test_world.server.handle(PeerId(1), &message).is_err());
    });
}

/// A long report is split into parts, and little waits, however often an audit is requested. Fails
/// if `audit::write` ignores its maximum length, starts again with every part, or skips an entity
/// (`slot > from`); if `Client::handle` takes another request for the end of the report; and if the
/// server accepts reports that were not requested (`open_audits == 0` left out of
/// `Server::handle_world_message`).
#[test]
fn a_long_report_is_split_into_parts() {
    let mut test_world = TestWorld::new(1, 1, common::good(), Everything);
    let mut step = test_world.server.step(Tick(1)).expect("the first");
    for _ in 0..2000 {
        step.spawn(&Unit::default()).expect("sound");
    }
    step.finish();
    test_world.tick = 1;
    while test_world.clients[0].client.entities().count() < 2000 {
        test_world.exchange();
        test_world.tick += 1;
        let step = test_world.server.step(Tick(test_world.tick.into()));
        step.expect("in order").finish();
    }
    let (server, client) = (&mut test_world.server, &mut test_world.clients[0].client);
    for _ in 0..2 {
        server.audit(PeerId(1)).expect("it is here");
        let audit_request = poll(server, PeerId(1)).expect("just asked");
        client
            .handle(&audit_request)
            .expect("nothing is unanswered");
        for _ in 0..1000 {
            assert_eq!(
                client.handle(&audit_request),
                Err(ClientError::AuditInProgress)
            );
        }
        let parts = std::iter::from_fn(|| client.poll_message());
        let parts: Vec<_> = parts.take(100).collect();
        let mut rows = 0;
        for (number, part) in (1..).zip(&parts) {
            assert!(part.len() <= (16 << 10) + 2, "{} bytes", part.len());
            rows += part.len() - 2;
            let honest = FromClient::AuditReport {
                differences: Vec::new(),
                last: number == parts.len(),
            };
            assert_eq!(server.handle(PeerId(1), part), Ok(honest));
        }
        // Id, tick and class of each, and the four columns of its public table.
        assert_eq!(rows, 2000 * (4 + 8 + 2 + 4 * 8));
        assert!(parts.len() > 4);
        // It was not requested again.
        let refused = server.handle(PeerId(1), &parts[0]);
        assert_eq!(refused, Err(PeerError::AuditNotRequested));
    }
}
