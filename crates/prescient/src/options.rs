//! The options of servers and clients.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prescient_channels::{BytesPerSecond, ClientId, CloseReason, ConfigError};
use prescient_codec::Prior;
use prescient_playout::InputBufferConfig;
use prescient_replication::adaptation::Adaptation;
use prescient_replication::{ClientConfig, ServerConfig};
#[cfg(feature = "udp")]
use prescient_transport::{Limits, LinkConfig};

use crate::reconnect::{Cancel, Reconnect};

/// A client that asks to join.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Applicant<'a> {
    /// Its account id, from its token.
    pub client: ClientId,
    /// The data that the backend put into its token.
    pub data: &'a [u8],
}

/// The program's decision about clients that ask to join.
#[derive(Clone)]
pub(crate) struct Approval(Arc<Approve>);

type Approve = dyn Fn(&Applicant<'_>) -> Result<(), u16> + Send + Sync;

impl Approval {
    pub(crate) fn ask(&self, applicant: &Applicant<'_>) -> Result<(), CloseReason> {
        (self.0)(applicant).map_err(CloseReason::Other)
    }
}

impl fmt::Debug for Approval {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Approval")
    }
}

/// The options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub(crate) packet: usize,
    pub(crate) state_per_tick: usize,
    #[cfg(feature = "udp")]
    pub(crate) public_addresses: Vec<std::net::SocketAddr>,
    pub(crate) tick_interval: Duration,
    pub(crate) backlog: usize,
    pub(crate) apply_timeout: Duration,
    pub(crate) replication: ServerConfig,
    pub(crate) adaptation: Option<Adaptation>,
    pub(crate) max_rate: Option<BytesPerSecond>,
    pub(crate) max_total_rate: Option<BytesPerSecond>,
    pub(crate) approval: Option<Approval>,
    pub(crate) max_rewind: Duration,
    pub(crate) input_buffer: Option<InputBufferConfig>,
    #[cfg(feature = "udp")]
    pub(crate) limits: Limits,
    #[cfg(feature = "udp")]
    pub(crate) link: LinkConfig,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            packet: 1100,
            state_per_tick: usize::MAX,
            #[cfg(feature = "udp")]
            public_addresses: Vec::new(),
            tick_interval: Duration::from_micros(33_333),
            backlog: 1 << 20,
            apply_timeout: Duration::from_secs(20),
            replication: ServerConfig::default(),
            adaptation: None,
            max_rate: None,
            max_total_rate: None,
            approval: None,
            max_rewind: Duration::from_secs(1),
            input_buffer: None,
            #[cfg(feature = "udp")]
            limits: Limits::default(),
            #[cfg(feature = "udp")]
            link: LinkConfig::default(),
        }
    }
}

impl ServerOptions {
    /// Maximum bytes of state per packet, 1100 by default. A packet that must be fragmented is lost
    /// if any fragment is.
    #[must_use]
    pub fn with_packet(mut self, bytes: usize) -> Self {
        self.packet = bytes;
        self
    }

    /// Maximum bytes of state per client and tick. Without it, the default, a tick takes as many
    /// packets as it needs and the connection carries. One packet is always allowed.
    #[must_use]
    pub fn with_state_per_tick(mut self, bytes: usize) -> Self {
        self.state_per_tick = bytes;
        self
    }

    /// Adapts what every client gets to its connection: coarser and rarer entities of low priority
    /// when there is not enough room for all. Connections over UDP then use
    /// [`CongestionControl::DelayBased`](crate::CongestionControl::DelayBased), unless another policy was
    /// [chosen](crate::ExchangeConfig::with_congestion). Without it, the default, precision is the program's
    /// ([`Server::set_quality`](crate::Server::set_quality)).
    #[must_use]
    pub fn with_adaptation(mut self, adaptation: Adaptation) -> Self {
        self.adaptation = Some(adaptation);
        self
    }

    /// The settings of connections. What adapts needs a rate that is found out, so unless a program
    /// chose another policy, it is [`DelayBased`](prescient_channels::DelayBased).
    #[cfg(feature = "udp")]
    pub(crate) fn adaptive_link(&self) -> LinkConfig {
        let link = self.link.clone();
        if self.adaptation.is_none() {
            return link;
        }
        let policy = prescient_channels::CongestionControl::DelayBased;
        let exchange = link.exchange().clone().or_congestion(policy);
        link.with_exchange(exchange)
    }

    /// The highest rate of state to an [adapted](Self::with_adaptation) client, with IP and UDP
    /// headers; none by default. With 0, clients get no state.
    #[must_use]
    pub fn with_max_rate(mut self, rate: BytesPerSecond) -> Self {
        self.max_rate = Some(rate);
        self
    }

    /// The highest rate of state to all [adapted](Self::with_adaptation) clients together, which
    /// share it equally; none by default.
    #[must_use]
    pub fn with_max_total_rate(mut self, rate: BytesPerSecond) -> Self {
        self.max_total_rate = Some(rate);
        self
    }

