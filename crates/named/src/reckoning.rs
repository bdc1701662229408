//! Dead reckoning: when a new version is worth publishing, and when the next one is worth requesting.
//!
//! Consumers extrapolate what moves. A producer does the same with the version that a consumer at a floor holds,
//! and publishes only what the extrapolation gets wrong ([`DeadReckoning`]). A consumer requests distant entities
//! less often ([`Radii`]). Both are policies that a program can replace.

use std::time::Duration;

/// Position and velocity of an entity, as far as policies need them; two-dimensional games leave the third zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Motion {
    /// Where it is.
    pub position: [f64; 3],
    /// How far it moves in a second.
    pub velocity: [f64; 3],
}

impl Motion {
    /// The motion some time later, if nothing changes.
    pub fn after(&self, elapsed: Duration) -> Self {
        let seconds = elapsed.as_secs_f64();
        let mut later = *self;
        for (position, velocity) in later.position.iter_mut().zip(self.velocity) {
            *position += velocity * seconds;
        }
        later
    }

    /// The distance of two positions.
    pub fn distance(&self, other: &Self) -> f64 {
        let pairs = self.position.iter().zip(other.position);
        pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }
}

/// The result of an [`UpdatePolicy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum UpdateCheck {
    /// Nothing is published: consumers extrapolate well enough.
    Skip,
    /// The Interests of consumers would expire: [`Request::answer_by`](crate::Request::answer_by) is over.
    Expiring,
    /// The extrapolated position is too far off.
    Threshold,
    /// The velocity has changed.
    Velocity,
    /// It is not known what the consumer has seen.
    Unknown,
    /// For another reason of the policy.
    Other,
}

/// Decides whether a new version is worth publishing. Implement it for a game of your own.
pub trait UpdatePolicy {
    /// `seen` is the version that the waiting consumers hold, extrapolated to now; `None` if it is not known.
    fn check(&self, seen: Option<&Motion>, now: &Motion) -> UpdateCheck;
}

/// Publishes at every check.
#[derive(Clone, Copy, Debug, Default)]
pub struct EveryUpdate;

impl UpdatePolicy for EveryUpdate {
    fn check(&self, _: Option<&Motion>, _: &Motion) -> UpdateCheck {
        UpdateCheck::Other
    }
}

/// Publishes if the velocity has changed, or if the extrapolated position is off by more than a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeadReckoning {
    /// The distance that is tolerated.
    pub threshold: f64,
}

impl Default for DeadReckoning {
    /// Half the width of a player.
    fn default() -> Self {
        Self { threshold: 0.5 }
    }
}

impl UpdatePolicy for DeadReckoning {
    fn check(&self, seen: Option<&Motion>, now: &Motion) -> UpdateCheck {
        match seen {
            None => UpdateCheck::Unknown,
            Some(seen) if seen.velocity != now.velocity => UpdateCheck::Velocity,
            Some(seen) if seen.distance(now) > self.threshold => UpdateCheck::Threshold,
            Some(_) => UpdateCheck::Skip,
        }
    }
}

/// Decides how long a consumer waits before it requests the next version. Implement it for a game of your own.
pub trait InterestPolicy {
    /// `distance` is that from the own player to the entity.
    fn pause(&self, distance: f64) -> Duration;
}

/// Requests the next version at once, at any distance.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullInterest;

impl InterestPolicy for FullInterest {
    fn pause(&self, _: f64) -> Duration {
        Duration::ZERO
    }
}

/// Requests entities within a radius at once, those beyond another one after the longest pause, and those between
/// after a part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radii {
    /// Entities within this distance are requested at once. It should be a little more than what a player sees.
    pub full: f64,
    /// Entities beyond this distance are requested after the longest pause.
    pub min: f64,
    /// The longest pause. Within it, no entity may get from beyond `min` to where a player sees it.
    pub max_sleep: Duration,
}

impl Default for Radii {
    fn default() -> Self {
        Self {
            full: 10.0,
            min: 20.0,
            max_sleep: Duration::from_secs(2),
        }
    }
}

