//! The producer of a topic's versions.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use prescient_channels::Time;

use super::segments::{MAX_SEGMENT, SegmentError, SegmentedContent};
use super::{SyncName, sync_name, write_content};
use crate::data::DataBuilder;
use crate::error::NameError;
use crate::interest::Interest;
use crate::name::{Name, NameRef};
use crate::signature::Signer;

/// The hop limit of a consumer's Interests, from which a producer sees how many forwarders they passed.
pub(super) const HOP_LIMIT: u8 = 64;

/// The most floors that wait for an answer; further Interests are dropped, and their consumers repeat them.
const MAX_WAITING: usize = 64;

/// The most long contents whose further segments can be requested.
const MAX_SEGMENTED: usize = 4;

/// The time in which a producer forgets about distant consumers that are gone.
const MEMORY: Duration = Duration::from_secs(8);

/// How long caches treat an answer as fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Freshness {
    /// Not at all: only consumers that wait together share an answer.
    None,
    /// For this time after its arrival at each cache.
    Fixed(Duration),
    /// Such that no consumer gets an answer that is older than this, however many caches are on the way: the
    /// time is divided by the number of forwarders that recent Interests have passed.
    MaxAge(Duration),
}

/// The configuration of a [`Producer`].
#[derive(Debug)]
pub struct ProducerConfig {
    signer: Signer,
    freshness: Freshness,
}

impl ProducerConfig {
    /// Signs answers with a key; fresh for 20 ms.
    pub fn new(signer: Signer) -> Self {
        Self {
            signer,
            freshness: Freshness::Fixed(Duration::from_millis(20)),
        }
    }

    /// Sets how long caches treat answers as fresh.
    pub fn freshness(mut self, freshness: Freshness) -> Self {
        self.freshness = freshness;
        self
    }
}

/// Consumers at a floor that wait for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The lowest version that answers it.
    pub floor: u64,
    /// When the first Interest for it arrived.
    pub arrived: Time,
    /// The version that these consumers hold; `None` if they hold none.
    pub base: Option<u64>,
    /// An answer that is sent by this time arrives before the first of these Interests expires on its way.
    ///
    /// A producer that has nothing new should publish at this time all the same. Interests that expire are repeated,
    /// but forwarders forget them at different times: until the repeated one has reached the producer, which can take
    /// a lifetime, no update reaches the consumers.
    pub answer_by: Time,
}

/// What answers a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The bytes of the newest version.
    pub content: Vec<u8>,
    /// Whether they are a delta from [`Request::base`].
    pub is_delta: bool,
}

/// Counts of a [`Producer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProducerStatistics {
    /// Interests that arrived.
    pub interests: u64,
    /// Answers that were made, without further segments.
    pub answers: u64,
    /// Further segments that were sent.
    pub segments: u64,
    /// Interests that were dropped because too many floors waited.
    pub dropped: u64,
    /// Interests that expired while they waited.
    pub expired: u64,
}

/// Publishes versions of a topic, without sockets and clocks.
///
/// 1. [`Producer::new`], and register [`prefix`](Self::prefix) at the forwarder.
/// 2. [`handle_interest`](Self::handle_interest) with received Interests; send what it returns.
/// 3. [`publish`](Self::publish) when the topic has changed.
/// 4. At a fixed rate or after these calls: [`poll_transmit`](Self::poll_transmit) until it returns false, and send
///    the packets. ([`poll_request`](Self::poll_request) and [`answer`](Self::answer) are its two halves.)
#[derive(Debug)]
pub struct Producer {
    prefix: Name,
    config: ProducerConfig,
    first: u64,
    /// The next version.
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
    segmented: VecDeque<SegmentedContent>,
    /// The most forwarders that an Interest has passed, in the present and in the previous span of time, and
    /// the end of the present one.
    hops: (u8, u8),
    hops_until: Time,
    statistics: ProducerStatistics,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    arrived: Time,
    answer_by: Time,
    expires: Time,
}

impl Producer {
    /// A producer of `/<topic>/sync`, whose first version has the number `first`; see
    /// [`first_version`](super::first_version).
    pub fn new(topic: NameRef<'_>, config: ProducerConfig, first: u64) -> Result<Self, NameError> {
        let first = first.max(1);
        Ok(Self {
            prefix: sync_name(topic)?,
            config,
            first,
            next: first,
            waiting: BTreeMap::new(),
            segmented: VecDeque::new(),
            hops: (0, 0),
            hops_until: Time::default(),
            statistics: ProducerStatistics::default(),
        })
    }

