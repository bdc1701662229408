//! Packets in flight, and detection of acknowledged and lost ones, after RFC 9002: a packet is lost
//! if one that was sent three packets or 9/8 of a round trip later was acknowledged. If nothing is
//! acknowledged, probes are sent at growing intervals, up to a second.

use std::collections::VecDeque;
use std::time::Duration;

use crate::arrivals::Urgency;
use crate::exchange::Fault;
use crate::frame::{RecentReport, Report};
use crate::input::InputTick;
use crate::round_trip::RoundTrip;
use crate::time::{Arrival, Time};

/// An ack-eliciting packet.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) sequence: u64,
    pub(crate) sent: Time,
    /// The length of its datagram.
    pub(crate) size: usize,
    /// Its content that has to be sent again if the packet is lost.
    pub(crate) reliable: Vec<ReliableContent>,
    /// Whether it is an MTU probe.
    pub(crate) probe: bool,
    /// The highest packet number that it acknowledged.
    pub(crate) told: Option<u64>,
}

impl Packet {
    /// Whether its acknowledgement is [`Urgency::Prompt`].
    fn is_prompt(&self) -> bool {
        let mut reliable = self.reliable.iter();
        self.probe || reliable.any(|content| !matches!(content, ReliableContent::Input(_)))
    }
}

/// Reliable content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReliableContent {
    /// Bytes `start` to `end` of a message.
    Message {
        channel: u8,
        number: u64,
        start: u64,
        end: u64,
    },
    /// All inputs up to a tick.
    Input(InputTick),
    /// Bytes `start` to `end` of a blob.
    Chunk { blob: u64, start: u64, end: u64 },
}

/// Packets that were acknowledged or lost.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    pub(crate) acknowledged: Vec<Packet>,
    pub(crate) lost: Vec<Packet>,
    /// Sizes of packets that were acknowledged after they had been declared lost.
    pub(crate) revived: Vec<usize>,
}

#[derive(Default)]
pub(crate) struct InFlight {
    /// By ascending packet number; `None` once a packet has been acknowledged.
    flight: VecDeque<(u64, Option<Packet>)>,
    bytes: usize,
    /// Packets in flight with reliable content.
    reliable_packets: usize,
    /// Packets in flight that are acknowledged without delay.
    prompt_packets: usize,
    /// Packet number and size of the last packets that were declared lost.
    lost: VecDeque<(u64, usize)>,
    /// How many packets more than `REORDERED` may overtake one, as observed.
    reordered: u64,
    /// One more than the highest packet number acknowledged.
    acknowledged: u64,
    /// One more than the highest packet number of the other end that had a report.
    reported: u64,
    round_trip: Option<RoundTrip>,
    /// When the last packet was sent.
    last: Time,
    /// Probes since the last acknowledgement.
    probes: u32,
    /// When the next packet will be declared lost.
    loss: Option<Time>,
    /// How many packets `handle_report` has visited.
    #[cfg(test)]
    pub(crate) visited: u64,
}

impl InFlight {
    pub(crate) fn note(&mut self, packet: Packet) -> Option<Packet> {
        self.last = packet.sent;
        self.bytes += packet.size;
        self.reliable_packets += usize::from(!packet.reliable.is_empty());
        self.prompt_packets += usize::from(packet.is_prompt());
        self.flight.push_back((packet.sequence, Some(packet)));
        // The other end's replay window would reject it.
        if self.flight.len() > MAX_PACKETS {
            return self.take_first();
        }
        None
    }

    /// Handles the acknowledgements of the other end. `next` is the next packet number.
    pub(crate) fn handle_report(
        &mut self,
        report: &Report<'_>,
        next: u64,
        at: Arrival,
    ) -> Result<Settled, Fault> {
        if report.newest >= next {
            return Err(Fault::Violation);
        }
        let mut settled = Settled::default();
        for (first, last) in report.ranges() {
            let start = self
                .flight
                .partition_point(|(sequence, _)| *sequence < first);
            let end = self
                .flight
                .partition_point(|(sequence, _)| *sequence <= last);
            #[cfg(test)]
            {
                self.visited += (end - start) as u64;
            }
            for (_, place) in self.flight.range_mut(start..end) {
                settled.acknowledged.extend(place.take());
            }
        }
        self.revive(report, &mut settled.revived);
        for packet in &settled.acknowledged {
            self.bytes -= packet.size;
            self.reliable_packets -= usize::from(!packet.reliable.is_empty());
            self.prompt_packets -= usize::from(packet.is_prompt());
        }
        self.acknowledged = self.acknowledged.max(report.newest.saturating_add(1));
        // The reported delay is that of the newest packet.
        let newest = settled
            .acknowledged
            .iter()
            .max_by_key(|packet| packet.sequence);
        if let Some(packet) = newest {
            self.probes = 0;
            if packet.sequence == report.newest {
                self.measure(at.arrived.now.since(packet.sent), report.delay);
            }
        }
        self.find_lost(at.handled.now, &mut settled.lost);
        Ok(settled)
    }

