//! Who is there, kept in step at a low rate by differences.
//!
//! All clients are told the same, once a second, over channels that lose nothing; so the server
//! needs to remember once what everybody knows, not once for each. Who comes later is told that
//! first and the differences from then on.

use std::collections::BTreeMap;
use std::time::Duration;

use thiserror::Error;

use super::message::ClientInfo;
use crate::bytes::{Reader, write_number};
use crate::time::Time;

/// A player's number. It may belong to somebody else once everybody was told that its player left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlayerNumber(pub u16);

/// A round trip in steps of 4 milliseconds, up to a second and a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Latency(u8);

impl Latency {
    /// The nearest step; the last one for everything beyond.
    pub fn of(round_trip: Duration) -> Self {
        let steps = (round_trip.as_micros() + STEP.as_micros() / 2) / STEP.as_micros();
        Self(u8::try_from(steps).unwrap_or(u8::MAX).min(LAST_STEP))
    }

    /// The round trip.
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

/// Somebody who is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Player {
    /// What its client says about it.
    pub info: ClientInfo,
    /// How long its round trip takes, if that is known.
    pub latency: Option<Latency>,
}

/// What changed since the last update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RosterUpdate {
    /// These are gone.
    left: Vec<PlayerNumber>,
    /// These say something else about themselves.
    changed: Vec<(PlayerNumber, ClientInfo)>,
    /// These are new.
    joined: Vec<(PlayerNumber, ClientInfo)>,
    /// The latencies of all who are there after that, in the order of their numbers; empty if none
    /// changed.
    latencies: Vec<Option<Latency>>,
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

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn read_number(reader: &mut Reader<'_>) -> Option<PlayerNumber> {
    reader.u16().map(PlayerNumber)
}

/// A list in ascending order, which therefore names nobody twice. It grows as it is read, so a
/// count alone reserves nothing.
fn read_list<T>(
    reader: &mut Reader<'_>,
    read: impl Fn(&mut Reader<'_>) -> Option<T>,
    number: impl Fn(&T) -> PlayerNumber,
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

/// Why somebody cannot be added or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AttendanceError {
    /// There are as many as there may be.
    #[error("there are {MAX_PLAYERS} players, which is all that there may be")]
    Full,
    /// There is no such player.
    #[error("there is no player {}", .0.0)]
    Unknown(PlayerNumber),
}

/// Who is there, as the server knows it, and what all clients were told of it.
#[derive(Clone, Debug)]
pub struct Attendance {
    players: BTreeMap<PlayerNumber, Player>,
    told: BTreeMap<PlayerNumber, Player>,
    next: Time,
}

impl Attendance {
    /// Nobody is there.
    pub fn new(now: Time) -> Self {
        Self {
            players: BTreeMap::new(),
            told: BTreeMap::new(),
            next: now,
        }
    }

    /// Adds a player and gives it the lowest number that nobody has or is believed to have.
    pub fn join(&mut self, info: ClientInfo) -> Result<PlayerNumber, AttendanceError> {
        if self.players.len() >= MAX_PLAYERS {
            return Err(AttendanceError::Full);
        }
        let taken = |number: &PlayerNumber| {
            self.players.contains_key(number) || self.told.contains_key(number)
        };
        let mut numbers = (0..=u16::MAX).map(PlayerNumber);
        let number = numbers
            .find(|number| !taken(number))
            .ok_or(AttendanceError::Full)?;
        let latency = None;
        self.players.insert(number, Player { info, latency });
        Ok(number)
    }

    /// Takes a player out.
    pub fn leave(&mut self, player: PlayerNumber) -> Result<(), AttendanceError> {
        let left = self.players.remove(&player);
        left.map(drop).ok_or(AttendanceError::Unknown(player))
    }

    /// The player, to be changed.
    pub fn player_mut(&mut self, player: PlayerNumber) -> Result<&mut Player, AttendanceError> {
        let found = self.players.get_mut(&player);
        found.ok_or(AttendanceError::Unknown(player))
    }

    /// Once a second: what every client is to be told, one message after the other.
    pub fn poll_updates(&mut self, now: Time) -> Vec<RosterUpdate> {
        if now < self.next {
            return Vec::new();
        }
        self.next = now.after(PERIOD);
        let updates = differences(&self.told, &self.players);
        self.told.clone_from(&self.players);
        updates
    }

    /// When [`poll_updates`](Self::poll_updates) may have something to say.
    pub fn next_update(&self) -> Time {
        self.next
    }

    /// What a client that just came in is to be told before any further update: all that the others
    /// were told so far.
    pub fn introduction(&self) -> Vec<RosterUpdate> {
        differences(&BTreeMap::new(), &self.told)
    }
}

/// From one list to another, in pieces of about a packet's length each.
fn differences(
    from: &BTreeMap<PlayerNumber, Player>,
    to: &BTreeMap<PlayerNumber, Player>,
) -> Vec<RosterUpdate> {
    let mut updates = Vec::new();
    let mut update = RosterUpdate::default();
    let mut room = PIECE;
    update.left = from
        .keys()
        .filter(|number| !to.contains_key(number))
        .copied()
        .collect();
    room = room.saturating_sub(update.left.len() * 2);
    for (&number, player) in to {
        let known = from.get(&number);
        if known.is_some_and(|known| known.info == player.info) {
            continue;
        }
        let length = 8 + player.info.name.as_str().len() + player.info.data.as_slice().len();
        if length > room {
            updates.push(std::mem::take(&mut update));
            room = PIECE;
        }
        room = room.saturating_sub(length);
        let list = if known.is_some() {
            &mut update.changed
        } else {
            &mut update.joined
        };
        list.push((number, player.info.clone()));
    }
    let latency = |players: &BTreeMap<PlayerNumber, Player>, number| {
        players
            .get(number)
            .and_then(|player: &Player| player.latency)
    };
    if to
        .keys()
        .any(|number| latency(from, number) != latency(to, number))
    {
        if to.len() > room {
            updates.push(std::mem::take(&mut update));
        }
        update.latencies = to.values().map(|player| player.latency).collect();
    }
    updates.push(update);
    updates.retain(|update| !update.is_empty());
    updates
}

/// Why an update does not fit what came before it. Nothing of it was applied; the server's list and
/// ours differ, so the connection is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RosterError {
    /// It speaks of somebody who is not there.
    #[error("there is no player {}", .0.0)]
    Unknown(PlayerNumber),
    /// Somebody joins who is there.
    #[error("player {} is there already", .0.0)]
    Present(PlayerNumber),
    /// There would be too many.
    #[error("more than {MAX_PLAYERS} players")]
    Full,
    /// It has more or fewer latencies than there are players.
    #[error("{latencies} latencies for {players} players")]
    Latencies {
        /// How many it has.
        latencies: usize,
        /// How many there would be.
        players: usize,
    },
}

