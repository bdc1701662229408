//! The guarantees of channels on bad links. Three clients exchange messages with the server, both
//! ways, on all channels.

use crate::common;

use std::time::Duration;

use crate::common::{GOOD, Link, Random, SECOND, World, over_seeds};
use prescient_channels::{ChannelId, ExchangeConfig, RequestError};
use prescient_transport::LinkConfig;

/// What was sent on a channel by and to a client, in order.
#[derive(Default)]
struct Sent {
    up: Vec<Vec<u8>>,
    down: Vec<Vec<u8>>,
}

const RELIABLE: [ChannelId; 2] = [ChannelId::ORDERED, ChannelId::UNORDERED];
const ALL: [ChannelId; 4] = [
    ChannelId::ORDERED,
    ChannelId::UNORDERED,
    ChannelId::UNRELIABLE,
    ChannelId::SEQUENCED,
];

/// Three clients and everything that was sent.
struct Session {
    world: World,
    /// By client and channel.
    sent: Vec<[Sent; 4]>,
    count: u32,
    lengths: Random,
}

impl Session {
    fn new(seed: u64, link: Link) -> Self {
        let mut world = World::new(seed, link);
        for _ in 0..3 {
            world.join();
        }
        world.connect_all();
        Self {
            world,
            sent: (0..3).map(|_| Default::default()).collect(),
            count: 0,
            lengths: Random(seed + 1),
        }
    }

    /// Sends a message both ways on a channel: a number and some bytes, sometimes many.
    fn send(&mut self, peer: usize, channel: ChannelId) {
        let extra = match self.lengths.below(20) {
            0 => self.lengths.below(8000),
            1 | 2 => self.lengths.below(1500),
            _ => self.lengths.below(60),
        };
        self.count += 1;
        let mut message = self.count.to_le_bytes().to_vec();
        message.resize(4 + extra as usize, self.count as u8);
        let connection = self.world.connection_of(peer).expect("connected");
        let sent = &mut self.sent[peer][usize::from(channel.0)];
        let up = self.world.client_send_on(peer, channel, &message);
        up.expect("little waits");
        sent.up.push(message.clone());
        let down = self.world.server_send_on(connection, channel, &message);
        down.expect("little waits");
        sent.down.push(message);
    }

    /// Sends messages on all channels for so many rounds, one every `pause`.
    fn send_rounds(&mut self, rounds: usize, pause: Duration) {
        for _ in 0..rounds {
            for peer in 0..3 {
                for channel in ALL {
                    self.send(peer, channel);
                }
            }
            self.world.run_for(pause);
        }
    }

    fn arrived_up(&self, peer: usize, channel: ChannelId) -> Vec<Vec<u8>> {
        let connection = self.world.connection_of(peer).expect("connected");
        self.world.received_on(connection, channel)
    }

    /// Whether everything reliable has arrived.
    fn is_settled(&self, world: &World) -> bool {
        assert_eq!(world.closed(), []);
        (0..3).all(|peer| {
            let connection = world.connection_of(peer).expect("connected");
            RELIABLE.iter().all(|&channel| {
                let sent = &self.sent[peer][usize::from(channel.0)];
                world.peers[peer].messages_on(channel).len() >= sent.down.len()
                    && world.received_on(connection, channel).len() >= sent.up.len()
            })
        })
    }

    /// Runs until everything reliable has arrived, and returns how long that took.
    fn settle(&mut self, max: Duration) -> Duration {
        let start = self.world.now;
        while !self.is_settled(&self.world) {
            self.world.run_for(Duration::from_millis(20));
            let took = Duration::from_micros(self.world.now - start);
            assert!(took <= max, "not everything arrived in {max:?}");
        }
        Duration::from_micros(self.world.now - start)
    }

    /// Checks the guarantees of all channels.
    fn check(&self) {
        assert_eq!(self.world.closed(), []);
        for peer in 0..3 {
            assert_eq!(self.world.peers[peer].closed(), None);
            for channel in ALL {
                let sent = &self.sent[peer][usize::from(channel.0)];
                let down = self.world.peers[peer].messages_on(channel);
                check(channel, &sent.down, down);
                check(channel, &sent.up, self.arrived_up(peer, channel));
            }
        }
    }
}

