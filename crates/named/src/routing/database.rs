//! The advertisements of all routers, and the shortest paths through their links.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use prescient_channels::Time;

use super::message::Advertisement;
use crate::forwarder::FaceId;
use crate::hash::Hasher;
use crate::name::Name;

/// The age at which an advertisement is removed if its router does not renew it.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(60);

/// The most routers of a network; further ones are ignored.
pub const MAX_ROUTERS: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Database {
    routers: BTreeMap<Name, Entry>,
    digest: u64,
}

#[derive(Debug)]
struct Entry {
    advertisement: Advertisement,
    /// The time of its arrival, when it had the advertisement's `age`.
    since: Time,
}

impl Entry {
    fn age(&self, now: Time) -> Duration {
        let stored = now.since(self.since);
        self.advertisement.age.saturating_add(stored)
    }

    fn expires(&self) -> Time {
        self.since
            .after(MAX_AGE.saturating_sub(self.advertisement.age))
    }
}

impl Database {
    /// Stores an advertisement if it is newer than the stored one of its router. True if it is.
    pub(crate) fn insert(&mut self, now: Time, advertisement: Advertisement) -> bool {
        let known = self.sequence(&advertisement.router);
        let is_full = known.is_none() && self.routers.len() >= MAX_ROUTERS;
        if known >= Some(advertisement.sequence) || is_full || advertisement.age >= MAX_AGE {
            return false;
        }
        self.remove(&advertisement.router);
        self.digest = self.digest.wrapping_add(digest(&advertisement));
        let router = advertisement.router.clone();
        let entry = Entry {
            advertisement,
            since: now,
        };
        self.routers.insert(router, entry);
        true
    }

    fn remove(&mut self, router: &Name) {
        if let Some(entry) = self.routers.remove(router) {
            self.digest = self.digest.wrapping_sub(digest(&entry.advertisement));
        }
    }

    /// The sequence of a router's stored advertisement.
    pub(crate) fn sequence(&self, router: &Name) -> Option<u64> {
        let entry = self.routers.get(router)?;
        Some(entry.advertisement.sequence)
    }

    /// A router's advertisement with its present age.
    pub(crate) fn get(&self, now: Time, router: &Name) -> Option<Advertisement> {
        let entry = self.routers.get(router)?;
        let age = entry.age(now);
        Some(Advertisement {
            age,
            ..entry.advertisement.clone()
        })
    }

    /// All routers and the sequences of their advertisements, in the order of their names.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Name, u64)> {
        let entries = self.routers.iter();
        entries.map(|(router, entry)| (router, entry.advertisement.sequence))
    }

    /// A hash of all entries: databases with equal digests are taken for equal.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// Removes advertisements that are too old. True if there were any.
    pub(crate) fn expire(&mut self, now: Time) -> bool {
        let is_old = |entry: &Entry| entry.expires() <= now;
        let old = self.routers.iter().filter(|(_, entry)| is_old(entry));
        let old: Vec<Name> = old.map(|(router, _)| router.clone()).collect();
        old.iter().for_each(|router| self.remove(router));
        !old.is_empty()
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.routers.values().map(Entry::expires).min()
    }

    /// The cost of the cheapest path to each router that can be reached, and the face on which the path
    /// begins. `first_hops` are the links of the router `own`, which paths do not return to. A link counts
    /// if both its ends advertise it.
    pub(crate) fn paths<'a>(
        &'a self,
        own: &Name,
        first_hops: impl Iterator<Item = (u64, FaceId, &'a Name)>,
    ) -> BTreeMap<&'a Name, (u64, FaceId)> {
        let mut paths = BTreeMap::new();
        let is_known = |hop: &(u64, FaceId, &Name)| self.routers.contains_key(hop.2);
        let mut next: BinaryHeap<_> = first_hops.filter(is_known).map(Reverse).collect();
        while let Some(Reverse((cost, face, router))) = next.pop() {
            if router == own || paths.contains_key(router) {
                continue;
            }
            paths.insert(router, (cost, face));
            for (neighbour, link) in self.links(router) {
                next.push(Reverse((cost.saturating_add(link), face, neighbour)));
            }
        }
        paths
    }

    fn links(&self, router: &Name) -> impl Iterator<Item = (&Name, u64)> {
        let links = self.routers.get(router);
        let links = links.map_or(&[][..], |entry| &entry.advertisement.links);
        links.iter().filter_map(move |(neighbour, cost)| {
            let (neighbour, entry) = self.routers.get_key_value(neighbour)?;
            let back = &entry.advertisement.links;
            let back = back.binary_search_by(|(other, _)| other.cmp(router));
            back.is_ok().then_some((neighbour, *cost))
        })
    }

    /// The prefixes that a router advertises.
    pub(crate) fn prefixes(&self, router: &Name) -> BTreeSet<&Name> {
        let entry = self.routers.get(router);
        let prefixes = entry.map_or(&[][..], |entry| &entry.advertisement.prefixes);
        prefixes.iter().collect()
    }
}

/// Neighbours compare digests, so the key of the hash is a constant.
fn digest(advertisement: &Advertisement) -> u64 {
    let mut bytes = advertisement.router.view().as_bytes().to_vec();
    bytes.extend_from_slice(&advertisement.sequence.to_be_bytes());
    Hasher::new([0; 16]).hash(&bytes)
}
