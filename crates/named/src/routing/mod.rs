//! Link-state routing between forwarders.
//!
//! Every forwarder is a router with a name. Neighbours exchange hellos; a link is up while hellos arrive at
//! both ends. Each router advertises its links and the prefixes of its own applications, and routers flood
//! advertisements, so that all have the same database; from it each computes the cheapest path to every
//! prefix. If an advertisement is lost, the digests in hellos differ, and the neighbours exchange summaries
//! of their databases and send what the other lacks.
//!
//! A hello repeats the number of the last hello that arrived. A link comes up only if that number was sent
//! on this very link, so hellos that were recorded, or copied from another link, do not bring it up.
//!
//! The role is that of NLSR, the protocol is our own. A [`Forwarder`](crate::Forwarder) that was given a
//! [`RoutingConfig`] runs it as part of its own calls; `Router` handles neither packets nor tables.

mod database;
mod message;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use prescient_channels::Time;

pub use database::MAX_ROUTERS;

use crate::error::DecodeError;
use crate::forwarder::FaceId;
use crate::name::Name;
use crate::signature::{Signer, Verifier};
use database::{Database, MAX_AGE};
use message::{
    Advertisement, Hello, MAX_LINKS, MAX_MESSAGE, MAX_PREFIX, MAX_ROUTER_NAME, Message, Summary,
    entry_len, prefix_len,
};

/// The prefix of the Interests that carry messages between routers.
pub(crate) const ROUTING_PREFIX: &str = "/localhop/prescient/routing";

/// The time between two hellos on a link.
const HELLO_INTERVAL: Duration = Duration::from_secs(1);

/// The time without a hello after which a link is down.
const SILENCE: Duration = Duration::from_millis(3500);

/// How many of the last hellos on a link the neighbour may repeat the number of. More than can be under
/// way before the link is silent.
const MAX_SENT: usize = 8;

/// The time after which a router renews its advertisement.
const RENEWAL: Duration = Duration::from_secs(20);

/// The delay from a change to a new advertisement and new routes, so that several changes share one.
const SETTLE: Duration = Duration::from_millis(20);

/// The least time between two summaries to a neighbour. In this time it is also sent at most
/// [`MAX_ROUTERS`] advertisements in reply to its own.
const SUMMARY_INTERVAL: Duration = Duration::from_millis(500);

/// The configuration of a forwarder's routing.
#[derive(Debug)]
pub struct RoutingConfig {
    pub(crate) router: Name,
    pub(crate) started: u64,
    pub(crate) key: Option<(Signer, Verifier)>,
    pub(crate) accept: Option<u64>,
}

impl RoutingConfig {
    /// A router with a name that no other one in the network has. `started` must be higher than at any
    /// earlier start of a router with this name: milliseconds since 1970 will do.
    ///
    /// `None` if the name is empty or longer than 128 bytes.
    pub fn new(router: Name, started: u64) -> Option<Self> {
        let length = router.view().as_bytes().len();
        (1..=MAX_ROUTER_NAME).contains(&length).then_some(Self {
            router,
            started,
            key: None,
            accept: None,
        })
    }

    /// Signs messages with a key that all routers share, and ignores messages without its signature. Every
    /// router with the key is trusted: it can attract the traffic of any prefix.
    pub fn key(mut self, key: &[u8]) -> Self {
        self.key = Some((Signer::hmac(key, None), Verifier::hmac(key)));
        self
    }

    /// Adds every face that sends a signed message as a neighbour, with this cost. Then only one end of a
    /// link has to be configured. Without a key it has no effect.
    pub fn accept_neighbours(mut self, cost: u64) -> Self {
        self.accept = Some(cost);
        self
    }
}

/// A route to a prefix of another router.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NetworkRoute {
    pub(crate) prefix: Name,
    pub(crate) face: FaceId,
}

/// The state of one router, without packets and clocks.
#[derive(Debug)]
pub(crate) struct Router {
    name: Name,
    neighbours: BTreeMap<FaceId, Neighbour>,
    database: Database,
    prefixes: Vec<Name>,
    /// The number of the last hello.
    number: u64,
    /// The sequence of the next own advertisement.
    sequence: u64,
    /// When to send the next own advertisement.
    advertise_at: Time,
    /// When to compute routes, if anything changed.
    compute_at: Option<Time>,
    messages: VecDeque<(FaceId, Message)>,
    routes: Option<BTreeMap<NetworkRoute, u64>>,
}

