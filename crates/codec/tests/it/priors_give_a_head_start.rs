//! Trained priors: what they gain, and that no prior can make two ends disagree.

use std::sync::Arc;

use crate::common::{
    Random, World, config, ends, is_chance, quiet, run, run_from, setting, trained,
};
use prescient_codec::{
    Config, Decoder, Encoder, HISTORY, Policy, Prior, PriorError, PriorMismatch, Profile, Slot,
    Tick, Trainer, history::Archive,
};
use prescient_schema::{Class, Field, FieldKind, Fingerprint, Schema};

#[test]
fn the_bytes_say_everything() {
    for profile in [Profile::Default, Profile::Best] {
        let prior = trained(5, 300, profile);
        let bytes = prior.to_bytes();
        let again = Prior::from_bytes(&bytes).unwrap();
        assert_eq!(again.to_bytes(), bytes);
        assert_eq!(again.fingerprint(), prior.fingerprint());
        assert_eq!(again.profile(), profile);
        let config = config(Policy::Confirmed, profile);
        let runs = [&prior, &again].map(|prior| run_from(Some(prior), 9, 100, quiet(), config));
        assert_eq!(runs[0].bytes, runs[1].bytes);
        assert_eq!(runs[0].encoder.digest(), runs[1].encoder.digest());
    }
}

#[test]
fn another_world_begins_cheaper() {
    let prior = trained(5, 1000, Profile::Default);
    let config = Config::default();
    let (mut with, mut without) = (0, 0);
    for seed in 100..110 {
        with += run_from(Some(&prior), seed, 100, quiet(), config).bytes;
        without += run(seed, 100, quiet(), config).bytes;
    }
    println!("{with} bytes with a prior, {without} without");
    assert!(10 * with < 9 * without, "{with} of {without} bytes");
}

#[test]
fn one_recording_after_the_other_adds_up() {
    let mut trainer = Trainer::new(config(Policy::Immediate, Profile::Default));
    let mut sizes = Vec::new();
    for schema in [carts(&["x", "speed"]), carts(&["x", "load"])] {
        let mut encoder = trainer.encoder(schema.clone()).unwrap();
        let mut decoder = trainer.decoder(schema.clone()).unwrap();
        drive(&schema, &mut encoder, &mut decoder, 200);
        trainer.learn(&encoder);
        sizes.push(trainer.clone().finish().to_bytes().len());
    }
    let prior = trainer.finish();
    assert!(sizes[0] < sizes[1]);
    assert_eq!(
        prior.known_fields(&carts(&["x", "speed", "load", "other"])),
        3
    );
}

#[test]
fn a_changed_field_starts_from_nothing_and_the_others_do_not() {
    let config = Config::default();
    let old = carts(&["x", "speed", "load"]);
    let mut trainer = Trainer::new(config);
    let mut encoder = trainer.encoder(old.clone()).unwrap();
    let mut decoder = trainer.decoder(old.clone()).unwrap();
    drive(&old, &mut encoder, &mut decoder, 300);
    trainer.learn(&encoder);
    let prior = trainer.finish();
    assert_eq!(prior.known_fields(&old), 3);

    let mut changed = Schema::clone(&old);
    let class = &mut changed.classes[0];
    class.fields[1].kind = FieldKind::Int {
        bits: 20,
        signed: true,
    };
    class.fields.insert(0, Field::new("new", int(16)));
    changed
        .classes
        .insert(0, Class::new("stranger", vec![Field::new("x", int(32))]));
    let changed = Arc::new(changed);
    assert_eq!(prior.known_fields(&changed), 2);

    let bytes = |prior: Option<&Prior>| {
        let (mut encoder, mut decoder) = ends(prior, &changed, config);
        drive(&changed, &mut encoder, &mut decoder, 60)
    };
    let (with, without) = (bytes(Some(&prior)), bytes(None));
    assert!(with < without, "{with} with, {without} without");
}