fn check(channel: ChannelId, sent: &[Vec<u8>], mut arrived: Vec<Vec<u8>>) {
    let places: Vec<_> = arrived
        .iter()
        .map(|message| sent.iter().position(|other| other == message))
        .map(|place| place.expect("it was sent"))
        .collect();
    match channel {
        ChannelId::ORDERED => assert!(arrived == sent, "each once and in order: {places:?}"),
        ChannelId::UNORDERED => {
            arrived.sort_by_key(|message| sent.iter().position(|other| other == message));
            assert!(arrived == sent, "each once: {places:?}");
        }
        ChannelId::SEQUENCED => {
            assert!(places.is_sorted_by(|a, b| a < b), "backwards: {places:?}");
        }
        _ => {
            let mut once = places.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), places.len(), "none twice: {places:?}");
        }
    }
}

fn loses(percent: u64) {
    over_seeds(20, |seed| {
        let link = Link {
            loss: percent,
            delayed: 20,
            delay: 10_000,
            ..GOOD
        };
        let mut session = Session::new(seed, link);
        session.send_rounds(40, Duration::from_millis(33));
        session.settle(60 * SECOND);
        session.world.run_for(SECOND);
        session.check();
        for peer in 0..3 {
            let statistics = session.world.statistics(peer);
            let round_trip = statistics.round_trip.expect("measured");
            assert!(round_trip.smallest >= Duration::from_millis(40));
            assert!(round_trip.smallest < Duration::from_millis(60));
            // Five standard deviations, and five packets, because there are few.
            let within = |good: u64, share: u32| {
                let expected = percent as f64 / 100.0;
                let deviation = (expected * (1.0 - expected) / good as f64).sqrt();
                let max = 5.0 * (deviation + 1.0 / good as f64);
                let share = f64::from(share) / 1e6;
                assert!((share - expected).abs() <= max, "{share} of {good}");
            };
            within(statistics.packets_received, statistics.loss_received());
            within(statistics.acknowledged, statistics.loss_sent());
        }
    });
}

/// Fails if no packet is ack-eliciting (`Frame::patience` always `None`).
#[test]
fn without_loss() {
    loses(0);
}

/// Fails if lost messages are not retransmitted (`ReliableSender::lost` returning at once).
#[test]
fn through_one_percent_of_loss() {
    loses(1);
}

/// Fails if messages are delivered out of order (`self.ordered && …` left out of
/// `ReliableReceiver::finish`).
#[test]
fn through_five_percent_of_loss() {
    loses(5);
}

/// Fails if no packet is ever declared lost (`find_lost` returning at once).
#[test]
fn through_twenty_percent_of_loss() {
    loses(20);
}

/// Fails if complete messages are not remembered (`self.complete.contains` left out of
/// `ReliableReceiver::handle`).
#[test]
fn through_fifty_percent_of_loss() {
    loses(50);
}

/// Case 2. Fails if acknowledgements are not repeated (`TIMES` = 1 in `Arrivals`): then correct
/// ends are closed as stalled.
#[test]
fn through_ninety_percent_of_loss_for_a_minute() {
    over_seeds(20, |seed| {
        let mut session = Session::new(seed, GOOD);
        session.send_rounds(10, Duration::from_millis(33));
        session.world.link.loss = 90;
        for round in 0..1800 {
            for peer in 0..3 {
                if round % 60 == 0 {
                    session.send(peer, ChannelId::ORDERED);
                }
                let _ = session.world.client_send(peer, &[0, 0, 0, 0]);
                assert_eq!(session.world.closed(), [], "in round {round}");
                let connection = session.world.connection_of(peer).expect("survives");
                let _ = session.world.server_send(connection, &[0, 0, 0, 0]);
            }
            session.world.run_for(Duration::from_millis(33));
        }
        session.world.link.loss = 0;
        let took = session.settle(2 * SECOND);
        assert!(took <= 2 * SECOND, "{took:?}");
        assert_eq!(session.world.closed(), []);
        let (ordered, arrived) = (
            &session.sent[1][0],
            session.arrived_up(1, ChannelId::ORDERED),
        );
        assert!(ordered.up == arrived);
    });
}

