//! The processing of an Interest, of Data and of a Nack.

use std::mem;
use std::sync::Arc;

use prescient_channels::Time;

use super::face::FaceId;
use super::fib::NextHop;
use super::management;
use super::pit::{InRecord, OutRecord, PitEntry, PitIndex};
use super::strategy::Strategy;
use super::{Forwarder, lifetime};
use crate::data::Data;
use crate::hash::Prefix;
use crate::interest::Interest;
use crate::link::{LinkHeader, NackReason};
use crate::name::{ComponentKind, NameRef};
use crate::tlv::{self, MAX_PACKET, kind};

/// The approximate overhead of a pending Interest, in bytes.
const PENDING_OVERHEAD: usize = 512;

/// The approximate size of an out-record, in bytes.
const OUT_RECORD_OVERHEAD: usize = 64;

impl Forwarder {
    pub(super) fn handle_interest(
        &mut self,
        now: Time,
        from: FaceId,
        interest: &Interest<'_>,
        header: LinkHeader,
    ) {
        let Some(face) = self.faces.get_mut(&from) else {
            return;
        };
        face.statistics.interests_in += 1;
        if Scope::of(interest.name()) == Scope::Machine && !face.is_local {
            self.statistics.out_of_scope += 1;
            return;
        }
        if management::command(interest.name()).is_some() {
            return self.handle_command(now, from, interest, header);
        }
        self.statistics.interests += 1;
        if interest.hop_limit() == Some(0) {
            self.statistics.hop_limit += 1;
            return;
        }
        let mut prefixes = mem::take(&mut self.scratch.prefixes);
        self.hasher.prefixes(interest.name(), &mut prefixes);
        let taken = self.take_interest(now, from, interest, header, &prefixes);
        self.scratch.prefixes = prefixes;
        if let Err(reason) = taken {
            self.send_nack(from, interest, header, reason);
        }
    }

    /// Looks an Interest up in content store and PIT, and forwards it. An error is the reason of the
    /// Nack that its sender gets.
    fn take_interest(
        &mut self,
        now: Time,
        from: FaceId,
        interest: &Interest<'_>,
        header: LinkHeader,
        prefixes: &[Prefix],
    ) -> Result<(), NackReason> {
        let hash = prefixes.last().map_or(0, |prefix| prefix.hash);
        let nonce = match interest.nonce() {
            Some(nonce) => nonce,
            None => (self.draw() as u32).to_be_bytes(),
        };
        let mut place = self.pit.find(hash, interest);
        if let Some(old) = place
            && self.pit.is_expired(old, now)
        {
            self.statistics.expired += 1;
            self.remove_pending(now, old);
            place = None;
        }
        if self.is_loop(now, from, hash, place, nonce) {
            self.statistics.loops += 1;
            return Err(NackReason::Duplicate);
        }
        if place.is_none() {
            if let Some(packet) = self.store.find(now, interest, prefixes) {
                self.statistics.store_hits += 1;
                let back = LinkHeader {
                    pit_token: header.pit_token,
                    ..LinkHeader::default()
                };
                self.send_data(from, back, &packet);
                return Ok(());
            }
            self.statistics.store_misses += 1;
        }
        let cost = self.cost(from, place, interest)?;
        let expires = now.after(lifetime(interest, &self.config));
        let record = InRecord {
            face: from,
            nonce,
            token: header.pit_token,
            expires,
            cost,
        };
        let place = match place {
            Some(place) => {
                self.pit.add_in_record(place, record);
                place
            }
            None => {
                let packet = self.forwarded(interest, nonce)?;
                self.pit.insert(hash, interest, packet, record)
            }
        };
        self.pending_bytes += cost;
        if let Some(face) = self.faces.get_mut(&from) {
            face.pending += cost;
        }
        let outgoing = Outgoing {
            place,
            from: Some(from),
            nonce,
            expires,
            hop_limit: interest.hop_limit().map(|limit| limit.saturating_sub(1)),
        };
        match self.forward_pending(now, &outgoing, interest, prefixes) {
            Outcome::Sent => {}
            Outcome::Waiting => self.statistics.aggregated += 1,
            Outcome::NoWay(reason) => self.reject(now, place, reason),
        }
        Ok(())
    }

    fn is_loop(
        &mut self,
        now: Time,
        from: FaceId,
        hash: u64,
        place: Option<PitIndex>,
        nonce: [u8; 4],
    ) -> bool {
        if self.dead_nonces.contains(now, hash, nonce) {
            return true;
        }
        let Some(entry) = place.and_then(|place| self.pit.get(place)) else {
            return false;
        };
        let mut same = entry
            .in_records
            .iter()
            .filter(|record| record.nonce == nonce);
        // From the same face it is a duplicate of the link or a retransmission, not a loop.
        if same.clone().any(|record| record.face == from) {
            return false;
        }
        same.next().is_some() || entry.out_records.iter().any(|record| record.nonce == nonce)
    }

