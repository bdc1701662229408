//! The clients of a relay: their links, and when datagrams are due.
//!
//! It uses no sockets and no clock, so that the removal of clients can be tested.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

use crate::{Conditions, LinkConditioner, Statistics, Time};

/// The clients of a relay, each with its socket to the server (`Upstream`).
pub(super) struct RelayClients<Upstream> {
    seed: u64,
    conditions: [Conditions; 2],
    is_blacked_out: bool,
    /// By number. Numbers are not reused.
    relay_clients: BTreeMap<usize, RelayClient<Upstream>>,
    numbers: BTreeMap<SocketAddr, usize>,
    /// Number of clients so far.
    count: usize,
    /// Times at which datagrams of clients are due.
    due: BTreeSet<(Time, usize)>,
    /// Time of the next search for inactive clients.
    sweep: Time,
    /// Statistics of removed clients.
    former: [Statistics; 2],
}

pub(super) struct RelayClient<Upstream> {
    pub client: SocketAddr,
    pub upstream: Upstream,
    links: [LinkConditioner; 2],
    /// When a datagram from the client last arrived.
    last_received: Time,
    due: Option<Time>,
}

/// A datagram that is due.
pub(super) struct Delivery<'a, Upstream> {
    pub relay_client: &'a RelayClient<Upstream>,
    pub direction: usize,
    pub bytes: Vec<u8>,
}

impl<Upstream> RelayClients<Upstream> {
    pub(super) fn new(seed: u64, conditions: [Conditions; 2]) -> Self {
        Self {
            seed,
            conditions,
            is_blacked_out: false,
            relay_clients: BTreeMap::new(),
            numbers: BTreeMap::new(),
            count: 0,
            due: BTreeSet::new(),
            sweep: Time::ZERO,
            former: Default::default(),
        }
    }

    /// The number of the next client.
    pub(super) fn next_number(&self) -> usize {
        self.count
    }

    pub(super) fn number_of(&self, client: SocketAddr) -> Option<usize> {
        self.numbers.get(&client).copied()
    }

    pub(super) fn get(&self, number: usize) -> Option<&RelayClient<Upstream>> {
        self.relay_clients.get(&number)
    }

    /// Adds a client.
    pub(super) fn insert(&mut self, now: Time, client: SocketAddr, upstream: Upstream) {
        let number = self.count;
        self.count += 1;
        let first_seed = self.seed.wrapping_add(2 * number as u64);
        let link = |direction: usize| {
            let seed = first_seed.wrapping_add(direction as u64);
            let mut link = LinkConditioner::new(seed, self.conditions[direction].clone());
            link.set_blackout(Time::ZERO, self.is_blacked_out);
            link
        };
        let relay_client = RelayClient {
            client,
            upstream,
            links: [link(TO_SERVER), link(TO_CLIENT)],
            last_received: now,
            due: None,
        };
        self.relay_clients.insert(number, relay_client);
        self.numbers.insert(client, number);
    }

    /// Sends a datagram over a client's link.
    pub(super) fn send(&mut self, now: Time, number: usize, direction: usize, bytes: &[u8]) {
        if let Some(relay_client) = self.relay_clients.get_mut(&number) {
            if direction == TO_SERVER {
                relay_client.last_received = now;
            }
            relay_client.links[direction].send(now, bytes);
            relay_client.plan(number, &mut self.due);
        }
    }

    /// Time of the next delivery.
    pub(super) fn next_due(&self) -> Option<Time> {
        let (due, _) = self.due.first()?;
        Some(*due)
    }