/// Case 4. Fails if sequenced messages are not compared (`newest >= position` left out of
/// `Channel::handle_unreliable`), or if their order is that of arrival.
#[test]
fn half_of_all_reordered_by_two_hundred_milliseconds_either_way() {
    over_seeds(20, |seed| {
        let link = Link {
            delayed: 50,
            delay: 400_000,
            ..GOOD
        };
        let mut session = Session::new(seed, link);
        session.send_rounds(60, Duration::from_millis(16));
        session.settle(10 * SECOND);
        session.world.run_for(SECOND);
        session.check();
        let statistics = session.world.statistics(0);
        assert!(statistics.out_of_order > 20);
        assert_eq!((statistics.late, statistics.duplicate), (0, 0));
        // Short messages are not fragmented: all that were not overtaken arrive.
        let sequenced = session.world.peers[0].messages_on(ChannelId::SEQUENCED);
        assert!(sequenced.len() > 10, "{}", sequenced.len());
    });
}

/// Case 8. Fails if loss is not detected when acknowledgements arrive again (`find_lost` returning
/// at once), because then only probes carry anything.
#[test]
fn through_a_black_hole_of_five_seconds_out_of_seven() {
    over_seeds(20, |seed| {
        let mut session = Session::new(seed, GOOD);
        for _ in 0..6 {
            (session.world.silent_up, session.world.silent_down) = (true, true);
            session.send_rounds(50, Duration::from_millis(100));
            (session.world.silent_up, session.world.silent_down) = (false, false);
            session.send_rounds(20, Duration::from_millis(100));
        }
        session.settle(2 * SECOND);
        session.world.run_for(SECOND);
        session.check();
    });
}

/// A lost message that nothing follows is retransmitted with the first probe, a round trip and its
/// variation later. Fails if a probe repeats nothing (`self.lose(cargo)` left out of
/// `Exchange::handle_timeout`), and if there is none (`InFlight::probe_time` returning `None`).
#[test]
fn a_message_that_is_lost_alone_comes_again_soon() {
    over_seeds(20, |seed| {
        let mut session = Session::new(seed, GOOD);
        session.send_rounds(10, Duration::from_millis(33));
        session.world.run_for(SECOND);
        for peer in 0..3 {
            let before = session.world.received().len();
            let trip = session.world.statistics(peer).round_trip.expect("measured");
            session.world.silent_up = true;
            let sent = session
                .world
                .client_send_on(peer, ChannelId::ORDERED, b"lost");
            sent.expect("fits");
            session.world.run_for(Duration::from_millis(1));
            session.world.silent_up = false;
            let ack_delay = Duration::from_millis(20);
            let probe = trip.smoothed + 4 * trip.variation + ack_delay;
            let arrival = probe + Duration::from_millis(20);
            let came = |world: &World| world.received().len() > before;
            assert!(session.world.run_until(arrival, came), "not in {arrival:?}");
            session.world.run_for(SECOND);
        }
    });
}

/// Long messages on all other channels do not delay a short one: it is sent with the first packets.
/// Fails if channels are not served round-robin (`at` not advanced in `Exchange::fill` while there
/// is something).
#[test]
fn a_short_message_does_not_wait_for_long_ones() {
    over_seeds(20, |seed| {
        let mut session = Session::new(seed, GOOD);
        session.world.run_for(SECOND);
        for channel in &ALL[..3] {
            for _ in 0..3 {
                let long = session.world.client_send_on(0, *channel, &[1; 32 << 10]);
                long.expect("fits");
            }
        }
        let short = session
            .world
            .client_send_on(0, ChannelId::SEQUENCED, b"short");
        short.expect("fits");
        let came = |world: &World| world.received().iter().any(|(_, bytes)| bytes == b"short");
        let one_way = Duration::from_micros(GOOD.latency);
        assert!(session.world.run_until(one_way, came));
        session.world.run_for(2 * SECOND);
        assert_eq!(session.world.received().len(), 10);
    });
}

