//! Futures that are known, and what to do when they change.

use crate::curve::{Curve, Edit, EditError, Keyframe};
use crate::time::{Span, Time};
use crate::value::Value;

/// Why a future cannot be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A keyframe of the future is not after the time from which it is planned.
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
    /// The curve ends in a velocity but does not go on with it, which no keyframe can say: let it continue
    /// ([`Extrapolation::Continue`](crate::Extrapolation::Continue)), or end it with a velocity of zero.
    #[error("the curve ends in a velocity that it does not go on with")]
    EndsInMotion,
    /// The edits would be refused, for this reason.
    #[error(transparent)]
    Edit(#[from] EditError),
}

/// The edits after which a curve goes on with these keyframes from a time on, and is up to that time what it
/// was: waypoints that are known ahead of time, and corrections when they change.
///
/// Keyframes that stay cost nothing; a future that is only delayed costs one [`Edit::MoveWithin`]. Where
/// the curve would otherwise change before `from`, a keyframe is added there that holds it, with the
/// interpolation that it had; such a cut changes a smooth segment between its last keyframe and `from`,
/// and the others by no more than rounding.
///
/// # Errors
///
/// If the keyframes are not in order or not after `from`, or the curve would refuse an edit.
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

/// The keyframe at `from` that keeps what leads up to it, if that would change.
fn hold<V: Value>(
    curve: &Curve<V>,
    from: Time,
    present: &[Keyframe<V>],
    future: &[Keyframe<V>],
) -> Result<Option<Edit<V>>, PlanError> {
    let unchanged = present.first() == future.first();
    if unchanged || curve.is_empty() || curve.has_keyframe_at(from) {
        return Ok(None);
    }
    let keyframe = curve.cut(from).ok_or(PlanError::EndsInMotion)?;
    Ok(Some(Edit::Add(keyframe)))
}

/// Removes and adds, time by time, what differs.
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

/// Moves all that is there, and adds what comes before it, if that is all that changes.
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
