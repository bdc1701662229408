//! The ordinary case: a server that sends state every tick, and clients that answer it every tick.

use crate::common;

use std::time::Duration;

use crate::common::{GOOD, Link, SECOND, World, grant, over_seeds};
use prescient_channels::{ChannelId, Input, InputTick, Keys, Time};
use prescient_transport::{Client, LinkConfig, Server, ServerEvent};

const TICK: Duration = Duration::from_micros(33_333);
/// It begins as the state of `prescient-replication` does.
const STATE: [u8; 21] = [0x47; 21];

/// Sends state and answers for so many ticks, with inputs if asked for. Returns how many datagrams
/// went up and down, and their bytes.
fn play(world: &mut World, ticks: u64, inputs: bool) -> [(usize, usize); 2] {
    let seen = world.sent.len();
    let connection = world.connection_of(0).expect("connected");
    for _ in 0..ticks {
        let state = world.server_send_on(connection, ChannelId::UNRELIABLE, &STATE);
        assert_eq!(state, Ok(()));
        world.run_for(TICK / 3);
        if inputs {
            let now = world.client_time();
            let input = Input {
                keys_down: [3].into_iter().collect(),
                pressed: Keys::NONE,
                pointer: [0, 0],
                fields: Vec::new(),
            };
            let tick = InputTick(now.as_micros());
            let pushed = world.peers[0].client.push_input(tick, input, now);
            pushed.expect("connected");
        }
        let answer = world.client_send_on(0, ChannelId::UNRELIABLE, b"ok");
        assert_eq!(answer, Ok(()));
        world.run_for(TICK - TICK / 3);
    }
    let server = world.server_address;
    let sum = |up: bool| {
        let sent = world.sent[seen..].iter();
        let sizes = sent.filter(|sent| (sent.to == server) == up);
        sizes.fold((0, 0), |(count, bytes), sent| {
            (count + 1, bytes + sent.bytes.len())
        })
    };
    [sum(true), sum(false)]
}

/// Neither acknowledgements nor pongs have packets of their own, and the packets have no byte more
/// than WIRE.md says, but for one ping and pong a second. Fails if unreliable messages are
/// acknowledged as soon as reliable ones (`LAZY_DELAY` of 20 ms) or in every packet (`is_worth_it`
/// always true), if pings are answered at once, if there are four of them a second, if a server
/// sends pings although it gets acknowledgements (`put_off` left out), or if headers (`MAX_SHORT` of
/// 0), messages (`is_whole` always false) or acknowledgements have their long forms.
#[test]
fn each_end_sends_one() {
    over_seeds(20, |seed| {
        let latency = 500 + seed * 5_000;
        let mut world = World::new(seed, Link { latency, ..GOOD });
        world.join();
        world.connect_all();
        play(&mut world, 5 * 30, false);
        let ticks = 20 * 30;
        let [(up, up_bytes), (down, down_bytes)] = play(&mut world, ticks as u64, false);
        assert!((ticks..=ticks + 3).contains(&up), "{up} up");
        assert!((ticks..=ticks + 3).contains(&down), "{down} down");
        // Flags with the number, and the tag.
        let head = 1 + 16;
        // An acknowledgement in every second to fourth packet.
        let acknowledgements = 6 * ticks / 4..=6 * ticks / 2;
        // Pings or pongs once a second, with clocks that have run for long and take seven bytes; a
        // little to spare.
        let span = |packet: usize, pings: usize| {
            let least = ticks * packet + acknowledgements.start();
            least..=ticks * packet + acknowledgements.end() + 24 * pings
        };
        let expected = span(head + STATE.len(), 1 + 1 + 7 + 3);
        assert!(
            expected.contains(&down_bytes),
            "{down} with {down_bytes} down, not in {expected:?}"
        );
        let expected = span(8 + head + 2, 1 + 1);
        assert!(
            expected.contains(&up_bytes),
            "{up} with {up_bytes} up, not in {expected:?}"
        );
    });
}

/// Inputs need no packets of their own either. Fails if inputs are acknowledged as soon as reliable
/// messages.
#[test]
fn inputs_travel_along() {
    let mut world = World::new(1, GOOD);
    world.join();
    world.connect_all();
    play(&mut world, 5 * 30, true);
    let [(up, _), (down, _)] = play(&mut world, 300, true);
    assert!(up <= 303 && down <= 303, "{up} up, {down} down");
}

