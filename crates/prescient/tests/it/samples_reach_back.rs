//! Clients and servers answer what an entity was at recent ticks, as far back as each was told to.

use std::time::Duration;

use prescient::{
    Client, ClientConfig, ClientOptions, HistoryDepth, Ref, Schema, ServerConfig, ServerOptions,
    State, Tick,
};

use crate::common::{bind, join, token};

#[derive(Clone, Debug, PartialEq, State)]
#[state(tables(public, private))]
struct Runner {
    #[state(step = 1.0, position, tables(public))]
    x: f64,
    #[state(max_len = 8, tables(public))]
    name: String,
    #[state(tables(private))]
    gold: u64,
}

fn at(tick: Tick) -> Runner {
    Runner {
        x: (tick.0 * 3) as f64,
        name: format!("ann{}", tick.0 / 20),
        gold: tick.0,
    }
}

/// A local client and one over UDP read what the server's world was, texts included.
///
/// Fails if `Server::local_client_as` does not pass the depth on, if `ClientOptions::replication`
/// or `ServerOptions::replication` is ignored, or if contents are dropped before the rows that name
/// them.
#[test]
fn both_kinds_of_clients_read_the_server_s_past() {
    let history = |ticks| HistoryDepth::new(ticks).expect("long enough");
    let options = ServerOptions::default()
        .with_replication(ServerConfig::default().with_history(history(200)));
    let mut server = bind(Schema::of::<Runner>().expect("sound"), options);
    let token = token(&server);
    let (client, _) = join(&mut server, move || {
        let options = ClientOptions::default()
            .with_replication(ClientConfig::default().with_history(history(160)));
        Client::join_with(token, Schema::of::<Runner>().expect("sound"), options)
    });
    let mut clients = [server.local_client(), client.expect("joined")];
    let mut spawned: Option<Ref<Runner>> = None;
    let mut now = Tick(0);
    while now < Tick(400) || clients.iter().any(|client| client.tick() != Some(now)) {
        assert!(now < Tick(5000), "a client is never up to date");
        while server.poll().is_some() {}
        now = server
            .world()
            .tick()
            .map_or(Tick(1), |tick| Tick(tick.0 + 1));
        let mut step = server.step().expect("in order");
        match spawned {
            Some(entity) => step.set(entity, &at(now)).expect("it is there"),
            None => spawned = Some(step.spawn(&at(now)).expect("sound")),
        }
        step.finish();
        server.send();
        server.wait(Duration::from_millis(1));
        for client in &mut clients {
            client.wait(Duration::ZERO);
            while client.poll().is_some() {}
        }
    }
    let [local, over_udp] = &clients;
    let entity = spawned.expect("it was spawned");
    let all = |oldest: u64| (oldest..=now.0).map(Tick);
    let public = |tick| Runner {
        gold: 0,
        ..at(tick)
    };
    let world = server.world();
    let expected = all(now.0 - 200).map(|tick| (tick, public(tick)));
    assert!(world.samples(entity).eq(expected.clone()));
    let private = world.table_samples(entity, "private");
    assert!(
        private
            .map(|(tick, runner)| (tick, runner.gold))
            .eq(all(now.0 - 200).map(|tick| (tick, tick.0)))
    );

    let shown = local.entities().next().expect("it is visible");
    assert!(local.samples(shown).eq(expected));
    let table = local.table_samples::<Runner>(shown, "private");
    assert_eq!(table.count(), 0, "private tables are for owners");
    let rows = local
        .sample_rows(shown, 0)
        .map(|(tick, row)| (tick, row[0]));
    assert!(rows.eq(all(now.0 - 200).map(|tick| (tick, (tick.0 * 3) as i64))));

    let shown = over_udp.entities().next().expect("it is visible");
    let samples: Vec<(Tick, Runner)> = over_udp.samples(shown).collect();
    assert!(
        samples
            .iter()
            .all(|(tick, runner)| *runner == public(*tick))
    );
    assert!(samples.is_sorted_by(|(one, _), (next, _)| one < next));
    let (oldest, newest) = (samples[0].0, samples[samples.len() - 1].0);
    assert_eq!(newest, now);
    assert!(
        oldest.0 >= now.0 - 160 && oldest.0 < now.0 - 130,
        "{oldest:?}"
    );
}