    /// The addresses at which clients reach the server, as their tokens name them; a token that
    /// names none of these is refused. Without any, the default, it is the
    /// [bound](crate::Server::bind) address, which suits a concrete local address but not `0.0.0.0`
    /// or a host behind a router.
    #[cfg(feature = "udp")]
    #[must_use]
    pub fn with_public_addresses(mut self, addresses: Vec<std::net::SocketAddr>) -> Self {
        self.public_addresses = addresses;
        self
    }

    /// Time between two ticks, by which [`Server::next_tick`](crate::Server::next_tick) waits; a
    /// thirtieth of a second by default.
    #[must_use]
    pub fn with_tick_interval(mut self, interval: Duration) -> Self {
        self.tick_interval = interval;
        self
    }

    /// Maximum bytes of events that may wait for one client, 1 MiB by default. A client with more is
    /// closed as [`Stalled`](crate::CloseReason::Stalled).
    #[must_use]
    pub fn with_backlog(mut self, bytes: usize) -> Self {
        self.backlog = bytes;
        self
    }

    /// How long a responsive client may be sent state without applying any, 20 seconds by default;
    /// then it is closed as [`NotApplying`](crate::CloseReason::NotApplying). Time in which the
    /// client is silent does not count: that has a limit of its own
    /// ([`LinkConfig::with_timeout`](crate::LinkConfig::with_timeout)).
    #[must_use]
    pub fn with_apply_timeout(mut self, span: Duration) -> Self {
        self.apply_timeout = span;
        self
    }

    /// Ticks between two evaluations of what is near each client, 4 by default; 1 shows and hides
    /// without delay ([`ServerConfig::with_relevance_interval`]).
    #[must_use]
    pub fn with_relevance_interval(mut self, ticks: u32) -> Self {
        self.replication = self.replication.with_relevance_interval(ticks);
        self
    }

    /// How far [`Server::rewind`](crate::Server::rewind) goes back at most, one second by default:
    /// the others' patience with being hit behind cover. A history that is shorter
    /// ([`ServerConfig::with_history`]) ends earlier.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use prescient::{Everything, PeerId, Rewind, Schema, Server, ServerOptions, State};
    ///
    /// #[derive(State, Debug, PartialEq)]
    /// struct Ball { #[state(step = 0.5)] x: f32 }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let options = ServerOptions::default().with_max_rewind(Duration::from_millis(250));
    /// let mut server = Server::offline_with(Schema::of::<Ball>()?, Everything, options)?;
    /// let ball = server.step()?.spawn(&Ball { x: 1.0 })?;
    /// server.send();
    /// server.step()?.set(ball, &Ball { x: 2.0 })?;
    /// server.send();
    /// let world = server.world();
    /// let first = world.oldest_tick().ok_or("no tick yet")?;
    /// assert_eq!(world.value_at(ball, first), Some(Ball { x: 1.0 }));
    /// assert_eq!(world.row_at(ball.entity_ref(), 0, first), Some(&[2][..]));
    ///
    /// fn was_hit(then: &Rewind<'_>, ball: prescient::Ref<Ball>) -> bool {
    ///     then.get(ball).is_some_and(|ball| ball.x < 1.5)
    /// }
    /// # let _ = was_hit(&server.rewind(PeerId(1)), ball);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_max_rewind(mut self, span: Duration) -> Self {
        self.max_rewind = span;
        self
    }

    /// Gives the program one input of each client per scheduled tick, instead of each when it
    /// arrives, so that others see even movement ([`Server::poll_nudge`](crate::Server::poll_nudge)
    /// tells how the client keeps the buffer filled). Off by default.
    #[must_use]
    pub fn with_input_buffer(mut self, config: InputBufferConfig) -> Self {
        self.input_buffer = Some(config);
        self
    }

    /// The prior from which the models of all connections start, so that the first packets are
    /// cheaper; none by default. `prescient train` makes such files of recordings, and a client has
    /// to have the same one ([`ClientOptions::with_prior`]): one that has another is refused, and
    /// both fingerprints are named ([`JoinError::OtherSettings`](crate::JoinError::OtherSettings)).
    ///
    /// ```no_run
    /// use prescient::{Prior, ServerOptions};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let prior = Prior::from_bytes(&std::fs::read("game.prior")?)?;
    /// let options = ServerOptions::default().with_prior(prior);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_prior(mut self, prior: Prior) -> Self {
        self.replication = self.replication.with_prior(prior);
        self
    }

    /// Settings of the replication: coding, relevance, schema tolerance and limits. What is not set
    /// there is at its default.
    #[must_use]
    pub fn with_replication(mut self, replication: ServerConfig) -> Self {
        self.replication = replication;
        self
    }

    /// Asks `approve` about every client before it joins, with what its token says; by default
    /// every client with a valid token is welcome. `Err` closes its connection as
    /// [`Other`](crate::CloseReason::Other) with that code. Local clients are not asked about.
    ///
    /// ```
    /// use prescient::ServerOptions;
    ///
    /// const NO_SPECTATORS: u16 = 1;
    /// let options = ServerOptions::default()
    ///     .with_approval(|applicant| match applicant.data {
    ///         b"spectator" => Err(NO_SPECTATORS),
    ///         _ => Ok(()),
    ///     });
    /// ```
    #[must_use]
    pub fn with_approval(
        mut self,
        approve: impl Fn(&Applicant<'_>) -> Result<(), u16> + Send + Sync + 'static,
    ) -> Self {
        self.approval = Some(Approval(Arc::new(approve)));
        self
    }

    /// How many UDP connections and handshakes are accepted, [`Limits::default`] unless this is called.
    #[cfg(feature = "udp")]
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The server's side of every UDP connection, [`LinkConfig::default`] unless this is called.
    #[cfg(feature = "udp")]
    #[must_use]
    pub fn with_link(mut self, link: LinkConfig) -> Self {
        self.link = link;
        self
    }

    /// Refuses options that cannot work.
    ///
    /// ```
    /// use prescient::{ConfigError, ServerOptions};
    ///
    /// let wrong: ConfigError = ServerOptions::default().with_packet(0).check().unwrap_err();
    /// assert_eq!(wrong.setting(), "packet");
    /// ```
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::first(&[
            (self.packet > 0, "packet", "at least 1"),
            (
                (Duration::from_micros(1)..=MAX_TICK_INTERVAL).contains(&self.tick_interval),
                "tick_interval",
                "at least 1 microsecond, and at most 2^32 - 1",
            ),
            (
                self.apply_timeout >= MIN_SPAN,
                "apply_timeout",
                "at least 1 ms",
            ),
            (
                (self.input_buffer.as_ref()).is_none_or(|buffer| buffer.check().is_ok()),
                "input_buffer",
                "settings that pass their own check",
            ),
        ])?;
        #[cfg(feature = "udp")]
        {
            self.limits.check()?;
            self.link.check()?;
        }
        Ok(())
    }

    /// The longest message to a local client; the same as to others, if that is known here.
    #[cfg(feature = "udp")]
    pub(crate) fn max_message(&self) -> usize {
        self.link.exchange().max_message()
    }

    #[cfg(not(feature = "udp"))]
    pub(crate) fn max_message(&self) -> usize {
        prescient_channels::ExchangeConfig::default().max_message()
    }
}

