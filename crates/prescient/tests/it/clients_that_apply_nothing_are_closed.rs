//! Case 35 on sockets: clients that respond and apply nothing, beside three that play.

use std::time::Duration;

use crate::common::{bind, join, run, token};
use prescient::{
    Client, ClientOptions, CloseReason, LinkConfig, PeerId, Schema, Server, ServerEvent,
    ServerOptions, State,
};
use prescient_channels::{ChannelId, Received};
use prescient_net::BlockingClient;
use prescient_transport::ClientEvent;

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(rename = "ball")]
struct Ball {
    #[state(step = 0.01, position)]
    x: f32,
}

fn schema() -> Schema {
    Schema::of::<Ball>().expect("a sound schema")
}

/// Both ends notice within a third of a second that the other is silent.
fn quick() -> LinkConfig {
    LinkConfig::default()
        .with_keep_alive(Duration::from_millis(100))
        .with_quiet(Duration::from_millis(300))
}

/// A server with this `apply_timeout`, and three clients that play.
fn game(apply_timeout: Duration) -> (Server, Vec<Client>) {
    let options = ServerOptions::default()
        .with_apply_timeout(apply_timeout)
        .with_link(quick());
    let mut server = bind(schema(), options);
    let mut step = server.step().expect("in order");
    step.spawn(&Ball::default()).expect("sound");
    step.finish();
    let players = (0..3).map(|_| player(&mut server)).collect();
    (server, players)
}

fn player(server: &mut Server) -> Client {
    let token = token(server);
    let options = ClientOptions::default().with_link(quick());
    let (client, _) = join(server, move || Client::join_with(token, schema(), options));
    client.expect("it may come in")
}

/// A client whose transport acknowledges every packet, but that acknowledges no state.
struct Ghost {
    net: BlockingClient,
    view: prescient_replication::Client,
    greets: bool,
}

impl Ghost {
    fn new(server: &Server, greets: bool) -> Self {
        let view = prescient_replication::Client::new(schema(), Default::default());
        let net = BlockingClient::start(token(server), prescient::protocol(), quick());
        Self {
            net: net.expect("a socket"),
            view: view.expect("a sound schema"),
            greets,
        }
    }

    /// The reason if it was closed.
    fn poll(&mut self) -> Option<CloseReason> {
        while let Some(event) = self.net.poll() {
            match event {
                ClientEvent::Connected { .. } if self.greets => {
                    let hello = self.view.poll_message().expect("it greets first");
                    let send = |net: &mut prescient_transport::Client, now| {
                        net.send(ChannelId::ORDERED, &hello, now)
                    };
                    self.net.with(send).expect("there is room");
                }
                ClientEvent::Received(Received::Message { .. }) => {}
                ClientEvent::Closed(reason) => return Some(reason),
                ClientEvent::Failed(error) => panic!("{error}"),
                _ => {}
            }
        }
        None
    }
}

fn left(server: &mut Server) -> Vec<(PeerId, CloseReason)> {
    let events = std::iter::from_fn(|| server.poll());
    let left = events.filter_map(|event| match event {
        ServerEvent::Left { peer, reason } => Some((peer, reason)),
        _ => None,
    });
    left.collect()
}

/// Fails if `Server::close_not_applying` closes nothing, or checks only peers that were greeted.
#[test]
fn both_ends_get_the_reason_not_applying() {
    let (mut server, mut players) = game(Duration::from_secs(1));
    for greets in [true, false] {
        let mut ghost = Ghost::new(&server, greets);
        let (mut reported, mut received) = (Vec::new(), None);
        run(&mut server, &mut players, |server, _| {
            reported.append(&mut left(server));
            received = received.or(ghost.poll());
            received.is_some() && (!greets || !reported.is_empty())
        });
        assert_eq!(received, Some(CloseReason::NotApplying));
        let reported: Vec<CloseReason> = reported.iter().map(|(_, reason)| *reason).collect();
        // A client that never joined does not leave.
        let expected = if greets {
            &[CloseReason::NotApplying][..]
        } else {
            &[]
        };
        assert_eq!(reported, expected);
    }
    assert_eq!(server.peers().count(), 3, "players stay connected");
}

/// A silent client is not closed for applying nothing, as long as the transport waits for it, and
/// continues when it resumes. Fails if `ApplyMonitor::note_unapplied` ignores `silent`.
#[test]
fn a_silent_client_may_resume() {
    let (mut server, mut players) = game(Duration::from_secs(1));
    let mut away = player(&mut server);
    let mut events = Vec::new();
    // It is not polled, as if its process were stopped, so it is silent. Ticks of two milliseconds.
    let mut ticks = 0;
    run(&mut server, &mut players, |server, _| {
        events.extend(std::iter::from_fn(|| server.poll()));
        ticks += 1;
        ticks > 1500
    });
    let is_silent = |event: &ServerEvent| matches!(event, ServerEvent::Silent(_));
    assert!(events.iter().any(is_silent), "{events:?}");
    let is_left = |event: &ServerEvent| matches!(event, ServerEvent::Left { .. });
    assert!(!events.iter().any(is_left), "{events:?}");
    let mut tick = None;
    run(&mut server, &mut players, |server, _| {
        events.extend(std::iter::from_fn(|| server.poll()));
        while away.poll().is_some() {}
        tick = away.tick();
        let now = server.world().tick().expect("it has begun");
        let is_resumed = |event: &ServerEvent| matches!(event, ServerEvent::Resumed(_));
        events.iter().any(is_resumed) && tick.is_some_and(|tick| now.0 - tick.0 < 60)
    });
    assert!(!events.iter().any(is_left), "{events:?}");
}
