//! The curves of many properties, with common limits.

use std::collections::BTreeMap;

use crate::curve::{Curve, CurveConfig, Edit, EditError, Keyframe};
use crate::plan::{PlanError, plan};
use crate::time::{Span, Time};
use crate::value::Value;

/// A property of an entity, by the game's numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PropertyId(pub u32);

/// A change of one property.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Operation<V> {
    /// The property.
    pub property: PropertyId,
    /// The change of its curve.
    pub edit: Edit<V>,
}

/// The curves of all properties with values of one type.
///
/// Both ends apply the same [`Operation`]s in the same order and look up the same values.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline<V: Value> {
    config: TimelineConfig<V>,
    curves: BTreeMap<PropertyId, Curve<V>>,
    keyframes: usize,
    now: Time,
}

/// The limits of a timeline, and the configuration of its curves.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineConfig<V> {
    curve: CurveConfig<V>,
    properties: BTreeMap<PropertyId, CurveConfig<V>>,
    max_properties: usize,
    max_keyframes: usize,
    max_ahead: Option<Span>,
}

impl<V> Default for TimelineConfig<V> {
    /// At most 65,536 properties and 4,194,304 keyframes in total, any time ahead.
    fn default() -> Self {
        Self {
            curve: CurveConfig::default(),
            properties: BTreeMap::new(),
            max_properties: 1 << 16,
            max_keyframes: 1 << 22,
            max_ahead: None,
        }
    }
}

impl<V: Value> TimelineConfig<V> {
    /// The configuration of properties without one of their own.
    pub fn curves(mut self, curve: CurveConfig<V>) -> Self {
        self.curve = curve;
        self
    }

    /// The configuration of one property, such as an interpolation of its own.
    pub fn property(mut self, property: PropertyId, curve: CurveConfig<V>) -> Self {
        self.properties.insert(property, curve);
        self
    }

    fn curve_of(&self, property: PropertyId) -> &CurveConfig<V> {
        self.properties.get(&property).unwrap_or(&self.curve)
    }

    /// The most properties; operations on further ones are refused.
    pub fn max_properties(mut self, max: usize) -> Self {
        self.max_properties = max;
        self
    }

    /// The most keyframes in total; further ones are refused.
    pub fn max_keyframes(mut self, max: usize) -> Self {
        self.max_keyframes = max;
        self
    }

    /// The greatest distance of a keyframe from [`Timeline::set_now`]; later ones are refused.
    pub fn max_ahead(mut self, max: Span) -> Self {
        self.max_ahead = Some(max);
        self
    }
}

impl<V: Value> Default for Timeline<V> {
    fn default() -> Self {
        Self::new(TimelineConfig::default())
    }
}

impl<V: Value> Timeline<V> {
    /// A timeline without properties, at time zero.
    pub fn new(config: TimelineConfig<V>) -> Self {
        Self {
            config,
            curves: BTreeMap::new(),
            keyframes: 0,
            now: Time::ZERO,
        }
    }

    /// Sets the present time, which only matters for [`TimelineConfig::max_ahead`].
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Sets the configuration of a property, and removes its keyframes.
    ///
    /// # Errors
    ///
    /// If it exceeds the limit of properties.
    pub fn configure(
        &mut self,
        property: PropertyId,
        config: CurveConfig<V>,
    ) -> Result<(), EditError> {
        self.check_room_for(property)?;
        let replaced = self.curves.insert(property, Curve::new(config));
        self.keyframes -= replaced.map_or(0, |curve| curve.len());
        Ok(())
    }