    /// The bytes that an Interest counts for its face: none if the face has an in-record already.
    fn cost(
        &self,
        from: FaceId,
        place: Option<PitIndex>,
        interest: &Interest<'_>,
    ) -> Result<usize, NackReason> {
        let entry = place.and_then(|place| self.pit.get(place));
        if entry.is_some_and(|entry| entry.has_in_record(from)) {
            return Ok(0);
        }
        let cost = interest.wire().len() + PENDING_OVERHEAD;
        let of_face = self.faces.get(&from).map_or(0, |face| face.pending);
        if self.pending_bytes + cost > self.config.max_pending_bytes
            || of_face + cost > self.config.max_pending_bytes_per_face
        {
            return Err(NackReason::Congestion);
        }
        Ok(cost)
    }

    /// The packet to forward: with a nonce, and a hop limit that is one lower.
    fn forwarded(
        &mut self,
        interest: &Interest<'_>,
        nonce: [u8; 4],
    ) -> Result<Arc<[u8]>, NackReason> {
        let hop_limit = interest.hop_limit().map(|limit| limit.saturating_sub(1));
        let bytes = &mut self.scratch.bytes;
        bytes.clear();
        interest.forward(nonce, hop_limit, bytes);
        if bytes.len() > MAX_PACKET {
            // Its sender left the nonce out, and there is no room for one.
            return Err(NackReason::NoRoute);
        }
        Ok(bytes.as_slice().into())
    }

    /// Sends a pending Interest to the faces that the strategy chooses.
    fn forward_pending(
        &mut self,
        now: Time,
        outgoing: &Outgoing,
        interest: &Interest<'_>,
        prefixes: &[Prefix],
    ) -> Outcome {
        let mut hops = mem::take(&mut self.scratch.hops);
        let mut chosen = mem::take(&mut self.scratch.chosen);
        chosen.clear();
        let strategy = self.eligible_hops(now, outgoing, interest, prefixes, &mut hops);
        let is_alive = |face| self.faces.contains_key(&face);
        let mut outcome = Outcome::Sent;
        if let Some(entry) = self.pit.get(outgoing.place) {
            strategy.choose(&hops, &entry.out_records, now, is_alive, &mut chosen);
            if chosen.is_empty() {
                outcome = Outcome::of(&entry.out_records, now, is_alive);
            }
        }
        if !chosen.is_empty() {
            self.send_interest(outgoing, interest, &chosen);
        }
        self.scratch.hops = hops;
        self.scratch.chosen = chosen;
        outcome
    }

    /// Looks up the next hops of an Interest, without those that it must not be sent to: its own face,
    /// faces that are gone or out of scope, and faces without another downstream.
    fn eligible_hops(
        &self,
        now: Time,
        outgoing: &Outgoing,
        interest: &Interest<'_>,
        prefixes: &[Prefix],
        hops: &mut Vec<NextHop>,
    ) -> Strategy {
        let mut strategy = self.fib.lookup(interest.name(), prefixes, hops);
        if hops.is_empty() {
            for hint in interest.forwarding_hint() {
                let mut prefixes = Vec::new();
                self.hasher.prefixes(hint, &mut prefixes);
                strategy = self.fib.lookup(hint, &prefixes, hops);
                if !hops.is_empty() {
                    break;
                }
            }
        }
        let in_records = self
            .pit
            .get(outgoing.place)
            .map_or(&[][..], |entry| &entry.in_records);
        let is_local = |face| self.faces.get(&face).is_some_and(|face| face.is_local);
        let scope = Scope::of(interest.name());
        // `/localhop` goes one hop: from this machine to a neighbour, not from neighbour to neighbour.
        let is_own = in_records.iter().all(|record| is_local(record.face));
        let only_local = outgoing.hop_limit == Some(0)
            || scope == Scope::Machine
            || (scope == Scope::Link && !is_own);
        hops.retain(|hop| {
            let is_other_downstream =
                |record: &InRecord| record.face != hop.face && record.expires >= now;
            outgoing.from != Some(hop.face)
                && in_records.iter().any(is_other_downstream)
                && self
                    .faces
                    .get(&hop.face)
                    .is_some_and(|face| face.is_local || !only_local)
        });
        strategy
    }

