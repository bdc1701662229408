//! The server's side of the roster, sent at a low rate.
//!
//! All clients receive the same updates, once a second, over channels that lose nothing. The server
//! therefore keeps a single copy of what was sent, not one for each client. A new client receives
//! that copy first and only differences from then on.

use std::collections::BTreeMap;
use std::time::Duration;

use thiserror::Error;

use crate::time::Time;

use super::message::ClientInfo;
use super::roster::{MAX_PLAYERS, Player, PlayerId, RosterUpdate};

/// Why a player cannot be added or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum RosterServerError {
    /// The roster has [`MAX_PLAYERS`] players.
    #[error("there are {MAX_PLAYERS} players, which is all that there may be")]
    Full,
    /// There is no such player.
    #[error("there is no player {}", .0.0)]
    Unknown(PlayerId),
}

/// The roster, and the state of it that all clients were sent.
#[derive(Clone, Debug)]
pub(crate) struct RosterServer {
    players: BTreeMap<PlayerId, Player>,
    sent: BTreeMap<PlayerId, Player>,
    next: Time,
}

impl RosterServer {
    /// An empty roster.
    pub(crate) fn new(now: Time) -> Self {
        Self {
            players: BTreeMap::new(),
            sent: BTreeMap::new(),
            next: now,
        }
    }

    /// Adds a player with the lowest id that is unused, also in the roster that clients were sent.
    pub(crate) fn join(&mut self, info: ClientInfo) -> Result<PlayerId, RosterServerError> {
        if self.players.len() >= MAX_PLAYERS {
            return Err(RosterServerError::Full);
        }
        let taken =
            |number: &PlayerId| self.players.contains_key(number) || self.sent.contains_key(number);
        let mut numbers = (0..=u16::MAX).map(PlayerId);
        let number = numbers
            .find(|number| !taken(number))
            .ok_or(RosterServerError::Full)?;
        let latency = None;
        self.players.insert(number, Player { info, latency });
        Ok(number)
    }

    /// Removes a player.
    pub(crate) fn leave(&mut self, player: PlayerId) -> Result<(), RosterServerError> {
        let left = self.players.remove(&player);
        left.map(drop).ok_or(RosterServerError::Unknown(player))
    }

    /// All players, by id.
    pub(crate) fn players(&self) -> impl Iterator<Item = (PlayerId, &Player)> {
        let players = self.players.iter();
        players.map(|(&number, player)| (number, player))
    }

    /// A player, to be changed.
    pub(crate) fn player_mut(
        &mut self,
        player: PlayerId,
    ) -> Result<&mut Player, RosterServerError> {
        let found = self.players.get_mut(&player);
        found.ok_or(RosterServerError::Unknown(player))
    }

    /// Once a second: the updates to send to every client, in this order.
    pub(crate) fn poll_updates(&mut self, now: Time) -> Vec<RosterUpdate> {
        if now < self.next {
            return Vec::new();
        }
        self.next = now.after(PERIOD);
        let updates = differences(&self.sent, &self.players);
        self.sent.clone_from(&self.players);
        updates
    }

    /// When [`poll_updates`](Self::poll_updates) may return updates.
    pub(crate) fn next_update(&self) -> Time {
        self.next
    }

    /// The roster as the other clients have it, for a new client; updates follow.
    pub(crate) fn introduction(&self) -> Vec<RosterUpdate> {
        differences(&BTreeMap::new(), &self.sent)
    }
}

