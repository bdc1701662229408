//! The methods of showing that are compared.

use std::collections::BTreeMap;
use std::time::Duration;

use prescient::playout::{
    Layout, Moment, Physics, PhysicsRewind, PlaybackClock, PlaybackConfig, ShowConfig, Track,
    average,
};
use prescient::{Client, EntityHandle, State};

use super::motion::{Ball, Runner};

/// Places on a screen, by the number of the entity.
pub(super) type Places = BTreeMap<u8, [f64; 2]>;

/// An entity that moves: a ball or a runner.
pub(super) trait Moving: State + Copy + Send + 'static {
    fn place(&self) -> [f64; 2];
    fn set_place(&mut self, place: [f64; 2]);
    /// Moves it as a client can that does not know the keys.
    fn guess(&mut self, seconds: f64);
    /// As another type that is shown by another method.
    fn shown_by<M: Shown>(&self) -> M;
}

macro_rules! moving {
    ($($type:ty, $guess:ident;)*) => {$(
        impl Moving for $type {
            fn place(&self) -> [f64; 2] {
                self.position
            }

            fn set_place(&mut self, place: [f64; 2]) {
                self.position = place;
            }

            fn guess(&mut self, seconds: f64) {
                self.$guess(seconds);
            }

            fn shown_by<M: Shown>(&self) -> M {
                M::new(self.position, self.velocity)
            }
        }
    )*};
}

moving! {
    Ball, step;
    Runner, coast;
}

/// A type whose fields are shown by one method.
pub(super) trait Shown: State + Copy {
    fn new(position: [f64; 2], velocity: [f64; 2]) -> Self;
    fn place(&self) -> [f64; 2];
}

macro_rules! shown {
    ($($type:ident, $show:literal, $converge:literal;)*) => {$(
        #[derive(State, Clone, Copy)]
        #[state(tick_hz = 30)]
        pub(super) struct $type {
            #[state(step = 0.001, show = $show, converge = $converge, snap_beyond = 3.0)]
            position: [f64; 2],
            #[state(step = 0.001, velocity_of = "position", per_second)]
            velocity: [f64; 2],
        }

        impl Shown for $type {
            fn new(position: [f64; 2], velocity: [f64; 2]) -> Self {
                Self { position, velocity }
            }

            fn place(&self) -> [f64; 2] {
                self.position
            }
        }
    )*};
}

shown! {
    Drawn, "linear", "snap";
    Reckoned, "acceleration", "snap";
}

/// Shows every entity by a [`Track`] of one type.
pub(super) struct Tracks<M> {
    layout: Layout<M>,
    tracks: BTreeMap<EntityHandle, Track<M>>,
}

impl<M: Shown> Tracks<M> {
    pub(super) fn new() -> Self {
        let layout = Layout::new(&ShowConfig::default()).expect("a sound class");
        let tracks = BTreeMap::new();
        Self { layout, tracks }
    }

    pub(super) fn show(&mut self, client: &Client, moment: &Moment) -> Places {
        let mut places = Places::new();
        for (entity, ball) in client.all::<Ball>() {
            let place = self.place::<Ball>(client, entity, moment);
            places.extend(place.map(|place| (ball.number, place)));
        }
        for (entity, runner) in client.all::<Runner>() {
            let place = self.place::<Runner>(client, entity, moment);
            places.extend(place.map(|place| (runner.number, place)));
        }
        places
    }

    fn place<T: Moving>(
        &mut self,
        client: &Client,
        entity: EntityHandle,
        moment: &Moment,
    ) -> Option<[f64; 2]> {
        let layout = &self.layout;
        let track = self
            .tracks
            .entry(entity)
            .or_insert_with(|| Track::new(layout));
        let newest = track.newest();
        let samples = client.samples::<T>(entity).rev();
        let missing: Vec<_> = samples
            .take_while(|(tick, _)| newest.is_none_or(|newest| tick.0 > newest))
            .take(8)
            .collect();
        for (tick, sample) in missing.into_iter().rev() {
            let pushed = track.push(layout, tick.0, sample.shown_by::<M>());
            pushed.expect("samples ascend");
        }
        let sample = client.get::<T>(entity)?;
        Some(track.shown(layout, sample.shown_by(), moment).place())
    }
}

/// The document's methods: a client that runs physics of its own between updates.
pub(super) struct Local {
    /// Weight of an update when it is averaged with the shown value; 1 takes it verbatim.
    alpha: f64,
    rewind: Option<PhysicsRewind>,
    /// The newest update that was handled.
    newest: Option<u64>,
    balls: Bodies<Ball>,
    runners: Bodies<Runner>,
    now: Duration,
}

