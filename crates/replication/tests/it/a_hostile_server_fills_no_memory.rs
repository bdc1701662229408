//! Events for ticks that never arrive: a client holds a bounded number of bytes of them.

use prescient_codec::numbers;
use prescient_replication::{
    Change, Client, ClientError, Everything, PeerId, Server, ServerConfig,
};
use prescient_tests::seeds::over_seeds;

use crate::common::{Dice, greet, schema};

/// Kind, tick and entity of an event of tick `u32::MAX`.
const HEAD: usize = 1 + 5 + 1;
const HELD: usize = 256 << 10;
const DUE: usize = 1 << 20;
const MAX_MESSAGE: usize = 128 << 10;

fn welcome_client() -> Client {
    let server = Server::new(schema(), ServerConfig::default(), Everything);
    let mut server = server.expect("a sound schema");
    let mut client = Client::new(schema(), Default::default()).expect("a sound schema");
    server.connect(PeerId(1));
    greet(&mut server, PeerId(1), &mut client);
    assert!(client.is_welcome());
    client
}

/// An event about no entity, as a server writes it.
fn event(tick: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0];
    numbers::put(&mut bytes, tick.into());
    bytes.push(0);
    bytes.resize(bytes.len() + length, 7);
    bytes
}

fn polled(client: &mut Client) -> Vec<usize> {
    let changes = std::iter::from_fn(|| client.poll_change());
    let lengths = changes.filter_map(|change| match change {
        Change::Event { payload, .. } => Some(payload.len()),
        _ => None,
    });
    lengths.collect()
}

/// At most a quarter of a megabyte waits for its tick, and nothing is lost.
///
/// Fails if only the number of events counts (`self.waiting.len() > MAX_WAITING` alone in
/// `release`).
#[test]
fn few_bytes_wait_for_their_tick() {
    over_seeds(20, |seed| {
        let (mut client, mut dice) = (welcome_client(), Dice::new(seed));
        let (mut sent, mut got) = (0, 0);
        for _ in 0..500 {
            let length = dice.below(MAX_MESSAGE as u64) as usize;
            let tick = u32::MAX - dice.below(1000) as u32;
            client.handle(&event(tick, length)).expect("a sound event");
            sent += length;
            got += polled(&mut client).iter().sum::<usize>();
            assert!(sent - got <= HELD, "{} bytes are held", sent - got);
        }
        assert_ne!(got, 0);
    });
}

/// A client that does not poll holds a megabyte and what waits for its tick, and then refuses
/// events.
///
/// Fails if `handle_world_message` does not check whether the inbox is full.
#[test]
fn what_is_not_polled_is_refused_and_can_be_had_later() {
    over_seeds(20, |seed| {
        let (mut client, mut dice) = (welcome_client(), Dice::new(seed));
        let events: Vec<_> = (0..300)
            .map(|_| event(u32::MAX, dice.below(MAX_MESSAGE as u64) as usize))
            .collect();
        let (mut taken, mut got, mut refused) = (0, Vec::new(), 0);
        for message in &events {
            while let Err(error) = client.handle(message) {
                assert_eq!(error, ClientError::Full);
                assert!(client.is_full());
                refused += 1;
                assert!(taken <= HELD + DUE + 2 * MAX_MESSAGE, "{taken} bytes");
                got.extend(polled(&mut client));
                taken = 0;
            }
            taken += message.len();
        }
        assert_ne!(refused, 0);
        client.reconnect();
        got.extend(polled(&mut client));
        let sent: Vec<_> = events.iter().map(|message| message.len() - HEAD).collect();
        assert_eq!(got, sent);
    });
}
