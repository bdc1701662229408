//! A consumer of a topic's versions.

use std::time::Duration;

use prescient_channels::Time;
use thiserror::Error;

use super::producer::HOP_LIMIT;
use super::segments::{FetchError, SegmentFetch};
use super::{SyncName, read_content, sync_name};
use crate::data::Data;
use crate::error::{DecodeError, NameError, VerifyError};
use crate::interest::{Interest, InterestBuilder};
use crate::name::{Name, NameRef};
use crate::signature::Verifier;
use crate::sync::Random;

/// How much later than its lifetime an Interest is repeated, as a part of the lifetime: all forwarders on the way must
/// have forgotten it when the new one arrives, which may travel faster. A forwarder that has not forgotten it holds the
/// new one back.
const MARGIN_PART: u32 = 32;

/// The least such margin.
const MIN_MARGIN: Duration = Duration::from_millis(2);

/// The lifetime of Interests before the first answer.
const FIRST_LIFETIME: Duration = Duration::from_millis(250);

/// The wait after a Nack.
const NACK_WAIT: Duration = Duration::from_millis(100);

/// The wait after an answer that was not authentic.
const REFUSED_WAIT: Duration = Duration::from_millis(20);

/// The longest time that the segments of a long content may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// The configuration of a [`Consumer`].
#[derive(Clone, Debug)]
pub struct ConsumerConfig {
    verifier: Verifier,
    min_lifetime: Duration,
    max_lifetime: Duration,
}

impl ConsumerConfig {
    /// Accepts answers that this key verifies. Lifetimes of Interests are 100 ms to 1 s.
    pub fn new(verifier: Verifier) -> Self {
        Self {
            verifier,
            min_lifetime: Duration::from_millis(100),
            max_lifetime: Duration::from_secs(1),
        }
    }

    /// Sets the shortest and the longest lifetime of an Interest.
    ///
    /// A lost packet stalls the topic for the lifetime of the Interest. It is four times the usual time
    /// from an Interest to its answer within these limits, and doubles after every second Interest in a row that is not
    /// answered. Set both to the same for a fixed lifetime.
    pub fn lifetime(mut self, min: Duration, max: Duration) -> Self {
        self.min_lifetime = min.max(Duration::from_millis(1));
        self.max_lifetime = max.max(self.min_lifetime);
        self
    }
}

/// A version that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Its number.
    pub version: u64,
    /// The version from which the content is a delta; `None` if it is whole.
    pub base: Option<u64>,
    /// The content.
    pub content: Vec<u8>,
    /// The time from the Interest to the answer.
    pub rtt: Duration,
    /// How long the first Interest for this floor waited at the producer. The difference to `rtt` is the time
    /// on the network, if that Interest was this consumer's.
    pub waited: Duration,
}

/// Why Data was not accepted. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// It is not an answer to the present Interest: it is late, repeated, or of another topic.
    #[error("not an answer to the present Interest")]
    NotRequested,
    /// The signature is not valid.
    #[error(transparent)]
    Untrusted(#[from] VerifyError),
    /// The content is malformed.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
}

/// Counts of a [`Consumer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerStatistics {
    /// Interests for versions.
    pub interests: u64,
    /// Those among them that were repeated because the one before was not answered.
    pub repeated: u64,
    /// Versions that arrived.
    pub updates: u64,
    /// Data that was refused.
    pub refused: u64,
}

/// Requests the versions of a topic, without sockets and clocks. One Interest is outstanding at any time.
///
/// 1. [`Consumer::new`].
/// 2. [`poll_transmit`](Self::poll_transmit) until it returns false: at first, after every other call, and at
///    [`next_timeout`](Self::next_timeout).
/// 3. [`handle_data`](Self::handle_data) with received Data, [`handle_nack`](Self::handle_nack) with Nacks. After
///    an update, [`pause`](Self::pause) delays the next Interest.
#[derive(Debug)]
pub struct Consumer {
    prefix: Name,
    config: ConsumerConfig,
    first: u64,
    /// One more than the version that it holds, or `first`.
    next: u64,
    /// What it requests: `next`, or `first` and lower if the next version must be whole.
    floor: u64,
    state: State,
    /// No Interest is sent before this time.
    paused_until: Time,
    /// The usual time from an Interest to its answer, with the wait for the version.
    usual: Option<Duration>,
    lifetime: Duration,
    /// How many Interests in a row were not answered.
    unanswered: u32,
    random: Random,
    statistics: ConsumerStatistics,
}