    /// Completes the short report of a packet. `None` if a later packet had a report: that said the
    /// same, and the newest acknowledged packet is no longer one that the short report starts from.
    pub(crate) fn complete(
        &self,
        recent: RecentReport,
        sequence: u64,
    ) -> Result<Option<Report<'static>>, Fault> {
        if sequence < self.reported {
            return Ok(None);
        }
        let acknowledged = self.acknowledged.saturating_sub(1);
        let report = recent.after(acknowledged).ok_or(Fault::Violation)?;
        Ok(Some(report))
    }

    /// The packet of the other end with this packet number had a report.
    pub(crate) fn reported_in(&mut self, sequence: u64) {
        self.reported = self.reported.max(sequence.saturating_add(1));
    }

    /// Does everything that is due; true if a probe has to be sent.
    pub(crate) fn handle_timeout(&mut self, now: Time, lost: &mut Vec<Packet>) -> bool {
        if self.loss.is_some_and(|time| time <= now) {
            self.find_lost(now, lost);
        }
        let probe = self.probe_time().is_some_and(|time| time <= now);
        if probe {
            self.probes = self.probes.saturating_add(1);
            // The probe starts the next interval, even if it is never sent.
            self.last = now;
        }
        probe
    }

    /// The content of the oldest packets, which a probe sends again.
    pub(crate) fn oldest_reliable(&self) -> impl Iterator<Item = &ReliableContent> {
        let packets = self.flight.iter().filter_map(|(_, packet)| packet.as_ref());
        let with_reliable = packets.filter(|packet| !packet.reliable.is_empty());
        with_reliable
            .take(PROBED)
            .flat_map(|packet| &packet.reliable)
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.loss.into_iter().chain(self.probe_time()).min()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether reliable content is in flight.
    pub(crate) fn has_reliable(&self) -> bool {
        self.reliable_packets > 0
    }

    /// One more than the highest packet number acknowledged; `None` before the first.
    pub(crate) fn acknowledged(&self) -> Option<u64> {
        (self.acknowledged > 0).then_some(self.acknowledged)
    }

    /// Whether so many packets overtook another that it was declared lost, and it arrived.
    pub(crate) fn is_reordered(&self) -> bool {
        self.reordered > 0
    }

    pub(crate) fn round_trip(&self) -> Option<RoundTrip> {
        self.round_trip
    }

    /// Probes since the last acknowledgement.
    pub(crate) fn probes(&self) -> u32 {
        self.probes
    }

    fn probe_time(&self) -> Option<Time> {
        if self.bytes == 0 {
            return None;
        }
        let delay = match self.prompt_packets {
            0 => Urgency::Lazy.delay(),
            _ => Urgency::Prompt.delay(),
        };
        let patience = self
            .round_trip
            .map_or(FIRST_PATIENCE, |trip| trip.patience(delay));
        let patience = patience.saturating_mul(1 << self.probes.min(16));
        Some(self.last.after(patience.min(MAX_PATIENCE)))
    }

    /// Records a round trip sample; `delay` is the delay that the other end reports.
    pub(crate) fn measure(&mut self, sample: Duration, delay: Duration) {
        match &mut self.round_trip {
            Some(round_trip) => round_trip.measure(sample, delay),
            None => self.round_trip = Some(RoundTrip::new(sample)),
        }
    }

    /// Finds packets that were declared lost too early, and raises the reordering threshold.
    fn revive(&mut self, report: &Report<'_>, revived: &mut Vec<usize>) {
        if self.lost.is_empty() {
            return;
        }
        for (first, last) in report.ranges() {
            let start = self.lost.partition_point(|(lost, _)| *lost < first);
            let end = self.lost.partition_point(|(lost, _)| *lost <= last);
            for (sequence, size) in self.lost.drain(start..end) {
                revived.push(size);
                let overtaken = self.acknowledged.saturating_sub(sequence);
                self.reordered = self.reordered.max(overtaken.min(MAX_REORDERED));
            }
        }
    }

    /// Removes lost packets, and sets the time of the next check.
    fn find_lost(&mut self, now: Time, lost: &mut Vec<Packet>) {
        self.loss = None;
        let reordering = self
            .round_trip
            .map_or(FIRST_PATIENCE, |trip| trip.reordering());
        while let Some((sequence, packet)) = self.flight.front() {
            if let Some(packet) = packet {
                if *sequence >= self.acknowledged {
                    return;
                }
                let time = packet.sent.after(reordering);
                let overtaken = self.acknowledged - 1 - sequence;
                if overtaken < self.reordered.max(REORDERED) && time > now {
                    self.loss = Some(time);
                    return;
                }
            }
            if let Some(packet) = self.take_first() {
                // The loss of an MTU probe is expected.
                if !packet.probe {
                    if self.lost.len() == MAX_LOST {
                        self.lost.pop_front();
                    }
                    self.lost.push_back((packet.sequence, packet.size));
                }
                lost.push(packet);
            }
        }
    }

    fn take_first(&mut self) -> Option<Packet> {
        let (_, packet) = self.flight.pop_front()?;
        let packet = packet?;
        self.bytes -= packet.size;
        self.reliable_packets -= usize::from(!packet.reliable.is_empty());
        self.prompt_packets -= usize::from(packet.is_prompt());
        Some(packet)
    }
}

