//! Requests and blobs, both ways and through loss.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::{GOOD, Link, SECOND, World, over_seeds};
use prescient_channels::*;
use prescient_transport::*;

const BAD: Link = Link {
    loss: 20,
    delayed: 20,
    delay: 30_000,
    ..GOOD
};

fn three(seed: u64, link: Link) -> (World, Vec<ConnectionId>) {
    let mut world = World::new(seed, link);
    for _ in 0..3 {
        world.join();
    }
    world.connect_all();
    let connections = (0..3).map(|peer| world.connection_of(peer).expect("connected"));
    let connections = connections.collect();
    (world, connections)
}

fn blob(length: usize, salt: u8) -> Vec<u8> {
    let byte = |place: usize| (place as u8).wrapping_mul(31) ^ (place >> 8) as u8 ^ salt;
    (0..length).map(byte).collect()
}

/// Answers all requests since the last call, some of them twice.
fn answer_all(world: &mut World, connections: &[ConnectionId], done: &mut BTreeMap<String, usize>) {
    let (server_time, client_time) = (world.server_time(), world.client_time());
    for (peer, &connection) in connections.iter().enumerate() {
        let asked = |received: &Received| match received {
            Received::Request { request, message } => Some((*request, message.clone())),
            _ => None,
        };
        let up: Vec<_> = world.received_from(connection).filter_map(asked).collect();
        let down: Vec<_> = world.peers[peer].received().filter_map(asked).collect();
        for (asked, to_server) in [(up, true), (down, false)] {
            let seen = done.entry(format!("{peer} {to_server}")).or_default();
            for (request, message) in asked.iter().skip(*seen) {
                for _ in 0..1 + message.len() % 2 {
                    let answer = [b"re: ", &message[..]].concat();
                    let responded = match to_server {
                        true => world
                            .server
                            .respond(connection, *request, &answer, server_time),
                        false => world.peers[peer]
                            .client
                            .respond(*request, &answer, client_time),
                    };
                    responded.expect("little waits");
                }
            }
            *seen = asked.len();
        }
    }
}

/// Fails if an answer is reported although its request is not open (`self.requests.close(number)`
/// not checked in `Exchange::deliver`): answers are sent twice here.
#[test]
fn every_request_is_answered_once_through_loss() {
    over_seeds(20, |seed| {
        let (mut world, connections) = three(seed, BAD);
        let (mut asked, mut done) = (Vec::new(), BTreeMap::new());
        for number in 0..30usize {
            let (server_time, client_time) = (world.server_time(), world.client_time());
            for (peer, &connection) in connections.iter().enumerate() {
                let message = vec![number as u8; number * number * 3];
                let client = &mut world.peers[peer].client;
                let up = client.request(&message, 30 * SECOND, client_time);
                let down = world
                    .server
                    .request(connection, &message, 30 * SECOND, server_time);
                asked.push((peer, up.expect("fits"), down.expect("fits"), message));
            }
            world.run_for(Duration::from_millis(30));
            answer_all(&mut world, &connections, &mut done);
        }
        for _ in 0..100 {
            world.run_for(Duration::from_millis(50));
            answer_all(&mut world, &connections, &mut done);
        }
        for (peer, up, down, message) in asked {
            let answer = [b"re: ", &message[..]].concat();
            let expected = |request| Received::Answer {
                request,
                answer: Ok(answer.clone()),
            };
            let about = |wanted| move |received: &&Received| matches!(received, Received::Answer { request, .. } if *request == wanted);
            let received: Vec<_> = world.peers[peer].received().filter(about(up)).collect();
            assert_eq!(received, [&expected(up)]);
            let received = world.received_from(connections[peer]).filter(about(down));
            assert_eq!(received.collect::<Vec<_>>(), [&expected(down)]);
        }
        assert_eq!(world.closed(), []);
    });
}

/// Fails if requests do not time out (`requests.expired` left out of `Exchange::handle_timeout`),
/// or if closing does not fail them (`Exchange::close` without its first lines).
#[test]
fn who_gets_no_answer_is_told_so() {
    over_seeds(20, |seed| {
        let (mut world, connections) = three(seed, GOOD);
        let now = world.client_time();
        let client = &mut world.peers[0].client;
        let slow = client.request(b"anybody?", 2 * SECOND, now).expect("fits");
        let never = client.request(b"well?", Duration::MAX, now).expect("fits");
        let at_once = client.request(b"", Duration::ZERO, now).expect("fits");
        world.run_for(Duration::from_millis(1900));
        let late = |request| Received::Answer {
            request,
            answer: Err(RequestError::TimedOut),
        };
        assert!(world.peers[0].received().eq([&late(at_once)]));
        world.run_for(Duration::from_millis(100));
        assert!(world.peers[0].received().eq([&late(at_once), &late(slow)]));
        // A late answer is dropped.
        answer_all(&mut world, &connections[..1], &mut BTreeMap::new());
        world.run_for(SECOND);
        let answers = world.peers[0].received().count();
        assert_eq!(answers, 3, "only the one that waits for ever");

        let now = world.client_time();
        let client = &mut world.peers[0].client;
        let open = client.request(b"last?", 60 * SECOND, now).expect("fits");
        client.close(CloseReason::Finished, now);
        world.run_for(SECOND);
        let tail = &world.peers[0].events[world.peers[0].events.len() - 2..];
        let closed = Received::Answer {
            request: open,
            answer: Err(RequestError::Closed),
        };
        assert_eq!(tail[0], ClientEvent::Received(closed));
        assert_eq!(tail[1], ClientEvent::Closed(CloseReason::Finished));
        assert_ne!(never, open);
    });
}

