//! What a peer gets follows what its connection carries, whatever that is.

use crate::common::{encode, greet};
use prescient_replication::adaptation::{Adaptation, LinkEstimate};
use prescient_replication::{
    Client, ClientConfig, Everything, PeerId, Quality, Room, Server, ServerConfig, Tick,
};
use prescient_schema::{Ref, Schema, SchemaBuilder, State};

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Leader {
    number: u8,
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(priority = 3)]
struct Follower {
    number: u8,
    #[state(step = 0.01, position, levels(0, 2, 4, 6))]
    position: [f32; 2],
}

const PEER: PeerId = PeerId(1);
const FOLLOWERS: usize = 60;

/// A server and a client, joined without loss.
struct Game {
    server: Server,
    client: Client,
    leader: (Ref<Leader>, Leader),
    followers: Vec<(Ref<Follower>, Follower)>,
    tick: u64,
    micros: u64,
    seed: u64,
    /// Bytes of state since the last look.
    bytes: usize,
    largest: usize,
}

impl Game {
    fn new() -> Self {
        let schema: Schema = SchemaBuilder::new()
            .state::<Leader>()
            .state::<Follower>()
            .build()
            .expect("a sound schema");
        let server = Server::new(schema.clone(), ServerConfig::default(), Everything);
        let mut server = server.expect("a sound schema");
        let mut client = Client::new(schema, ClientConfig::default()).expect("a sound schema");
        server.connect(PEER);
        server
            .set_adaptation(PEER, Some(Adaptation::default()))
            .expect("connected");
        let mut step = server.step(Tick(1)).expect("the first");
        let leader = Leader::default();
        let leader = (step.spawn(&leader).expect("sound"), leader);
        let follower = |number: usize| Follower {
            number: number as u8,
            position: [number as f32, 0.0],
        };
        let followers = (0..FOLLOWERS)
            .map(|number| {
                (
                    step.spawn(&follower(number)).expect("sound"),
                    follower(number),
                )
            })
            .collect();
        step.finish();
        greet(&mut server, PEER, &mut client);
        Self {
            server,
            client,
            leader,
            followers,
            tick: 1,
            micros: 0,
            seed: 7,
            bytes: 0,
            largest: 0,
        }
    }

    fn random(&mut self) -> f32 {
        self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1);
        (self.seed >> 40) as f32 / (1 << 24) as f32 - 0.5
    }

    /// Plays some ticks on a connection of this rate; messages arrive unless it is `dead`.
    fn play(&mut self, ticks: u64, rate: u64, dead: bool) {
        for _ in 0..ticks {
            self.tick += 1;
            self.micros += 33_333;
            let moves: Vec<f32> = (0..2 * FOLLOWERS + 2).map(|_| self.random()).collect();
            let mut step = self.server.step(Tick(self.tick)).expect("ticks ascend");
            let walk = |position: &mut [f32; 2], at: usize| {
                position[0] += moves[at];
                position[1] += moves[at + 1];
            };
            walk(&mut self.leader.1.position, 0);
            step.set(self.leader.0, &self.leader.1).expect("it lives");
            for (number, (entity, follower)) in self.followers.iter_mut().enumerate() {
                walk(&mut follower.position, 2 + 2 * number);
                step.set(*entity, follower).expect("it lives");
            }
            step.finish();
            let estimate = LinkEstimate {
                bytes_per_second: rate,
                overhead: 30,
                micros: self.micros,
            };
            self.server.set_estimate(PEER, estimate).expect("connected");
            let room = Room {
                message: 1100,
                total: 11_000,
                headroom: 0,
            };
            for (_, message) in encode(&mut self.server, &|_| room) {
                self.bytes += message.len();
                self.largest = self.largest.max(message.len());
                if !dead {
                    self.client.handle(&message).expect("an honest message");
                }
            }
            while self.client.poll_change().is_some() {}
            if let Some(ack) = self.client.acknowledgement().filter(|_| !dead) {
                self.server.handle(PEER, &ack).expect("an honest client");
            }
        }
    }

    /// The distance between what is shown of the leader, and of the followers at most, and the truth.
    fn errors(&self) -> (f32, f32) {
        let apart = |[x, y]: [f32; 2], [a, b]: [f32; 2]| (x - a).hypot(y - b);
        let mut errors = (f32::MAX, 0f32);
        for entity in self.client.entities() {
            if let Some(leader) = self.client.get::<Leader>(entity) {
                errors.0 = apart(leader.position, self.leader.1.position);
            } else if let Some(follower) = self.client.get::<Follower>(entity) {
                let truth = &self.followers[usize::from(follower.number)].1;
                errors.1 = errors.1.max(apart(follower.position, truth.position));
            }
        }
        errors
    }

    fn take_bytes(&mut self) -> usize {
        std::mem::take(&mut self.bytes)
    }
}

