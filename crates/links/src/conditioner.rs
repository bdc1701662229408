//! One direction of a link.
//!
//! A conditioner is a small simulation: departures from the queue, arrivals and changes of
//! conditions are events, handled in the order of their times whenever the conditioner is called.
//! So the result depends on what was sent when, never on when it was polled.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::{
    Conditions, Statistics, Time,
    bottleneck::{Bottleneck, Waiting},
    chances::{BurstState, Chances, flip_bits, up_to},
};

/// One direction of a link with given [`Conditions`].
///
/// The same seed and the same calls give the same result. Every condition has a random generator of
/// its own, so adding one does not change which datagrams another affects.
///
/// A datagram may carry a `Label` that the link passes through: the addresses of a
/// [`Network`](crate::Network), or the sender where several share the link and its queue.
///
/// Times must not decrease; an earlier time counts as the latest one so far.
#[derive(Clone, Debug)]
pub struct LinkConditioner<Label = ()> {
    conditions: Conditions,
    /// Scheduled conditions, by start time.
    changes: BTreeMap<Time, Conditions>,
    forced_blackout: bool,
    now: Time,
    bottleneck: Bottleneck<Carried<Label>>,
    /// Datagrams that have left the queue, by arrival time; the number orders equal times.
    travelling: BTreeMap<(Time, u64), Carried<Label>>,
    number: u64,
    /// Arrival time of the last datagram that keeps the order.
    last_due: Time,
    arrived: VecDeque<(Time, Carried<Label>)>,
    chances: Chances,
    bursts: BurstState,
    statistics: Statistics,
    /// When the last datagram left the queue.
    left: Time,
    /// What left the queue, if that is recorded.
    departures: Option<Vec<Departure>>,
}

/// A datagram that left the queue of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Departure {
    /// When it was sent.
    pub sent: Time,
    /// When it left the queue.
    pub left: Time,
    /// Its size, with its overhead.
    pub bytes: usize,
    /// How long it waited behind others: until the one before it had left.
    pub waited: Duration,
}

#[derive(Clone, Debug)]
struct Carried<Label> {
    label: Label,
    bytes: Vec<u8>,
}

impl LinkConditioner {
    /// A link without labels.
    pub fn new(seed: u64, conditions: Conditions) -> Self {
        Self::labelled(seed, conditions)
    }

    /// Sends a datagram.
    pub fn send(&mut self, now: Time, bytes: &[u8]) {
        self.send_labelled(now, (), bytes);
    }

    /// The next datagram that has arrived by now. Call it until it returns `None`.
    pub fn poll(&mut self, now: Time) -> Option<Vec<u8>> {
        self.poll_labelled(now).map(|((), bytes)| bytes)
    }
}

impl<Label: Clone> LinkConditioner<Label> {
    /// A link whose datagrams carry labels.
    pub fn labelled(seed: u64, conditions: Conditions) -> Self {
        Self {
            conditions,
            changes: BTreeMap::new(),
            forced_blackout: false,
            now: Time::ZERO,
            bottleneck: Bottleneck::new(),
            travelling: BTreeMap::new(),
            number: 0,
            last_due: Time::ZERO,
            arrived: VecDeque::new(),
            chances: Chances::new(seed),
            bursts: BurstState::default(),
            statistics: Statistics::default(),
            left: Time::ZERO,
            departures: None,
        }
    }

    /// Records what leaves the queue from now on, in memory that is not bounded.
    pub fn record_departures(&mut self) {
        self.departures.get_or_insert_default();
    }

    /// What left the queue since [`record_departures`](Self::record_departures).
    pub fn departures(&self) -> &[Departure] {
        self.departures.as_deref().unwrap_or_default()
    }

    /// Sends a datagram with its label.
    pub fn send_labelled(&mut self, now: Time, label: Label, bytes: &[u8]) {
        self.advance(now);
        self.statistics.sent += 1;
        self.statistics.sent_bytes += bytes.len() as u64;
        let size = bytes.len().saturating_add(self.conditions.overhead);
        if self.is_blacked_out(self.now) {
            self.statistics.lost.blackout += 1;
            return;
        }
        if self.conditions.mtu.is_some_and(|mtu| size > mtu) {
            self.statistics.lost.mtu += 1;
            return;
        }
        let entry = Waiting {
            sent: self.now,
            size,
            item: Carried {
                label,
                bytes: bytes.to_vec(),
            },
        };
        let Conditions {
            rate, queue_limit, ..
        } = &self.conditions;
        if self.bottleneck.push(entry, rate, *queue_limit).is_err() {
            self.statistics.lost.queue += 1;
        }
        self.advance(self.now);
    }

    /// The next datagram that has arrived by now, with its label. Call it until it returns `None`.
    pub fn poll_labelled(&mut self, now: Time) -> Option<(Label, Vec<u8>)> {
        self.advance(now);
        let (_, Carried { label, bytes }) = self.arrived.pop_front()?;
        self.statistics.delivered += 1;
        self.statistics.delivered_bytes += bytes.len() as u64;
        Some((label, bytes))
    }

    /// When to poll next; `None` if no datagram is under way that could arrive.
    ///
    /// No datagram arrives before that time. Possibly none arrives then either, if the datagram is
    /// lost or delayed; after a poll at that time, the next time is later.
    pub fn next_delivery(&self) -> Option<Time> {
        if let Some((due, _)) = self.arrived.front() {
            return Some(*due);
        }
        let travelling = self.travelling.keys().next().map(|(due, _)| *due);
        let departure = self.bottleneck.next_departure(&self.conditions.rate);
        let departing = departure.map(|at| at + self.conditions.latency);
        let waiting = self.bottleneck.len() > 0;
        let change = self.changes.keys().next().filter(|_| waiting).copied();
        [travelling, departing, change].into_iter().flatten().min()
    }

