//! Over a stream nothing is lost, and no acknowledgements are needed.

use crate::common;

use crate::common::{Unit, encode, schema};
use prescient_codec::Policy;
use prescient_replication::{
    About, Change, Client, Config, Everything, PeerId, Room, Server, ServerConfig, Tick, WorldError,
};

/// Fails if events about an entity wait for an acknowledgement (no `send_known` in `Peer::encode`).
#[test]
fn events_about_entities_arrive() -> Result<(), WorldError> {
    let codec = Config::default().with_policy(Policy::Immediate);
    let config = ServerConfig::default().with_codec(codec);
    let mut server = Server::new(schema(), config, Everything)?;
    let mut client = Client::new(schema(), Default::default())?;
    let peer = PeerId(1);
    server.connect(peer);
    common::greet(&mut server, peer, &mut client);
    for tick in 1..=5 {
        let mut step = server.step(Tick(tick))?;
        let unit = step.spawn(&Unit::default())?;
        step.finish();
        server.send_entity_event(unit.entity_ref(), &[tick as u8])?;
        for (_, message) in encode(&mut server, &|_| Room::UNLIMITED) {
            client.handle(&message).expect("nothing is lost");
        }
        common::greet(&mut server, peer, &mut client);
    }
    let received = std::iter::from_fn(|| client.poll_change()).filter_map(|change| match change {
        Change::Event {
            about: About::Entity(_),
            payload,
            ..
        } => Some(payload[0]),
        _ => None,
    });
    assert_eq!(received.collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    Ok(())
}