    /// `/<topic>/sync`.
    pub fn prefix(&self) -> NameRef<'_> {
        self.prefix.view()
    }

    /// The newest version; `None` if none was published.
    pub fn version(&self) -> Option<u64> {
        (self.next > self.first).then(|| self.next - 1)
    }

    /// Counts since the start.
    pub fn statistics(&self) -> ProducerStatistics {
        self.statistics
    }

    /// Publishes a version and returns its number.
    pub fn publish(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Handles an Interest below [`prefix`](Self::prefix). Returns a packet to send at once if it was for a
    /// segment of a long content.
    pub fn handle_interest(&mut self, now: Time, interest: &Interest<'_>) -> Option<&[u8]> {
        let name = SyncName::read(self.prefix.view(), interest.name())?;
        if name.next.is_some() {
            let contents = self.segmented.iter();
            let packet = contents
                .filter_map(|content| content.answer(interest.name()))
                .next()?;
            self.statistics.segments += 1;
            return Some(packet);
        }
        self.statistics.interests += 1;
        self.note_hops(now, interest.hop_limit());
        let waiting = Waiting {
            arrived: now,
            // Consumers set the lifetime to four times the usual time to an answer, or more.
            answer_by: now.after(interest.lifetime() * 3 / 4),
            expires: now.after(interest.lifetime()),
        };
        self.drop_expired(now);
        if let Some(known) = self.waiting.get_mut(&name.floor) {
            known.answer_by = known.answer_by.min(waiting.answer_by);
            known.expires = known.expires.max(waiting.expires);
        } else if self.waiting.len() < MAX_WAITING {
            self.waiting.insert(name.floor, waiting);
        } else {
            self.statistics.dropped += 1;
        }
        None
    }

    /// All floors that wait, whether they can be answered or not.
    pub fn waiting(&self, now: Time) -> impl Iterator<Item = Request> {
        let waiting = self.waiting.iter();
        let alive = waiting.filter(move |(_, waiting)| waiting.expires > now);
        alive.map(|(&floor, waiting)| self.request(floor, waiting))
    }

    /// The next request that the newest version answers.
    pub fn poll_request(&mut self, now: Time) -> Option<Request> {
        self.version()?;
        self.drop_expired(now);
        // Floors that are not reached yet are those of an earlier life, or forged.
        let is_due = |floor: &&u64| **floor != self.next;
        let floor = *self.waiting.keys().find(is_due)?;
        let waiting = self.waiting.remove(&floor)?;
        Some(self.request(floor, &waiting))
    }

    /// Replaces the content of `bytes` by the answer to the next request that the newest version answers. `answer`
    /// makes it; requests for which it returns `None` are dropped, and their consumers repeat them. False if there is
    /// no request.
    pub fn poll_transmit(
        &mut self,
        now: Time,
        mut answer: impl FnMut(&Request) -> Option<Answer>,
        bytes: &mut Vec<u8>,
    ) -> bool {
        bytes.clear();
        while let Some(request) = self.poll_request(now) {
            if let Some(answer) = answer(&request) {
                if self.answer(now, request, &answer, bytes).is_ok() {
                    return true;
                }
                bytes.clear();
            }
        }
        false
    }

    /// Appends the answer to a request.
    pub fn answer(
        &mut self,
        now: Time,
        request: Request,
        answer: &Answer,
        bytes: &mut Vec<u8>,
    ) -> Result<(), SegmentError> {
        let waited = now.since(request.arrived).as_millis() as u64;
        let content = write_content(waited, answer.is_delta, &answer.content);
        let name = SyncName {
            floor: request.floor,
            next: Some(self.next),
            segment: None,
        };
        let name = name.write(self.prefix.view());
        let freshness = self.freshness();
        if content.len() <= MAX_SEGMENT {
            let mut data = DataBuilder::new(name.view()).content(&content);
            if let Some(freshness) = freshness {
                data = data.freshness(freshness);
            }
            data.sign(&self.config.signer, bytes)?;
        } else {
            let freshness = freshness.unwrap_or_default();
            let content = SegmentedContent::new(name, &content, freshness, &self.config.signer)?;
            bytes.extend_from_slice(content.segment(0).unwrap_or_default());
            if self.segmented.len() == MAX_SEGMENTED {
                self.segmented.pop_front();
            }
            self.segmented.push_back(content);
        }
        self.statistics.answers += 1;
        Ok(())
    }

    /// The freshness of answers, from the configuration and the perceived topology; `None` if they are not to
    /// be cached.
    pub fn freshness(&self) -> Option<Duration> {
        match self.config.freshness {
            Freshness::None => None,
            Freshness::Fixed(period) => Some(period),
            Freshness::MaxAge(age) => {
                let forwarders = u32::from(self.hops.0.max(self.hops.1).max(1));
                Some(age / forwarders)
            }
        }
    }

    fn request(&self, floor: u64, waiting: &Waiting) -> Request {
        let is_known = floor > self.first && floor <= self.next;
        Request {
            floor,
            arrived: waiting.arrived,
            base: is_known.then(|| floor - 1),
            answer_by: waiting.answer_by,
        }
    }

    fn drop_expired(&mut self, now: Time) {
        let before = self.waiting.len();
        self.waiting.retain(|_, waiting| waiting.expires > now);
        self.statistics.expired += (before - self.waiting.len()) as u64;
    }

    fn note_hops(&mut self, now: Time, hop_limit: Option<u8>) {
        if now >= self.hops_until {
            self.hops = (0, self.hops.0);
            self.hops_until = now.after(MEMORY);
        }
        // Every forwarder on the way has taken one.
        let passed = hop_limit.and_then(|limit| HOP_LIMIT.checked_sub(limit));
        self.hops.0 = self.hops.0.max(passed.unwrap_or(0));
    }
}
