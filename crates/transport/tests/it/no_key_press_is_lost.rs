//! Inputs over lossy links.

use std::collections::VecDeque;
use std::time::Duration;

use crate::common::{GOOD, Random, World, over_seeds};
use prescient_channels::parts::{InputReceiver, InputSender};
use prescient_channels::{ConnectionId, Input, InputTick, Keys, Received};

/// Ticks that a packet or an acknowledgement takes.
const ONE_WAY: u64 = 3;

/// A player whose pointer moves in every tick and whose keys change every ten or so, with up to
/// three of them down.
struct Player {
    random: Random,
    input: Input,
    speed: [i32; 2],
}

impl Player {
    fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            input: Input::default(),
            speed: [3, -2],
        }
    }

    /// `keys` is how many different keys the player uses.
    fn tick(&mut self, keys: u64) -> Input {
        self.input.pressed = Keys::NONE;
        if self.random.below(10) == 0 {
            let key = self.random.below(keys) as u8;
            let keys_down = self.input.keys_down;
            if let Some(old) = keys_down
                .iter()
                .next()
                .filter(|_| keys_down.len() == 3 || keys_down.contains(key))
            {
                self.input.keys_down.remove(old);
            } else {
                self.input.keys_down.insert(key);
                self.input.pressed.insert(key);
            }
        }
        for (place, speed) in self.input.pointer.iter_mut().zip(&mut self.speed) {
            *speed = (*speed + self.random.below(9) as i32 - 4).clamp(-40, 40);
            *place += *speed;
        }
        self.input.clone()
    }
}

/// A client that sends a packet each tick, and a server that acknowledges each.
struct Link {
    random: Random,
    /// Percent of packets that are duplicated, and of those that are overtaken.
    disorder: u64,
    sender: InputSender,
    receiver: InputReceiver,
    /// Packets by arrival time: the tick that their acknowledgement confirms, and the frame.
    up: VecDeque<(u64, InputTick, Vec<u8>)>,
    down: VecDeque<(u64, InputTick)>,
    bytes: usize,
    packets: usize,
}

impl Link {
    fn new(seed: u64, disorder: u64) -> Self {
        Self {
            random: Random(seed ^ 0xABCD),
            disorder,
            sender: InputSender::new(128),
            receiver: InputReceiver::new(),
            up: VecDeque::new(),
            down: VecDeque::new(),
            bytes: 0,
            packets: 0,
        }
    }

    /// One tick; returns what arrived at the server in it.
    fn tick(&mut self, tick: u64, input: Input, loss: u64) -> Vec<(InputTick, Input)> {
        let number = InputTick(tick);
        self.sender.push(number, input).expect("in order");
        let (newest, frame) = self.sender.frame().expect("something waits");
        self.bytes += frame.len();
        self.packets += 1;
        assert!(frame.len() <= 132);
        for _ in 0..=u64::from(self.random.percent(self.disorder)) {
            if !self.random.percent(loss) {
                let late = if self.random.percent(self.disorder) {
                    self.random.below(10)
                } else {
                    0
                };
                let frame = frame.to_vec();
                self.up.push_back((tick + ONE_WAY + late, newest, frame));
            }
        }
        let mut arrived = Vec::new();
        for (due, newest, frame) in std::mem::take(&mut self.up) {
            if due > tick {
                self.up.push_back((due, newest, frame));
                continue;
            }
            let inputs = self.receiver.handle(&frame[1..]);
            arrived.extend(inputs.expect("honest"));
            if !self.random.percent(loss) {
                self.down.push_back((tick + ONE_WAY, newest));
            }
        }
        while let Some(&(due, newest)) = self.down.front()
            && due <= tick
        {
            self.down.pop_front();
            self.sender.on_arrived(newest);
        }
        arrived
    }
}

