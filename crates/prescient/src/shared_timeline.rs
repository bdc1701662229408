//! Curves that a server shares with its clients, over the events of their connections.

use prescient_replication::{About, Change, PeerId};
use prescient_schema::Fingerprint;
use prescient_timeline::packed::{Broadcast, PackedConfig, ReceiveError, Receiver, SendError};
use prescient_timeline::{Edit, EditError, Keyframe, Operation, PropertyId, Time, Timeline, Value};

use crate::client::{Client, ClientEvent};
use crate::server::{Server, ServerEvent};

/// A server's timeline, which all clients with a [`TimelineClient`] of the same number have, too.
///
/// Every tick: [`handle`](Self::handle) what [`Server::poll`] returns, [`follow`](Self::follow) paths and
/// [`apply`](Self::apply) edits, and [`send`](Self::send). A client that joins late gets the history, as fast
/// as its connection takes it, and one that connects again what it lacks.
///
/// Every client may have all curves: who must not know some needs another timeline, and gets nothing of one
/// to which its events are not given.
///
/// ```no_run
/// # use prescient::{Everything, Schema, Server, State, TimelineServer};
/// use prescient::timeline::{Keyframe, PropertyId, Span, packed::PackedConfig};
///
/// # #[derive(State)]
/// # struct Crate { #[state(step = 0.01, position)] position: [f32; 3] }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut server = Server::loopback("127.0.0.1:4000", Schema::of::<Crate>()?, Everything)?;
/// let mut paths = TimelineServer::<[f32; 2]>::new(1, PackedConfig::new(0.01)?);
/// loop {
///     server.next_tick();
///     while let Some(event) = server.poll() {
///         if paths.handle(&event) {
///             continue;
///         }
///         // The game's events: here a unit starts to walk, and all clients show it walking at that time.
///         let start = server.game_time() + Span::from_millis(500);
///         let end = Keyframe::new(start + Span::from_secs(4), [12.0, 5.0]);
///         paths.follow(PropertyId(7), start, &[end])?;
///     }
///     server.step()?;
///     paths.send(&mut server);
///     server.send();
/// }
/// # }
/// ```
pub struct TimelineServer<V: Value> {
    header: Header,
    broadcast: Broadcast<PeerId, V>,
    is_urgent: bool,
    /// Clients whose settings differ, to be told so.
    others: Vec<PeerId>,
}

impl<V: Value> TimelineServer<V> {
    /// A timeline without properties. Its number distinguishes it from the program's other timelines; the
    /// settings must be the clients'.
    pub fn new(number: u8, config: PackedConfig<V>) -> Self {
        Self {
            header: Header::new(number, &config),
            broadcast: Broadcast::new(config),
            is_urgent: false,
            others: Vec::new(),
        }
    }

    /// Applies an edit of a property, rounded to steps. Clients get it within the
    /// [interval](PackedConfig::interval).
    ///
    /// # Errors
    ///
    /// If the timeline refuses it, or a component is too large. Then nothing has changed.
    pub fn apply(&mut self, property: PropertyId, edit: Edit<V>) -> Result<(), SendError> {
        self.broadcast.apply(&Operation { property, edit })
    }

    /// Lets a property follow these keyframes after `from`, and leaves it as it is until then. Returns the
    /// number of edits: keyframes that are there already cost nothing, and a mere delay costs one.
    ///
    /// # Errors
    ///
    /// If the future [cannot be planned](prescient_timeline::plan), or a component is too large. Then nothing
    /// has changed.
    pub fn follow(
        &mut self,
        property: PropertyId,
        from: Time,
        future: &[Keyframe<V>],
    ) -> Result<usize, SendError> {
        self.broadcast.follow(property, from, future)
    }

    /// The curves, as clients have them.
    pub fn timeline(&self) -> &Timeline<V> {
        self.broadcast.timeline()
    }

