//! Case 28, measured on the heap: a client begins messages in every way and completes none. A
//! connection takes at most 256 KiB for them, including everything to keep track of them.
//!
//! The allocator counts, so these tests run one at a time.

mod common;

use std::alloc::System;
use std::time::Duration;

use common::{GOOD, Random, UNIX, World, over_seeds};
use prescient_channels::*;
use prescient_transport::*;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// A client and a server, connected directly.
struct Pair {
    client: Client,
    server: Server,
    here: std::net::SocketAddr,
    there: std::net::SocketAddr,
    client_now: Time,
    server_now: Time,
    random: Random,
    /// Bytes that the server allocated and did not free.
    held: isize,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed, GOOD);
        world.join();
        world.connect_all();
        let (client_now, server_now) = (world.client_time(), world.server_time());
        let peer = world.peers.remove(0);
        let mut pair = Self {
            client: peer.client,
            server: world.server,
            here: peer.address,
            there: world.server_address,
            client_now,
            server_now,
            random: world.random,
            held: 0,
        };
        // Until everything that a connection allocates anyway is allocated.
        (0..50).for_each(|_| pair.pass(&[3]));
        pair.held = 0;
        pair
    }

    fn is_open(&self) -> bool {
        self.server.clients().count() == 1
    }

    /// Sends a body, and everything else that is due, both ways.
    fn pass(&mut self, body: &[u8]) {
        self.client_now = self.client_now.after(Duration::from_millis(20));
        self.server_now = self.server_now.after(Duration::from_millis(20));
        self.client.handle_timeout(self.client_now);
        self.client.send_raw(body, self.client_now);
        while let Some(sent) = self.client.poll_transmit(self.client_now) {
            let region = Region::new(MEMORY);
            self.server.handle_datagram(
                self.here,
                &sent.bytes,
                self.server_now,
                UNIX,
                &mut self.random,
            );
            while self.server.poll_event().is_some() {}
            self.held += taken(&region);
        }
        let mut buffer = [0; MAX_DATAGRAM];
        loop {
            let region = Region::new(MEMORY);
            self.server.handle_timeout(self.server_now);
            let length = self.server.poll_transmit(self.server_now).map(|sent| {
                buffer[..sent.bytes.len()].copy_from_slice(&sent.bytes);
                sent.bytes.len()
            });
            self.held += taken(&region);
            let Some(length) = length else {
                break;
            };
            self.client
                .handle_datagram(self.there, &buffer[..length], self.client_now);
        }
        while self.client.poll_event().is_some() {}
    }
}

fn taken(region: &Region<'_, System>) -> isize {
    let change = region.change();
    change.bytes_allocated as isize - change.bytes_deallocated as isize
}

fn number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// A fragment of an incomplete message.
fn part(body: &mut Vec<u8>, channel: u8, reliable: bool, message: u64, offset: u64, total: u64) {
    body.push(0xa0 | u8::from(reliable) << 6 | channel);
    number(body, message);
    number(body, offset);
    number(body, total);
    body.extend([1, 7]);
}

/// A whole message.
fn whole(body: &mut Vec<u8>, channel: u8, message: u64) {
    body.push(0xc0 | channel);
    number(body, message);
    body.push(0);
}

/// A packet of 60 messages or fragments that keep something waiting; they differ by packet number
/// and index.
fn pieces(way: u64, packet: u64, random: &mut Random) -> Vec<u8> {
    let mut body = Vec::new();
    for piece in 0..60 {
        let count = 60 * packet + piece;
        let channels = [0, 1, 13, 14, 15];
        let channel = channels[(count % 5) as usize];
        match way {
            // Many short messages, one byte of each.
            0 => part(&mut body, channel, true, 1 + count / 5 % 1000, 0, 2),
            // Every other byte of longer ones.
            1 => {
                let (message, offset) = (1 + count / 1000 % 1000, 2 * (count % 1000));
                part(&mut body, 1, true, message, offset, 4000);
            }
            // Messages that wait for the first.
            2 => whole(
                &mut body,
                [0, 13, 15][(count % 3) as usize],
                1 + count / 3 % 1000,
            ),
            // Every other message on an unordered channel.
            3 => whole(&mut body, 1, 1 + 2 * (count % 500)),
            // Unreliable messages with gaps.
            4 => part(&mut body, 2, false, count / 500, 2 * (count % 500), 1200),
            // As many unreliable messages as possible.
            5 => part(&mut body, 3, false, count, 0, 1000),
            // A mixture of everything.
            _ => {
                let message = 2 * (1 + random.below(400));
                // A message whose length changes would be rejected at once.
                let total = 2 + message * 37 % 3000;
                let offset = random.below(total - 1);
                match random.below(10) {
                    0..2 => part(&mut body, 2, false, message, offset, total),
                    // On channel 14 it would be delivered, and a request is not empty.
                    2..4 if channel != 14 => whole(&mut body, channel, message + 1),
                    _ => part(&mut body, channel, true, message, offset, total),
                }
            }
        }
    }
    body
}

/// Fails if a message counts for its bytes alone (`MESSAGE_COST` is 0), or if gaps are free
/// (`MAX_GAPS` is `usize::MAX`).
#[test]
fn what_never_ends_takes_256_kibibytes_of_the_heap() {
    over_seeds(21, |seed| {
        let mut pair = Pair::new(seed);
        let (mut max, mut packets) = (0, 0);
        while pair.is_open() && packets < 400 {
            let body = pieces(seed % 7, packets, &mut pair.random.clone());
            pair.random.next();
            pair.pass(&body);
            max = max.max(pair.held);
            packets += 1;
        }
        assert!(max <= 256 << 10, "{max} bytes after {packets} packets");
        assert!(max > 8000, "{max} bytes: nothing was tried");
        // Connections beyond the limits were closed; the others are by now, or their fragments have
        // expired.
        for _ in 0..5 * 50 {
            pair.pass(&[3]);
        }
        assert!(pair.held < 16 << 10, "{} bytes are not freed", pair.held);
    });
}