/// The receiver has memory for two unreliable messages of the longest kind. Fails if one is
/// fragmented while another is (`may_cut` always true).
#[test]
fn unreliable_messages_in_parts_wait_for_each_other() {
    use prescient_channels::{Channels, Delivery};
    let channels = (4..8).fold(Channels::default(), |channels, id| {
        channels.with(ChannelId(id), Delivery::Unreliable)
    });
    let exchange = ExchangeConfig::default().with_channels(channels);
    let link = LinkConfig::default().with_exchange(exchange);
    let mut world = World::with(1, GOOD, common::config().with_link(link.clone()));
    let token = world.issue(&common::grant(0));
    let peer = world.join_with(token, link, "10.0.0.1:1");
    world.connect_all();
    for channel in (4..8).map(ChannelId) {
        let long = world.client_send_on(peer, channel, &[channel.0; 32 << 10]);
        long.expect("fits");
    }
    world.run_for(SECOND);
    assert_eq!(world.received().len(), 4);
}

/// The longest messages, on every channel at once. Fails if fragments are copied to the wrong
/// offset (`self.bytes.get_mut(..end - start)` in `Assembly::add`).
#[test]
fn the_longest_messages_arrive_on_every_channel() {
    over_seeds(20, |seed| {
        let mut session = Session::new(seed, GOOD);
        for channel in ALL {
            let longest = if channel.0 < 2 { 64 << 10 } else { 32 << 10 };
            let message: Vec<u8> = (0..longest).map(|place| place as u8 ^ channel.0).collect();
            for _ in 0..3 {
                session
                    .world
                    .client_send_on(0, channel, &message)
                    .expect("fits");
            }
            let connection = session.world.connection_of(0).expect("connected");
            let up = session.world.received_on(connection, channel);
            assert!(up.is_empty());
        }
        session.world.run_for(2 * SECOND);
        let connection = session.world.connection_of(0).expect("connected");
        let up = session.world.received_on(connection, ChannelId::UNORDERED);
        assert_eq!(up.len(), 3);
        assert_eq!(
            session
                .world
                .received_on(connection, ChannelId::ORDERED)
                .len(),
            3
        );
        for channel in [ChannelId::UNRELIABLE, ChannelId::SEQUENCED] {
            let up = session.world.received_on(connection, channel);
            assert_eq!(up.len(), 3, "{channel:?}");
            assert!(up.iter().all(|message| {
                (0..32usize << 10).all(|place| message[place] == place as u8 ^ channel.0)
            }));
        }
        assert_eq!(session.world.server_statistics(connection).incomplete, 0);
    });
}

/// Messages that are sent between two polls share packets, with 64 frames in each, two of which may
/// be others. Fails if each message gets its own packet, and if a packet has more frames
/// (`MAX_FRAMES` = 128).
#[test]
fn messages_are_packed_together() {
    let mut session = Session::new(1, GOOD);
    session.world.run_for(SECOND);
    let before = session.world.statistics(0).packets_sent;
    for number in 0..620u16 {
        let message = number.to_le_bytes();
        session.world.client_send(0, &message).expect("fits");
    }
    session.world.run_for(Duration::from_millis(1));
    let packets = session.world.statistics(0).packets_sent - before;
    assert_eq!(packets, 10);
    session.world.run_for(Duration::from_millis(100));
    assert_eq!(session.world.received().len(), 620);
}

/// Every client gets its share although much more is sent to one. Fails if the server continues
/// with the same client (`push_front` in `Server::poll_transmit`).
#[test]
fn clients_take_turns() {
    let mut session = Session::new(1, GOOD);
    session.world.run_for(SECOND);
    let connections: Vec<_> = (0..3)
        .map(|peer| session.world.connection_of(peer).expect("connected"))
        .collect();
    for _ in 0..100 {
        let much = session
            .world
            .server_send_on(connections[0], ChannelId::ORDERED, &[0; 1000]);
        much.expect("fits");
    }
    for connection in &connections[1..] {
        session.world.server_send(*connection, b"x").expect("fits");
    }
    let now = session.world.server_time();
    let first: Vec<_> = (0..3)
        .filter_map(|_| session.world.server.poll_transmit(now))
        .map(|transmit| transmit.to)
        .collect();
    for peer in 0..3 {
        assert!(first.contains(&session.world.peers[peer].address));
    }
}