/// 30 % loss in both directions, and a blackout of three seconds; every press of every key arrives
/// once, in the order of ticks. Fails if joining loses presses (`later.input.pressed.or(…)` in
/// `fold`), if presses are repeated (`take` without `remove`), or if neighbours with a press in
/// common are joined first (`find(disjoint)` left out of `fold`).
#[test]
fn thirty_percent_lost_and_a_blackout_of_three_seconds() {
    over_seeds(20, |seed| {
        for keys in [4, 12, 200] {
            let (mut player, mut link) = (Player::new(seed), Link::new(seed, 10));
            let (mut pressed, mut arrived) = ([0; 256], [0; 256]);
            let (mut last, mut state) = (None, Input::default());
            for tick in 0..3600 {
                let playing = tick < 3500;
                let input = match playing {
                    true => player.tick(keys),
                    false => Input {
                        pressed: Keys::NONE,
                        ..player.input.clone()
                    },
                };
                input
                    .pressed
                    .iter()
                    .for_each(|key| pressed[usize::from(key)] += 1);
                let loss = match tick {
                    1000..1180 => 100,
                    3500.. => 0,
                    _ => 30,
                };
                for (tick, input) in link.tick(tick, input, loss) {
                    assert!(Some(tick) > last, "each once, in order");
                    last = Some(tick);
                    input
                        .pressed
                        .iter()
                        .for_each(|key| arrived[usize::from(key)] += 1);
                    state = input;
                }
            }
            assert_eq!(pressed, arrived, "{keys} keys");
            assert!(pressed.iter().sum::<i32>() > 100);
            assert_eq!(
                (state.keys_down, state.pointer),
                (player.input.keys_down, player.input.pointer)
            );
        }
    });
}

/// The size of frames, at 0 and 5 % loss with a round trip of six ticks. Fails if inputs are
/// written in full (`before = None` in `frame::write`).
#[test]
fn what_a_typical_player_costs() {
    for (loss, max) in [(0, 34.0), (5, 36.0)] {
        let (mut bytes, mut packets) = (0, 0);
        for seed in 0..20 {
            let (mut player, mut link) = (Player::new(seed), Link::new(seed, 0));
            for tick in 10_000..16_000 {
                let input = player.tick(12);
                link.tick(tick, input, loss);
            }
            bytes += link.bytes;
            packets += link.packets;
        }
        let mean = bytes as f64 / packets as f64;
        println!("{loss} % lost: {mean:.1} bytes per packet");
        assert!(mean <= max, "{mean:.1}");
    }
}

/// The inputs that the server received from a client.
fn inputs_of(world: &World, connection: ConnectionId) -> Vec<(InputTick, Input)> {
    let inputs = world
        .received_from(connection)
        .filter_map(|received| match received {
            Received::Input { tick, input } => Some((*tick, input.clone())),
            _ => None,
        });
    inputs.collect()
}

/// Through connections: three players at 60 ticks a second, with 30 % loss in both directions and a
/// blackout of three seconds. All inputs of a player who stops arrive. Fails if input causes no
/// packets (`are_fresh` always false), or if acknowledged inputs are repeated (`ReliableContent::Input`
/// ignored in `Exchange::arrive`).
#[test]
fn three_players_lose_nothing() {
    over_seeds(20, |seed| {
        let mut world = World::new(seed, GOOD);
        for _ in 0..3 {
            world.join();
        }
        world.connect_all();
        world.link.loss = 30;
        let mut players = [1, 2, 3].map(|number| Player::new(seed * 10 + number));
        let mut sent: [Vec<(InputTick, Input)>; 3] = Default::default();
        for tick in 0..1200 {
            world.link.loss = if (600..780).contains(&tick) { 100 } else { 30 };
            if tick == 600 {
                for peer in 0..3 {
                    let mean = world.statistics(peer).bytes_sent / 600;
                    assert!(mean < 150, "{mean} bytes a tick");
                }
            }
            let now = world.client_time();
            for (peer, player) in players.iter_mut().enumerate() {
                let (tick, input) = (InputTick(tick), player.tick(40));
                sent[peer].push((tick, input.clone()));
                let client = &mut world.peers[peer].client;
                client.push_input(tick, input, now).expect("in order");
            }
            world.run_for(Duration::from_micros(16_667));
        }
        world.run_for(Duration::from_secs(2));
        for (peer, sent) in sent.iter().enumerate() {
            let connection = world.connection_of(peer).expect("connected");
            let arrived = inputs_of(&world, connection);
            assert!(arrived.is_sorted_by_key(|(tick, _)| *tick));
            let before = |inputs: &[(InputTick, Input)]| -> Vec<_> {
                let before = inputs.iter().filter(|(tick, _)| tick.0 < 500);
                before.cloned().collect()
            };
            assert!(
                before(&arrived) == before(sent),
                "one by one while it can be"
            );
            let presses = |inputs: &[(InputTick, Input)]| {
                let mut presses = [0u32; 40];
                let keys = inputs.iter().flat_map(|(_, input)| input.pressed.iter());
                keys.for_each(|key| presses[usize::from(key)] += 1);
                presses
            };
            assert_eq!(presses(&arrived), presses(sent));
            assert_eq!(arrived.last(), sent.last());
        }
    });
}