/// Accepts all offers.
fn accept_all(world: &mut World, connections: &[ConnectionId]) {
    let (server_time, client_time) = (world.server_time(), world.client_time());
    let offered = |received: &Received| match received {
        Received::BlobOffered { blob, .. } => Some(*blob),
        _ => None,
    };
    for (peer, &connection) in connections.iter().enumerate() {
        let up: Vec<_> = world
            .received_from(connection)
            .filter_map(offered)
            .collect();
        for blob in up {
            let _ = world.server.accept_blob(connection, blob, server_time);
        }
        let down: Vec<_> = world.peers[peer].received().filter_map(offered).collect();
        for blob in down {
            let _ = world.peers[peer].client.accept_blob(blob, client_time);
        }
    }
}

/// Blobs of all sizes both ways, and messages that do not wait for them. Fails if lost chunks are
/// not retransmitted (`Blobs::lost` returning at once).
#[test]
fn blobs_arrive_whole_and_messages_do_not_wait_for_them() {
    over_seeds(20, |seed| {
        let (mut world, connections) = three(seed, BAD);
        let sizes = [0, 1, 300_000, 1200, 70_000];
        let now = world.server_time();
        for (peer, &connection) in connections.iter().enumerate() {
            for (number, size) in sizes.into_iter().enumerate() {
                let (label, bytes) = ([number as u8; 64], blob(size, number as u8));
                let client = &mut world.peers[peer].client;
                let up = client.offer_blob(&label, bytes.clone(), now);
                let down = world.server.offer_blob(connection, &label, bytes, now);
                assert!(up.is_ok() && down.is_ok());
            }
        }
        world.run_for(Duration::from_millis(500));
        assert_eq!(world.server_statistics(connections[0]).blobs, 0, "not yet");
        accept_all(&mut world, &connections);
        let mut waits = Vec::new();
        for number in 0..100u8 {
            world
                .client_send_on(0, ChannelId::UNORDERED, &[number])
                .expect("fits");
            let before = world.received().len();
            let start = world.now;
            world.run_until(5 * SECOND, |world| world.received().len() > before);
            waits.push(Duration::from_micros(world.now - start));
            accept_all(&mut world, &connections);
            world.run_for(Duration::from_millis(20));
        }
        waits.sort();
        assert!(waits[50] < Duration::from_millis(100), "{:?}", waits[50]);
        world.run_for(20 * SECOND);
        for (peer, &connection) in connections.iter().enumerate() {
            let ends: [Vec<_>; 2] = [
                world.received_from(connection).collect(),
                world.peers[peer].received().collect(),
            ];
            for received in ends {
                let arrived = received.iter().filter_map(|received| match received {
                    Received::BlobArrived { bytes, .. } => Some(bytes),
                    _ => None,
                });
                let mut arrived: Vec<_> = arrived.collect();
                arrived.sort_by_key(|bytes| sizes.iter().position(|size| *size == bytes.len()));
                assert_eq!(arrived.len(), sizes.len());
                for (number, bytes) in arrived.iter().enumerate() {
                    assert!(**bytes == blob(sizes[number], number as u8));
                }
                let delivered =
                    |received: &&&Received| matches!(received, Received::BlobDelivered { .. });
                assert_eq!(received.iter().filter(delivered).count(), sizes.len());
                let progress = received.iter().filter_map(|received| match received {
                    Received::BlobProgress { blob, done, size } => Some((*blob, *done, *size)),
                    _ => None,
                });
                let progress: Vec<_> = progress.collect();
                assert!(!progress.is_empty() && progress.len() < 20);
                assert!(progress.iter().all(|(_, done, size)| done < size));
            }
            assert_eq!(world.statistics(peer).blobs, 0);
        }
        assert_eq!(world.closed(), []);
    });
}

