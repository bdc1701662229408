//! Scripts of calls and deliveries between two honest ends over a network that loses and reorders:
//! every channel keeps its guarantee, every request gets one answer, every blob ends once, and when
//! the network recovers, all reliable messages arrive.
#![no_main]

use std::collections::BTreeMap;
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_channels::*;
use prescient_fuzz::pair::{End, Pair};
use prescient_transport::*;

#[derive(Arbitrary, Debug)]
enum Action {
    Send { up: bool, channel: u8, length: u16 },
    Ask { up: bool, length: u8, millis: u16 },
    Answer { up: bool, index: u8 },
    Offer { up: bool, length: u16 },
    Accept { up: bool, index: u8 },
    Cancel { up: bool, index: u8 },
    Deliver { up: bool, index: u8 },
    DeliverAll,
    Repeat { up: bool, index: u8 },
    Drop { up: bool, index: u8 },
    Wait { millis: u8 },
}

/// What one end has sent and received.
#[derive(Default)]
struct Side {
    sent: [Vec<Vec<u8>>; 4],
    arrived: [Vec<Vec<u8>>; 4],
    asked: Vec<RequestId>,
    answers: BTreeMap<RequestId, usize>,
    requests: Vec<RequestId>,
    /// Blobs offered by this end, with their content.
    offered: Vec<(BlobId, Vec<u8>)>,
    offers: Vec<BlobId>,
    arrived: Vec<Vec<u8>>,
    ended: BTreeMap<BlobId, usize>,
}

struct Game {
    pair: Pair,
    sides: [Side; 2],
    count: u32,
}

fn end(up: bool) -> (End, usize) {
    if up {
        (End::Client, 1)
    } else {
        (End::Server, 0)
    }
}

fn other(end: End) -> End {
    match end {
        End::Server => End::Client,
        End::Client => End::Server,
    }
}

fn pick<T: Copy>(list: &[T], index: u8) -> Option<T> {
    list.get(usize::from(index).checked_rem(list.len())?)
        .copied()
}

impl Game {
    fn bytes(&mut self, length: usize) -> Vec<u8> {
        self.count += 1;
        let mut bytes = self.count.to_le_bytes().to_vec();
        bytes.resize(length.max(4), self.count as u8);
        bytes
    }

    fn step(&mut self, step: Action) {
        let (now, id) = (self.pair.now, self.pair.connection);
        match step {
            Action::Send {
                up,
                channel,
                length,
            } => {
                let (from, side) = end(up);
                let channel = channel % 4;
                let message = self.bytes(usize::from(length) % 40_000);
                let (server, client) = (&mut self.pair.server, &mut self.pair.client);
                let sent = match from {
                    End::Client => client.send(ChannelId(channel), &message, now),
                    End::Server => server.send(id, ChannelId(channel), &message, now),
                };
                if sent.is_ok() {
                    self.sides[side].sent[usize::from(channel)].push(message);
                }
            }
            Action::Ask { up, length, millis } => {
                let (from, side) = end(up);
                let message = self.bytes(length.into());
                let span = Duration::from_millis(millis.into());
                let asked = match from {
                    End::Client => self.pair.client.request(&message, span, now),
                    End::Server => self.pair.server.request(id, &message, span, now),
                };
                self.sides[side].asked.extend(asked.ok());
            }
            Action::Answer { up, index } => {
                let (from, side) = end(up);
                if let Some(request) = pick(&self.sides[side].requests, index) {
                    let _ = match from {
                        End::Client => self.pair.client.respond(request, b"yes", now),
                        End::Server => self.pair.server.respond(id, request, b"yes", now),
                    };
                }
            }
            Action::Offer { up, length } => {
                let (from, side) = end(up);
                let bytes = self.bytes(usize::from(length) * 4);
                let copy = bytes.clone();
                let offered = match from {
                    End::Client => self.pair.client.offer_blob(b"b", copy, now),
                    End::Server => self.pair.server.offer_blob(id, b"b", copy, now),
                };
                let offered = offered.ok().map(|blob| (blob, bytes));
                self.sides[side].offered.extend(offered);
            }
            Action::Accept { up, index } => {
                let (from, side) = end(up);
                if let Some(blob) = pick(&self.sides[side].offers, index) {
                    let _ = match from {
                        End::Client => self.pair.client.accept_blob(blob, now),
                        End::Server => self.pair.server.accept_blob(id, blob, now),
                    };
                }
            }
            Action::Cancel { up, index } => {
                let (from, side) = end(up);
                let ours = self.sides[side].offered.iter().map(|(blob, _)| *blob);
                let theirs = self.sides[side].offers.iter().copied();
                let all: Vec<_> = ours.chain(theirs).collect();
                if let Some(blob) = pick(&all, index) {
                    let cancelled = match from {
                        End::Client => self.pair.client.cancel_blob(blob, now),
                        End::Server => self.pair.server.cancel_blob(id, blob, now),
                    };
                    if cancelled.is_ok() {
                        self.end_blob(side, blob);
                    }
                }
            }
            Action::Deliver { up, index } => {
                let to = other(end(up).0);
                if let Some(bytes) = self.pair.take(to, index) {
                    self.pair.arrive(to, &bytes);
                }
            }
            Action::DeliverAll => self.pair.deliver_all(),
            Action::Repeat { up, index } => {
                let to = other(end(up).0);
                if let Some(bytes) = self.pair.take(to, index) {
                    self.pair.arrive(to, &bytes);
                    self.pair.arrive(to, &bytes);
                }
            }
            Action::Drop { up, index } => drop(self.pair.take(other(end(up).0), index)),
            Action::Wait { millis } => self.pair.wait(u32::from(millis) * 1000),
        }
        self.pair.wait(10);
        self.listen();
    }