    /// Delivers all datagrams that are due.
    pub(super) fn deliver(&mut self, now: Time, mut take: impl FnMut(Delivery<'_, Upstream>)) {
        while let Some(&(due, number)) = self.due.first()
            && due <= now
        {
            let Some(relay_client) = self.relay_clients.get_mut(&number) else {
                self.due.pop_first();
                continue;
            };
            for direction in [TO_SERVER, TO_CLIENT] {
                while let Some(bytes) = relay_client.links[direction].poll(now) {
                    take(Delivery {
                        relay_client,
                        direction,
                        bytes,
                    });
                }
            }
            relay_client.plan(number, &mut self.due);
        }
    }

    /// Removes and returns clients that have sent nothing for a long time. If one sends again, it
    /// gets new links and appears at the server as a new client.
    pub(super) fn forget(&mut self, now: Time) -> Vec<Upstream> {
        if now < self.sweep {
            return Vec::new();
        }
        self.sweep = now + SWEEP;
        let is_gone =
            |relay_client: &RelayClient<Upstream>| now.since(relay_client.last_received) >= GONE;
        let gone = self.relay_clients.iter().filter(|(_, one)| is_gone(one));
        let gone: Vec<usize> = gone.map(|(&number, _)| number).collect();
        let mut upstreams = Vec::new();
        for number in gone {
            if let Some(relay_client) = self.relay_clients.remove(&number) {
                self.numbers.remove(&relay_client.client);
                self.due.retain(|(_, other)| *other != number);
                add(&mut self.former, &relay_client.links);
                upstreams.push(relay_client.upstream);
            }
        }
        upstreams
    }

    /// Replaces the conditions of all clients from now on.
    pub(super) fn change(&mut self, now: Time, conditions: [Conditions; 2]) {
        self.conditions = conditions;
        for (&number, relay_client) in &mut self.relay_clients {
            for (link, conditions) in relay_client.links.iter_mut().zip(&self.conditions) {
                link.change(now, conditions.clone());
            }
            relay_client.plan(number, &mut self.due);
        }
    }

    pub(super) fn set_blackout(&mut self, now: Time, on: bool) {
        self.is_blacked_out = on;
        for (&number, relay_client) in &mut self.relay_clients {
            for link in &mut relay_client.links {
                link.set_blackout(now, on);
            }
            relay_client.plan(number, &mut self.due);
        }
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut RelayClient<Upstream>)> {
        let relay_clients = self.relay_clients.iter_mut();
        relay_clients.map(|(&number, relay_client)| (number, relay_client))
    }

    pub(super) fn len(&self) -> usize {
        self.relay_clients.len()
    }

    /// Statistics so far.
    pub(super) fn statistics(&self) -> [Statistics; 2] {
        let mut sums = self.former.clone();
        for relay_client in self.relay_clients.values() {
            add(&mut sums, &relay_client.links);
        }
        sums
    }
}

impl<Upstream> RelayClient<Upstream> {
    /// Schedules its next delivery.
    fn plan(&mut self, number: usize, times: &mut BTreeSet<(Time, usize)>) {
        let links = self.links.iter();
        let due = links.filter_map(LinkConditioner::next_delivery).min();
        if due == self.due {
            return;
        }
        if let Some(before) = self.due {
            times.remove(&(before, number));
        }
        times.extend(due.map(|due| (due, number)));
        self.due = due;
    }
}

fn add(sums: &mut [Statistics; 2], links: &[LinkConditioner; 2]) {
    for (sum, link) in sums.iter_mut().zip(links) {
        sum.merge(link.statistics());
    }
}

pub(super) const TO_SERVER: usize = 0;
pub(super) const TO_CLIENT: usize = 1;

/// Connected clients send something every few seconds, also in a blackout.
const GONE: Duration = Duration::from_secs(60);
const SWEEP: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn client(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// Fails if no client is removed (`is_gone` always false), if active ones are
    /// (`relay_client.last_received = now` left out of `send`), or if the statistics of removed clients are
    /// lost (`add` left out of `forget`).
    #[test]
    fn clients_that_are_gone_are_forgotten() {
        let mut relay_clients = RelayClients::new(1, Default::default());
        for port in 1..=3 {
            relay_clients.insert(Time::ZERO, client(port), port);
        }
        let mut gone = Vec::new();
        for second in 0..200 {
            let now = Time::from_secs(second);
            // The server still sends to the clients that left.
            for number in 0..3 {
                relay_clients.send(now, number, TO_CLIENT, b"down");
            }
            relay_clients.send(now, 1, TO_SERVER, b"up");
            relay_clients.deliver(now, |_| ());
            gone.extend(relay_clients.forget(now));
        }
        assert_eq!(gone, [1, 3]);
        assert_eq!(
            (relay_clients.len(), relay_clients.number_of(client(1))),
            (1, None)
        );
        let [up, down] = relay_clients.statistics();
        assert_eq!(up.delivered, 200);
        assert!((200 + 2 * 60..200 + 2 * 70).contains(&down.delivered));
    }

    /// Fails if `deliver` does not schedule the next delivery: it would never return, or a second
    /// datagram would never arrive.
    #[test]
    fn each_datagram_is_handed_out_when_it_is_due() {
        let slow = Conditions::default().with_latency(Duration::from_millis(10));
        let mut relay_clients = RelayClients::new(1, [slow.clone(), slow]);
        for number in 0..3 {
            relay_clients.insert(Time::ZERO, client(number as u16), ());
            let sent = Time::from_millis(3 * number as u64);
            relay_clients.send(sent, number, TO_SERVER, &[number as u8]);
            relay_clients.send(sent + Duration::from_millis(1), number, TO_CLIENT, &[9]);
        }
        let mut seen = Vec::new();
        while let Some(due) = relay_clients.next_due() {
            relay_clients.deliver(due, |delivery| {
                let micros = due.as_micros();
                seen.push((
                    micros / 1000,
                    delivery.direction,
                    delivery.relay_client.client.port(),
                ));
            });
        }
        let expected = [
            (10, 0, 0),
            (11, 1, 0),
            (13, 0, 1),
            (14, 1, 1),
            (16, 0, 2),
            (17, 1, 2),
        ];
        assert_eq!(seen, expected);
    }
}