/// Blobs that are refused, stopped by the receiver, withdrawn before and after they were accepted.
/// Fails if a message about a blob does not free it (`self.theirs.remove` left out of
/// `BlobMessage::Withdraw`).
#[test]
fn either_end_can_stop_a_blob_at_any_time() {
    over_seeds(20, |seed| {
        let (mut world, connections) = three(seed, BAD);
        let now = world.server_time();
        let mut offers = Vec::new();
        for &connection in &connections {
            let mut offer = || {
                let bytes = blob(6_000_000, 1);
                let offered = world.server.offer_blob(connection, b"map", bytes, now);
                offered.expect("there is room for eight")
            };
            offers.push([offer(), offer(), offer(), offer()]);
        }
        world.run_for(6 * SECOND);
        for (peer, offers) in offers.iter().enumerate() {
            let now = world.client_time();
            let theirs = world.peers[peer]
                .received()
                .filter_map(|received| match received {
                    Received::BlobOffered { blob, label, size } => {
                        assert_eq!((&label[..], *size), (&b"map"[..], 6_000_000));
                        Some(*blob)
                    }
                    _ => None,
                });
            let theirs: Vec<_> = theirs.collect();
            assert_eq!(theirs.len(), 4);
            let client = &mut world.peers[peer].client;
            client.cancel_blob(theirs[0], now).expect("an offer");
            client.accept_blob(theirs[1], now).expect("an offer");
            client.accept_blob(theirs[2], now).expect("an offer");
            assert_eq!(
                client.accept_blob(theirs[2], now),
                Err(BlobError::NoSuchBlob)
            );
            assert_eq!(
                client.accept_blob(theirs[0], now),
                Err(BlobError::NoSuchBlob)
            );
            world.run_for(Duration::from_millis(300));
            assert!(world.statistics(peer).blobs >= 12_000_000);
            let (now, server_time) = (world.client_time(), world.server_time());
            let client = &mut world.peers[peer].client;
            client.cancel_blob(theirs[1], now).expect("under way");
            for blob in &offers[2..] {
                let server = &mut world.server;
                let cancelled = server.cancel_blob(connections[peer], *blob, server_time);
                cancelled.expect("under way or on offer");
                let again = server.cancel_blob(connections[peer], *blob, server_time);
                assert_eq!(again, Err(BlobError::NoSuchBlob));
            }
        }
        world.run_for(10 * SECOND);
        for (peer, &connection) in connections.iter().enumerate() {
            assert_eq!(world.statistics(peer).blobs, 0);
            let cancelled =
                |received: &&Received| matches!(received, Received::BlobCancelled { .. });
            assert_eq!(world.received_from(connection).filter(cancelled).count(), 2);
            assert_eq!(world.peers[peer].received().filter(cancelled).count(), 2);
            let over = |received: &&Received| {
                matches!(
                    received,
                    Received::BlobArrived { .. } | Received::BlobDelivered { .. }
                )
            };
            assert_eq!(world.received_from(connection).filter(over).count(), 0);
            assert_eq!(world.peers[peer].received().filter(over).count(), 0);
            // A cancelled blob makes room for others.
            let now = world.server_time();
            for _ in 0..8 {
                let offered = world.server.offer_blob(connection, b"", vec![1], now);
                assert!(offered.is_ok());
            }
            let ninth = world.server.offer_blob(connection, b"", vec![1], now);
            assert_eq!(ninth.err(), Some(BlobError::TooMany));
        }
        world.run_for(2 * SECOND);
        assert_eq!(world.closed(), []);
    });
}

/// Fails if an offer takes memory, or if more than is configured can be accepted (`size <= room`
/// left out of `Blobs::accept`).
#[test]
fn blobs_take_no_more_memory_than_is_allowed() {
    let (mut world, connections) = three(1, GOOD);
    let ceiling = 16 << 20;
    let now = world.server_time();
    for size in [ceiling - 1000, 1001, 1000] {
        let offered = world
            .server
            .offer_blob(connections[0], b"", vec![0; size], now);
        assert!(offered.is_ok());
    }
    world.run_for(SECOND);
    let now = world.client_time();
    let offered = world.peers[0]
        .received()
        .filter_map(|received| match received {
            Received::BlobOffered { blob, .. } => Some(*blob),
            _ => None,
        });
    let offered: Vec<_> = offered.collect();
    let client = &mut world.peers[0].client;
    assert_eq!(client.statistics().expect("connected").blobs, 0);
    assert_eq!(client.accept_blob(offered[0], now), Ok(()));
    let refused = Err(BlobError::TooLarge {
        size: 1001,
        room: 1000,
    });
    assert_eq!(client.accept_blob(offered[1], now), refused);
    assert_eq!(client.accept_blob(offered[2], now), Ok(()));
    assert_eq!(client.statistics().expect("connected").blobs, ceiling);
    world.run_for(30 * SECOND);
    let client = &mut world.peers[0].client;
    assert_eq!(client.statistics().expect("connected").blobs, 0);
    assert_eq!(client.accept_blob(offered[1], now), Ok(()));
}