/// Two ends with different channels close the connection. Fails if a channel's delivery is not
/// compared (`handle_unreliable` on a reliable channel).
#[test]
fn ends_with_other_channels_part() {
    use prescient_channels::{Channels, CloseReason, Delivery};
    for (channel, delivery) in [(0, Delivery::Unreliable), (9, Delivery::Ordered)] {
        let mut world = World::new(1, GOOD);
        let link = LinkConfig::default().with_exchange(
            ExchangeConfig::default()
                .with_channels(Channels::default().with(ChannelId(channel), delivery)),
        );
        let token = world.issue(&common::grant(0));
        let peer = world.join_with(token, link, "10.0.0.1:1");
        world.connect_all();
        let connection = world.connections()[0];
        let asked = world.peers[peer].client.request(
            b"?",
            60 * SECOND,
            prescient_channels::Time::from_micros(world.now),
        );
        let request = asked.expect("connected");
        world
            .client_send_on(peer, ChannelId(channel), b"x")
            .expect("it has one");
        world.run_for(SECOND);
        assert_eq!(world.closed(), [(connection, CloseReason::Violation)]);
        assert_eq!(world.peers[peer].closed(), Some(CloseReason::Violation));
        let closed = prescient_channels::Received::Answer {
            request,
            answer: Err(RequestError::Closed),
        };
        assert!(world.peers[peer].received().any(|event| *event == closed));
    }
}

/// Fails if a server does not report messages that it may not send yet (`Channel::is_idle` always
/// true), if it reports them after they are sent (always false), or if messages that are kept until
/// they are acknowledged count (`is_reliable` left out of `capacity`).
#[test]
fn a_server_knows_whether_something_has_to_wait() {
    let mut world = World::new(1, GOOD);
    world.join();
    world.connect_all();
    let connection = world.connections()[0];
    let now = world.server_time();
    let before = world.server.capacity(connection, now);
    assert!((1100..1472).contains(&before.message), "{before:?}");
    assert!(before.total >= 4 * before.message, "{before:?}");
    // More than may be sent at once.
    for _ in 0..200 {
        let sent = world
            .server
            .send(connection, ChannelId::UNRELIABLE, &[7; 1000], now);
        sent.expect("there is room");
    }
    let packets = std::iter::from_fn(|| world.server.poll_transmit(now)).count();
    assert!(packets < 200, "{packets}");
    assert_eq!(world.server.capacity(connection, now).total, 0);
    world.run_for(Duration::from_secs(1));
    let now = world.server_time();
    let message = world.server.send(connection, ChannelId::ORDERED, &[7], now);
    message.expect("there is room");
    assert!(world.server.capacity(connection, now).total > 0);
    assert_eq!(world.closed(), []);
}

/// Long messages fill the receiver's buffer while it waits for a lost packet. Fails if
/// `ReliableReceiver::finish` counts a complete message twice, as its fragments and as a whole.
#[test]
fn long_messages_survive_loss() {
    over_seeds(20, |seed| {
        let link = Link { loss: 2, ..GOOD };
        let mut world = World::new(seed, link);
        world.join();
        world.connect_all();
        let connection = world.connections()[0];
        let length = [65_536, 48_900, 30_000, 1500][seed as usize % 4];
        for number in 0..8 {
            let up = world.client_send_on(0, ChannelId::ORDERED, &vec![number; length]);
            let down = world.server_send_on(connection, ChannelId::ORDERED, &vec![number; length]);
            assert_eq!((up, down), (Ok(()), Ok(())));
        }
        world.run_until(60 * SECOND, |world| {
            world.received_on(connection, ChannelId::ORDERED).len() == 8
                && world.peers[0].messages_on(ChannelId::ORDERED).len() == 8
        });
        assert_eq!(world.closed(), []);
        let expected: Vec<_> = (0..8).map(|number| vec![number; length]).collect();
        assert_eq!(world.received_on(connection, ChannelId::ORDERED), expected);
        assert_eq!(world.peers[0].messages_on(ChannelId::ORDERED), expected);
    });
}
