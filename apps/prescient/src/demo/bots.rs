//! The clients of the demo, each behind a link of its own.
//!
//! They are real clients: encrypted connections through real sockets. A relay in front of each
//! simulates its link.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use prescient::{
    About, Change, Client, ClientEvent, ClientId, ConnectToken, EntityHandle, Grant, JoinError,
    Tick, TokenKey, UnixTime, protocol,
};
use prescient_channels::Time;
use prescient_net::{Clock, OpenError, SystemEntropy};
use prescient_sim::link::UdpConditioner;
use prescient_sim::world::Random;
use prescient_transport::TokenError;

use super::board::{Board, Figures, ViewState};
use super::creature::{Creature, schema};
use super::links::Link;
use super::server::TAPPED;
use super::truth::{Shown, row_of};

/// Why a client could not be started.
#[derive(Debug, thiserror::Error)]
pub enum BotError {
    /// Its relay could not be started.
    #[error("cannot start a relay: {0}")]
    Relay(#[from] io::Error),
    /// Its socket could not be opened.
    #[error(transparent)]
    Client(#[from] JoinError),
    /// A token could not be issued.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The system has no random numbers.
    #[error(transparent)]
    Entropy(#[from] OpenError),
}

/// All clients, on one thread.
pub(super) struct Bots {
    bots: Vec<Bot>,
    clock: Clock,
}

struct Bot {
    client: Client,
    ticket: Ticket,
    random: Random,
    state: ViewState,
    /// The last tick whose state was compared with the server's.
    judged: Option<Tick>,
    joined_at: Time,
    taps_at: Time,
    /// Figures of all connections so far, and at the start of the current connection.
    figures: Figures,
    before: Figures,
    relay: UdpConditioner,
}

/// The data from which a client issues itself a new token for each connection.
struct Ticket {
    number: u64,
    key: TokenKey,
    servers: Vec<SocketAddr>,
}

impl Bots {
    /// Starts a client on each of these links.
    pub(super) fn start(
        links: &[Link],
        key: &TokenKey,
        server: SocketAddr,
    ) -> Result<Self, BotError> {
        let clock = Clock::start();
        let start = |(number, link): (usize, &Link)| {
            Bot::start(number as u64, link, key.clone(), server, clock.now())
        };
        let bots: Result<_, BotError> = links.iter().enumerate().map(start).collect();
        Ok(Self { bots: bots?, clock })
    }

    /// Runs until the demo is over, and leaves.
    pub(super) fn run(mut self, board: &Board) -> Result<(), BotError> {
        while !board.is_over() {
            let now = self.clock.now();
            for (number, bot) in self.bots.iter_mut().enumerate() {
                bot.update(number, now, board)?;
            }
            // Only the first client waits: packets reach all of them in the same ticks.
            if let Some(bot) = self.bots.first_mut() {
                bot.client.wait(Duration::from_millis(3));
            }
        }
        // Leaving through a bad link takes a moment.
        thread::scope(|scope| {
            for bot in self.bots {
                scope.spawn(move || bot.leave());
            }
        });
        Ok(())
    }
}

impl Bot {
    fn start(
        number: u64,
        link: &Link,
        key: TokenKey,
        server: SocketAddr,
        now: Time,
    ) -> Result<Self, BotError> {
        let (up, down) = (link.conditions.clone(), link.conditions.clone());
        let relay = UdpConditioner::start(server, number, up, down)?;
        let ticket = Ticket {
            number,
            key,
            // The server accepts only tokens that name its own address.
            servers: vec![relay.address(), server],
        };
        Ok(Self {
            client: Client::start(ticket.token()?, schema())?,
            ticket,
            random: Random::new(number),
            state: ViewState::Joining,
            judged: None,
            joined_at: now,
            taps_at: now,
            figures: Figures::default(),
            before: Figures::default(),
            relay,
        })
    }

    /// Handles received events, and writes the new state and figures to the board.
    fn update(&mut self, number: usize, now: Time, board: &Board) -> Result<(), BotError> {
        let mut received = Vec::new();
        let mut is_gone = false;
        while let Some(event) = self.client.poll() {
            match event {
                ClientEvent::Joined => {
                    self.state = ViewState::Live;
                    self.joined_at = now;
                }
                ClientEvent::Silent => self.state = ViewState::Silent,
                ClientEvent::Resumed => self.state = ViewState::Live,
                ClientEvent::Failed(_) | ClientEvent::Left(_) => is_gone = true,
                ClientEvent::Change(Change::Event {
                    about: About::Entity(entity),
                    ..
                }) => received.extend(self.row(entity).map(|row| [row[0], row[1]])),
                _ => {}
            }
        }
        let tick = self.client.tick();
        let shown = (tick != self.judged).then(|| {
            let entities = self.client.entities();
            let shown = entities.filter_map(|entity| {
                Some(Shown {
                    row: self.row(entity)?,
                    tick: self.client.tick_of(entity)?,
                })
            });
            shown.collect::<Vec<_>>()
        });
        self.judged = tick;
        self.measure(now);
        board.write_view(number, |view, truth| {
            if let Some((tick, shown)) = tick.zip(shown) {
                self.figures.verdict += truth.judge(tick, &shown);
                (view.tick, view.shown) = (Some(tick), shown);
            }
            (view.state, view.figures) = (self.state, self.figures);
            received
                .into_iter()
                .for_each(|position| view.ripples.push(position));
        });
        if is_gone {
            return self.join_again(now);
        }
        if self.state == ViewState::Live && now >= self.taps_at {
            self.tap(now);
        }
        Ok(())
    }

    fn leave(self) {
        self.client.leave();
        self.relay.shutdown();
    }

    /// Taps on a random creature, and schedules the next tap.
    fn tap(&mut self, now: Time) {
        let entities: Vec<EntityHandle> = self.client.entities().collect();
        if !entities.is_empty() {
            let which = self.random.range(0, entities.len() as i64) as usize;
            // If the connection has no room, the tap is dropped; the next one is scheduled.
            let _ = self.client.send_event(Some(entities[which]), TAPPED);
        }
        let pause = self.random.range(2_000, 7_000) as u64;
        self.taps_at = now.after(Duration::from_millis(pause));
    }

    fn row(&self, entity: EntityHandle) -> Option<Vec<i64>> {
        let creature: Option<Creature> = self.client.get(entity);
        creature.as_ref().map(row_of)
    }

    /// Updates the figures from the connection's statistics, while there is a connection.
    fn measure(&mut self, now: Time) {
        if let Some(seen) = self.client.statistics() {
            let bytes = seen.bytes_received + HEADERS * seen.packets_received;
            self.figures = Figures {
                rate: seen.rate_received.0,
                bytes: self.before.bytes + bytes,
                connected: self.before.connected + now.since(self.joined_at),
                round_trip: seen.round_trip.map(|measured| measured.smoothed),
                loss: seen.loss_received(),
                ..self.figures
            };
        }
    }

    fn join_again(&mut self, now: Time) -> Result<(), BotError> {
        self.figures.drops += 1;
        self.before = self.figures;
        self.client = Client::start(self.ticket.token()?, schema())?;
        (self.state, self.judged, self.joined_at) = (ViewState::Joining, None, now);
        Ok(())
    }
}

impl Ticket {
    fn token(&self) -> Result<ConnectToken, BotError> {
        let grant = Grant {
            client: ClientId(self.number),
            protocol: protocol(),
            servers: self.servers.clone(),
            expires: UnixTime(Clock::unix().0 + 60),
            data: Vec::new(),
        };
        Ok(grant.issue(&self.key, &mut SystemEntropy::new()?)?)
    }
}

/// Headers of IPv4 and UDP.
const HEADERS: u64 = 28;

#[cfg(test)]
mod tests {
    use prescient::{Everything, Server, ServerEvent, ServerOptions};
    use prescient_net::{key_from_text, new_key};
    use prescient_sim::link::Conditions;

    use super::*;

    /// Fails if a client that was disconnected does not reconnect (`update` without `join_again`),
    /// or if the figures of its first connection are lost (`before` not updated).
    #[test]
    fn who_is_thrown_out_comes_back() {
        let key = new_key(&mut SystemEntropy::new().expect("randomness"));
        let key = key_from_text(&key).expect("a key");
        let options = ServerOptions::default();
        let server = Server::bind("127.0.0.1:0", key.clone(), schema(), Everything, options);
        let mut server = server.expect("a server");
        let links = vec![Link {
            name: "perfect",
            conditions: Conditions::default(),
        }];
        let mut bots =
            Bots::start(&links, &key, server.address().expect("a socket")).expect("a client");
        let board = Board::new(links);
        let mut joined = 0;
        let mut bytes_before = 0;
        let clock = Clock::start();
        loop {
            assert!(
                clock.now().as_micros() < 20_000_000,
                "reconnecting takes too long"
            );
            server.step().expect("in order").finish();
            server.send();
            server.wait(Duration::from_millis(2));
            while let Some(event) = server.poll() {
                if let ServerEvent::Joined { .. } = event {
                    joined += 1;
                }
            }
            let now = bots.clock.now();
            bots.bots[0].update(0, now, &board).expect("a client");
            let figures = board.read().views[0].figures;
            let peers: Vec<_> = server.peers().collect();
            match (joined, figures.drops) {
                (1, 0) if figures.bytes > 1000 => {
                    bytes_before = figures.bytes;
                    peers.into_iter().for_each(|peer| server.kick(peer));
                }
                (2, 1) if board.read().views[0].state == ViewState::Live => break,
                _ => {}
            }
        }
        assert!(board.read().views[0].figures.bytes > bytes_before);
        bots.bots.into_iter().for_each(Bot::leave);
        server.shut_down();
    }
}
