//! The forwarding information base: next hops by name prefix.
//!
//! A lookup starts at the longest prefix that has routes. Routes of shorter prefixes are used as well, if
//! they have the flag `inherit` and no longer prefix has a route with the flag `capture`, as in NFD.

use std::collections::BTreeSet;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;
use prescient_channels::Time;

use super::face::FaceId;
use super::strategy::Strategy;
use crate::hash::{Hasher, Prefix};
use crate::name::{MAX_COMPONENTS, Name, NameRef};

/// A face for a name, and the cost of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextHop {
    pub(crate) face: FaceId,
    pub(crate) cost: u64,
}

/// A route for a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) face: FaceId,
    /// The kind of program that added it, as a number of the management protocol. Routes of different
    /// origins do not replace each other.
    pub(crate) origin: u64,
    pub(crate) cost: u64,
    pub(crate) inherit: bool,
    pub(crate) capture: bool,
    pub(crate) expires: Option<Time>,
}

impl Route {
    fn is_of(&self, face: FaceId, origin: u64) -> bool {
        self.face == face && self.origin == origin
    }
}

#[derive(Debug)]
struct Entry {
    name: Box<[u8]>,
    hash: u64,
    routes: Vec<Route>,
    strategy: Option<Strategy>,
}

impl Entry {
    fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.strategy.is_none()
    }
}

#[derive(Debug)]
pub(crate) struct Fib {
    /// No result depends on its iteration order.
    table: HashTable<Entry>,
    routes: usize,
    /// The number of entries by number of components. A lookup starts at the longest.
    depths: [usize; MAX_COMPONENTS + 1],
    /// A lower bound of all expiry times.
    next_expiry: Option<Time>,
    hasher: Hasher,
}

impl Fib {
    pub(crate) fn new(hasher: Hasher) -> Self {
        Self {
            table: HashTable::new(),
            routes: 0,
            depths: [0; MAX_COMPONENTS + 1],
            next_expiry: None,
            hasher,
        }
    }

    /// The number of routes.
    pub(crate) fn len(&self) -> usize {
        self.routes
    }

    /// Adds a route, or replaces the one with the same face and origin.
    pub(crate) fn insert(&mut self, prefix: NameRef<'_>, route: Route) {
        let sooner = |known: Time| route.expires.map_or(known, |own| own.min(known));
        self.next_expiry = self.next_expiry.map(sooner).or(route.expires);
        let entry = self.entry(prefix);
        let mut routes = entry.routes.iter_mut();
        if let Some(old) = routes.find(|old| old.is_of(route.face, route.origin)) {
            *old = route;
            return;
        }
        entry.routes.push(route);
        self.routes += 1;
    }

    /// Whether there is a route with this face and origin.
    pub(crate) fn contains(&self, prefix: NameRef<'_>, face: FaceId, origin: u64) -> bool {
        let entry = self.find(self.hasher.hash(prefix.as_bytes()), prefix.as_bytes());
        let is_it = |route: &Route| route.is_of(face, origin);
        entry.is_some_and(|entry| entry.routes.iter().any(is_it))
    }

    /// Removes the route with this face and origin. False if there is none.
    pub(crate) fn remove(&mut self, prefix: NameRef<'_>, face: FaceId, origin: u64) -> bool {
        let before = self.routes;
        self.update(prefix, |entry| {
            entry.routes.retain(|route| !route.is_of(face, origin));
        });
        self.routes < before
    }

    /// Removes all routes to a face.
    pub(crate) fn remove_face(&mut self, face: FaceId) {
        self.retain(|route| route.face != face);
    }

    /// Removes expired routes, and calls `expired` with the face of each.
    pub(crate) fn expire(&mut self, now: Time, mut expired: impl FnMut(FaceId)) {
        if self.next_expiry.is_none_or(|due| due > now) {
            return;
        }
        self.next_expiry = None;
        let mut next: Option<Time> = None;
        self.retain(|route| {
            let Some(due) = route.expires else {
                return true;
            };
            if due <= now {
                expired(route.face);
                return false;
            }
            next = Some(next.map_or(due, |next| next.min(due)));
            true
        });
        self.next_expiry = next;
    }

