//! Any bodies, sealed with valid keys, between connected ends: no panic, bounded memory, and an end
//! that receives an invalid frame closes once.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_channels::*;
use prescient_fuzz::pair::{End, Pair};
use prescient_transport::*;

#[derive(Arbitrary, Debug)]
enum Action {
    Raw {
        to_server: bool,
        body: Vec<u8>,
    },
    Send {
        to_server: bool,
        channel: u8,
        length: u16,
    },
    Offer {
        to_server: bool,
        length: u16,
    },
    Ask {
        to_server: bool,
    },
    Wait {
        millis: u16,
    },
}

fuzz_target!(|steps: Vec<Action>| {
    let mut pair = Pair::connected(LinkConfig::default());
    let id = pair.connection;
    for channel in 0..4 {
        let _ = pair.client.send(ChannelId(channel), &[1; 2000], pair.now);
        let _ = pair
            .server
            .send(id, ChannelId(channel), &[2; 2000], pair.now);
    }
    // Some datagrams are lost, so there are gaps on both sides.
    pair.wait(1000);
    for end in [End::Server, End::Client] {
        drop(pair.take(end, 1));
    }
    pair.deliver_all();
    let mut closed = [0; 2];
    for step in steps.into_iter().take(100) {
        let now = pair.now;
        match step {
            Action::Raw { to_server, body } => {
                let body = &body[..body.len().min(1171)];
                match to_server {
                    true => pair.client.send_raw(body, now),
                    false => pair.server.send_raw(id, body, now),
                }
            }
            Action::Send {
                to_server,
                channel,
                length,
            } => {
                let message = vec![3; length.into()];
                let _ = match to_server {
                    true => pair.client.send(ChannelId(channel), &message, now),
                    false => pair.server.send(id, ChannelId(channel), &message, now),
                };
            }
            Action::Offer { to_server, length } => {
                let bytes = vec![4; length.into()];
                let _ = match to_server {
                    true => pair.client.offer_blob(b"blob", bytes, now),
                    false => pair.server.offer_blob(id, b"blob", bytes, now),
                };
            }
            Action::Ask { to_server } => {
                let second = std::time::Duration::from_secs(1);
                let _ = match to_server {
                    true => pair.client.request(b"?", second, now),
                    false => pair.server.request(id, b"?", second, now),
                };
            }
            Action::Wait { millis } => pair.wait(u32::from(millis) * 1000),
        }
        pair.wait(100);
        pair.deliver_all();
        let held = [pair.client.statistics(), pair.server.statistics(id)];
        for statistics in held.into_iter().flatten() {
            assert!(statistics.incomplete <= 256 << 10);
            // The limits of the default configuration.
            assert!(statistics.waiting <= (1 << 20) + (1 << 19));
            assert!(statistics.blobs <= 16 << 20);
        }
        for (index, end) in [End::Server, End::Client].into_iter().enumerate() {
            let (received, over) = pair.events(end);
            closed[index] += u32::from(over);
            assert!(closed[index] <= 1);
            for received in received {
                answer(&mut pair, end, received);
            }
        }
    }
});

fn answer(pair: &mut Pair, end: End, received: Received) {
    let (id, now) = (pair.connection, pair.now);
    match (end, received) {
        (End::Server, Received::Request { request, message }) => {
            let _ = pair.server.respond(id, request, &message, now);
        }
        (End::Client, Received::Request { request, message }) => {
            let _ = pair.client.respond(request, &message, now);
        }
        (End::Server, Received::BlobOffered { blob, .. }) => {
            let _ = pair.server.accept_blob(id, blob, now);
        }
        (End::Client, Received::BlobOffered { blob, size, .. }) => {
            let _ = match size % 3 {
                0 => pair.client.cancel_blob(blob, now),
                _ => pair.client.accept_blob(blob, now),
            };
        }
        _ => {}
    }
}
