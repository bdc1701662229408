//! What is said around the game: who is there, and what to load.

use super::{ConnectionId, Server, ServerEvent};
use crate::error::CloseReason;
use crate::lobby::{Heard, Latency, ServerInfo, ServerMessage, Unwelcome};
use crate::time::Time;

impl Server {
    /// What newcomers are told about this server from now on.
    pub fn set_info(&mut self, info: ServerInfo) {
        self.host.set_info(info);
    }

    /// Begins something else: all clients that said who they are have to load again.
    pub fn reset(&mut self, info: ServerInfo, now: Time) {
        let now = self.clock.advance(now);
        let message = self.host.reset(info);
        let all = self.seats.iter_mut();
        let concerned = all.filter_map(|(&id, seat)| seat.guest.reset().then_some(id));
        for id in concerned.collect::<Vec<_>>() {
            self.say_around(id, &message, now);
        }
    }

    pub(super) fn hear_around(&mut self, id: ConnectionId, now: Time) {
        while let Some(seat) = self.seats.get_mut(&id)
            && let Some(message) = seat.connection.poll_around()
        {
            let mut answers = Vec::new();
            let connection = id;
            match self.host.handle(&mut seat.guest, &message, &mut answers) {
                Ok(Heard::Nothing) => {}
                Ok(Heard::Info(info)) => self.events.push(ServerEvent::Info { connection, info }),
                Ok(Heard::Plays(player)) => {
                    self.events.push(ServerEvent::Plays { connection, player });
                }
                Err(Unwelcome::Violation) => return self.leave(id, CloseReason::Violation, now),
                Err(Unwelcome::Full) => return self.leave(id, CloseReason::Kicked, now),
            }
            for answer in answers {
                self.say_around(id, &answer, now);
            }
        }
    }

    /// Says something around the game to who is known to take part in it.
    fn say_around(&mut self, id: ConnectionId, message: &ServerMessage, now: Time) {
        if let Some(exchange) = self.exchange(id)
            && !exchange.say_around(message.to_bytes())
        {
            self.leave(id, CloseReason::Stalled, now);
        }
    }

    /// Tells all clients who came and went, and how long everybody's round trip takes.
    pub(super) fn tell_roster(&mut self, now: Time) {
        let mut guests = Vec::new();
        for (&id, seat) in &self.seats {
            let latency = seat.connection.round_trip().map(Latency::of);
            self.host.note_latency(&seat.guest, latency);
            if seat.guest.is_introduced() {
                guests.push(id);
            }
        }
        for update in self.host.poll_updates(now) {
            for id in &guests {
                self.say_around(*id, &update, now);
            }
        }
    }
}