/// How many packets may overtake one before it counts as lost, unless more reordering was observed.
const REORDERED: u64 = 3;
const MAX_REORDERED: u64 = 64;
/// How many lost packets are remembered, in case they are acknowledged after all.
const MAX_LOST: usize = 128;
/// A little more than the other end's replay window.
const MAX_PACKETS: usize = 2048;
/// Before the first measurement.
const FIRST_PATIENCE: Duration = Duration::from_millis(500);
/// Limits the time in which the end of a blackout goes unnoticed.
const MAX_PATIENCE: Duration = Duration::from_secs(1);
/// How many packets' content a probe sends again.
const PROBED: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Body, Frame, frames};
    use crate::ranges::Ranges;
    use crate::time::Now;

    fn packet(sequence: u64, millis: u64) -> Packet {
        let reliable = ReliableContent::Chunk {
            blob: 0,
            start: sequence,
            end: sequence + 1,
        };
        Packet {
            sequence,
            sent: Time::from_micros(millis * 1000),
            size: 100,
            reliable: vec![reliable],
            probe: false,
            told: None,
        }
    }

    fn report(sent: &mut InFlight, ranges: &[(u64, u64)], millis: u64) -> Result<Settled, Fault> {
        let mut arrived = Ranges::default();
        for (start, end) in ranges {
            arrived.insert(*start, *end);
        }
        let mut body = Body::new(2000, Vec::new());
        body.received(&arrived, Duration::ZERO, 0);
        let body = body.finish(&mut Vec::new());
        let Some(Frame::Received(report)) = frames(&body).expect("sound").into_iter().next() else {
            panic!("a report");
        };
        let now = Time::from_micros(millis * 1000);
        let at = Now { now, clock: now };
        sent.handle_report(&report, 1 << 40, at.into())
    }

    fn numbers(packets: &[Packet]) -> Vec<u64> {
        packets.iter().map(|packet| packet.sequence).collect()
    }

    /// Fails if two later packets suffice (`REORDERED` = 2), or if time alone does not (`time >
    /// now` left out).
    #[test]
    fn three_later_packets_or_some_time_mean_loss() {
        let mut sent = InFlight::default();
        for sequence in 0..5 {
            sent.note(packet(sequence, sequence));
        }
        let settled = report(&mut sent, &[(3, 4)], 40).expect("sent");
        assert_eq!(numbers(&settled.acknowledged), [3]);
        assert_eq!(numbers(&settled.lost), [0]);
        let round_trip = sent.round_trip().expect("measured");
        assert_eq!(round_trip.smoothed, Duration::from_millis(37));
        let mut lost = Vec::new();
        let due = sent.deadline().expect("two are in doubt");
        assert_eq!(due, Time::from_micros(1000 + 37_000 * 9 / 8));
        sent.handle_timeout(due.after(Duration::from_millis(1)), &mut lost);
        assert_eq!(numbers(&lost), [1, 2]);
        assert_eq!(sent.bytes(), 100, "the last is in flight");
    }

    /// Fails if packets declared lost are not remembered (`self.lost.push_back` left out).
    #[test]
    fn who_was_wrong_about_a_loss_is_more_patient() {
        let mut sent = InFlight::default();
        for sequence in 0..30 {
            sent.note(packet(sequence, 0));
        }
        let settled = report(&mut sent, &[(5, 6)], 40).expect("sent");
        assert_eq!(numbers(&settled.lost), [0, 1, 2]);
        let settled = report(&mut sent, &[(0, 1), (5, 6)], 41).expect("sent");
        assert_eq!(settled.revived, [100]);
        assert_eq!(numbers(&settled.acknowledged), []);
        let settled = report(&mut sent, &[(9, 10)], 42).expect("sent");
        assert_eq!(numbers(&settled.lost), [3], "six may overtake one");
    }

    /// Fails if probes do not back off, or without bound (`MAX_PATIENCE` of a minute).
    #[test]
    fn probes_back_off_to_one_a_second() {
        let mut sent = InFlight::default();
        assert_eq!(sent.deadline(), None);
        sent.note(packet(0, 0));
        report(&mut sent, &[(0, 1)], 50).expect("sent");
        assert_eq!(sent.deadline(), None);
        sent.note(packet(1, 100));
        let (mut now, mut gaps) = (100_000, Vec::new());
        for _ in 0..6 {
            let due = sent.deadline().expect("in flight").as_micros();
            gaps.push((due - now) / 1000);
            now = due;
            assert!(sent.handle_timeout(Time::from_micros(now), &mut Vec::new()));
        }
        assert_eq!(gaps, [170, 340, 680, 1000, 1000, 1000]);
        assert_eq!(sent.oldest_reliable().count(), 1);
    }

    /// The report of case 27. Fails if its ranges are not found by binary search (`start` of 0 in
    /// `handle_report`).
    #[test]
    fn ranges_of_everything_cost_no_more_than_what_is_in_flight() {
        let mut sent = InFlight::default();
        for sequence in 0..1000 {
            sent.note(packet(sequence, 0));
        }
        let wide: Vec<_> = (0..64)
            .map(|part| (part << 34, (part << 34) + (1 << 33)))
            .collect();
        let settled = report(&mut sent, &wide, 50).expect("within what was sent");
        assert_eq!(settled.acknowledged.len(), 1000);
        assert_eq!(sent.visited, 1000);
        for _ in 0..100 {
            report(&mut sent, &wide, 60).expect("within what was sent");
        }
        assert_eq!(sent.visited, 1000, "nothing is left to visit");
    }

    /// Fails if a packet that was never sent can be acknowledged.
    #[test]
    fn what_was_never_sent_cannot_be_acknowledged() {
        let mut sent = InFlight::default();
        sent.note(packet(0, 0));
        let fault = report(&mut sent, &[(0, (1 << 40) + 1)], 5).expect_err("not sent");
        assert_eq!(fault, Fault::Violation);
        assert_eq!(sent.bytes(), 100);
    }

    /// A short report in a late packet may mean packets that never arrived. Fails if it is applied
    /// (`sequence < self.reported` left out of `complete`).
    #[test]
    fn late_short_reports_are_ignored() {
        let mut sent = InFlight::default();
        for sequence in 0..400 {
            sent.note(packet(sequence, 0));
        }
        let short = |newest: u64| {
            let mut body = Body::new(2000, Vec::new());
            body.received_recent(newest, &Ranges::default(), 0, 0);
            let body = body.finish(&mut Vec::new());
            match frames(&body).expect("sound")[..] {
                [Frame::ReceivedRecent(recent)] => recent,
                _ => panic!("a short report"),
            }
        };
        report(&mut sent, &[(100, 101)], 40).expect("sent");
        sent.reported_in(7);
        assert!(sent.complete(short(90), 6).expect("sound").is_none());
        let newer = sent.complete(short(110), 8).expect("sound");
        assert_eq!(newer.expect("newer").newest, 110);
    }

    /// Unreliable packets are acknowledged late. Fails if probes do not wait for that
    /// (`prompt_packets` counted for all), or if reliable content waits as long.
    #[test]
    fn probes_wait_as_long_as_acknowledgements_may_be_delayed() {
        let mut sent = InFlight::default();
        sent.note(packet(0, 0));
        report(&mut sent, &[(0, 1)], 50).expect("sent");
        let mut unreliable = packet(1, 100);
        unreliable.reliable.clear();
        sent.note(unreliable);
        let due = |sent: &InFlight| sent.deadline().expect("in flight").as_micros() / 1000;
        assert_eq!(due(&sent), 100 + 150 + 100);
        sent.note(packet(2, 100));
        assert_eq!(due(&sent), 100 + 150 + 20);
    }

    /// Fails if `flight` is not bounded.
    #[test]
    fn what_is_remembered_is_bounded() {
        let mut sent = InFlight::default();
        let mut lost = 0;
        for sequence in 0..10_000 {
            lost += usize::from(sent.note(packet(sequence, 0)).is_some());
        }
        assert_eq!(lost, 10_000 - MAX_PACKETS);
        assert_eq!(sent.bytes(), 100 * MAX_PACKETS);
    }
}
