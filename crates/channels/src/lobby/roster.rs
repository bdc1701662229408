//! The roster as a client has it, and the updates that change it.

use std::collections::BTreeMap;
use std::time::Duration;

use thiserror::Error;

use super::message::ClientInfo;
use crate::bytes::{Reader, write_number};

/// A player's id in the roster. It may be reused once all clients were sent that its player left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlayerId(pub u16);

/// A round trip time in steps of 4 milliseconds, up to 1016.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Latency(u8);

impl Latency {
    /// The nearest step, or the last one.
    pub fn of(round_trip: Duration) -> Self {
        let steps = (round_trip.as_micros() + STEP.as_micros() / 2) / STEP.as_micros();
        Self(u8::try_from(steps).unwrap_or(u8::MAX).min(LAST_STEP))
    }

    /// The round trip time.
    pub fn as_duration(self) -> Duration {
        STEP * self.0.into()
    }

    fn to_byte(latency: Option<Self>) -> u8 {
        latency.map_or(UNKNOWN, |Self(steps)| steps)
    }

    fn from_byte(byte: u8) -> Option<Self> {
        (byte != UNKNOWN).then_some(Self(byte))
    }
}

/// A player in the roster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Player {
    /// The info that its client sent.
    pub info: ClientInfo,
    /// Its round trip time, if that is known.
    pub latency: Option<Latency>,
}

/// A change of the roster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RosterUpdate {
    /// Players that left.
    pub(super) left: Vec<PlayerId>,
    /// Players with new info.
    pub(super) changed: Vec<(PlayerId, ClientInfo)>,
    /// New players.
    pub(super) joined: Vec<(PlayerId, ClientInfo)>,
    /// The latencies of all players after this update, in the order of their ids; empty if none
    /// changed.
    pub(super) latencies: Vec<Option<Latency>>,
}