/// Fails if priority 0 is not first (`priority == 0` left out of `Encoder::due`), if nothing is
/// degraded, if the rate is exceeded, or if the quality does not return.
#[test]
fn a_narrow_connection_degrades_all_but_priority_zero_and_only_while_it_is_narrow() {
    let mut game = Game::new();
    game.play(60, 100_000, false);
    let before = game.take_bytes() / 60;
    assert!(
        game.errors().0 < 0.01 && game.errors().1 < 0.01,
        "{:?}",
        game.errors()
    );
    assert_eq!(game.server.changed_qualities(), []);
    game.play(60, 1_500, false);
    game.take_bytes();
    for tick in 0..120 {
        let sent = game.bytes;
        game.play(1, 1_500, false);
        let report = game.server.adaptation(PEER).expect("it is adapted");
        assert!(report.plan_step > 0, "tick {tick}");
        // Ticks are skipped, but every packet has what priority 0 needs.
        if game.bytes > sent {
            assert_eq!(report.error_steps[0], 0.0, "tick {tick}: priority 0");
        }
        assert!(report.stalest_ticks[0] <= 6, "tick {tick}: {report:?}");
        assert!(report.stalest_ticks[3] <= 30, "tick {tick}: {report:?}");
    }
    let during = game.take_bytes();
    assert!(
        during <= 1_500 * 4 && during / 120 < before,
        "{during}, {before}"
    );
    assert!(!game.server.changed_qualities().is_empty());
    game.play(45, 100_000, false);
    let report = game.server.adaptation(PEER).expect("it is adapted");
    assert_eq!(report.quality, Quality::FULL);
    assert!(game.errors().1 < 0.01, "{:?}", game.errors());
}

/// Rates of nothing, a byte a second and everything, half a minute without a packet, and estimates
/// that jump. Fails if anything overflows, or if a peer that had no rate gets nothing ever after.
#[test]
fn no_rate_stalls_a_peer_for_good() {
    let mut game = Game::new();
    game.play(30, 100_000, false);
    for rate in [0, 1, u64::MAX, 50] {
        game.play(60, rate, false);
    }
    game.play(900, 5_000, true);
    let statistics = game.server.statistics(PEER).expect("connected");
    assert!(statistics.unsettled_bytes <= 256 << 10, "{statistics:?}");
    for tick in 0..60 {
        game.play(1, if tick % 2 == 0 { u64::MAX } else { 0 }, false);
    }
    game.play(60, 100_000, false);
    assert!(
        game.errors().0 < 0.01 && game.errors().1 < 0.01,
        "{:?}",
        game.errors()
    );
    assert!(game.largest <= 1100, "{}", game.largest);
}

/// Fails if an adaptation that is switched off leaves its quality behind.
#[test]
fn a_peer_that_is_no_longer_adapted_gets_everything() {
    let mut game = Game::new();
    game.play(60, 1_200, false);
    game.server.set_adaptation(PEER, None).expect("connected");
    game.play(10, 0, false);
    assert!(game.errors().1 < 0.01, "{:?}", game.errors());
    assert!(game.server.adaptation(PEER).is_none());
}