    /// Takes what is addressed to this timeline. Returns whether it was: then the event concerns nobody else.
    pub fn handle(&mut self, event: &ServerEvent) -> bool {
        match event {
            ServerEvent::Event {
                peer,
                about: About::Nothing,
                payload,
            } => {
                let Some(received) = self.header.take(payload) else {
                    return false;
                };
                match received {
                    Received::Message(message) => {
                        // Anything but a request is ignored: a client can send any bytes.
                        let _ = self.broadcast.handle(*peer, message);
                    }
                    Received::OtherSettings if self.others.contains(peer) => {}
                    Received::OtherSettings => self.others.push(*peer),
                }
                true
            }
            ServerEvent::Left { peer, .. } => {
                self.broadcast.remove(*peer);
                false
            }
            _ => false,
        }
    }

    /// Lets the next [`send`](Self::send) not wait for the interval.
    pub fn flush(&mut self) {
        self.is_urgent = true;
    }

    /// Sends clients what they lack, if the interval is over; call it every tick. Histories are sent as fast
    /// as connections have room.
    pub fn send(&mut self, server: &mut Server) {
        let now = server.game_time();
        match std::mem::take(&mut self.is_urgent) {
            true => self.broadcast.flush(now),
            false => self.broadcast.handle_timeout(now),
        }
        for peer in self.others.drain(..) {
            // A peer that has left needs no answer.
            let _ = server.send_event(peer, &self.header.0);
        }
        let peers: Vec<PeerId> = self.broadcast.receivers().collect();
        for peer in peers {
            let report = server.statistics(peer);
            let Some(mut room) = report.map(|report| {
                MAX_WAITING.saturating_sub(report.backlog + report.state.event_bytes)
            }) else {
                self.broadcast.remove(peer);
                continue;
            };
            while room > 0 {
                let Some(message) = self.broadcast.poll_transmit(peer) else {
                    break;
                };
                let payload = self.header.put_before(&message);
                room = room.saturating_sub(payload.len());
                // A peer that has left is forgotten the next time.
                let _ = server.send_event(peer, &payload);
            }
        }
    }
}

/// A client's copy of a [`TimelineServer`]'s curves.
///
/// [`handle`](Self::handle) what [`Client::poll`] returns, then [`send`](Self::send), and look up values at
/// any time, such as the present [`Client::game_time`].
///
/// ```no_run
/// # use prescient::{Client, Schema, State, TimelineClient};
/// use prescient::timeline::{PropertyId, packed::PackedConfig};
///
/// # #[derive(State)]
/// # struct Crate { #[state(step = 0.01, position)] position: [f32; 3] }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut client = Client::loopback("127.0.0.1:4000", Schema::of::<Crate>()?)?;
/// let mut paths = TimelineClient::<[f32; 2]>::new(1, PackedConfig::new(0.01)?);
/// loop {
///     client.wait(std::time::Duration::from_millis(16));
///     while let Some(event) = client.poll() {
///         if paths.handle(&event)? {
///             continue;
///         }
///         // The game's events.
///     }
///     paths.send(&mut client);
///     if let Some(now) = client.game_time() {
///         println!("{:?}", paths.timeline().at(PropertyId(7), now));
///     }
/// }
/// # }
/// ```
pub struct TimelineClient<V: Value> {
    header: Header,
    receiver: Receiver<V>,
    requests: u64,
}

/// Why a client's timeline is not the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimelineError {
    /// The server's timeline of this number has another type of values or other steps.
    #[error("the server's timeline {number} has another type of values, or other steps")]
    OtherSettings {
        /// Its number.
        number: u8,
    },
    /// An edit exceeds the limits of this timeline, which are lower than the server's. The others were
    /// applied.
    #[error("an edit of the server's is refused: {0}")]
    Refused(#[from] EditError),
}