#[derive(Default)]
struct Bodies<T>(BTreeMap<EntityHandle, T>);

impl Local {
    pub(super) fn new(alpha: f64, rewind: Option<PhysicsRewind>) -> Self {
        Self {
            alpha,
            rewind,
            newest: None,
            balls: Bodies(BTreeMap::new()),
            runners: Bodies(BTreeMap::new()),
            now: Duration::ZERO,
        }
    }

    /// Runs until now, handles the update if there is one, and shows everything.
    pub(super) fn show(&mut self, client: &Client, now: Duration) -> Places {
        let then = std::mem::replace(&mut self.now, now);
        let mut bodies = All {
            balls: &mut self.balls,
            runners: &mut self.runners,
            alpha: self.alpha,
        };
        bodies.step(then, now);
        if let Some(tick) = client.tick().map(|tick| tick.0)
            && self.newest.is_none_or(|newest| tick > newest)
        {
            self.newest = Some(tick);
            let update = Update {
                balls: client.all::<Ball>().collect(),
                runners: client.all::<Runner>().collect(),
            };
            match &mut self.rewind {
                Some(rewind) => {
                    rewind.handle_update(tick, &update, now, &mut bodies);
                }
                None => bodies.apply(&update),
            }
        }
        let balls = self
            .balls
            .0
            .values()
            .map(|ball| (ball.number, ball.place()));
        let runners = self.runners.0.values();
        let runners = runners.map(|runner| (runner.number, runner.place()));
        balls.chain(runners).collect()
    }
}

struct Update {
    balls: Vec<(EntityHandle, Ball)>,
    runners: Vec<(EntityHandle, Runner)>,
}

struct All<'a> {
    balls: &'a mut Bodies<Ball>,
    runners: &'a mut Bodies<Runner>,
    alpha: f64,
}

impl Physics for All<'_> {
    type Update = Update;

    fn apply(&mut self, update: &Update) {
        self.balls.apply(&update.balls, self.alpha);
        self.runners.apply(&update.runners, self.alpha);
    }

    fn step(&mut self, from: Duration, to: Duration) {
        let seconds = to.saturating_sub(from).as_secs_f64();
        self.balls
            .0
            .values_mut()
            .for_each(|ball| ball.guess(seconds));
        self.runners
            .0
            .values_mut()
            .for_each(|runner| runner.guess(seconds));
    }
}

impl<T: Moving> Bodies<T> {
    fn apply(&mut self, update: &[(EntityHandle, T)], alpha: f64) {
        for &(entity, received) in update {
            let shown = self.0.get(&entity).map_or(received.place(), Moving::place);
            let place = received.place();
            let mut body = received;
            body.set_place([0, 1].map(|axis| average(alpha, SNAP, shown[axis], place[axis])));
            self.0.insert(entity, body);
        }
    }
}

/// Places beyond this are taken over at once, as in the document's example.
const SNAP: f64 = 3.0;

/// Everything at once, as the facade does it: what physics moves is simulated to the present, what
/// other players steer is drawn between samples, and the own runner is predicted.
pub(super) struct Everything {
    is_simulated: bool,
}

impl Everything {
    pub(super) fn new() -> Self {
        Self {
            is_simulated: false,
        }
    }

    pub(super) fn show(&mut self, client: &mut Client) -> Places {
        let balls: Vec<EntityHandle> = client.all::<Ball>().map(|(entity, _)| entity).collect();
        let runners: Vec<EntityHandle> = client.all::<Runner>().map(|(entity, _)| entity).collect();
        if !self.is_simulated && !balls.is_empty() {
            self.is_simulated = true;
            for &ball in &balls {
                let simulated = client.simulate(ball, |ball: &mut Ball, from, to| {
                    ball.step((to - from).as_secs_f64());
                });
                simulated.expect("it is shown");
            }
        }
        if client.begin_frame().is_none() {
            return Places::new();
        }
        let mut places = Places::new();
        for entity in balls {
            places.extend(
                client
                    .shown::<Ball>(entity)
                    .map(|ball| (ball.number, ball.place())),
            );
        }
        for entity in runners {
            let shown = client.shown::<Runner>(entity);
            places.extend(shown.map(|runner| (runner.number, runner.place())));
        }
        places
    }
}

/// The playback clock of the methods that draw between samples and are not the facade's.
pub(super) fn playback(tick: Duration) -> PlaybackClock {
    PlaybackClock::new(PlaybackConfig::default(), tick).expect("sound settings")
}
