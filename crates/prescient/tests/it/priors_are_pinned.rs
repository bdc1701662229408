//! Models start from a prior that both ends have, or the client says which one it lacks.

use std::sync::Arc;

use prescient::{
    Client, ClientOptions, Everything, JoinError, Policy, Prior, Schema, Server, ServerOptions,
    SettingsMismatch, State, Tick,
};
use prescient_codec::history::Archive;
use prescient_codec::{Config, Slot, Trainer};

use crate::common::{bind, join, run, token};

#[derive(Clone, Copy, Debug, Default, PartialEq, State)]
struct Ball {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    health: u8,
}

fn schema() -> Schema {
    Schema::of::<Ball>().expect("a sound schema")
}

fn ball(tick: u64, offset: f32) -> Ball {
    Ball {
        position: [tick as f32 * 0.3 + offset, (tick % 17) as f32],
        health: (tick % 5) as u8,
    }
}

/// A prior trained on a short match, as bytes of a file.
fn prior(offset: f32) -> Vec<u8> {
    let schema = Arc::new(schema());
    let mut archive = Archive::new(schema.clone(), 64);
    let mut trainer = Trainer::new(Config::default().with_policy(Policy::Immediate));
    let mut encoder = trainer.encoder(schema.clone()).expect("no prior yet");
    for tick in 1..100 {
        let row = ball(tick, offset).to_row("default");
        let mut capture = archive.begin(Tick(tick)).expect("in order");
        let slot = match tick {
            1 => capture.spawn(0, &row).expect("sound"),
            _ => Slot(0),
        };
        capture.write(slot, &row).expect("sound");
        capture.finish();
        encoder.show(slot, &archive);
        encoder.encode(&archive, None).expect("sound");
    }
    trainer.learn(&encoder);
    trainer.finish().to_bytes()
}

/// Fails if `Layout::with_prior` is left out at one end, or if the fingerprint is not compared.
#[test]
fn both_ends_start_from_the_same_file() {
    let read = |bytes: &[u8]| Prior::from_bytes(bytes).expect("a prior");
    let (one, other) = (prior(0.0), prior(5.5));
    let options = ServerOptions::default().with_prior(read(&one));
    let mut server = bind(schema(), options);
    let entity = server.step().expect("a tick").spawn(&ball(1, 0.0));
    let entity = entity.expect("room");

    let mut outcome = |options: ClientOptions| {
        let token = token(&server);
        let joined = join(&mut server, move || {
            Client::join_with(token, schema(), options)
        });
        joined.0
    };
    let good = outcome(ClientOptions::default().with_prior(read(&one)));
    let without = outcome(ClientOptions::default()).err();
    let wrong = outcome(ClientOptions::default().with_prior(read(&other))).err();
    let pinned = read(&one).fingerprint();
    for (refused, client) in [(without, None), (wrong, Some(read(&other).fingerprint()))] {
        let Some(JoinError::OtherSettings(mismatch)) = refused else {
            panic!("{refused:?}");
        };
        let expected = SettingsMismatch::Prior {
            server: pinned,
            client,
        };
        assert_eq!(mismatch, expected);
        assert!(mismatch.to_string().contains(&pinned.to_string()));
    }
    let local = server.local_client();
    let mut clients = [good.expect("it has the same"), local];
    let mut tick = 1;
    run(&mut server, &mut clients, |server, clients| {
        tick += 1;
        while server.poll().is_some() {}
        let mut step = server.step().expect("a tick");
        step.set(entity, &ball(tick, 0.0)).expect("it is there");
        step.finish();
        let mut shown = 0;
        for client in &mut *clients {
            while client.poll().is_some() {}
            assert_eq!(client.view_statistics().refused, 0);
            shown += usize::from(client.all::<Ball>().count() == 1 && tick > 60);
        }
        shown == 2
    });
    // A server without a prior is joined without one.
    let mut plain = Server::offline(schema(), Everything).expect("sound");
    plain
        .step()
        .expect("a tick")
        .spawn(&ball(1, 0.0))
        .expect("room");
}
