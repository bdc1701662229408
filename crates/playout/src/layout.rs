//! What all entities of a type have in common when they are shown.

use std::marker::PhantomData;
use std::time::Duration;

use prescient_schema::{SchemaError, State};

use crate::converge::Pace;
use crate::error::ConfigError;

/// How corrections shrink, and how far a guess may reach.
#[derive(Clone, Debug, PartialEq)]
pub struct ShowConfig {
    pace: Pace,
    max_ahead: Duration,
}

impl Default for ShowConfig {
    fn default() -> Self {
        Self {
            pace: Pace::default(),
            max_ahead: Duration::from_millis(500),
        }
    }
}

impl ShowConfig {
    /// How fast corrections shrink, by default as [`Pace::default`] says: to a third in 0.1 s, blends
    /// in 0.25 s.
    #[must_use]
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// How far beyond the newest sample a value is guessed, half a second by default. There it
    /// stays.
    #[must_use]
    pub fn with_max_ahead(mut self, span: Duration) -> Self {
        self.max_ahead = span;
        self
    }

    /// Refuses settings that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::first(&[
            (
                self.pace.exponential > Duration::ZERO,
                "exponential",
                "above zero",
            ),
            (self.pace.blend > Duration::ZERO, "blend", "above zero"),
        ])
    }
}

/// The columns of a type's first table, and which of them is the velocity of which.
#[derive(Clone, Debug)]
pub struct Layout<T> {
    table: &'static str,
    velocities: Vec<Option<Velocity>>,
    pub(crate) pace: Pace,
    pub(crate) max_ahead: f64,
    state: PhantomData<fn() -> T>,
}

/// The column that has the rate of change of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Velocity {
    pub column: usize,
    /// Units of the other column per tick, for one unit of this.
    pub factor: f64,
}

impl<T: State> Layout<T> {
    /// The layout of a type, which fails if its class does.
    pub fn new(config: &ShowConfig) -> Result<Self, SchemaError> {
        let table = T::TABLES.first().copied().unwrap_or_default();
        let class = T::class(table)?;
        let mut velocities = vec![None; class.fields.len()];
        for (column, field) in class.fields.iter().enumerate() {
            let Some(rate) = field.derivative_of else {
                continue;
            };
            let of = usize::from(rate.of);
            let units = |column: usize| class.fields.get(column)?.kind.unit();
            if let (Some(own), Some(unit), Some(slot)) =
                (units(column), units(of), velocities.get_mut(of))
            {
                let ratio = f64::from(rate.numerator) / f64::from(rate.denominator);
                let factor = ratio * unit.as_f64() / own.as_f64();
                *slot = Some(Velocity { column, factor });
            }
        }
        Ok(Self {
            table,
            velocities,
            pace: config.pace,
            max_ahead: config.max_ahead.as_secs_f64(),
            state: PhantomData,
        })
    }

    /// The type's first table, whose columns these are.
    pub fn table(&self) -> &'static str {
        self.table
    }

    pub(crate) fn width(&self) -> usize {
        self.velocities.len()
    }

    pub(crate) fn velocity_of(&self, column: usize) -> Option<Velocity> {
        self.velocities.get(column).copied().flatten()
    }
}