    /// No route expires before this time.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.next_expiry
    }

    /// Sets the strategy of a prefix; `None` for that of a shorter prefix.
    pub(crate) fn set_strategy(&mut self, prefix: NameRef<'_>, strategy: Option<Strategy>) {
        self.entry(prefix);
        self.update(prefix, |entry| entry.strategy = strategy);
    }

    /// Finds the next hops of a name, the cheapest first, and its strategy. `prefixes` are those of the
    /// name.
    pub(crate) fn lookup(
        &self,
        name: NameRef<'_>,
        prefixes: &[Prefix],
        hops: &mut Vec<NextHop>,
    ) -> Strategy {
        hops.clear();
        let mut strategy = None;
        let mut is_captured = false;
        let deepest = self.depths.iter().rposition(|&entries| entries > 0);
        let relevant = deepest.map_or(0, |deepest| prefixes.len().min(deepest + 1));
        for prefix in prefixes[..relevant].iter().rev() {
            let Some(entry) = self.find(prefix.hash, &name.as_bytes()[..prefix.end]) else {
                continue;
            };
            strategy = strategy.or(entry.strategy);
            if !is_captured {
                add_routes(hops, &entry.routes);
                is_captured = entry.routes.iter().any(|route| route.capture);
            } else if strategy.is_some() {
                break;
            }
        }
        hops.sort_unstable_by_key(|hop| (hop.cost, hop.face));
        strategy.unwrap_or_default()
    }

    /// Prefixes with a route that passes the filter.
    pub(crate) fn prefixes(&self, is_wanted: impl Fn(&Route) -> bool) -> BTreeSet<Name> {
        let entries = self.table.iter();
        let wanted = entries.filter(|entry| entry.routes.iter().any(&is_wanted));
        wanted
            .map(|entry| NameRef::trusted(&entry.name).to_name())
            .collect()
    }

    fn find(&self, hash: u64, name: &[u8]) -> Option<&Entry> {
        self.table.find(hash, |entry| *entry.name == *name)
    }

    /// The entry of a prefix, which is added if there is none.
    fn entry(&mut self, prefix: NameRef<'_>) -> &mut Entry {
        let name = prefix.as_bytes();
        let hash = self.hasher.hash(name);
        let is_it = |entry: &Entry| *entry.name == *name;
        match self.table.entry(hash, is_it, |entry| entry.hash) {
            Slot::Occupied(found) => found.into_mut(),
            Slot::Vacant(room) => {
                self.depths[prefix.len()] += 1;
                let entry = Entry {
                    name: name.into(),
                    hash,
                    routes: Vec::new(),
                    strategy: None,
                };
                room.insert(entry).into_mut()
            }
        }
    }

    /// Changes the entry of a prefix, and removes it if it is empty then.
    fn update(&mut self, prefix: NameRef<'_>, change: impl FnOnce(&mut Entry)) {
        let name = prefix.as_bytes();
        let hash = self.hasher.hash(name);
        let Ok(mut found) = self.table.find_entry(hash, |entry| *entry.name == *name) else {
            return;
        };
        let entry = found.get_mut();
        self.routes -= entry.routes.len();
        change(entry);
        self.routes += entry.routes.len();
        if entry.is_empty() {
            found.remove();
            self.depths[prefix.len()] -= 1;
        }
    }

    fn retain(&mut self, mut keep: impl FnMut(&Route) -> bool) {
        let (routes, depths) = (&mut self.routes, &mut self.depths);
        self.table.retain(|entry| {
            *routes -= entry.routes.len();
            entry.routes.retain(&mut keep);
            *routes += entry.routes.len();
            if entry.is_empty() {
                depths[NameRef::trusted(&entry.name).len()] -= 1;
            }
            !entry.is_empty()
        });
    }
}

/// Adds the routes of a prefix to the next hops of longer ones. A longer prefix determines the cost of a
/// face; among several origins of one prefix, the cheapest does.
fn add_routes(hops: &mut Vec<NextHop>, routes: &[Route]) {
    let longer = hops.len();
    for route in routes {
        if longer > 0 && !route.inherit {
            continue;
        }
        match hops.iter().position(|hop| hop.face == route.face) {
            Some(place) if place < longer => {}
            Some(place) => hops[place].cost = hops[place].cost.min(route.cost),
            None => hops.push(NextHop {
                face: route.face,
                cost: route.cost,
            }),
        }
    }
}