/// The options of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    pub(crate) replication: ClientConfig,
    #[cfg(feature = "udp")]
    pub(crate) link: LinkConfig,
    pub(crate) join_timeout: Duration,
    pub(crate) cancel: Cancel,
    pub(crate) reconnect: Option<Reconnect>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            replication: ClientConfig::default(),
            #[cfg(feature = "udp")]
            link: LinkConfig::default(),
            join_timeout: Duration::from_secs(10),
            cancel: Cancel::default(),
            reconnect: None,
        }
    }
}

impl ClientOptions {
    /// The prior from which the models start, if the server starts from the same one
    /// ([`ServerOptions::with_prior`]); none by default. With a server that has none it is not used.
    #[must_use]
    pub fn with_prior(mut self, prior: Prior) -> Self {
        self.replication = self.replication.with_prior(prior);
        self
    }

    /// Settings of the replication: schema tolerance and limits. What is not set there is at its
    /// default.
    #[must_use]
    pub fn with_replication(mut self, replication: ClientConfig) -> Self {
        self.replication = replication;
        self
    }

    /// The client's side of a UDP connection, [`LinkConfig::default`] unless this is called.
    #[cfg(feature = "udp")]
    #[must_use]
    pub fn with_link(mut self, link: LinkConfig) -> Self {
        self.link = link;
        self
    }

    /// How long [`Client::join_with_carrier`](crate::Client::join_with_carrier) and its like may
    /// take, over all of the token's servers, until one accepts the connection *and* sends its
    /// world; ten seconds by default.
    #[must_use]
    pub fn with_join_timeout(mut self, span: Duration) -> Self {
        self.join_timeout = span;
        self
    }

    /// Ends joining early, for example from a Ctrl-C handler or another thread; without it, joining
    /// ends when it is done or takes too long.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// How to reconnect after the connection is lost; by default the client does not and reports
    /// [`Left`](crate::ClientEvent::Left).
    #[must_use]
    pub fn with_reconnect(mut self, reconnect: Reconnect) -> Self {
        self.reconnect = Some(reconnect);
        self
    }

    /// Refuses options that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let patience = self.reconnect.as_ref().map(|reconnect| reconnect.patience);
        ConfigError::first(&[
            (
                self.join_timeout >= MIN_SPAN,
                "join_timeout",
                "at least 1 ms",
            ),
            (
                patience.is_none_or(|patience| patience >= MIN_SPAN),
                "patience",
                "at least 1 ms",
            ),
        ])?;
        #[cfg(feature = "udp")]
        self.link.check()?;
        Ok(())
    }
}

/// Clients are told the interval as 32 bits.
const MAX_TICK_INTERVAL: Duration = Duration::from_micros(u32::MAX as u64);
const MIN_SPAN: Duration = Duration::from_millis(1);
