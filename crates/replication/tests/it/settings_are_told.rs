//! The server alone decides how state is coded: clients adopt its settings, or report why they
//! cannot.

use crate::common::{Unit, encode, greet, poll, schema};
use prescient_codec::{Policy, Profile};
use prescient_replication::{
    Change, Client, ClientConfig, ClientError, Config, Delivery, Everything, PeerId, Room, Server,
    ServerConfig, SettingsMismatch, Tick,
};
use prescient_schema::Ref;

const PEER: PeerId = PeerId(1);

fn server(codec: Config) -> Server {
    let config = ServerConfig::default().with_codec(codec);
    let mut server = Server::new(schema(), config, Everything).expect("sound");
    server.connect(PEER);
    server
}

fn client() -> Client {
    Client::new(schema(), ClientConfig::default()).expect("sound")
}

fn configs() -> Vec<Config> {
    let mut all = Vec::new();
    for policy in [Policy::Confirmed, Policy::Immediate, Policy::Stateless] {
        for profile in [Profile::Default, Profile::Best] {
            for learning in [true, false] {
                all.push(
                    Config::default()
                        .with_policy(policy)
                        .with_profile(profile)
                        .with_learning(learning),
                );
            }
        }
    }
    all
}

fn unit(tick: u32) -> Unit {
    Unit {
        position: [(tick * tick % 97) as f32, tick as f32],
        health: tick as u8,
        ..Unit::default()
    }
}

/// Exchanges a tick without loss.
fn exchange(server: &mut Server, client: &mut Client) {
    greet(server, PEER, client);
    for (_, message) in encode(server, &|_| Room::UNLIMITED) {
        client.handle(&message).expect("it can be read");
    }
    let messages = [client.report(None), client.acknowledgement()];
    for message in messages.into_iter().flatten() {
        server.handle(PEER, &message).expect("honest");
    }
    if let Some(message) = poll(server, PEER) {
        client.handle(&message).expect("it can be read");
    }
}

fn step(server: &mut Server, tick: u32, unit_now: Ref<Unit>) {
    let mut step = server.step(Tick(tick.into())).expect("in order");
    step.set(unit_now, &unit(tick)).expect("sound");
    step.finish();
}

fn spawn(server: &mut Server) -> Ref<Unit> {
    let mut step = server.step(Tick(1)).expect("the first");
    let spawned = step.spawn(&unit(1)).expect("sound");
    step.finish();
    spawned
}

/// Whatever the server's settings are, a client without any shows the true state, and its reports
/// arrive if it has authority. Fails if `Client::begin` keeps its own settings, or makes no new
/// `AuthorityReporter`, or if `Peer::known` waits for a confirmation that never comes.
#[test]
fn clients_do_as_the_server_does() {
    for codec in configs() {
        let (mut server, mut client) = (server(codec), client());
        let spawned = spawn(&mut server);
        for tick in 2..40 {
            step(&mut server, tick, spawned);
            exchange(&mut server, &mut client);
            let entity = client.entities().next().expect("it is shown");
            assert_eq!(client.get(entity), Some(unit(tick)), "{codec:?}");
        }
        let mut step = server.step(Tick(40)).expect("in order");
        step.grant_authority(spawned.entity_ref(), PEER)
            .expect("there");
        step.finish();
        for tick in 41..80 {
            exchange(&mut server, &mut client);
            while client.poll_change().is_some() {}
            let entity = client.entities().next().expect("it is shown");
            if client.has_authority(entity) {
                client.set(entity, &unit(tick)).expect("it has authority");
            }
            server.step(Tick(tick.into())).expect("in order").finish();
        }
        let archive = server.world().archive();
        let slot = archive.entity(spawned.entity_ref()).expect("there");
        let health = archive.latest(slot).expect("there")[2];
        assert!(
            health > 70,
            "{codec:?}: its reports do not arrive: {health}"
        );
    }
}

/// Worlds may have different settings. Fails if `Client::handle_world_message` does not adopt those
/// of `Entered`.
#[test]
fn every_world_has_its_own() {
    for codec in configs() {
        let (mut first, mut second) = (server(Config::default()), server(codec));
        second.disconnect(PEER);
        let mut client = client();
        let units = [spawn(&mut first), spawn(&mut second)];
        exchange(&mut first, &mut client);
        let transfer = first.transfer_out(PEER).expect("it was here");
        second.transfer_in(PEER, transfer);
        for tick in 2..20 {
            step(&mut second, tick, units[1]);
            exchange(&mut second, &mut client);
            let entity = client.entities().next().expect("it is shown");
            assert_eq!(client.get(entity), Some(unit(tick)), "{codec:?}");
        }
        let changes = std::iter::from_fn(|| client.poll_change());
        assert!(changes.into_iter().any(|change| change == Change::Entered));
    }
}

