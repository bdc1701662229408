//! Case 19: two ends whose schemas differ. Neither shows anything wrong, and both name the
//! differences.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use crate::common::{encode, poll};
use prescient_replication::{
    Client, ClientConfig, ClientError, Everything, FromClient, PeerError, PeerId, Room, Server,
    ServerConfig, Tick,
};
use prescient_schema::{Difference, Schema, Side, State, Tolerance};

mod old {
    use super::*;

    #[derive(State, Clone, Debug, PartialEq)]
    #[state(rename = "car")]
    pub struct Car {
        #[state(step = 0.01)]
        pub speed: f32,
        pub fuel: u8,
    }
}

mod new {
    use super::*;

    #[derive(State, Clone, Debug, PartialEq)]
    #[state(rename = "car")]
    pub struct Car {
        #[state(step = 0.05)]
        pub speed: f32,
        pub fuel: u8,
    }

    /// Like the old one in another order, with a field that the old one may lack.
    #[derive(State, Clone, Debug, PartialEq)]
    #[state(rename = "car")]
    pub struct Longer {
        #[state(optional)]
        pub doors: u8,
        pub fuel: u8,
        #[state(step = 0.01)]
        pub speed: f32,
    }
}

const PEER: PeerId = PeerId(1);

/// Exchanges messages until neither end has any left.
fn exchange(server: &mut Server, client: &mut Client) -> (Option<PeerError>, Option<ClientError>) {
    let (mut at_server, mut at_client) = (None, None);
    loop {
        let mut sent = false;
        while let Some(message) = client.poll_message() {
            sent = true;
            at_server = server.handle(PEER, &message).err().or(at_server);
        }
        while let Some(message) = poll(server, PEER) {
            sent = true;
            at_client = client.handle(&message).err().or(at_client);
        }
        if !sent {
            return (at_server, at_client);
        }
    }
}

fn ends(
    server: (Schema, Tolerance),
    client: (Schema, Tolerance),
) -> Result<(Server, Client), Box<dyn std::error::Error>> {
    let config = ServerConfig::default().with_tolerance(server.1);
    let mut server = Server::new(server.0, config, Everything)?;
    server.connect(PEER);
    let config = ClientConfig::default().with_tolerance(client.1);
    Ok((server, Client::new(client.0, config)?))
}

/// Fails if a peer that has not sent the right fingerprint is sent the world, or if the client does
/// not send its own schema back.
#[test]
fn both_ends_name_the_field() -> Result<(), Box<dyn std::error::Error>> {
    let (there, here) = (Schema::of::<new::Car>()?, Schema::of::<old::Car>()?);
    for tolerance in [Tolerance::Exact, Tolerance::Additive] {
        let (mut server, mut client) = ends((here.clone(), tolerance), (there.clone(), tolerance))?;
        let mut step = server.step(Tick(1))?;
        step.spawn(&old::Car {
            speed: 1.0,
            fuel: 3,
        })?;
        step.finish();
        let (at_server, at_client) = exchange(&mut server, &mut client);
        let is_named = |differences: &[Difference]| {
            differences.iter().any(|difference| {
                matches!(difference, Difference::Property { class, field: Some(field), .. }
                    if class == "car" && field == "speed")
            })
        };
        let Some(PeerError::Schema(differences)) = &at_server else {
            panic!("the server does not know: {at_server:?}");
        };
        assert!(is_named(differences));
        let text = at_server.map(|error| error.to_string()).unwrap_or_default();
        assert!(text.contains("class `car`, field `speed`: step"), "{text}");
        let Some(ClientError::Schema(differences)) = &at_client else {
            panic!("the client does not know: {at_client:?}");
        };
        assert!(is_named(differences));
        assert_eq!(
            encode(&mut server, &|_| Room::UNLIMITED),
            [],
            "it was shown something"
        );
    }
    Ok(())
}

/// Fails if rows are not projected (`SchemaAdapter::value` without `apply`).
#[test]
fn what_may_be_missing_may_differ() -> Result<(), Box<dyn std::error::Error>> {
    let (there, here) = (Schema::of::<old::Car>()?, Schema::of::<new::Longer>()?);
    let exact = (here.clone(), Tolerance::Exact);
    let (mut server, mut client) = ends(exact, (there.clone(), Tolerance::Additive))?;
    let (at_server, _) = exchange(&mut server, &mut client);
    let Some(PeerError::Schema(differences)) = at_server else {
        panic!("the server wants exactly its own");
    };
    let doors = Difference::Field {
        class: "car".into(),
        field: "doors".into(),
        only: Side::Here,
    };
    assert!(differences.contains(&doors));

    let tolerant = (here, Tolerance::Additive);
    let (mut server, mut client) = ends(tolerant, (there, Tolerance::Additive))?;
    assert_eq!(exchange(&mut server, &mut client), (None, None));
    let mut step = server.step(Tick(1))?;
    let (doors, fuel, speed) = (4, 9, 2.5);
    step.spawn(&new::Longer { doors, fuel, speed })?;
    step.finish();
    for (_, message) in encode(&mut server, &|_| Room::UNLIMITED) {
        client.handle(&message)?;
    }
    let entity = client.entities().next().expect("it is shown");
    assert_eq!(client.get(entity), Some(old::Car { speed, fuel }));
    Ok(())
}

/// Fails if a client may claim one schema after another.
#[test]
fn a_peer_that_keeps_guessing_is_refused() -> Result<(), Box<dyn std::error::Error>> {
    let schema = Schema::of::<old::Car>()?;
    let both = (schema, Tolerance::Exact);
    let (mut server, mut client) = ends(both.clone(), both)?;
    let mut wrong = client.poll_message().expect("its hello");
    let right = wrong.clone();
    wrong[5] ^= 1;
    assert_eq!(server.handle(PEER, &wrong), Ok(FromClient::Applied));
    assert_eq!(server.handle(PEER, &wrong), Err(PeerError::Malformed));
    assert_eq!(server.handle(PEER, &right), Ok(FromClient::Greeted));
    assert_eq!(server.handle(PEER, &right), Err(PeerError::Malformed));
    Ok(())
}