#[derive(Debug)]
enum State {
    /// An Interest is sent at this time; `repeats` if the one before was not answered.
    Due { at: Time, repeats: bool },
    /// An Interest waits for an answer.
    Waiting { sent: Time, expires: Time },
    /// Segments of a long answer are missing.
    Fetching {
        fetch: Box<SegmentFetch>,
        next: u64,
        rtt: Duration,
        expires: Time,
    },
}

impl Consumer {
    /// A consumer of `/<topic>/sync` that holds no version. `first` is the first version of the producer, or 1;
    /// `key` must be unpredictable.
    pub fn new(
        now: Time,
        topic: NameRef<'_>,
        config: ConsumerConfig,
        first: u64,
        key: [u8; 16],
    ) -> Result<Self, NameError> {
        let first = first.max(1);
        Ok(Self {
            prefix: sync_name(topic)?,
            first,
            next: first,
            floor: first,
            state: State::Due {
                at: now,
                repeats: false,
            },
            paused_until: now,
            usual: None,
            lifetime: FIRST_LIFETIME.clamp(config.min_lifetime, config.max_lifetime),
            unanswered: 0,
            random: Random::new(key),
            statistics: ConsumerStatistics::default(),
            config,
        })
    }

    /// `/<topic>/sync`.
    pub fn prefix(&self) -> NameRef<'_> {
        self.prefix.view()
    }

    /// The version that this consumer holds.
    pub fn version(&self) -> Option<u64> {
        (self.next > self.first).then(|| self.next - 1)
    }

    /// Counts since the start.
    pub fn statistics(&self) -> ConsumerStatistics {
        self.statistics
    }

    /// Requests a whole version next, because the content of the last one could not be used.
    pub fn restart(&mut self, now: Time) {
        self.floor = self.first;
        self.state = State::Due {
            at: now,
            repeats: false,
        };
    }

    /// Sends no Interest before a time; an earlier time ends the pause. An Interest that was sent already still
    /// waits for its answer.
    pub fn pause(&mut self, until: Time) {
        self.paused_until = until;
    }

    /// When to call [`poll_transmit`](Self::poll_transmit).
    pub fn next_timeout(&self) -> Time {
        match &self.state {
            State::Due { at, .. } => self.paused_until.max(*at),
            State::Waiting { expires, .. } => self.paused_until.max(*expires),
            State::Fetching { fetch, expires, .. } => {
                fetch.next_timeout().map_or(*expires, |at| at.min(*expires))
            }
        }
    }

    /// Replaces the content of `bytes` by the next Interest to send. False if there is none at this time.
    pub fn poll_transmit(&mut self, now: Time, bytes: &mut Vec<u8>) -> bool {
        bytes.clear();
        match &mut self.state {
            State::Due { at, repeats } => {
                let (at, repeats) = (self.paused_until.max(*at), *repeats);
                at <= now && self.send_interest(now, repeats, bytes)
            }
            State::Waiting { expires, .. } => {
                let is_over = self.paused_until.max(*expires) <= now;
                self.unanswered += u32::from(is_over);
                if is_over && self.unanswered.is_multiple_of(2) {
                    self.lifetime = (self.lifetime * 2).min(self.config.max_lifetime);
                }
                is_over && self.send_interest(now, true, bytes)
            }
            State::Fetching { expires, .. } if *expires <= now => {
                self.send_interest(now, true, bytes)
            }
            State::Fetching { fetch, .. } => fetch.poll_transmit(now, bytes),
        }
    }

    /// Handles Data. Returns the version if it is complete.
    pub fn handle_data(
        &mut self,
        now: Time,
        data: &Data<'_>,
    ) -> Result<Option<Update>, UpdateError> {
        let handled = self.accept(now, data);
        if handled.is_err() {
            self.statistics.refused += 1;
        }
        if matches!(handled, Err(UpdateError::Untrusted(_))) {
            // Caches may hold the forged answer. Every floor up to the first one requests a whole version, under a
            // name that nobody can foresee.
            self.restart(now.after(REFUSED_WAIT));
            self.floor = 1 + self.random.draw() % self.first;
        }
        handled
    }

    /// Handles a Nack of the outstanding Interest: it is repeated a little later.
    pub fn handle_nack(&mut self, now: Time, interest: &Interest<'_>) {
        let name = SyncName::read(self.prefix.view(), interest.name());
        let is_ours = name.is_some_and(|name| name.floor == self.floor && name.next.is_none());
        if let State::Waiting { expires, .. } = &mut self.state
            && is_ours
        {
            *expires = (*expires).min(now.after(NACK_WAIT));
        }
    }

    fn send_interest(&mut self, now: Time, repeats: bool, bytes: &mut Vec<u8>) -> bool {
        let name = SyncName {
            floor: self.floor,
            next: None,
            segment: None,
        };
        let name = name.write(self.prefix.view());
        let margin = (self.lifetime / MARGIN_PART).max(MIN_MARGIN);
        self.state = State::Waiting {
            sent: now,
            expires: now.after(self.lifetime + margin),
        };
        self.statistics.interests += 1;
        self.statistics.repeated += u64::from(repeats);
        let nonce = self.random.nonce();
        let interest = InterestBuilder::new(name.view())
            .can_be_prefix()
            .must_be_fresh()
            .nonce(nonce)
            .lifetime(self.lifetime)
            .hop_limit(HOP_LIMIT);
        interest.encode(bytes).is_ok()
    }

    fn accept(&mut self, now: Time, data: &Data<'_>) -> Result<Option<Update>, UpdateError> {
        let name = SyncName::read(self.prefix.view(), data.name());
        let name = name.filter(|name| name.floor == self.floor);
        let name = name.ok_or(UpdateError::NotRequested)?;
        // An older version than the one it holds was recorded and replayed.
        let next = name
            .next
            .filter(|next| *next > self.floor && *next >= self.next);
        let next = next.ok_or(UpdateError::NotRequested)?;
        match (&mut self.state, name.segment) {
            (State::Waiting { sent, .. }, None) => {
                let rtt = now.since(*sent);
                data.verify(&self.config.verifier)?;
                self.finish(now, next, rtt, data.content()).map(Some)
            }
            (State::Waiting { sent, .. }, Some(0)) => {
                let rtt = now.since(*sent);
                let whole = data.name().prefix(data.name().len() - 1).to_name();
                let [high, low] = [self.random.draw(), self.random.draw()].map(u128::from);
                let key = (high << 64 | low).to_be_bytes();
                let verifier = self.config.verifier.clone();
                let fetch = SegmentFetch::new(whole, verifier, key);
                let mut fetch = fetch.map_err(|_| UpdateError::NotRequested)?;
                fetch.handle_data(data).map_err(not_accepted)?;
                self.state = State::Fetching {
                    fetch: Box::new(fetch),
                    next,
                    rtt,
                    expires: now.after(FETCH_TIMEOUT),
                };
                self.finish_fetch(now)
            }
            (
                State::Fetching {
                    fetch,
                    next: fetched,
                    ..
                },
                Some(_),
            ) if *fetched == next => {
                fetch.handle_data(data).map_err(not_accepted)?;
                self.finish_fetch(now)
            }
            _ => Err(UpdateError::NotRequested),
        }
    }

    fn finish_fetch(&mut self, now: Time) -> Result<Option<Update>, UpdateError> {
        let State::Fetching {
            fetch, next, rtt, ..
        } = &self.state
        else {
            return Ok(None);
        };
        let Some(content) = fetch.content() else {
            return Ok(None);
        };
        let (next, rtt) = (*next, *rtt);
        self.finish(now, next, rtt, &content).map(Some)
    }

    fn finish(
        &mut self,
        now: Time,
        next: u64,
        rtt: Duration,
        content: &[u8],
    ) -> Result<Update, UpdateError> {
        let (waited, is_delta, content) = read_content(content)?;
        let base = self.version();
        let base = base.filter(|_| is_delta && self.floor == self.next);
        if is_delta && base.is_none() {
            return Err(UpdateError::NotRequested);
        }
        let waited = Duration::from_millis(waited);
        // After a loss the version did not wait, and the time is that of the repeated Interest.
        let latest = rtt.max(waited.min(self.config.max_lifetime));
        let usual = self.usual.map_or(latest, |usual| (usual * 7 + latest) / 8);
        self.usual = Some(usual);
        self.lifetime = (usual * 4).clamp(self.config.min_lifetime, self.config.max_lifetime);
        (self.floor, self.next) = (next, next);
        self.unanswered = 0;
        self.state = State::Due {
            at: now,
            repeats: false,
        };
        self.statistics.updates += 1;
        Ok(Update {
            version: next - 1,
            base,
            content: content.to_vec(),
            rtt,
            waited,
        })
    }
}

fn not_accepted(error: FetchError) -> UpdateError {
    match error {
        FetchError::OtherContent => UpdateError::NotRequested,
        FetchError::Untrusted(error) => UpdateError::Untrusted(error),
    }
}