/// Fails if `Client::handle_world_message` reads state before the welcome.
#[test]
fn state_before_the_welcome_is_skipped() {
    let (mut server, mut client) = (server(Config::default()), client());
    let hello = client.poll_message().expect("its hello");
    server.handle(PEER, &hello).expect("honest");
    let spawned = spawn(&mut server);
    let welcome = poll(&mut server, PEER).expect("a welcome");
    for (_, message) in encode(&mut server, &|_| Room::UNLIMITED) {
        assert_eq!(client.handle(&message), Err(ClientError::Early));
    }
    assert_eq!(client.acknowledgement(), None);
    client.handle(&welcome).expect("honest");
    step(&mut server, 2, spawned);
    exchange(&mut server, &mut client);
    assert_eq!(client.entities().count(), 1);
}

/// A stream loses nothing, so nothing may be sent too early, in whatever order a program polls.
/// Fails if `Peer::encode` does not wait for the settings to be sent, or `Peer::poll_message` takes
/// the `Entered` of another world for them.
#[test]
fn no_state_is_sent_before_the_welcome_or_the_entrance() {
    let codec = Config::default().with_policy(Policy::Immediate);
    let mut client = client();
    let (mut first, mut second) = (server(codec), server(codec));
    second.disconnect(PEER);
    let (here, there) = (spawn(&mut first), spawn(&mut second));
    let pass = |server: &mut Server, client: &mut Client, spawned| {
        for tick in 2..10 {
            step(server, tick, spawned);
            for (_, message) in encode(server, &|_| Room::UNLIMITED) {
                client.handle(&message).expect("it can be read");
            }
            while let Some(message) = client.poll_message() {
                server.handle(PEER, &message).expect("honest");
            }
        }
        let entity = client.entities().next().expect("it is shown");
        assert_eq!(client.get(entity), Some(unit(9)));
    };
    pass(&mut first, &mut client, here);
    // It passes through a world that it is never shown.
    let mut between = server(codec);
    let transfer = first.transfer_out(PEER).expect("it was here");
    between.transfer_in(PEER, transfer);
    let transfer = between.transfer_out(PEER).expect("it was here");
    second.transfer_in(PEER, transfer);
    let passage = poll(&mut second, PEER).expect("both entrances wait");
    client.handle(&passage).expect("it can be read");
    second.encode(&|_| Room::UNLIMITED);
    let passage = second.poll_transmit(PEER).expect("the second waits");
    assert_eq!(passage.delivery, Delivery::Reliable);
    client.handle(passage.message()).expect("it can be read");
    assert_eq!(poll(&mut second, PEER), None, "nothing before the second");
    pass(&mut second, &mut client, there);
}

/// Fails if `settings::adopt` accepts any limit.
#[test]
fn what_cannot_be_taken_over_is_named() {
    let codec = Config::default().with_max_entities(5000);
    let (mut server, config) = (
        server(codec),
        ClientConfig::default().with_max_entities(300),
    );
    let mut client = Client::new(schema(), config).expect("sound");
    let hello = client.poll_message().expect("its hello");
    server.handle(PEER, &hello).expect("honest");
    let welcome = poll(&mut server, PEER).expect("a welcome");
    let refused = client.handle(&welcome).expect_err("it holds less");
    let mismatch = SettingsMismatch::MaxEntities {
        server: 5000,
        client: 300,
    };
    assert_eq!(refused, ClientError::Settings(mismatch));
    let text = refused.to_string();
    assert!(text.contains("5000") && text.contains("300"), "{text}");
    assert!(!client.is_welcome());
}

/// Fails if a second welcome restarts the client, or if a schema is accepted after the welcome.
#[test]
fn a_client_is_welcome_once() {
    let (mut server, mut client) = (server(Config::default()), client());
    let spawned = spawn(&mut server);
    let hello = client.poll_message().expect("its hello");
    server.handle(PEER, &hello).expect("honest");
    let welcome = poll(&mut server, PEER).expect("a welcome");
    client.handle(&welcome).expect("honest");
    step(&mut server, 2, spawned);
    exchange(&mut server, &mut client);
    assert_eq!(client.handle(&welcome), Err(ClientError::Malformed));
    let mut other = vec![0xf1, 1];
    other.extend(schema().to_bytes());
    assert_eq!(client.handle(&other), Err(ClientError::Malformed));
    assert_eq!(client.entities().count(), 1, "nothing changes");
}