    /// Applies a change. The first change of a property adds it.
    ///
    /// # Errors
    ///
    /// If the change is refused; then nothing has changed.
    pub fn apply(&mut self, operation: &Operation<V>) -> Result<(), EditError> {
        let Operation { property, edit } = *operation;
        self.check_room_for(property)?;
        self.check_time(property, &edit)?;
        if matches!(edit, Edit::Add(_)) && self.keyframes >= self.config.max_keyframes {
            let max = self.config.max_keyframes;
            return Err(EditError::Full { max });
        }
        let Some(curve) = self.curves.get_mut(&property) else {
            let mut curve = Curve::new(self.config.curve_of(property).clone());
            curve.apply(&edit)?;
            self.keyframes += curve.len();
            self.curves.insert(property, curve);
            return Ok(());
        };
        let before = curve.len();
        curve.apply(&edit)?;
        self.keyframes = self.keyframes - before + curve.len();
        Ok(())
    }

    /// The operations with which a property follows these keyframes after a time: [`plan`](crate::plan).
    /// They are not applied.
    ///
    /// # Errors
    ///
    /// If the future cannot be planned.
    pub fn plan(
        &self,
        property: PropertyId,
        from: Time,
        future: &[Keyframe<V>],
    ) -> Result<Vec<Operation<V>>, PlanError> {
        let edits = match self.curves.get(&property) {
            Some(curve) => plan(curve, from, future)?,
            None => plan(
                &Curve::new(self.config.curve_of(property).clone()),
                from,
                future,
            )?,
        };
        let edits = edits.into_iter();
        Ok(edits.map(|edit| Operation { property, edit }).collect())
    }

    /// The value of a property at a time; `None` if the property is unknown or has no value then.
    pub fn at(&self, property: PropertyId, time: Time) -> Option<V> {
        self.curves.get(&property)?.at(time)
    }

    /// A property's curve.
    pub fn curve(&self, property: PropertyId) -> Option<&Curve<V>> {
        self.curves.get(&property)
    }

    /// All curves, by ascending property.
    pub fn curves(&self) -> impl Iterator<Item = (PropertyId, &Curve<V>)> {
        self.curves_from(PropertyId(0))
    }

    /// The curves from a property on, by ascending property.
    pub fn curves_from(&self, first: PropertyId) -> impl Iterator<Item = (PropertyId, &Curve<V>)> {
        let rest = self.curves.range(first..);
        rest.map(|(&property, curve)| (property, curve))
    }

    /// The number of keyframes in total.
    pub fn keyframe_count(&self) -> usize {
        self.keyframes
    }

    /// Removes a property and its configuration. False if there is none.
    pub fn forget(&mut self, property: PropertyId) -> bool {
        let gone = self.curves.remove(&property);
        self.keyframes -= gone.as_ref().map_or(0, Curve::len);
        gone.is_some()
    }

    /// Drops the keyframes of all curves that look-ups at `time` and later do not need
    /// ([`Curve::drop_before`]), and returns their number.
    pub fn drop_before(&mut self, time: Time) -> usize {
        let dropped = self
            .curves
            .values_mut()
            .map(|curve| curve.drop_before(time));
        let dropped = dropped.sum();
        self.keyframes -= dropped;
        dropped
    }

    fn check_room_for(&self, property: PropertyId) -> Result<(), EditError> {
        let max = self.config.max_properties;
        if self.curves.len() >= max && !self.curves.contains_key(&property) {
            return Err(EditError::TooManyProperties { max });
        }
        Ok(())
    }

    fn check_time(&self, property: PropertyId, edit: &Edit<V>) -> Result<(), EditError> {
        let Some(ahead) = self.config.max_ahead else {
            return Ok(());
        };
        let last_within = |until: Time| {
            let curve = self.curves.get(&property)?;
            let last = curve.last_time()?;
            Some(last.min(until))
        };
        let time = match *edit {
            Edit::Add(keyframe) => Some(keyframe.time),
            Edit::Move { time, by } => Some(time + by),
            Edit::MoveWithin { to, by, .. } => last_within(to).map(|time| time + by),
            Edit::Remove { .. } | Edit::Clear => None,
        };
        let latest = self.now + ahead;
        match time {
            Some(time) if time > latest => Err(EditError::TooFarAhead { time, latest }),
            _ => Ok(()),
        }
    }
}
