//! Edits that make a curve follow a known future, and correct it when that future changes.

use crate::curve::{Curve, Cut, Edit, EditError, Keyframe};
use crate::time::{Span, Time};
use crate::value::Value;

/// Why a future cannot be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A keyframe is not after `from`.
    #[error("{time} is not in the future")]
    NotInTheFuture {
        /// The keyframe's time.
        time: Time,
    },
    /// A keyframe is earlier than the one before it.
    #[error("{time} comes after a later time")]
    Unordered {
        /// The keyframe's time.
        time: Time,
    },
    /// No keyframe at this time leaves the curve before it unchanged. The time is before the first
    /// keyframe, and the curve is continued there; or it is after the last keyframe, and the curve is
    /// absent there, or ends in a velocity and holds, or is continued for a shorter span or over more than
    /// half a turn. Plan from the last keyframe's time, or let the curve end at rest.
    #[error("no keyframe at {time} leaves the curve before it unchanged")]
    CannotHold {
        /// The time from which the future was planned.
        time: Time,
    },
    /// The edits would be refused, for this reason.
    #[error(transparent)]
    Edit(#[from] EditError),
}

/// The edits that replace a curve's keyframes after `from` by these and leave the curve up to `from`
/// unchanged: waypoints known ahead of time, and corrections when they change.
///
/// Keyframes that stay cost no edit; a future that is only delayed costs one [`Edit::MoveWithin`]. Where
/// the curve would otherwise change before `from`, a keyframe is added at `from`, with the interpolation of
/// the segment that it splits. A smooth segment with `from` on it may change between its first keyframe and
/// `from`; segments of other kinds change by no more than rounding.
///
/// # Errors
///
/// If the keyframes are not in order or not after `from`, if no keyframe at `from` leaves the past
/// unchanged, or if the curve would refuse an edit.
pub fn plan<V: Value>(
    curve: &Curve<V>,
    from: Time,
    future: &[Keyframe<V>],
) -> Result<Vec<Edit<V>>, PlanError> {
    let mut last = None;
    for &Keyframe { time, .. } in future {
        if time <= from {
            return Err(PlanError::NotInTheFuture { time });
        }
        if last.is_some_and(|last| time < last) {
            return Err(PlanError::Unordered { time });
        }
        last = Some(time);
    }
    let after = from + Span::from_micros(1);
    let present: Vec<Keyframe<V>> = curve.keyframes_from(after).collect();
    let mut edits: Vec<Edit<V>> = hold(curve, from, &present, future)?.into_iter().collect();
    let replaced = replace(&present, future);
    let delayed = delay(&present, future);
    let shorter = delayed.filter(|delayed| delayed.len() < replaced.len());
    edits.extend(shorter.unwrap_or(replaced));
    let mut tried = curve.clone();
    for edit in &edits {
        tried.apply(edit)?;
    }
    Ok(edits)
}

/// Adds a keyframe at `from` if the curve before it would change otherwise.
fn hold<V: Value>(
    curve: &Curve<V>,
    from: Time,
    present: &[Keyframe<V>],
    future: &[Keyframe<V>],
) -> Result<Option<Edit<V>>, PlanError> {
    let decisive = curve.decisive_after(from);
    let (decided, wanted) = (present.iter().take(decisive), future.iter().take(decisive));
    if decided.eq(wanted) {
        return Ok(None);
    }
    match curve.cut(from) {
        Cut::Nothing => Ok(None),
        Cut::Keyframe(keyframe) => Ok(Some(Edit::Add(keyframe))),
        Cut::Impossible => Err(PlanError::CannotHold { time: from }),
    }
}

/// Removes and adds the keyframes that differ, time by time.
fn replace<V: Value>(present: &[Keyframe<V>], future: &[Keyframe<V>]) -> Vec<Edit<V>> {
    let same_time = |one: &Keyframe<V>, next: &Keyframe<V>| one.time == next.time;
    let wanted: Vec<&[Keyframe<V>]> = future.chunk_by(same_time).collect();
    let there: Vec<&[Keyframe<V>]> = present.chunk_by(same_time).collect();
    let stays = |one: &[Keyframe<V>], others: &[&[Keyframe<V>]]| {
        let found = others.binary_search_by_key(&one[0].time, |other| other[0].time);
        found.is_ok_and(|index| others[index] == one)
    };
    let removed = there.iter().filter(|one| !stays(one, &wanted));
    let removed = removed.map(|one| Edit::Remove { time: one[0].time });
    let added = wanted.iter().filter(|one| !stays(one, &there));
    let added = added.flat_map(|one| one.iter().map(|&keyframe| Edit::Add(keyframe)));
    removed.chain(added).collect()
}

/// Moves all present keyframes by one span and adds new ones before them; `None` if the result would not be
/// the future.
fn delay<V: Value>(present: &[Keyframe<V>], future: &[Keyframe<V>]) -> Option<Vec<Edit<V>>> {
    let (first, last) = (present.first()?, present.last()?);
    let earlier = future.len().checked_sub(present.len())?;
    let (added, moved) = future.split_at(earlier);
    let by = moved[0].time.since(first.time);
    let alike = |(one, other): (&Keyframe<V>, &Keyframe<V>)| {
        let time = one.time + by;
        Keyframe { time, ..*one } == *other
    };
    let alike = present.iter().zip(moved).all(alike);
    (alike && by != Span::ZERO).then(|| {
        let moves = Edit::MoveWithin {
            from: first.time,
            to: last.time,
            by,
        };
        let adds = added.iter().map(|&keyframe| Edit::Add(keyframe));
        std::iter::once(moves).chain(adds).collect()
    })
}