impl<V: Value> TimelineClient<V> {
    /// A timeline without properties, with the number and the settings of the server's. It may have lower
    /// limits.
    pub fn new(number: u8, config: PackedConfig<V>) -> Self {
        Self {
            header: Header::new(number, &config),
            receiver: Receiver::new(config),
            requests: 0,
        }
    }

    /// The curves.
    pub fn timeline(&self) -> &Timeline<V> {
        self.receiver.timeline()
    }

    /// Takes what is addressed to this timeline. Returns whether it was: then the event concerns nobody else.
    ///
    /// # Errors
    ///
    /// If the server's settings are others, or this timeline's limits are exceeded.
    pub fn handle(&mut self, event: &ClientEvent) -> Result<bool, TimelineError> {
        match event {
            ClientEvent::Change(Change::Event {
                about: About::Nothing,
                payload,
                ..
            }) => match self.header.take(payload) {
                None => Ok(false),
                Some(Received::OtherSettings) => {
                    let number = self.header.number();
                    Err(TimelineError::OtherSettings { number })
                }
                Some(Received::Message(message)) => match self.receiver.handle(message) {
                    Err(ReceiveError::Refused(error)) => Err(error.into()),
                    // Missing and damaged messages are requested again.
                    Ok(()) | Err(_) => Ok(true),
                },
            },
            ClientEvent::Reconnected => {
                self.receiver.handle_reconnected();
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Asks the server for what is missing: after joining for everything, later for nothing as a rule.
    pub fn send(&mut self, client: &mut Client) {
        if let Some(now) = client.game_time() {
            self.receiver.set_now(now);
        }
        while let Some(request) = self.receiver.poll_transmit() {
            let payload = self.header.put_before(&request);
            if client.send_event(None, &payload).is_err() {
                // It is not connected yet, or has no room.
                self.receiver.ask_again();
                return;
            }
            self.requests += 1;
        }
    }

    /// How often it asked for something.
    pub fn requests(&self) -> u64 {
        self.requests
    }
}

impl Server {
    /// The time of the newest tick, since tick 0.
    pub fn game_time(&self) -> Time {
        let tick = self.world().tick().unwrap_or_default().0;
        Time::from_micros(
            i64::try_from(tick)
                .unwrap_or(i64::MAX)
                .saturating_mul(self.tick_interval().as_micros() as i64),
        )
    }
}

impl Client {
    /// The server's present [`game_time`](Server::game_time), estimated: [`server_tick`](Self::server_tick)
    /// as a time. Curves whose keyframes arrived ahead of time are shown at this time without latency.
    pub fn game_time(&mut self) -> Option<Time> {
        let tick = self.server_tick()?;
        let interval = self.tick_interval()?.as_micros() as f64;
        Some(Time::from_micros((tick * interval) as i64))
    }
}

/// The first bytes of an event: two that are always the same, the timeline's number, and a hash of the
/// settings.
struct Header([u8; 5]);

enum Received<'a> {
    Message(&'a [u8]),
    OtherSettings,
}

impl Header {
    fn new<V: Value>(number: u8, config: &PackedConfig<V>) -> Self {
        let hash = Fingerprint::of_bytes(&config.to_bytes()).to_be_bytes();
        Self([0xCB, b'K', number, hash[14], hash[15]])
    }

    fn number(&self) -> u8 {
        self.0[2]
    }

    fn put_before(&self, message: &[u8]) -> Vec<u8> {
        [&self.0[..], message].concat()
    }

    /// The payload after the header; `None` if the payload is not this timeline's.
    fn take<'a>(&self, payload: &'a [u8]) -> Option<Received<'a>> {
        let rest = payload.strip_prefix(&self.0[..3])?;
        let (hash, message) = rest.split_at_checked(2)?;
        Some(match hash == &self.0[3..] {
            true => Received::Message(message),
            false => Received::OtherSettings,
        })
    }
}

/// A client's further messages wait until fewer bytes of events than this wait for it.
const MAX_WAITING: usize = 64 << 10;