#[derive(Debug)]
struct Neighbour {
    cost: u64,
    router: Option<Name>,
    /// Hellos arrive at both ends.
    is_up: bool,
    /// The numbers of the last hellos that were sent on this link, the newest last. No other link's hellos
    /// have them.
    sent: VecDeque<u64>,
    /// The number of the last hello that arrived, and when it did.
    last_received: u64,
    received_at: Time,
    hello_at: Time,
    summary_at: Time,
    /// How many advertisements may be sent in reply to summaries until `replies_reset_at`.
    replies_left: usize,
    replies_reset_at: Time,
}

impl Router {
    pub(crate) fn new(now: Time, config: &RoutingConfig) -> Self {
        Self {
            name: config.router.clone(),
            neighbours: BTreeMap::new(),
            database: Database::default(),
            prefixes: Vec::new(),
            number: config.started,
            sequence: config.started,
            advertise_at: now,
            compute_at: None,
            messages: VecDeque::new(),
            routes: None,
        }
    }

    /// Adds a link to another router.
    pub(crate) fn add_neighbour(&mut self, now: Time, face: FaceId, cost: u64) {
        let neighbour = Neighbour {
            cost,
            router: None,
            is_up: false,
            sent: VecDeque::new(),
            last_received: 0,
            received_at: now,
            hello_at: now,
            summary_at: now,
            replies_left: MAX_ROUTERS,
            replies_reset_at: now,
        };
        self.neighbours.insert(face, neighbour);
    }

    pub(crate) fn is_neighbour(&self, face: FaceId) -> bool {
        self.neighbours.contains_key(&face)
    }

    /// Removes a link.
    pub(crate) fn remove_neighbour(&mut self, face: FaceId) {
        if self.neighbours.remove(&face).is_some_and(|gone| gone.is_up) {
            // At the next `handle_timeout`, since the present time is not known here.
            self.advertise_at = Time::default();
            self.compute_at = Some(Time::default());
        }
    }

    /// The prefixes of this router's own applications, in order.
    pub(crate) fn set_prefixes(&mut self, now: Time, prefixes: Vec<Name>) {
        if self.prefixes != prefixes {
            self.prefixes = prefixes;
            self.changed(now);
        }
    }