    fn send_interest(&mut self, outgoing: &Outgoing, interest: &Interest<'_>, chosen: &[FaceId]) {
        let is_first = self
            .pit
            .get(outgoing.place)
            .is_some_and(|entry| entry.out_records.is_empty());
        // If this Interest does not fit with a nonce, the previous one of the entry is sent.
        let packet = match is_first || outgoing.from.is_none() {
            true => None,
            false => self.forwarded(interest, outgoing.nonce).ok(),
        };
        let Some(entry) = self.pit.get_mut(outgoing.place) else {
            return;
        };
        if let Some(packet) = packet {
            entry.set_packet(packet);
        }
        let packet = entry.packet.clone();
        for &face in chosen {
            let record = OutRecord {
                face,
                nonce: outgoing.nonce,
                expires: outgoing.expires,
                nack: None,
            };
            match entry
                .out_records
                .iter_mut()
                .find(|known| known.face == face)
            {
                Some(known) => *known = record,
                None => {
                    self.pending_bytes += OUT_RECORD_OVERHEAD;
                    entry.out_records.push(record);
                }
            }
        }
        for &face in chosen {
            self.statistics.forwarded += 1;
            if let Some(face) = self.faces.get_mut(&face) {
                face.statistics.interests_out += 1;
            }
            self.send(face, LinkHeader::default(), &packet);
        }
    }

    pub(super) fn handle_nack(
        &mut self,
        now: Time,
        from: FaceId,
        interest: &Interest<'_>,
        reason: NackReason,
    ) {
        self.statistics.nacks += 1;
        if let Some(face) = self.faces.get_mut(&from) {
            face.statistics.nacks_in += 1;
        }
        let mut prefixes = mem::take(&mut self.scratch.prefixes);
        self.hasher.prefixes(interest.name(), &mut prefixes);
        let hash = prefixes.last().map_or(0, |prefix| prefix.hash);
        if let Some(place) = self.pit.find(hash, interest) {
            self.take_nack(now, from, place, interest.nonce(), reason, &prefixes);
        }
        self.scratch.prefixes = prefixes;
    }

    /// Tries the next eligible face. If there is none and no other answer is due, rejects the Interest
    /// downstream.
    fn take_nack(
        &mut self,
        now: Time,
        from: FaceId,
        place: PitIndex,
        nonce: Option<[u8; 4]>,
        reason: NackReason,
        prefixes: &[Prefix],
    ) {
        let Some(entry) = self.pit.get_mut(place) else {
            return;
        };
        let mut out_records = entry.out_records.iter_mut();
        let is_it = |record: &&mut OutRecord| record.face == from && Some(record.nonce) == nonce;
        let Some(record) = out_records
            .find(is_it)
            .filter(|record| record.nack.is_none())
        else {
            return;
        };
        record.nack = Some(reason);
        let (nonce, expires) = (record.nonce, record.expires);
        let packet = entry.packet.clone();
        let Ok(interest) = Interest::decode(&packet) else {
            return;
        };
        let outgoing = Outgoing {
            place,
            from: None,
            nonce,
            expires,
            hop_limit: interest.hop_limit(),
        };
        if let Outcome::NoWay(reason) = self.forward_pending(now, &outgoing, &interest, prefixes) {
            self.reject(now, place, reason);
        }
    }

    /// Removes a pending Interest and sends a Nack to its downstream faces.
    fn reject(&mut self, now: Time, place: PitIndex, reason: NackReason) {
        let Some(entry) = self.remove_pending(now, place) else {
            return;
        };
        let Ok(interest) = Interest::decode(&entry.packet) else {
            return;
        };
        for record in entry
            .in_records
            .iter()
            .filter(|record| record.expires >= now)
        {
            // A consumer matches a Nack by the nonce that it sent.
            let mut bytes = Vec::new();
            interest.forward(record.nonce, None, &mut bytes);
            let header = LinkHeader {
                pit_token: record.token,
                nack: Some(reason),
                ..LinkHeader::default()
            };
            self.count_nack(record.face);
            self.send(record.face, header, &bytes.into());
        }
    }

    /// Sends a Nack for an Interest that has no PIT entry.
    fn send_nack(
        &mut self,
        face: FaceId,
        interest: &Interest<'_>,
        header: LinkHeader,
        reason: NackReason,
    ) {
        if reason == NackReason::Congestion {
            self.statistics.refused += 1;
        }
        let header = LinkHeader {
            pit_token: header.pit_token,
            nack: Some(reason),
            ..LinkHeader::default()
        };
        self.count_nack(face);
        self.send(face, header, &interest.wire().into());
    }

    fn count_nack(&mut self, face: FaceId) {
        if let Some(face) = self.faces.get_mut(&face) {
            face.statistics.nacks_out += 1;
        }
    }