/// With reliable messages besides, what is lost is sent again as fast as before. Fails if reliable
/// content is acknowledged late (`Urgency::Lazy` for all frames).
#[test]
fn reliable_messages_are_acknowledged_soon() {
    let mut world = World::new(1, GOOD);
    world.join();
    world.connect_all();
    world.run_for(SECOND);
    let connection = world.connection_of(0).expect("connected");
    let before = world.server_statistics(connection).acknowledged;
    let sent = world.server_send_on(connection, ChannelId::ORDERED, b"event");
    assert_eq!(sent, Ok(()));
    world.run_for(Duration::from_micros(2 * GOOD.latency + 21_000));
    assert_eq!(world.server_statistics(connection).acknowledged, before + 1);
}

/// A client and a server that look for datagrams only once per tick, on a link that takes half a
/// millisecond each way.
struct Frames {
    server: Server,
    client: Client,
    now: u64,
    /// Datagrams in the sockets, and when they arrived.
    up: Vec<(u64, Vec<u8>)>,
    down: Vec<(u64, Vec<u8>)>,
}

impl Frames {
    const LATENCY: u64 = 500;

    fn time(&self) -> Time {
        Time::from_micros(self.now)
    }

    /// One end handles what has arrived; `measured` if it knows how long that has waited.
    fn poll(&mut self, up: bool, measured: bool, world: &mut World) {
        let (now, time) = (self.now, self.time());
        let home = common::address("198.51.100.7:50000");
        let waiting = if up { &mut self.up } else { &mut self.down };
        let arrived: Vec<_> = waiting.extract_if(.., |(at, _)| *at <= now).collect();
        for (at, bytes) in arrived {
            let waited = Duration::from_micros(if measured { now - at } else { 0 });
            if up {
                let (unix, random) = (world.unix, &mut world.random);
                let server = &mut self.server;
                server.handle_waiting_datagram(home, &bytes, waited, time, unix, random);
            } else {
                let (client, server) = (&mut self.client, world.server_address);
                client.handle_waiting_datagram(server, &bytes, waited, time);
            }
        }
    }

    fn flush(&mut self) {
        let (time, arrival) = (self.time(), self.now + Self::LATENCY);
        self.client.handle_timeout(time);
        self.server.handle_timeout(time);
        while let Some(sent) = self.client.poll_transmit(time) {
            self.up.push((arrival, sent.bytes.into_vec()));
        }
        while let Some(sent) = self.server.poll_transmit(time) {
            self.down.push((arrival, sent.bytes.into_vec()));
        }
    }

    /// The round trips that client and server show after ten seconds, in microseconds.
    fn play(measured: bool) -> [u64; 2] {
        let mut world = World::new(3, GOOD);
        let token = world.issue(&grant(1));
        let config = common::config();
        let now = 1_000_000;
        let start = Time::from_micros(now);
        let random = &mut world.random;
        let server = Server::new(config, random, start).expect("it can work");
        let link = LinkConfig::default();
        let client = Client::connect(token, common::PROTOCOL, link, random, start);
        let mut frames = Self {
            server,
            client: client.expect("the same protocol"),
            now,
            up: Vec::new(),
            down: Vec::new(),
        };
        let mut connection = None;
        for frame in 0..300 {
            // The server's tick, and some time later a frame of the client.
            frames.now = now + frame * 33_333;
            frames.poll(true, measured, &mut world);
            while let Some(event) = frames.server.poll_event() {
                if let ServerEvent::Connected { connection: id, .. } = event {
                    connection = Some(id);
                }
            }
            if let Some(connection) = connection {
                let time = frames.time();
                let sent = frames
                    .server
                    .send(connection, ChannelId::UNRELIABLE, &STATE, time);
                assert_eq!(sent, Ok(()));
            }
            frames.flush();
            frames.now += 14_000;
            frames.poll(false, measured, &mut world);
            while frames.client.poll_event().is_some() {}
            let time = frames.time();
            let _ = frames.client.send(ChannelId::UNRELIABLE, b"ok", time);
            frames.flush();
        }
        let client = frames.client.statistics().expect("connected");
        let connection = connection.expect("it connected");
        let server = frames.server.statistics(connection).expect("connected");
        [client, server].map(|statistics| {
            let round_trip = statistics.round_trip.expect("measured");
            round_trip.smoothed.as_micros() as u64
        })
    }
}

/// Fails if the wait for the program counts as part of the round trip: at the end that measures
/// (`at.handled` in `handle_pong` or `handle_report`), or at the other (`at.handled` in `pinged`, or
/// `newest_at = now` in `Arrivals::note`). Without knowledge of the wait it counts, which shows that
/// there is one.
#[test]
fn a_round_trip_is_that_of_the_network() {
    let known = Frames::play(true);
    for round_trip in known {
        assert!((1000..1300).contains(&round_trip), "{round_trip} µs");
    }
    let unknown = Frames::play(false);
    assert!(
        unknown.iter().any(|&shown| shown > 10_000),
        "{unknown:?} µs"
    );
}