    pub(crate) fn handle_message(
        &mut self,
        now: Time,
        face: FaceId,
        bytes: &[u8],
    ) -> Result<(), DecodeError> {
        match Message::decode(bytes)? {
            Message::Hello(hello) => self.handle_hello(now, face, hello),
            Message::Summary(summary) => self.handle_summary(now, face, &summary),
            Message::Update(update) => self.handle_update(now, face, update),
        }
        Ok(())
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        let is_silent = |neighbour: &Neighbour| now.since(neighbour.received_at) >= SILENCE;
        let mut is_lost = false;
        for neighbour in self.neighbours.values_mut() {
            if neighbour.router.is_some() && is_silent(neighbour) {
                is_lost |= neighbour.is_up;
                neighbour.router = None;
                neighbour.is_up = false;
            }
        }
        if is_lost {
            self.changed(now);
        }
        if self.database.expire(now) {
            self.schedule_compute(now);
        }
        let due = |neighbour: &Neighbour| neighbour.hello_at <= now;
        let faces = self.neighbours.iter().filter(|(_, it)| due(it));
        let faces: Vec<FaceId> = faces.map(|(face, _)| *face).collect();
        faces
            .into_iter()
            .for_each(|face| self.send_hello(now, face));
        if self.advertise_at <= now {
            self.advertise(now);
        }
        if self.compute_at.is_some_and(|due| due <= now) {
            self.compute_at = None;
            self.routes = Some(self.compute());
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let neighbours = self.neighbours.values().flat_map(|neighbour| {
            let silence = neighbour.router.as_ref();
            let silence = silence.map(|_| neighbour.received_at.after(SILENCE));
            [Some(neighbour.hello_at), silence]
        });
        let own = [
            Some(self.advertise_at),
            self.compute_at,
            self.database.next_timeout(),
        ];
        neighbours.chain(own).flatten().min()
    }

    /// The next message for a neighbour.
    pub(crate) fn poll_message(&mut self) -> Option<(FaceId, Vec<u8>)> {
        let (face, message) = self.messages.pop_front()?;
        Some((face, message.encode()))
    }

    /// All routes and their costs, if they were computed since the last call.
    pub(crate) fn poll_routes(&mut self) -> Option<BTreeMap<NetworkRoute, u64>> {
        self.routes.take()
    }

    fn handle_hello(&mut self, now: Time, face: FaceId, hello: Hello) {
        let Some(neighbour) = self.neighbours.get_mut(&face) else {
            return;
        };
        // Ignores own hellos that were reflected, duplicates, and other routers until this one is silent:
        // a recorded hello must not take a link down.
        let is_ignored = neighbour.router.as_ref().is_some_and(|router| {
            *router != hello.router || hello.number <= neighbour.last_received
        });
        if is_ignored || hello.router == self.name {
            return;
        }
        let is_up = hello.received.is_some_and(|(router, number)| {
            router == self.name && neighbour.sent.contains(&number)
        });
        let is_new = neighbour.router.is_none();
        let was_up = neighbour.is_up;
        neighbour.last_received = hello.number;
        neighbour.received_at = now;
        neighbour.router = Some(hello.router);
        neighbour.is_up = is_up;
        if is_new || is_up != was_up {
            // An early hello, so that the other end learns of it at once.
            neighbour.hello_at = now;
            self.changed(now);
        }
        if is_up && hello.digest != self.database.digest() {
            self.send_summary(now, face);
        }
    }

    /// Sends the advertisements that the neighbour lacks, or has an older version of.
    fn handle_summary(&mut self, now: Time, face: FaceId, summary: &Summary) {
        if !self.is_up(face) {
            return;
        }
        let replies_left = self.replies_left(now, face);
        let last = summary.entries.last().map(|(router, _)| router);
        let newer = self.database.entries().filter(|(router, sequence)| {
            let is_covered = Some(*router) > summary.after.as_ref()
                && (summary.is_last || last.is_some_and(|last| *router <= last));
            let theirs = summary
                .entries
                .binary_search_by(|(other, _)| other.cmp(router));
            let theirs = theirs.ok().map(|index| summary.entries[index].1);
            is_covered && theirs < Some(*sequence)
        });
        let newer = newer.take(replies_left);
        let newer: Vec<Name> = newer.map(|(router, _)| router.clone()).collect();
        if let Some(neighbour) = self.neighbours.get_mut(&face) {
            neighbour.replies_left -= newer.len();
        }
        for router in newer {
            self.send_update(now, face, &router);
        }
    }

    fn replies_left(&mut self, now: Time, face: FaceId) -> usize {
        let Some(neighbour) = self.neighbours.get_mut(&face) else {
            return 0;
        };
        if neighbour.replies_reset_at <= now {
            neighbour.replies_reset_at = now.after(SUMMARY_INTERVAL);
            neighbour.replies_left = MAX_ROUTERS;
        }
        neighbour.replies_left
    }

    fn handle_update(&mut self, now: Time, face: FaceId, update: Advertisement) {
        if !self.is_up(face) {
            return;
        }
        if update.router == self.name {
            // From before a restart, or forged. The next own advertisement replaces it.
            if update.sequence >= self.sequence {
                self.sequence = update.sequence.saturating_add(1);
                self.advertise_at = now;
            }
            return;
        }
        let router = update.router.clone();
        if self.database.insert(now, update) {
            self.schedule_compute(now);
            self.flood(now, &router, Some(face));
        }
    }

    fn is_up(&self, face: FaceId) -> bool {
        let neighbour = self.neighbours.get(&face);
        neighbour.is_some_and(|neighbour| neighbour.is_up)
    }

    /// Schedules a new advertisement and new routes.
    fn changed(&mut self, now: Time) {
        self.advertise_at = self.advertise_at.min(now.after(SETTLE));
        self.schedule_compute(now);
    }

    fn schedule_compute(&mut self, now: Time) {
        let soon = now.after(SETTLE);
        self.compute_at = Some(self.compute_at.map_or(soon, |due| due.min(soon)));
    }

    fn advertise(&mut self, now: Time) {
        self.advertise_at = now.after(RENEWAL);
        let mut links = BTreeMap::new();
        for neighbour in self.neighbours.values().filter(|it| it.is_up) {
            if let Some(router) = &neighbour.router {
                let cost = links.entry(router.clone()).or_insert(neighbour.cost);
                *cost = neighbour.cost.min(*cost);
            }
        }
        let links: Vec<(Name, u64)> = links.into_iter().take(MAX_LINKS).collect();
        let mut room = MAX_MESSAGE;
        let links_len: usize = links.iter().map(|(router, _)| entry_len(router)).sum();
        room = room.saturating_sub(links_len);
        let fitting = self.prefixes.iter().filter(|prefix| {
            let length = prefix_len(prefix);
            let fits = length <= room && prefix.view().as_bytes().len() <= MAX_PREFIX;
            if fits {
                room -= length;
            }
            fits
        });
        let own = Advertisement {
            router: self.name.clone(),
            sequence: self.sequence,
            age: Duration::ZERO,
            prefixes: fitting.cloned().collect(),
            links,
        };
        self.sequence = self.sequence.saturating_add(1);
        self.database.insert(now, own);
        self.schedule_compute(now);
        let name = self.name.clone();
        self.flood(now, &name, None);
    }

    fn flood(&mut self, now: Time, router: &Name, except: Option<FaceId>) {
        let faces = self.neighbours.iter().filter(|(_, it)| it.is_up);
        let faces: Vec<FaceId> = faces.map(|(face, _)| *face).collect();
        for face in faces {
            if Some(face) != except {
                self.send_update(now, face, router);
            }
        }
    }

    fn send_update(&mut self, now: Time, face: FaceId, router: &Name) {
        if let Some(advertisement) = self.database.get(now, router) {
            self.send(face, Message::Update(advertisement));
        }
    }

    fn send_hello(&mut self, now: Time, face: FaceId) {
        let Some(neighbour) = self.neighbours.get_mut(&face) else {
            return;
        };
        neighbour.hello_at = now.after(HELLO_INTERVAL);
        self.number = self.number.saturating_add(1);
        if neighbour.sent.len() == MAX_SENT {
            neighbour.sent.pop_front();
        }
        neighbour.sent.push_back(self.number);
        let received = neighbour.router.clone();
        let hello = Hello {
            router: self.name.clone(),
            number: self.number,
            received: received.map(|router| (router, neighbour.last_received)),
            digest: self.database.digest(),
        };
        self.send(face, Message::Hello(hello));
    }

    /// Sends a summary of the database, in several messages if it is too long for one.
    fn send_summary(&mut self, now: Time, face: FaceId) {
        let Some(neighbour) = self.neighbours.get_mut(&face) else {
            return;
        };
        if neighbour.summary_at > now {
            return;
        }
        neighbour.summary_at = now.after(SUMMARY_INTERVAL);
        let mut parts = vec![Summary {
            after: None,
            entries: Vec::new(),
            is_last: false,
        }];
        let mut room = MAX_MESSAGE;
        for (router, sequence) in self.database.entries() {
            let length = entry_len(router);
            if length > room {
                let last = parts.last().and_then(|part| part.entries.last());
                parts.push(Summary {
                    after: last.map(|(router, _)| router.clone()),
                    entries: Vec::new(),
                    is_last: false,
                });
                room = MAX_MESSAGE;
            }
            room -= length;
            if let Some(part) = parts.last_mut() {
                part.entries.push((router.clone(), sequence));
            }
        }
        if let Some(part) = parts.last_mut() {
            part.is_last = true;
        }
        for part in parts {
            self.send(face, Message::Summary(part));
        }
    }

    fn send(&mut self, face: FaceId, message: Message) {
        self.messages.push_back((face, message));
    }

    /// The route to every prefix of every router that can be reached, over the cheapest path.
    fn compute(&self) -> BTreeMap<NetworkRoute, u64> {
        let up = self.neighbours.iter().filter(|(_, it)| it.is_up);
        let first_hops = up.filter_map(|(face, neighbour)| {
            let router = neighbour.router.as_ref()?;
            Some((neighbour.cost, *face, router))
        });
        let paths = self.database.paths(&self.name, first_hops);
        let mut routes = BTreeMap::new();
        for (router, (cost, face)) in paths {
            for prefix in self.database.prefixes(router) {
                let route = NetworkRoute {
                    prefix: prefix.clone(),
                    face,
                };
                let best = routes.entry(route).or_insert(cost);
                *best = cost.min(*best);
            }
        }
        routes
    }
}

/// The prefixes of local applications that may leave this machine.
pub(crate) fn advertised(prefixes: BTreeSet<Name>) -> Vec<Name> {
    let is_local = |prefix: &Name| {
        let first = prefix.view().get(0);
        first.is_some_and(|first| matches!(first.value, b"localhost" | b"localhop"))
    };
    prefixes.into_iter().filter(|it| !is_local(it)).collect()
}

// An advertisement is renewed at least twice before it expires.
const _: () = assert!(RENEWAL.as_secs() * 2 < MAX_AGE.as_secs());

#[cfg(test)]
mod tests {
    use super::*;