impl RosterUpdate {
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        write_number(bytes, self.left.len() as u64);
        for player in &self.left {
            bytes.extend_from_slice(&player.0.to_le_bytes());
        }
        for list in [&self.changed, &self.joined] {
            write_number(bytes, list.len() as u64);
            for (player, info) in list {
                bytes.extend_from_slice(&player.0.to_le_bytes());
                info.write(bytes);
            }
        }
        write_number(bytes, self.latencies.len() as u64);
        bytes.extend(self.latencies.iter().copied().map(Latency::to_byte));
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let left = read_list(reader, read_number, |&player| player)?;
        let entry =
            |reader: &mut Reader<'_>| Some((read_number(reader)?, ClientInfo::read(reader)?));
        let changed = read_list(reader, entry, |(player, _)| *player)?;
        let joined = read_list(reader, entry, |(player, _)| *player)?;
        let count = usize::try_from(reader.number()?).ok()?;
        let latencies = reader.slice(count).filter(|_| count <= MAX_PLAYERS)?;
        Some(Self {
            left,
            changed,
            joined,
            latencies: latencies.iter().copied().map(Latency::from_byte).collect(),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn read_number(reader: &mut Reader<'_>) -> Option<PlayerId> {
    reader.u16().map(PlayerId)
}

/// A list in ascending order, so that no player occurs twice. It grows while it is read, so a
/// forged count reserves no memory.
fn read_list<T>(
    reader: &mut Reader<'_>,
    read: impl Fn(&mut Reader<'_>) -> Option<T>,
    number: impl Fn(&T) -> PlayerId,
) -> Option<Vec<T>> {
    let count = reader
        .number()
        .filter(|&count| count <= MAX_PLAYERS as u64)?;
    let mut list: Vec<T> = Vec::new();
    for _ in 0..count {
        let item = read(reader)?;
        if list
            .last()
            .is_some_and(|last| number(last) >= number(&item))
        {
            return None;
        }
        list.push(item);
    }
    Some(list)
}

/// Why an update does not fit the roster. Nothing of it was applied; since the rosters of server
/// and client differ, the connection is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RosterError {
    /// It names a player that is not in the roster.
    #[error("there is no player {}", .0.0)]
    Unknown(PlayerId),
    /// It adds a player that is in the roster already.
    #[error("player {} is there already", .0.0)]
    Present(PlayerId),
    /// It would exceed [`MAX_PLAYERS`].
    #[error("more than {MAX_PLAYERS} players")]
    Full,
    /// The number of latencies is not the number of players.
    #[error("{latencies} latencies for {players} players")]
    Latencies {
        /// The number of latencies.
        latencies: usize,
        /// The number of players after the update.
        players: usize,
    },
}

/// The players in the game, as the server sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    players: BTreeMap<PlayerId, Player>,
}

impl Roster {
    /// An empty roster.
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies an update. All of them must be applied, in order.
    pub fn apply(&mut self, update: &RosterUpdate) -> Result<(), RosterError> {
        self.check(update)?;
        for player in &update.left {
            self.players.remove(player);
        }
        for (player, info) in update.changed.iter().chain(&update.joined) {
            self.players.entry(*player).or_default().info = info.clone();
        }
        for (player, &latency) in self.players.values_mut().zip(&update.latencies) {
            player.latency = latency;
        }
        Ok(())
    }

    /// All players, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (PlayerId, &Player)> {
        self.players
            .iter()
            .map(|(&number, player)| (number, player))
    }

    /// A player, if it is in the roster.
    pub fn get(&self, player: PlayerId) -> Option<&Player> {
        self.players.get(&player)
    }

    /// The number of players.
    pub fn len(&self) -> usize {
        self.players.len()
    }

    /// Whether there are no players.
    pub fn is_empty(&self) -> bool {
        self.players.is_empty()
    }

    fn check(&self, update: &RosterUpdate) -> Result<(), RosterError> {
        let is_here = |player: &PlayerId| self.players.contains_key(player);
        let leaves = |player: &PlayerId| update.left.binary_search(player).is_ok();
        let changed = update.changed.iter().map(|(player, _)| player);
        let changed_gone = changed
            .copied()
            .find(|player| !is_here(player) || leaves(player));
        let left_gone = update.left.iter().copied().find(|player| !is_here(player));
        if let Some(player) = left_gone.or(changed_gone) {
            return Err(RosterError::Unknown(player));
        }
        let mut joined = update.joined.iter().map(|(player, _)| *player);
        if let Some(player) = joined.find(|player| is_here(player) && !leaves(player)) {
            return Err(RosterError::Present(player));
        }
        let players = self.players.len() - update.left.len() + update.joined.len();
        if players > MAX_PLAYERS {
            return Err(RosterError::Full);
        }
        let latencies = update.latencies.len();
        match latencies == 0 || latencies == players {
            true => Ok(()),
            false => Err(RosterError::Latencies { latencies, players }),
        }
    }
}

/// The most players in a roster.
pub const MAX_PLAYERS: usize = 1024;

const STEP: Duration = Duration::from_millis(4);
const LAST_STEP: u8 = 254;
const UNKNOWN: u8 = 255;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Bytes, ServerMessage, Text};
    use super::*;

    fn info(name: &str) -> ClientInfo {
        ClientInfo {
            name: Text::new(name).expect("short"),
            data: Bytes::default(),
        }
    }

    /// Fails if a list may name a player twice (`number(last) >= number(&item)` in `read_list`).
    #[test]
    fn lists_ascend() {
        let is_read = |numbers: [u8; 2]| {
            let [first, second] = numbers;
            let bytes = [4, 2, first, 0, second, 0, 0, 0, 0];
            ServerMessage::from_bytes(&bytes).is_ok()
        };
        assert!(is_read([3, 4]));
        assert!(!is_read([3, 3]) && !is_read([4, 3]));
    }

    /// Fails if a latency may be further off than half a step, or wrap around.
    #[test]
    fn latencies_are_right_to_two_milliseconds() {
        for millis in 0..3000u64 {
            let latency = Latency::of(Duration::from_millis(millis));
            let shown = latency.as_duration().as_millis() as u64;
            assert!(shown.abs_diff(millis.min(1016)) <= 2, "{millis}: {shown}");
            assert_eq!(
                Latency::from_byte(Latency::to_byte(Some(latency))),
                Some(latency)
            );
        }
        assert_eq!(Latency::of(Duration::MAX).as_duration().as_millis(), 1016);
        assert_eq!(Latency::from_byte(Latency::to_byte(None)), None);
    }

    fn any_update() -> impl Strategy<Value = RosterUpdate> {
        let numbers = || prop::collection::btree_set(0u16..12, 0..4);
        let parts = (numbers(), numbers(), numbers(), 0usize..14);
        parts.prop_map(|(left, changed, joined, latencies)| {
            let named = |numbers: std::collections::BTreeSet<u16>| {
                let named = numbers
                    .into_iter()
                    .map(|number| (PlayerId(number), info("x")));
                named.collect()
            };
            RosterUpdate {
                left: left.into_iter().map(PlayerId).collect(),
                changed: named(changed),
                joined: named(joined),
                latencies: vec![None; latencies],
            }
        })
    }

    proptest! {
        /// An update is applied as a whole or not at all. Fails if `apply` does not call `check`,
        /// or if any line of that is left out.
        #[test]
        fn what_does_not_fit_leaves_no_trace(updates in prop::collection::vec(any_update(), 1..40)) {
            let mut roster = Roster::new();
            for update in updates {
                let before = roster.clone();
                let mut model: BTreeMap<_, _> = before.iter().map(|(number, _)| (number, ())).collect();
                let left = update.left.iter().all(|number| model.remove(number).is_some());
                let changed = update.changed.iter().all(|(number, _)| model.contains_key(number));
                let joined = update.joined.iter().all(|(number, _)| model.insert(*number, ()).is_none());
                let latencies = update.latencies.is_empty() || update.latencies.len() == model.len();
                match roster.apply(&update) {
                    Ok(()) => {
                        prop_assert!(left && changed && joined && latencies);
                        prop_assert!(roster.iter().map(|(number, _)| number).eq(model.into_keys()));
                    }
                    Err(_) => {
                        prop_assert!(!(left && changed && joined && latencies));
                        prop_assert_eq!(&roster, &before);
                    }
                }
            }
        }

    }
}