/// The updates from one roster to another, each of about one packet's length.
fn differences(
    from: &BTreeMap<PlayerId, Player>,
    to: &BTreeMap<PlayerId, Player>,
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
    let latency = |players: &BTreeMap<PlayerId, Player>, number| {
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

const PERIOD: Duration = Duration::from_secs(1);
/// The length at which a new message is started.
const PIECE: usize = 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Bytes, Latency, Roster, RosterError, ServerMessage, Text};
    use super::*;

    fn info(name: &str) -> ClientInfo {
        ClientInfo {
            name: Text::new(name).expect("short"),
            data: Bytes::default(),
        }
    }

    /// `None` for zero.
    fn latency(millis: u64) -> Option<Latency> {
        (millis > 0).then(|| Latency::of(Duration::from_millis(millis)))
    }

    /// Applies updates to a client's roster, through their bytes.
    fn apply_all(roster: &mut Roster, updates: &[RosterUpdate]) {
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

    /// Fails if an id is reused before all clients were sent that it is free (`self.sent` left out
    /// of `join`), or if a new client is sent the present roster instead of the one that was sent
    /// to the others (`introduction` from `self.players`).
    #[test]
    fn everybody_knows_the_same_whenever_they_came() {
        let mut roster_server = RosterServer::new(at(0));
        let mut early = Roster::new();
        let first = roster_server.join(info("one")).expect("room");
        let second = roster_server.join(info("two")).expect("room");
        apply_all(&mut early, &roster_server.poll_updates(at(0)));
        assert_eq!(early.len(), 2);

        roster_server.leave(first).expect("there");
        let third = roster_server.join(info("three")).expect("room");
        assert_ne!(third, first, "its number is still taken");
        roster_server.player_mut(second).expect("there").latency =
            Some(Latency::of(Duration::from_millis(30)));
        let mut late = Roster::new();
        apply_all(&mut late, &roster_server.introduction());
        assert_eq!(late, early);
        assert!(
            roster_server.poll_updates(at(0)).is_empty(),
            "once a second"
        );
        let updates = roster_server.poll_updates(at(1));
        apply_all(&mut early, &updates);
        apply_all(&mut late, &updates);
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
        assert!(
            roster_server.poll_updates(at(2)).is_empty(),
            "nothing changed"
        );
        assert_eq!(roster_server.join(info("four")), Ok(first));
        assert_eq!(
            roster_server.leave(PlayerId(9)),
            Err(RosterServerError::Unknown(PlayerId(9)))
        );
    }

    /// Fails if a bound is not checked: `MAX_PLAYERS` in `join`, or in `check`.
    #[test]
    fn there_is_an_end_to_them() {
        let mut roster_server = RosterServer::new(at(0));
        for _ in 0..MAX_PLAYERS {
            let long = ClientInfo {
                name: Text::new("n".repeat(64)).expect("fits"),
                data: Bytes::new([7; 256]).expect("fits"),
            };
            let player = roster_server.join(long).expect("room");
            roster_server.player_mut(player).expect("there").latency = latency(4);
        }
        assert_eq!(
            roster_server.join(info("more")),
            Err(RosterServerError::Full)
        );
        let mut roster = Roster::new();
        apply_all(&mut roster, &roster_server.poll_updates(at(0)));
        assert_eq!(roster.len(), MAX_PLAYERS);
        let more = RosterUpdate {
            joined: vec![(PlayerId(5000), info("more"))],
            ..RosterUpdate::default()
        };
        assert_eq!(roster.apply(&more), Err(RosterError::Full));
    }

    proptest! {
        /// A client that applies all updates has the server's roster, whatever changes. Fails if
        /// `differences` leaves out any kind of change.
        #[test]
        fn differences_lead_to_the_same(
            seconds in prop::collection::vec(
                prop::collection::vec((0u8..4, 0u16..20, any::<u8>()), 0..12),
                1..20,
            ),
        ) {
            let mut roster_server = RosterServer::new(at(0));
            let mut roster = Roster::new();
            for (second, changes) in seconds.into_iter().enumerate() {
                for (kind, number, value) in changes {
                    let number = PlayerId(number);
                    match (kind, roster_server.player_mut(number)) {
                        (0, _) => drop(roster_server.join(info(&value.to_string()))),
                        (1, Ok(_)) => roster_server.leave(number).expect("there"),
                        (2, Ok(player)) => player.info = info(&value.to_string()),
                        (3, Ok(player)) => player.latency = latency(value.into()),
                        _ => {}
                    }
                }
                apply_all(&mut roster, &roster_server.poll_updates(at(second as u64)));
                let truth = roster_server.players.iter().map(|(&number, player)| (number, player));
                prop_assert!(roster.iter().eq(truth));
                let mut late = Roster::new();
                apply_all(&mut late, &roster_server.introduction());
                prop_assert_eq!(&late, &roster);
            }
        }
    }
}