/// Who is there, as a client was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    players: BTreeMap<PlayerNumber, Player>,
}

impl Roster {
    /// Nobody is there.
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies an update; all of them have to be, in order.
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

    /// Everybody, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (PlayerNumber, &Player)> {
        self.players
            .iter()
            .map(|(&number, player)| (number, player))
    }

    /// Somebody, if they are there.
    pub fn get(&self, player: PlayerNumber) -> Option<&Player> {
        self.players.get(&player)
    }

    /// How many are there.
    pub fn len(&self) -> usize {
        self.players.len()
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.players.is_empty()
    }

    fn check(&self, update: &RosterUpdate) -> Result<(), RosterError> {
        let is_here = |player: &PlayerNumber| self.players.contains_key(player);
        let leaves = |player: &PlayerNumber| update.left.binary_search(player).is_ok();
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
const PERIOD: Duration = Duration::from_secs(1);
/// About how long a message gets before another one is begun.
const PIECE: usize = 1024;

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

    /// Tells a client, over the bytes.
    fn tell(roster: &mut Roster, updates: &[RosterUpdate]) {
        for update in updates {
            let bytes = ServerMessage::Roster(update.clone()).to_bytes();
            assert!(bytes.len() <= PIECE + 64, "{} bytes", bytes.len());
            let Ok(ServerMessage::Roster(read)) = ServerMessage::from_bytes(&bytes) else {
                panic!("not what was written");
            };
            assert_eq!(read, *update);
            roster.apply(&read).expect("in step");
        }
    }

    fn at(seconds: u64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    /// Fails if a number is given again before everybody knows that it is free (`self.told` left
    /// out of `join`), or if a newcomer is told what is now rather than what was told
    /// (`introduction` from `self.players`).
    #[test]
    fn everybody_knows_the_same_whenever_they_came() {
        let mut attendance = Attendance::new(at(0));
        let mut early = Roster::new();
        let first = attendance.join(info("one")).expect("room");
        let second = attendance.join(info("two")).expect("room");
        tell(&mut early, &attendance.poll_updates(at(0)));
        assert_eq!(early.len(), 2);

        attendance.leave(first).expect("there");
        let third = attendance.join(info("three")).expect("room");
        assert_ne!(third, first, "its number is still taken");
        attendance.player_mut(second).expect("there").latency =
            Some(Latency::of(Duration::from_millis(30)));
        let mut late = Roster::new();
        tell(&mut late, &attendance.introduction());
        assert_eq!(late, early);
        assert!(attendance.poll_updates(at(0)).is_empty(), "once a second");
        let updates = attendance.poll_updates(at(1));
        tell(&mut early, &updates);
        tell(&mut late, &updates);
        assert_eq!(late, early);
        let names: Vec<_> = early
            .iter()
            .map(|(_, player)| player.info.name.as_str())
            .collect();
        assert_eq!(names, ["two", "three"]);
        let latency = early.get(second).and_then(|player| player.latency);
        assert_eq!(
            latency.map(Latency::as_duration),
            Some(Duration::from_millis(32))
        );
        assert!(attendance.poll_updates(at(2)).is_empty(), "nothing changed");
        assert_eq!(attendance.join(info("four")), Ok(first));
        assert_eq!(
            attendance.leave(PlayerNumber(9)),
            Err(AttendanceError::Unknown(PlayerNumber(9)))
        );
    }

    /// Fails if a bound is not looked at: `MAX_PLAYERS` in `join`, or in `check`.
    #[test]
    fn there_is_an_end_to_them() {
        let mut attendance = Attendance::new(at(0));
        for _ in 0..MAX_PLAYERS {
            let long = ClientInfo {
                name: Text::new("n".repeat(64)).expect("fits"),
                data: Bytes::new([7; 256]).expect("fits"),
            };
            let player = attendance.join(long).expect("room");
            attendance.player_mut(player).expect("there").latency = Some(Latency(1));
        }
        assert_eq!(attendance.join(info("more")), Err(AttendanceError::Full));
        let mut roster = Roster::new();
        tell(&mut roster, &attendance.poll_updates(at(0)));
        assert_eq!(roster.len(), MAX_PLAYERS);
        let more = RosterUpdate {
            joined: vec![(PlayerNumber(5000), info("more"))],
            ..RosterUpdate::default()
        };
        assert_eq!(roster.apply(&more), Err(RosterError::Full));
    }

    /// Fails if a list may name somebody twice (`number(last) >= number(&item)` in `read_list`).
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
                    .map(|number| (PlayerNumber(number), info("x")));
                named.collect()
            };
            RosterUpdate {
                left: left.into_iter().map(PlayerNumber).collect(),
                changed: named(changed),
                joined: named(joined),
                latencies: vec![None; latencies],
            }
        })
    }

    proptest! {
        /// An update is applied as a whole or not at all. Fails if `apply` does not ask `check`,
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

        /// Whatever comes and goes, a client that is told everything knows everything. Fails if
        /// `differences` leaves out any kind of change.
        #[test]
        fn differences_lead_to_the_same(
            seconds in prop::collection::vec(
                prop::collection::vec((0u8..4, 0u16..20, any::<u8>()), 0..12),
                1..20,
            ),
        ) {
            let mut attendance = Attendance::new(at(0));
            let mut roster = Roster::new();
            for (second, changes) in seconds.into_iter().enumerate() {
                for (kind, number, value) in changes {
                    let number = PlayerNumber(number);
                    match (kind, attendance.player_mut(number)) {
                        (0, _) => drop(attendance.join(info(&value.to_string()))),
                        (1, Ok(_)) => attendance.leave(number).expect("there"),
                        (2, Ok(player)) => player.info = info(&value.to_string()),
                        (3, Ok(player)) => player.latency = Latency::from_byte(value),
                        _ => {}
                    }
                }
                tell(&mut roster, &attendance.poll_updates(at(second as u64)));
                prop_assert_eq!(&roster.players, &attendance.players);
                let mut late = Roster::new();
                tell(&mut late, &attendance.introduction());
                prop_assert_eq!(&late, &roster);
            }
        }
    }
}
