//! A server adapts to what each client's connection carries: by options, by hand, and whatever the
//! caps say.

use std::time::Duration;

use crate::common::{bind, join, token};
use prescient::{
    Adaptation, BytesPerSecond, Client, CongestionControl, ExchangeConfig, LinkConfig, PeerId,
    Quality, Ref, Schema, Server, ServerEvent, ServerOptions, State,
};

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(priority = 3)]
struct Bird {
    number: u8,
    #[state(step = 0.01, position, levels(0, 2, 4, 6))]
    position: [f32; 2],
}

const BIRDS: usize = 40;

struct Game {
    server: Server,
    client: Client,
    peer: PeerId,
    birds: Vec<(Ref<Bird>, Bird)>,
    /// Values that no model predicts.
    seed: u64,
    changes: Vec<Quality>,
}

impl Game {
    fn new(options: ServerOptions) -> Self {
        let schema = Schema::of::<Bird>().expect("a sound schema");
        let mut server = bind(schema.clone(), options);
        let mut step = server.step().expect("in order");
        let birds = (0..BIRDS).map(|number| {
            let bird = Bird {
                number: number as u8,
                position: [0.0; 2],
            };
            (step.spawn(&bird).expect("sound"), bird)
        });
        let birds = birds.collect();
        step.finish();
        let token = token(&server);
        let (client, events) = join(&mut server, move || Client::join(token, schema));
        let joined = events.iter().find_map(|event| match event {
            ServerEvent::Joined { peer, .. } => Some(*peer),
            _ => None,
        });
        Self {
            server,
            client: client.expect("it may join"),
            peer: joined.expect("it joined"),
            birds,
            seed: 1,
            changes: Vec::new(),
        }
    }

    fn tick(&mut self) {
        let mut step = self.server.step().expect("in order");
        for (entity, bird) in &mut self.birds {
            for along in &mut bird.position {
                self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1);
                *along = (self.seed >> 40) as f32 / 16_384.0;
            }
            step.set(*entity, bird).expect("it lives");
        }
        step.finish();
        self.server.send();
        self.wait();
    }

    fn wait(&mut self) {
        self.server.wait(Duration::from_millis(5));
        while let Some(event) = self.server.poll() {
            if let ServerEvent::QualityChanged { quality, .. } = event {
                self.changes.push(quality);
            }
        }
        self.client.wait(Duration::ZERO);
        while self.client.poll().is_some() {}
    }

    /// Ticks until a condition holds.
    fn until(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..4000 {
            if done(self) {
                return;
            }
            self.tick();
        }
        panic!("the condition never holds");
    }

    /// Whether the client shows exactly what the server has, once nothing moves.
    fn settles(&mut self) -> bool {
        for _ in 0..2000 {
            let shown: Vec<Bird> = (self.client.entities().collect::<Vec<_>>().into_iter())
                .filter_map(|entity| self.client.get(entity))
                .collect();
            // Positions have steps of a hundredth.
            let is_right = |bird: &Bird| {
                let truth = self.birds[usize::from(bird.number)].1.position;
                let pairs = bird.position.iter().zip(truth);
                pairs
                    .into_iter()
                    .all(|(shown, truth)| (shown - truth).abs() < 0.01)
            };
            if shown.len() == BIRDS && shown.iter().all(is_right) {
                return true;
            }
            self.server.step().expect("in order").finish();
            self.server.send();
            self.wait();
        }
        false
    }
}

fn adaptive() -> ServerOptions {
    ServerOptions::default().with_adaptation(Adaptation::default())
}

/// Fails if a cap is ignored, if the change of quality is not reported, or if quality does not
/// return once the cap is gone.
#[test]
fn a_capped_client_is_told_of_and_gets_everything_back() {
    let mut game = Game::new(adaptive());
    game.until(|game| {
        game.server
            .adaptation(game.peer)
            .is_some_and(|report| report.demand_bytes > 100)
    });
    assert_eq!(game.changes, []);
    let peer = game.peer;
    let cap = Some(BytesPerSecond(4_000));
    game.server.set_max_rate(peer, cap).expect("connected");
    game.until(|game| game.changes.iter().any(|quality| *quality != Quality::FULL));
    let report = game.server.adaptation(peer).expect("it is adapted");
    assert_eq!(report.estimate.bytes_per_second, 4_000);
    assert!(report.plan_step > 0 && report.entities[3] as usize == BIRDS);
    game.server.set_max_rate(peer, None).expect("connected");
    game.until(|game| game.changes.last() == Some(&Quality::FULL));
    assert!(game.settles());
}

/// Fails if a rate of nothing divides by zero, if one of everything overflows, or if a client that
/// was capped gets nothing ever after.
#[test]
fn no_rate_or_cap_stalls_a_client() {
    let options = adaptive().with_max_total_rate(BytesPerSecond(u64::MAX));
    let mut game = Game::new(options);
    for cap in [0, 1, u64::MAX, 0, 300] {
        let cap = Some(BytesPerSecond(cap));
        game.server.set_max_rate(game.peer, cap).expect("connected");
        for _ in 0..60 {
            game.tick();
        }
    }
    game.server
        .set_max_rate(game.peer, None)
        .expect("connected");
    assert!(game.settles());
    let statistics = game.server.statistics(game.peer).expect("connected");
    assert!(statistics.backlog <= 1 << 20, "{statistics:?}");
}

/// Fails if a client that is no longer adapted keeps its caps or its quality.
#[test]
fn adaptation_can_be_switched_off_for_one_client() {
    let mut game = Game::new(adaptive().with_max_rate(BytesPerSecond(2_000)));
    game.until(|game| !game.changes.is_empty());
    let peer = game.peer;
    game.server.set_adaptation(peer, None).expect("connected");
    game.tick();
    assert!(game.server.adaptation(peer).is_none());
    assert!(game.settles());
}

/// Fails if the options' policy does not reach the connections.
#[test]
fn a_server_chooses_its_congestion_control() {
    let rate = BytesPerSecond(123_456);
    let exchange = ExchangeConfig::default()
        .with_rate(rate)
        .with_congestion(CongestionControl::Fixed);
    let link = LinkConfig::default().with_exchange(exchange);
    let mut game = Game::new(adaptive().with_link(link));
    game.until(|game| {
        let report = game.server.adaptation(game.peer);
        report.is_some_and(|report| report.estimate.bytes_per_second == rate.0)
    });
}