    pub(super) fn handle_data(
        &mut self,
        now: Time,
        from: FaceId,
        data: &Data<'_>,
        header: LinkHeader,
    ) {
        let Some(face) = self.faces.get_mut(&from) else {
            return;
        };
        face.statistics.data_in += 1;
        if Scope::of(data.name()) == Scope::Machine && !face.is_local {
            self.statistics.out_of_scope += 1;
            return;
        }
        let mut prefixes = mem::take(&mut self.scratch.prefixes);
        let mut places = mem::take(&mut self.scratch.places);
        places.clear();
        self.hasher.prefixes(data.name(), &mut prefixes);
        let full_name = || {
            let digest = data.implicit_digest();
            let mut name = data.name().as_bytes().to_vec();
            tlv::write_element(&mut name, kind::IMPLICIT_DIGEST, &digest);
            (self.hasher.hash(&name), digest)
        };
        self.pit
            .matches(data.name(), &prefixes, full_name, &mut places);
        // Data is accepted only from faces that the Interest was sent to: others could forge answers.
        places.retain(|place| {
            let entry = self.pit.get(*place);
            entry.is_some_and(|entry| entry.out_records.iter().any(|record| record.face == from))
        });
        if places.is_empty() {
            self.statistics.unsolicited += 1;
        } else {
            self.statistics.data += 1;
            let packet = data.wire().into();
            self.store.insert(now, data, &prefixes, &packet);
            for place in places.drain(..) {
                self.satisfy(now, from, place, header.congestion_mark, &packet);
            }
        }
        self.scratch.prefixes = prefixes;
        self.scratch.places = places;
    }

    /// Removes a pending Interest and sends Data to its downstream faces.
    fn satisfy(
        &mut self,
        now: Time,
        from: FaceId,
        place: PitIndex,
        congestion_mark: Option<u64>,
        packet: &Arc<[u8]>,
    ) {
        let Some(entry) = self.remove_pending(now, place) else {
            return;
        };
        for record in &entry.in_records {
            if record.face != from && record.expires >= now {
                let header = LinkHeader {
                    pit_token: record.token,
                    congestion_mark,
                    ..LinkHeader::default()
                };
                self.send_data(record.face, header, packet);
            }
        }
    }

    pub(super) fn send_data(&mut self, face: FaceId, header: LinkHeader, packet: &Arc<[u8]>) {
        if let Some(face) = self.faces.get_mut(&face) {
            face.statistics.data_out += 1;
        }
        self.send(face, header, packet);
    }

    /// Removes a PIT entry, subtracts the bytes that it counted, and keeps its nonces for loop detection.
    pub(super) fn remove_pending(&mut self, now: Time, place: PitIndex) -> Option<PitEntry> {
        let entry = self.pit.remove(place)?;
        for record in &entry.out_records {
            self.dead_nonces.insert(now, entry.hash(), record.nonce);
        }
        self.pending_bytes -= entry.out_records.len() * OUT_RECORD_OVERHEAD;
        for record in &entry.in_records {
            self.pending_bytes -= record.cost;
            if let Some(face) = self.faces.get_mut(&record.face) {
                face.pending -= record.cost;
            }
        }
        Some(entry)
    }
}

/// A pending Interest that is to be sent upstream.
struct Outgoing {
    place: PitIndex,
    /// The face that the Interest came from; `None` if it is retried after a Nack.
    from: Option<FaceId>,
    nonce: [u8; 4],
    expires: Time,
    /// The number of further forwarders that it may pass.
    hop_limit: Option<u8>,
}

/// The result of forwarding it.
enum Outcome {
    Sent,
    /// It was sent before, and the answer is still due.
    Waiting,
    /// There is no eligible face.
    NoWay(NackReason),
}

impl Outcome {
    /// The outcome when the strategy chose no face.
    fn of(out_records: &[OutRecord], now: Time, is_alive: impl Fn(FaceId) -> bool) -> Self {
        let is_pending = |record: &OutRecord| record.is_pending(now, &is_alive);
        if out_records.iter().any(is_pending) {
            return Self::Waiting;
        }
        let reasons = out_records.iter().filter_map(|record| record.nack);
        Self::NoWay(reasons.min().unwrap_or(NackReason::NoRoute))
    }
}

/// How far packets with a name are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// `/localhost`: this machine only.
    Machine,
    /// `/localhop`: one hop.
    Link,
    Anywhere,
}

impl Scope {
    fn of(name: NameRef<'_>) -> Self {
        let first = name.get(0);
        match first.filter(|first| first.kind == ComponentKind::GENERIC) {
            Some(first) if first.value == b"localhost" => Self::Machine,
            Some(first) if first.value == b"localhop" => Self::Link,
            _ => Self::Anywhere,
        }
    }
}