/// How long to wait after a version so that consumers with similar pauses request the next one together, and
/// forwarders can aggregate their Interests and share the answer.
///
/// `published` is the producer's time of the version, which all consumers know. The pause is rounded down to the
/// longest one or a half, a quarter and so on of it, and ends at a multiple of that in the producer's time.
pub fn pause_together(pause: Duration, max_sleep: Duration, published: Duration) -> Duration {
    let halvings = (0..6).map(|halvings| max_sleep / (1 << halvings));
    let step = halvings.into_iter().find(|step| *step <= pause);
    let Some(step) = step.filter(|step| !step.is_zero()) else {
        return Duration::ZERO;
    };
    let (step, at) = (step.as_micros(), published.as_micros());
    let left = step - at % step;
    // If the multiple is near, it is the one that this version was requested at.
    let wait = left + if left < step / 2 { step } else { 0 };
    Duration::from_micros(wait as u64)
}

impl InterestPolicy for Radii {
    fn pause(&self, distance: f64) -> Duration {
        let factor = match distance {
            _ if distance < self.full => 0.0,
            _ if distance <= self.min && self.min > self.full => {
                (distance - self.full) / (self.min - self.full)
            }
            _ => 1.0,
        };
        // Not a number counts as far away.
        self.max_sleep.mul_f64(factor.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if `after` does not move the position, or the comparison of velocities is left out.
    #[test]
    fn an_update_is_skipped_as_long_as_extrapolation_is_right() {
        let policy = DeadReckoning::default();
        let seen = Motion {
            position: [1.0, 2.0, 0.0],
            velocity: [5.0, 0.0, 0.0],
        };
        let now = seen.after(Duration::from_millis(200));
        assert_eq!(now.position, [2.0, 2.0, 0.0]);
        let extrapolated = seen.after(Duration::from_millis(200));
        assert_eq!(policy.check(Some(&extrapolated), &now), UpdateCheck::Skip);
        assert_eq!(policy.check(None, &now), UpdateCheck::Unknown);
        let turned = Motion {
            velocity: [0.0, 5.0, 0.0],
            ..now
        };
        assert_eq!(
            policy.check(Some(&extrapolated), &turned),
            UpdateCheck::Velocity
        );
        let pushed = Motion {
            position: [2.6, 2.0, 0.0],
            ..now
        };
        assert_eq!(
            policy.check(Some(&extrapolated), &pushed),
            UpdateCheck::Threshold
        );
    }

    /// Fails if the factor between the radii is not proportional, or a distance that is not a number panics.
    #[test]
    fn distant_entities_are_requested_less_often() {
        let radii = Radii::default();
        let pause = |distance| radii.pause(distance).as_millis();
        assert_eq!(
            [9.9, 10.0, 15.0, 20.0, 300.0].map(pause),
            [0, 0, 1000, 2000, 2000]
        );
        assert_eq!(pause(f64::NAN), 2000);
        let step = Radii { min: 10.0, ..radii };
        assert_eq!(step.pause(10.5).as_millis(), 2000);
    }
    /// Fails if pauses end relative to their start instead of at multiples, or are longer than half again.
    #[test]
    fn consumers_of_a_producer_wake_together() {
        let second = Duration::from_secs(1);
        let ms = Duration::from_millis;
        let wake = |pause, at| at + pause_together(pause, second * 2, at);
        for at in [ms(0), ms(100), ms(990)] {
            assert_eq!(wake(second * 2, at), second * 2);
            assert_eq!(wake(ms(1300), at).as_millis() % 1000, 0);
        }
        assert_eq!(wake(second * 2, ms(1900)), second * 4, "it has just woken");
        assert_eq!(pause_together(ms(1300), second * 2, ms(900)), ms(1100));
        assert_eq!(pause_together(ms(10), second * 2, ms(900)), Duration::ZERO);
        assert_eq!(
            pause_together(second, Duration::ZERO, ms(900)),
            Duration::ZERO
        );
    }
}