    fn end_blob(&mut self, side: usize, blob: BlobId) {
        let ended = self.sides[side].ended.entry(blob).or_default();
        *ended += 1;
        assert_eq!(*ended, 1, "a blob ends once");
    }

    fn listen(&mut self) {
        for (side, of) in [End::Server, End::Client].into_iter().enumerate() {
            let (received, closed) = self.pair.events(of);
            assert!(!closed, "honest ends close no connection");
            for received in received {
                match received {
                    Received::Message { channel, message } => {
                        self.sides[side].arrived[usize::from(channel.0)].push(message);
                    }
                    Received::Request { request, .. } => self.sides[side].requests.push(request),
                    Received::Answer { request, .. } => {
                        let answers = self.sides[side].answers.entry(request).or_default();
                        *answers += 1;
                        assert_eq!(*answers, 1);
                    }
                    Received::BlobOffered { blob, .. } => self.sides[side].offers.push(blob),
                    Received::BlobProgress { done, size, .. } => assert!(done < size),
                    Received::BlobArrived { blob, bytes } => {
                        self.end_blob(side, blob);
                        self.sides[side].arrived.push(bytes);
                    }
                    Received::BlobDelivered { blob } | Received::BlobCancelled { blob } => {
                        self.end_blob(side, blob);
                    }
                    other => panic!("{other:?} is never sent"),
                }
            }
        }
    }

    fn check(&self, settled: bool) {
        for (from, to) in [(0, 1), (1, 0)] {
            let (sent, arrived) = (&self.sides[from].sent, &self.sides[to].arrived);
            for channel in 0..4 {
                let (sent, arrived) = (&sent[channel], &arrived[channel]);
                let mut places: Vec<_> = arrived
                    .iter()
                    .map(|message| sent.binary_search_by_key(&key(message), |sent| key(sent)))
                    .map(|index| index.expect("the message was sent"))
                    .collect();
                assert!(
                    places
                        .iter()
                        .zip(arrived)
                        .all(|(index, arrived)| sent[*index] == *arrived)
                );
                if channel == 1 || channel == 2 {
                    places.sort_unstable();
                }
                assert!(places.is_sorted_by(|a, b| a < b), "once, and in order");
                if channel == 0 || (channel == 1 && settled) {
                    assert!(places.iter().copied().eq(0..arrived.len()));
                }
                if channel < 2 && settled {
                    assert_eq!(arrived.len(), sent.len(), "everything arrives");
                }
            }
            for bytes in &self.sides[to].arrived {
                let offered = &self.sides[from].offered;
                assert!(offered.iter().any(|(_, offered)| offered == bytes));
            }
        }
    }
}

fn key(message: &[u8]) -> u32 {
    u32::from_le_bytes(*message.first_chunk().expect("a number"))
}

fuzz_target!(|steps: Vec<Action>| {
    let link = LinkConfig::default()
        .with_timeout(Duration::from_secs(3600))
        .with_exchange(ExchangeConfig::default().with_stalled(Duration::from_secs(3600)));
    let mut game = Game {
        pair: Pair::connected(link),
        sides: Default::default(),
        count: 0,
    };
    game.listen();
    for step in steps.into_iter().take(200) {
        game.step(step);
    }
    game.check(false);
    for _ in 0..2000 {
        game.pair.wait(20_000);
        game.pair.deliver_all();
        game.listen();
        let waiting = |statistics: Option<Statistics>| statistics.is_some_and(|s| s.waiting > 0);
        let (server, id) = (&game.pair.server, game.pair.connection);
        if !waiting(game.pair.client.statistics()) && !waiting(server.statistics(id)) {
            break;
        }
    }
    // Only acknowledgements may still be under way.
    game.check(true);
});