/// Without a handshake, only the 16-bit check of every packet detects this, and accepts one in
/// 65536 by chance.
#[test]
fn ends_with_different_priors_refuse_each_other() {
    let config = Config::default();
    let a = trained(1, 200, Profile::Default);
    let b = trained(2, 200, Profile::Default);
    assert_ne!(a.fingerprint(), b.fingerprint());
    let (mut checked, mut fooled) = (0, 0);
    for (ours, theirs) in [(Some(&a), Some(&b)), (Some(&a), None), (None, Some(&a))] {
        for seed in 0..setting("PRESCIENT_SEEDS", 10) {
            let mut world = World::new(seed);
            let (mut encoder, _) = ends(ours, &world.schema, config);
            let (_, mut decoder) = ends(theirs, &world.schema, config);
            let digest = decoder.digest();
            for _ in 0..100 {
                world.step(20);
                for slot in world.archive.living_slots() {
                    encoder.show(slot, &world.archive);
                }
                let packet = encoder.encode(&world.archive, None).unwrap();
                checked += 1;
                if decoder.decode(&packet.bytes).is_ok() {
                    fooled += 1;
                    break;
                }
                assert_eq!(decoder.digest(), digest);
                if let Some(ack) = decoder.acknowledgement() {
                    encoder.acknowledge(&ack, &world.archive).unwrap();
                }
            }
        }
    }
    println!("{fooled} of {checked} packets passed");
    assert!(is_chance(checked, fooled), "{fooled} of {checked}");
}

#[test]
fn a_new_epoch_begins_with_the_prior_again() {
    let prior = trained(1, 300, Profile::Default);
    let mut run = run_from(Some(&prior), 8, 150, quiet(), Config::default());
    let (fresh, _) = ends(Some(&prior), &run.world.schema, Config::default());
    assert_ne!(run.encoder.digest(), fresh.digest());
    run.encoder.resync();
    assert_eq!(run.encoder.digest(), fresh.digest());
    run.world.step(20);
    let packet = run.encoder.encode(&run.world.archive, None).unwrap();
    run.decoder.decode(&packet.bytes).unwrap();
    assert_eq!(run.decoder.digest(), fresh.digest());
}

#[test]
fn a_prior_of_another_profile_is_refused() {
    let schema = World::new(1).schema;
    let prior = trained(1, 50, Profile::Best);
    let refused = Err(PriorMismatch::Profile {
        trained: Profile::Best,
        wanted: Profile::Default,
    });
    let config = Config::default();
    assert_eq!(
        Encoder::with_prior(schema.clone(), config, &prior).map(drop),
        refused
    );
    assert_eq!(
        Decoder::with_prior(schema, config, &prior).map(drop),
        refused
    );
}

#[test]
fn a_client_that_saw_nothing_holds_next_to_nothing() {
    let schema = World::new(1).schema;
    let prior = trained(1, 2000, Profile::Best);
    let config = config(Policy::Confirmed, Profile::Best);
    let (encoder, decoder) = ends(Some(&prior), &schema, config);
    let size = prior.to_bytes().len();
    println!("prior {size}, model {}", encoder.model_bytes());
    assert!(size > 64 << 10);
    assert!(encoder.model_bytes() <= 64 << 10 && decoder.model_bytes() <= 64 << 10);
}

#[test]
fn what_is_no_prior_is_refused() {
    let bytes = trained(1, 20, Profile::Default).to_bytes();
    assert_eq!(
        Prior::from_bytes(b"something else").map(drop),
        Err(PriorError::NoPrior)
    );
    let mut newer = bytes.clone();
    newer[8] += 1;
    assert_eq!(
        Prior::from_bytes(&newer).map(drop),
        Err(PriorError::Version(newer[8]))
    );
    let step = if cfg!(debug_assertions) { 41 } else { 1 };
    for length in (0..bytes.len()).step_by(step) {
        assert!(Prior::from_bytes(&bytes[..length]).is_err(), "{length}");
    }
    for at in (0..bytes.len()).step_by(step) {
        let mut bent = bytes.clone();
        bent[at] ^= 0x10;
        assert!(Prior::from_bytes(&bent).is_err(), "{at}");
    }
}

