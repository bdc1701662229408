//! Two peers behind a router, all in this process, on loopback.

use std::time::{Duration, Instant};

use prescient::named::{
    Decision, InteractionOwner, Interactor, Interest, Name, Outcome, OwnerRef, Signer, Time,
};
use prescient::{EntityReplica, EntitySet, EntitySetCodec, EntityVersions, State};
use prescient_zenoh::{
    PresenceEvent, ZenohInteractor, ZenohOwner, ZenohPresence, ZenohPublisher, ZenohSubscriber,
};
use zenoh::{Config, Session, Wait};

const TOPIC: &str = "arena/0/anna/status";

#[derive(State, Clone, Debug, PartialEq)]
struct Ship {
    #[state(step = 0.01)]
    position: [f32; 2],
    health: u8,
}

fn set(tick: u64) -> EntitySet<Ship> {
    let ship = |number: u32| Ship {
        position: [tick as f32 * 0.25, number as f32],
        health: (tick % 10) as u8,
    };
    EntitySet {
        tick,
        entities: (0..3).map(|number| (number, ship(number))).collect(),
    }
}

/// A session without multicast. Peers of a game are clients of the router.
fn open(mode: &str, listen: &str, connect: &str) -> Session {
    let mut config = Config::default();
    for (key, value) in [
        ("mode", format!("{mode:?}")),
        ("listen/endpoints", format!("[{listen}]")),
        ("connect/endpoints", format!("[{connect}]")),
        ("scouting/multicast/enabled", "false".into()),
        ("scouting/gossip/enabled", "false".into()),
    ] {
        config.insert_json5(key, &value).expect("a setting");
    }
    zenoh::open(config).wait().expect("a session")
}

/// A router's port that was free a moment ago.
fn router() -> (Session, String) {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let endpoint = format!("\"tcp/127.0.0.1:{port}\"");
    (open("router", &endpoint, ""), endpoint)
}