    /// Arrival time of the next datagram that has arrived by now.
    pub(super) fn arrival(&mut self, now: Time) -> Option<Time> {
        self.advance(now);
        self.arrived.front().map(|(due, _)| *due)
    }

    /// Replaces the conditions from now on, also for datagrams in the queue; those that have left
    /// it are not affected. Cancels all scheduled changes.
    pub fn change(&mut self, now: Time, conditions: Conditions) {
        self.advance(now);
        self.changes.clear();
        self.apply(self.now, conditions);
    }

    /// Schedules conditions for a later time, in addition to those for other times; at once if that
    /// time is over.
    pub fn change_at(&mut self, at: Time, conditions: Conditions) {
        self.changes.insert(at.max(self.now), conditions);
    }

    /// Starts or ends a manual blackout, in addition to those of the conditions.
    pub fn set_blackout(&mut self, now: Time, on: bool) {
        self.advance(now);
        self.forced_blackout = on;
    }

    /// The current conditions.
    pub fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    /// Statistics so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Datagrams in the queue, under way, or arrived and not polled.
    pub fn in_transit(&self) -> usize {
        self.bottleneck.len() + self.travelling.len() + self.arrived.len()
    }

    /// Bytes in the queue with their overhead, without the datagram being sent.
    pub fn queued_bytes(&self) -> usize {
        self.bottleneck.waiting_bytes()
    }

    /// Handles all events up to now, in order.
    fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        while let Some((at, event)) = self.next_event().filter(|(at, _)| *at <= self.now) {
            match event {
                Event::Arrival => self.arrive(),
                Event::Departure => self.depart(at),
                Event::Change => {
                    if let Some((_, conditions)) = self.changes.pop_first() {
                        self.apply(at, conditions);
                    }
                }
            }
        }
    }

    fn next_event(&self) -> Option<(Time, Event)> {
        let arrival = self.travelling.keys().next().map(|(due, _)| *due);
        let departure = self.bottleneck.next_departure(&self.conditions.rate);
        let change = self.changes.keys().next().copied();
        let events = [
            arrival.map(|at| (at, Event::Arrival)),
            departure.map(|at| (at, Event::Departure)),
            change.map(|at| (at, Event::Change)),
        ];
        events.into_iter().flatten().min()
    }

    fn arrive(&mut self) {
        let Some(((due, _), carried)) = self.travelling.pop_first() else {
            return;
        };
        if self.is_blacked_out(due) {
            self.statistics.lost.blackout += 1;
        } else {
            self.arrived.push_back((due, carried));
        }
    }

    /// Decides the outcome of the datagram that leaves the queue.
    fn depart(&mut self, at: Time) {
        let Some(departed) = self.bottleneck.depart(at, &self.conditions.rate) else {
            return;
        };
        let (conditions, chances) = (&self.conditions, &mut self.chances);
        self.statistics.queue_delay.push(at.since(departed.sent));
        let before = std::mem::replace(&mut self.left, at);
        if let Some(departures) = &mut self.departures {
            departures.push(Departure {
                sent: departed.sent,
                left: at,
                bytes: departed.size,
                waited: before.since(departed.sent),
            });
        }
        // Both are always drawn, so that the bursts are the same with and without other losses.
        let by_chance = chances.loss.chance(conditions.loss);
        let bursts = conditions.bursts.as_ref();
        if bursts.is_some_and(|bursts| self.bursts.loses(bursts, &mut chances.bursts)) {
            self.statistics.lost.bursts += 1;
            return;
        }
        if by_chance {
            self.statistics.lost.uniform += 1;
            return;
        }

        let mut due = at + conditions.latency + up_to(&mut chances.jitter, conditions.jitter);
        if !conditions.jitter_reorders {
            due = due.max(self.last_due);
        }
        let reordering = conditions.reordering.as_ref();
        match reordering.filter(|reordering| chances.reordering.chance(reordering.share)) {
            Some(reordering) => {
                self.statistics.held_back += 1;
                due = due + up_to(&mut chances.reordering, reordering.by);
            }
            None => self.last_due = self.last_due.max(due),
        }

        let duplication = conditions.duplication.as_ref();
        let copy = duplication
            .filter(|duplication| chances.duplication.chance(duplication.share))
            .map(|duplication| due + up_to(&mut chances.duplication, duplication.late));
        if let Some(again) = copy {
            self.statistics.duplicated += 1;
            self.travel(due, departed.item.clone());
            self.travel(again, departed.item);
        } else {
            self.travel(due, departed.item);
        }
    }

    fn travel(&mut self, due: Time, mut carried: Carried<Label>) {
        let random = &mut self.chances.corruption;
        if random.chance(self.conditions.corruption) && !carried.bytes.is_empty() {
            flip_bits(&mut carried.bytes, random);
            self.statistics.corrupted += 1;
        }
        self.travelling.insert((due, self.number), carried);
        self.number += 1;
    }

    fn apply(&mut self, now: Time, conditions: Conditions) {
        self.bottleneck
            .change_rate(now, &self.conditions.rate, &conditions.rate);
        self.conditions = conditions;
    }

    fn is_blacked_out(&self, now: Time) -> bool {
        self.forced_blackout || self.conditions.is_blacked_out(now)
    }
}

/// In the order in which simultaneous events are handled: a change does not affect what is due at
/// the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival,
    Departure,
    Change,
}