#[test]
fn a_forged_prior_is_an_error_or_a_prior_that_both_ends_agree_on() {
    let honest = trained(1, 30, Profile::Default).to_bytes();
    let mut random = Random::new(setting("PRESCIENT_SEED", 4));
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..setting(
        "PRESCIENT_CASES",
        if cfg!(debug_assertions) { 200 } else { 600 },
    ) {
        let mut bytes = honest[..honest.len() - 16].to_vec();
        for _ in 0..=random.below(3) {
            let at = 9 + random.below(bytes.len() as u64 - 9) as usize;
            match random.below(3) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = random.next() as u8,
                _ => bytes.truncate(at + 1),
            }
            bytes.resize(bytes.len().max(20), 0);
        }
        let seal = Fingerprint::of_bytes(&bytes);
        bytes.extend(seal.to_be_bytes());
        match Prior::from_bytes(&bytes) {
            Err(_) => refused += 1,
            Ok(prior) if prior.profile() == Profile::Default => {
                run_from(Some(&prior), 6, 30, quiet(), Config::default());
                accepted += 1;
            }
            Ok(_) => {}
        }
    }
    assert!(
        accepted > 5 && refused > 5,
        "{accepted} accepted, {refused} refused"
    );
}

/// Fails with a panic (or, without overflow checks, with an accepted prior) if weights are compared
/// by magnitude: `i32::MIN` has none.
#[test]
fn no_weight_is_beyond_its_limit() {
    let honest = trained(1, 5, Profile::Default).to_bytes();
    let rest = 10 + honest[10..].iter().take_while(|&&b| b > 0x7F).count() + 1;
    for weight in [
        i64::from(i32::MIN),
        i64::from(i32::MAX),
        -(1 << 18) - 1,
        1 << 18,
    ] {
        let moved = weight - 42_000;
        let mut bytes = honest[..10].to_vec();
        let mut number = (moved << 1 ^ moved >> 63) as u64;
        while number > 0x7F {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes.extend_from_slice(&honest[rest..honest.len() - 16]);
        let seal = Fingerprint::of_bytes(&bytes);
        bytes.extend(seal.to_be_bytes());
        let read = Prior::from_bytes(&bytes).map(drop);
        let expected = match weight == 1 << 18 {
            true => Ok(()),
            false => Err(PriorError::Malformed),
        };
        assert_eq!(read, expected, "{weight}");
    }
}

fn int(bits: u8) -> FieldKind {
    FieldKind::Int { bits, signed: true }
}

fn carts(fields: &[&str]) -> Arc<Schema> {
    let fields = fields.iter().map(|name| Field::new(*name, int(32)));
    Arc::new(Schema {
        classes: vec![Class::new("cart", fields.collect())],
    })
}

/// Moves carts of the last class in all of their fields; returns the bytes sent.
fn drive(schema: &Arc<Schema>, encoder: &mut Encoder, decoder: &mut Decoder, ticks: u32) -> usize {
    let class = schema.classes.len() - 1;
    let width = schema.classes[class].fields.len();
    let mut random = Random::new(u64::from(ticks));
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let mut rows = vec![vec![0; width]; 8];
    let mut slots: Vec<Slot> = Vec::new();
    let mut bytes = 0;
    for tick in 1..=ticks {
        let mut capture = archive.begin(Tick(tick.into())).unwrap();
        for (at, row) in rows.iter_mut().enumerate() {
            for value in row.iter_mut() {
                *value += 20 + random.below(7) as i64;
            }
            match slots.get(at) {
                Some(&slot) => capture.write(slot, row).unwrap(),
                None => slots.push(capture.spawn(class as u16, row).unwrap()),
            };
        }
        capture.finish();
        for &slot in &slots {
            encoder.show(slot, &archive);
        }
        let packet = encoder.encode(&archive, None).unwrap();
        bytes += packet.bytes.len();
        decoder.decode(&packet.bytes).unwrap();
        for &slot in &slots {
            let id = encoder.net_entity_id(slot).unwrap();
            assert_eq!(decoder.row(id), archive.latest(slot));
        }
        let ack = decoder.acknowledgement().unwrap();
        encoder.acknowledge(&ack, &archive).unwrap();
    }
    bytes
}