/// Runs until a condition holds. The limit only ends a run that would fail.
fn until(what: &str, mut holds: impl FnMut(Time) -> bool) {
    let start = Instant::now();
    while !holds(Time::from_micros(start.elapsed().as_micros() as u64)) {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A subscriber that joins late gets the newest version, then every delta; after some that it missed it is in step
/// again.
///
/// Fails if `version_for` ignores what is held (deltas from other versions do not decode), or the subscriber does not
/// query when it is behind.
#[test]
fn a_late_subscriber_gets_the_newest_version_and_keeps_in_step() {
    let (_router, endpoint) = router();
    let (anna, ben) = (open("client", "", &endpoint), open("client", "", &endpoint));
    let codec = EntitySetCodec::<Ship>::new().expect("a sound type");
    let versions = EntityVersions::new(codec.clone());
    let mut publisher = ZenohPublisher::new(&anna, TOPIC, 1000, versions).expect("declared");
    let mut tick = 0;
    let mut publish = |publisher: &mut ZenohPublisher<EntityVersions<Ship>>| {
        tick += 1;
        let published = publisher.publish_with(|versions, version| {
            versions.insert(version, Time::from_micros(tick), set(tick));
        });
        published.expect("an open session");
        tick
    };
    for _ in 0..5 {
        publish(&mut publisher);
    }
    let replica = EntityReplica::new(codec);
    let mut subscriber = ZenohSubscriber::new(&ben, TOPIC, replica).expect("declared");
    let mut deltas = 0;
    for round in 0..40 {
        let newest = publish(&mut publisher);
        // Nobody polls for some rounds; more versions pass than early ones are kept.
        if (10..20).contains(&round) {
            for _ in 0..40 {
                publish(&mut publisher);
            }
            continue;
        }
        until("the newest version arrives", |now| {
            publisher.poll().expect("an open session");
            while let Some(applied) = subscriber.poll(now) {
                let update = applied.expect("it applies");
                deltas += u32::from(update.base.is_some());
            }
            subscriber.replica().set().tick >= newest
        });
        let held = subscriber.replica().set();
        assert_eq!(*held, set(held.tick));
    }
    assert!(deltas >= 20, "{deltas} deltas");
}

/// Fails if the owner's answer is not passed to the interactor, or a forged command reaches the hook.
#[test]
fn the_owner_decides_about_signed_interactions() {
    let (_router, endpoint) = router();
    let (anna, ben) = (open("client", "", &endpoint), open("client", "", &endpoint));
    let topic: Name = "/arena/0/anna/status".parse().expect("a name");
    let ben_name: Name = "/arena/0/ben".parse().expect("a name");
    let anna_key = Signer::ed25519(&[1; 32], None);
    let anna_verifier = anna_key.verifier();
    let ben_key = Signer::ed25519(&[2; 32], Some(ben_name.clone()));
    let mut owner = InteractionOwner::new(topic.view(), 7, anna_key).expect("a short name");
    owner.trust(ben_name.clone(), ben_key.verifier());
    let thief = Signer::ed25519(&[3; 32], Some(ben_name));
    let mut interactors = [ben_key, thief].map(|key| Interactor::new(key, 1, [4; 16]));
    let mut zenoh_owner = ZenohOwner::new(&anna, TOPIC).expect("declared");
    let mut carriers = [0, 1].map(|_| ZenohInteractor::new(&ben));
    let mut decided = Vec::new();
    let mut outcomes = [None, None];
    let mut refused = 0;
    for (interactor, id) in interactors.iter_mut().zip([5, 6]) {
        let to = OwnerRef {
            topic: topic.view(),
            boot: 7,
            verifier: &anna_verifier,
        };
        let sent = interactor.send(Time::default(), to, id, b"attack", &[1]);
        sent.expect("it is sent");
    }
    until("one is decided and one gives up", |now| {
        for (place, (carrier, interactor)) in carriers.iter_mut().zip(&mut interactors).enumerate()
        {
            let topic_of = |_: &Interest<'_>| Some(TOPIC.to_owned());
            let polled = carrier.poll(now, interactor, topic_of);
            polled.expect("an open session");
            if let Some(outcome) = interactor.poll_outcome() {
                outcomes[place] = Some(outcome);
            }
        }
        let dropped = zenoh_owner.poll(&mut owner, |interaction| {
            decided.push((interaction.id, interaction.command.to_vec()));
            Decision::Accepted(b"hit".to_vec())
        });
        refused += dropped.expect("an open session").len();
        outcomes.iter().all(Option::is_some)
    });
    assert_eq!(decided, [(5, b"attack".to_vec())], "once, and the true one");
    let accepted = Decision::Accepted(b"hit".to_vec());
    assert!(
        matches!(&outcomes[0], Some(Outcome::Decided { decision, .. }) if *decision == accepted)
    );
    assert!(matches!(&outcomes[1], Some(Outcome::NoAnswer { .. })));
    assert!(refused > 0);
}

/// Fails if tokens of peers that were there first are not asked for (`history`), or a closed session is not noticed.
#[test]
fn peers_join_and_leave() {
    let (_router, endpoint) = router();
    let (anna, ben) = (open("client", "", &endpoint), open("client", "", &endpoint));
    let mut first = ZenohPresence::new(&anna, "arena/0/peers", "anna").expect("declared");
    let mut second = ZenohPresence::new(&ben, "arena/0/peers", "ben").expect("declared");
    let wait = |presence: &mut ZenohPresence, wanted: PresenceEvent| {
        until("an event", |_| match presence.poll() {
            Some(event) => {
                assert_eq!(event, wanted);
                true
            }
            None => false,
        });
    };
    wait(&mut first, PresenceEvent::Joined("ben".into()));
    wait(&mut second, PresenceEvent::Joined("anna".into()));
    ben.close().wait().expect("it closes");
    wait(&mut first, PresenceEvent::Left("ben".into()));
}
