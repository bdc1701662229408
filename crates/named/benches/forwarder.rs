//! Interests per second on one core, through the PIT and a full content store.
//!
//! `cargo bench -p prescient-named` prints items per second. An item is an Interest from its bytes to the
//! Data at the consumer: decoded, looked up, forwarded, answered, cached. The goal is 300,000 per second.
//! Names have six components, Data 100 bytes of content.

use std::time::Duration;

use divan::Bencher;
use divan::counter::ItemsCount;
use prescient_named::{
    DataBuilder, FaceConfig, FaceId, Forwarder, ForwarderConfig, InterestBuilder, Name, Signer,
    Time,
};

fn main() {
    divan::main();
}

/// The number of names, more than the content store can hold.
const NAMES: usize = 100_000;

/// Interests in one sample.
const BATCH: usize = 10_000;

/// Every Interest is for a name that is not in the store: PIT, FIB, Data, eviction.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn miss(bencher: Bencher<'_, '_>) {
    let mut rig = Rig::new();
    let mut next = 0;
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            rig.ask(0, next);
            rig.answer(next);
            next = (next + 1) % NAMES;
        }
    });
}

/// Every Interest is answered from the store.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn hit(bencher: Bencher<'_, '_>) {
    let mut rig = Rig::new();
    let stored = rig.forwarder.statistics().stored;
    let mut next = 0;
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            // Spread over the store.
            next = (next + 7919) % stored;
            rig.ask(0, NAMES - 1 - next);
        }
    });
}

/// Four consumers request the same name, three of them while it is pending; a fifth requests it later.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn shared(bencher: Bencher<'_, '_>) {
    let mut rig = Rig::new();
    let mut next = 0;
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH / 5 {
            (0..4).for_each(|consumer| rig.ask(consumer, next));
            rig.answer(next);
            rig.ask(4, next);
            next = (next + 1) % NAMES;
        }
    });
}

/// 20,000 Interests are pending at any time.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn deep(bencher: Bencher<'_, '_>) {
    const DEPTH: usize = 20_000;
    let mut rig = Rig::new();
    let mut next = 0;
    (0..DEPTH).for_each(|name| rig.ask(0, name));
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            rig.ask(0, (next + DEPTH) % NAMES);
            rig.answer(next);
            next = (next + 1) % NAMES;
        }
    });
}

/// A forwarder with a producer and five consumers, and all packets that they send.
struct Rig {
    forwarder: Forwarder,
    now: Time,
    producer: FaceId,
    consumers: Vec<FaceId>,
    interests: Vec<Packet>,
    data: Vec<Vec<u8>>,
    nonce: u32,
    out: Vec<u8>,
}

/// An Interest, and the offset of its nonce.
struct Packet {
    bytes: Vec<u8>,
    nonce: usize,
}

impl Rig {
    fn new() -> Self {
        let config = ForwarderConfig::default().max_store_bytes(48 << 20);
        let mut forwarder = Forwarder::new(config, *b"a key for a test");
        let face = FaceConfig::local();
        let mut add = || forwarder.add_face(&face).expect("there is room");
        let producer = add();
        let consumers = (0..5).map(|_| add()).collect();
        let prefix: Name = "/game/0".parse().expect("a name");
        forwarder
            .add_route(prefix.view(), producer, 0)
            .expect("there is room");
        let mut rig = Self {
            forwarder,
            now: Time::from_micros(0),
            producer,
            consumers,
            interests: (0..NAMES).map(interest).collect(),
            data: (0..NAMES).map(data).collect(),
            nonce: 0,
            out: Vec::new(),
        };
        for name in 0..NAMES {
            rig.ask(0, name);
            rig.answer(name);
        }
        rig
    }

    fn ask(&mut self, consumer: usize, name: usize) {
        self.nonce += 1;
        let packet = &mut self.interests[name];
        packet.bytes[packet.nonce..][..4].copy_from_slice(&self.nonce.to_be_bytes());
        self.forwarder
            .handle_packet(self.now, self.consumers[consumer], &packet.bytes)
            .expect("a good packet");
        self.poll();
    }

    fn answer(&mut self, name: usize) {
        self.forwarder
            .handle_packet(self.now, self.producer, &self.data[name])
            .expect("a good packet");
        self.poll();
    }

    fn poll(&mut self) {
        while self.forwarder.poll_transmit(&mut self.out).is_some() {
            divan::black_box(&self.out);
        }
        self.now = self.now.after(Duration::from_micros(1));
        if self
            .forwarder
            .next_timeout()
            .is_some_and(|due| due <= self.now)
        {
            self.forwarder.handle_timeout(self.now);
        }
    }
}

fn name(number: usize) -> Name {
    let player = number % 256;
    let text = format!("/game/0/player{player}/status/sync/{number}");
    text.parse().expect("a name")
}

fn interest(number: usize) -> Packet {
    let mut bytes = Vec::new();
    InterestBuilder::new(name(number).view())
        .can_be_prefix()
        .must_be_fresh()
        .nonce([0xee; 4])
        .lifetime(Duration::from_secs(1))
        .encode(&mut bytes)
        .expect("it fits");
    let nonce = bytes.windows(4).position(|window| window == [0xee; 4]);
    let nonce = nonce.expect("it has one");
    Packet { bytes, nonce }
}

fn data(number: usize) -> Vec<u8> {
    let mut name = name(number);
    name.push(prescient_named::ComponentKind::GENERIC, b"next")
        .expect("it fits");
    let mut bytes = Vec::new();
    DataBuilder::new(name.view())
        .freshness(Duration::from_secs(3600))
        .content(&[7; 100])
        .sign(&Signer::digest(), &mut bytes)
        .expect("it fits");
    bytes
}
