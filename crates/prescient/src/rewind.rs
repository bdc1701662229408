//! Lag compensation: [`Server::rewind`].

use prescient_playout::{RewindError, RewindLimits, SeenTick, between};
use prescient_replication::{PeerId, Position, Tick, World};
use prescient_schema::{EntityRef, Ref, State};

use crate::client::Client;
use crate::server::Server;

/// The world as one client saw it; reads nothing until it is asked, and only what is asked for.
#[derive(Clone, Copy)]
pub struct Rewind<'a> {
    world: &'a World,
    limits: RewindLimits,
    present: f64,
    tick: f64,
    /// The two kept ticks around that one, and how far it is between them; `None` without a history.
    around: Option<(Tick, Tick, f64)>,
}

impl Server {
    /// The world that a peer is in, as the peer saw it when it sent what arrived last.
    ///
    /// Pass on what the client says it saw ([`Rewind::seen`]); without that, it is an estimate: a
    /// tick before the newest one that the peer acknowledged. Nothing is rewound further than
    /// [`ServerOptions::with_max_rewind`](crate::ServerOptions::with_max_rewind).
    pub fn rewind(&self, peer: PeerId) -> Rewind<'_> {
        let server = self.world_server_of(peer);
        let world = server.world();
        let present = world.tick().unwrap_or_default().0 as f64;
        let applied = server.statistics(peer).and_then(|peer| peer.applied);
        let estimate = applied.map_or(present, |tick| tick.0 as f64 - 1.0);
        let interval = self.tick_interval().as_secs_f64();
        let limits = RewindLimits {
            max_ticks: self.max_rewind().as_secs_f64() / interval,
        };
        let tick = limits.bound(estimate, present).unwrap_or(present);
        Rewind::at(world, limits, present, tick)
    }
}

impl<'a> Rewind<'a> {
    /// The past of a world at the tick that a client claims to have seen, at most `max_ticks` ago;
    /// for programs with a [`World`] of their own.
    pub fn of(world: &'a World, max_ticks: f64, seen: SeenTick) -> Result<Self, RewindError> {
        let present = world.tick().unwrap_or_default().0 as f64;
        let limits = RewindLimits { max_ticks };
        Self::at(world, limits, present, present).seen(seen)
    }

    fn at(world: &'a World, limits: RewindLimits, present: f64, tick: f64) -> Self {
        let around = world.oldest_tick().map(|oldest| {
            // It lies in the history, so it is neither negative nor more than a tick can be.
            let tick = tick.max(oldest.0 as f64);
            let earlier = tick as u64;
            (Tick(earlier), Tick(earlier + 1), tick - earlier as f64)
        });
        Self {
            world,
            limits,
            present,
            tick,
            around,
        }
    }

    /// Rewinds to the tick that the client says it saw ([`Client::seen_tick`]). It is believed as far
    /// as the server's limit: never the future, and not too far back.
    pub fn seen(self, seen: SeenTick) -> Result<Self, RewindError> {
        let tick = self.limits.bound(seen.tick(), self.present)?;
        Ok(Self::at(self.world, self.limits, self.present, tick))
    }

    /// The tick that it is rewound to, with its fraction.
    pub fn tick(&self) -> f64 {
        self.tick
    }

    /// An entity as the client saw it: between two ticks, like there. `None` if it has another
    /// type, is gone, or had not been spawned then. If the history is shorter than what was asked
    /// for, its oldest tick counts.
    pub fn get<T: State>(&self, entity: Ref<T>) -> Option<T> {
        let (earlier, later, share) = self.around?;
        let at = self.world.value_at(entity, earlier)?;
        match self.world.value_at(entity, later) {
            Some(next) if share > 0.0 => Some(between(T::TABLES.first()?, at, next, share)),
            _ => Some(at),
        }
    }

    /// The position of an entity as the client saw it, read from the columns of its position only.
    /// `None` also if its type has none.
    pub fn position(&self, entity: EntityRef) -> Option<Position> {
        let (earlier, later, share) = self.around?;
        let class = usize::from(self.world.class(entity)?);
        let class = self.world.schema().classes.get(class)?;
        let at = self.world.row_at(entity, 0, earlier)?;
        let next = self.world.row_at(entity, 0, later).unwrap_or(at);
        let mut position = Position::default();
        if class.position.is_empty() {
            return None;
        }
        for (axis, &column) in position.0.iter_mut().zip(&class.position) {
            let column = usize::from(column);
            let unit = class.fields.get(column)?.kind.unit()?;
            let (at, next) = (unit.value(*at.get(column)?), unit.value(*next.get(column)?));
            *axis = prescient_playout::linear(at, next, share);
        }
        Some(position)
    }
}

impl Client {
    /// The tick that this client shows, to be sent with a shot: in the payload of an event or the
    /// fields of an input ([`SeenTick::to_bytes`]). `None` before the first
    /// [`begin_frame`](Self::begin_frame).
    pub fn seen_tick(&self) -> Option<SeenTick> {
        self.play_out().playback().map(SeenTick::new)
    }
}