    const FACE: FaceId = FaceId(1);

    fn name(text: &str) -> Name {
        text.parse().expect("a name")
    }

    fn router(text: &str, now: Time) -> Router {
        let config = RoutingConfig::new(name(text), 1000).expect("a good name");
        let mut router = Router::new(now, &config);
        router.add_neighbour(now, FACE, 1);
        router
    }

    fn messages(router: &mut Router) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| router.poll_message())
            .map(|(_, message)| message)
            .collect()
    }

    /// Two routers with a link that is up, and all messages that the second sent.
    fn linked() -> (Time, Router, Router, Vec<Vec<u8>>) {
        let mut now = Time::from_micros(1);
        let (mut one, mut other) = (router("/one", now), router("/other", now));
        let mut sent = Vec::new();
        for _ in 0..4 {
            one.handle_timeout(now);
            other.handle_timeout(now);
            let (ones, others) = (messages(&mut one), messages(&mut other));
            for message in &ones {
                assert_eq!(other.handle_message(now, FACE, message), Ok(()));
            }
            for message in &others {
                assert_eq!(one.handle_message(now, FACE, message), Ok(()));
            }
            sent.extend(others);
            now = now.after(HELLO_INTERVAL);
        }
        assert!(one.is_up(FACE) && other.is_up(FACE));
        (now, one, other, sent)
    }

    /// All messages of a neighbour, recorded and sent again on another link, among them a hello that is
    /// newer than that link.
    ///
    /// Fails if `handle_hello` accepts a repeated number that was sent on another link (`sent.contains`
    /// replaced by a comparison with the first number of this link), or any number.
    #[test]
    fn recorded_messages_bring_no_link_up() {
        let (now, mut one, mut other, mut recorded) = linked();
        let attacker = FaceId(2);
        one.add_neighbour(now, attacker, 1);
        one.handle_timeout(now);
        while let Some((face, message)) = one.poll_message() {
            if face == FACE {
                assert_eq!(other.handle_message(now, FACE, &message), Ok(()));
            }
        }
        let now = now.after(HELLO_INTERVAL);
        other.handle_timeout(now);
        recorded.extend(messages(&mut other));
        for message in &recorded {
            assert_eq!(one.handle_message(now, attacker, message), Ok(()));
        }
        assert!(!one.is_up(attacker));
        assert!(one.is_up(FACE));
    }

    /// Another router's recorded hello arrives on a link that is up; later another router replaces the
    /// neighbour, with hello numbers that are lower.
    ///
    /// Fails if `handle_hello` takes hellos of any router at any time (`*router != hello.router` left out), or
    /// compares the numbers of different routers.
    #[test]
    fn a_link_changes_its_router_only_after_silence() {
        let (now, mut one, _, _) = linked();
        let config = RoutingConfig::new(name("/third"), 1).expect("a good name");
        let mut third = Router::new(now, &config);
        third.add_neighbour(now, FACE, 1);
        third.handle_timeout(now);
        for message in messages(&mut third) {
            assert_eq!(one.handle_message(now, FACE, &message), Ok(()));
        }
        assert!(one.is_up(FACE));
        let mut now = now.after(SILENCE);
        one.handle_timeout(now);
        assert!(!one.is_up(FACE));
        for _ in 0..4 {
            one.handle_timeout(now);
            third.handle_timeout(now);
            for message in messages(&mut one) {
                assert_eq!(third.handle_message(now, FACE, &message), Ok(()));
            }
            for message in messages(&mut third) {
                assert_eq!(one.handle_message(now, FACE, &message), Ok(()));
            }
            now = now.after(HELLO_INTERVAL);
        }
        assert!(one.is_up(FACE) && third.is_up(FACE));
    }

    /// Fails if `handle_summary` does not count its replies.
    #[test]
    fn replies_to_summaries_are_limited() {
        let (now, mut one, _, _) = linked();
        messages(&mut one);
        let empty = Message::Summary(Summary {
            after: None,
            entries: Vec::new(),
            is_last: true,
        });
        for _ in 0..10 * MAX_ROUTERS {
            let taken = one.handle_message(now, FACE, &empty.encode());
            assert_eq!(taken, Ok(()));
        }
        assert_eq!(messages(&mut one).len(), MAX_ROUTERS);
        let later = now.after(SUMMARY_INTERVAL);
        assert_eq!(one.handle_message(later, FACE, &empty.encode()), Ok(()));
        assert_eq!(messages(&mut one).len(), 2);
    }

    /// Fails if a prefix that does not fit ends the list (`take_while` in `advertise`).
    #[test]
    fn prefixes_that_do_not_fit_are_left_out() {
        let (now, mut one, mut other, _) = linked();
        let long = name(&format!("/{}", "a".repeat(MAX_PREFIX)));
        one.set_prefixes(now, vec![long, name("/b")]);
        let now = now.after(SETTLE);
        one.handle_timeout(now);
        for message in messages(&mut one) {
            assert_eq!(other.handle_message(now, FACE, &message), Ok(()));
        }
        let found = other.database.prefixes(&name("/one"));
        assert_eq!(found, BTreeSet::from([&name("/b")]));
    }
}
