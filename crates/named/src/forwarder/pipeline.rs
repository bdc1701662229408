//! What becomes of an Interest, of Data and of a Nack.

use std::mem;
use std::sync::Arc;

use prescient_channels::Time;

use super::face::FaceId;
use super::fib::NextHop;
use super::management;
use super::pit::{InRecord, OutRecord, PitEntry, PitPlace};
use super::strategy::Strategy;
use super::{Forwarder, lifetime};
use crate::data::Data;
use crate::hash::Prefix;
use crate::interest::Interest;
use crate::link::{LinkHeader, NackReason};
use crate::name::{ComponentKind, NameRef};
use crate::tlv::{self, MAX_PACKET, kind};

/// What an Interest that waits takes besides its bytes, about.
const PENDING_OVERHEAD: usize = 512;

/// What it takes for each face that it was sent to.
const ASKED_OVERHEAD: usize = 64;

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

    /// From the first look at the tables to the faces that the Interest is sent to. An error is the
    /// Nack for who sent it.
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
            self.finish(now, old);
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
        let charge = self.charge(from, place, interest)?;
        let expires = now.after(lifetime(interest, &self.config));
        let record = InRecord {
            face: from,
            nonce,
            token: header.pit_token,
            expires,
            charge,
        };
        let place = match place {
            Some(place) => {
                self.pit.wait(place, record);
                place
            }
            None => {
                let packet = self.forwarded(interest, nonce)?;
                self.pit.insert(hash, interest, packet, record)
            }
        };
        self.pending_bytes += charge;
        if let Some(face) = self.faces.get_mut(&from) {
            face.pending += charge;
        }
        let ask = Ask {
            place,
            from: Some(from),
            nonce,
            expires,
            hop_limit: interest.hop_limit().map(|limit| limit.saturating_sub(1)),
        };
        match self.ask(now, &ask, interest, prefixes) {
            Outcome::Sent => {}
            Outcome::Waiting => self.statistics.aggregated += 1,
            Outcome::NoWay(reason) => self.refuse(now, place, reason),
        }
        Ok(())
    }

    fn is_loop(
        &mut self,
        now: Time,
        from: FaceId,
        hash: u64,
        place: Option<PitPlace>,
        nonce: [u8; 4],
    ) -> bool {
        if self.dead_nonces.contains(now, hash, nonce) {
            return true;
        }
        let Some(entry) = place.and_then(|place| self.pit.get(place)) else {
            return false;
        };
        let mut same = entry.waiting.iter().filter(|record| record.nonce == nonce);
        // From the same face it is the link that repeats, or the application.
        if same.clone().any(|record| record.face == from) {
            return false;
        }
        same.next().is_some() || entry.asked.iter().any(|record| record.nonce == nonce)
    }

    /// What a face is charged with for an Interest; nothing if it waits for the same already.
    fn charge(
        &self,
        from: FaceId,
        place: Option<PitPlace>,
        interest: &Interest<'_>,
    ) -> Result<usize, NackReason> {
        let entry = place.and_then(|place| self.pit.get(place));
        if entry.is_some_and(|entry| entry.is_awaited_by(from)) {
            return Ok(0);
        }
        let charge = interest.wire().len() + PENDING_OVERHEAD;
        let of_face = self.faces.get(&from).map_or(0, |face| face.pending);
        if self.pending_bytes + charge > self.config.max_pending_bytes
            || of_face + charge > self.config.max_pending_bytes_per_face
        {
            return Err(NackReason::Congestion);
        }
        Ok(charge)
    }

    /// The packet as it is sent on: with a nonce, and one hop less to go.
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
            // Its sender left no room for the nonce that it left out.
            return Err(NackReason::NoRoute);
        }
        Ok(bytes.as_slice().into())
    }

    /// Sends a pending Interest to the faces that its strategy chooses.
    fn ask(
        &mut self,
        now: Time,
        ask: &Ask,
        interest: &Interest<'_>,
        prefixes: &[Prefix],
    ) -> Outcome {
        let mut hops = mem::take(&mut self.scratch.hops);
        let mut chosen = mem::take(&mut self.scratch.chosen);
        chosen.clear();
        let strategy = self.ways(now, ask, interest, prefixes, &mut hops);
        let is_alive = |face| self.faces.contains_key(&face);
        let mut outcome = Outcome::Sent;
        if let Some(entry) = self.pit.get(ask.place) {
            strategy.choose(&hops, &entry.asked, now, is_alive, &mut chosen);
            if chosen.is_empty() {
                outcome = Outcome::of(&entry.asked, now, is_alive);
            }
        }
        if !chosen.is_empty() {
            self.send_interest(ask, interest, &chosen);
        }
        self.scratch.hops = hops;
        self.scratch.chosen = chosen;
        outcome
    }

    /// Finds the faces that lead to a name and may be used for this Interest.
    fn ways(
        &self,
        now: Time,
        ask: &Ask,
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
        let waiting = self
            .pit
            .get(ask.place)
            .map_or(&[][..], |entry| &entry.waiting);
        let is_local = |face| self.faces.get(&face).is_some_and(|face| face.is_local);
        let scope = Scope::of(interest.name());
        // What is asked for by this machine alone may go to neighbours, but not through them.
        let is_own = waiting.iter().all(|record| is_local(record.face));
        let only_local = ask.hop_limit == Some(0)
            || scope == Scope::Machine
            || (scope == Scope::Link && !is_own);
        hops.retain(|hop| {
            let waits_elsewhere =
                |record: &InRecord| record.face != hop.face && record.expires >= now;
            ask.from != Some(hop.face)
                && waiting.iter().any(waits_elsewhere)
                && self
                    .faces
                    .get(&hop.face)
                    .is_some_and(|face| face.is_local || !only_local)
        });
        strategy
    }

    fn send_interest(&mut self, ask: &Ask, interest: &Interest<'_>, chosen: &[FaceId]) {
        let is_first = self
            .pit
            .get(ask.place)
            .is_some_and(|entry| entry.asked.is_empty());
        // Without room for its nonce the Interest before it serves as well.
        let packet = match is_first || ask.from.is_none() {
            true => None,
            false => self.forwarded(interest, ask.nonce).ok(),
        };
        let Some(entry) = self.pit.get_mut(ask.place) else {
            return;
        };
        if let Some(packet) = packet {
            entry.set_packet(packet);
        }
        let packet = entry.packet.clone();
        for &face in chosen {
            let record = OutRecord {
                face,
                nonce: ask.nonce,
                expires: ask.expires,
                nack: None,
            };
            match entry.asked.iter_mut().find(|known| known.face == face) {
                Some(known) => *known = record,
                None => {
                    self.pending_bytes += ASKED_OVERHEAD;
                    entry.asked.push(record);
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

    /// Tries the next face, or passes the refusal on if there is none and nobody else was asked.
    fn take_nack(
        &mut self,
        now: Time,
        from: FaceId,
        place: PitPlace,
        nonce: Option<[u8; 4]>,
        reason: NackReason,
        prefixes: &[Prefix],
    ) {
        let Some(entry) = self.pit.get_mut(place) else {
            return;
        };
        let mut asked = entry.asked.iter_mut();
        let is_it = |record: &&mut OutRecord| record.face == from && Some(record.nonce) == nonce;
        let Some(record) = asked.find(is_it).filter(|record| record.nack.is_none()) else {
            return;
        };
        record.nack = Some(reason);
        let (nonce, expires) = (record.nonce, record.expires);
        let packet = entry.packet.clone();
        let Ok(interest) = Interest::decode(&packet) else {
            return;
        };
        let ask = Ask {
            place,
            from: None,
            nonce,
            expires,
            hop_limit: interest.hop_limit(),
        };
        if let Outcome::NoWay(reason) = self.ask(now, &ask, &interest, prefixes) {
            self.refuse(now, place, reason);
        }
    }

    /// Tells everybody who waits that there will be nothing.
    fn refuse(&mut self, now: Time, place: PitPlace, reason: NackReason) {
        let Some(entry) = self.finish(now, place) else {
            return;
        };
        let Ok(interest) = Interest::decode(&entry.packet) else {
            return;
        };
        for record in entry.waiting.iter().filter(|record| record.expires >= now) {
            // Each recognises its Interest by its own nonce.
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

    /// Answers an Interest that took no room with a Nack.
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
        // Whoever was not asked has nothing to say.
        places.retain(|place| {
            let entry = self.pit.get(*place);
            entry.is_some_and(|entry| entry.asked.iter().any(|record| record.face == from))
        });
        if places.is_empty() {
            self.statistics.unsolicited += 1;
        } else {
            self.statistics.data += 1;
            let packet = data.wire().into();
            self.store.insert(now, data, &prefixes, &packet);
            for place in places.drain(..) {
                self.answer(now, from, place, header.congestion_mark, &packet);
            }
        }
        self.scratch.prefixes = prefixes;
        self.scratch.places = places;
    }

    /// Sends Data to everybody who waits at an entry.
    fn answer(
        &mut self,
        now: Time,
        from: FaceId,
        place: PitPlace,
        congestion_mark: Option<u64>,
        packet: &Arc<[u8]>,
    ) {
        let Some(entry) = self.finish(now, place) else {
            return;
        };
        for record in &entry.waiting {
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

    /// Removes an entry from the PIT, and remembers what was sent for it.
    pub(super) fn finish(&mut self, now: Time, place: PitPlace) -> Option<PitEntry> {
        let entry = self.pit.remove(place)?;
        for record in &entry.asked {
            self.dead_nonces.insert(now, entry.hash(), record.nonce);
        }
        self.pending_bytes -= entry.asked.len() * ASKED_OVERHEAD;
        for record in &entry.waiting {
            self.pending_bytes -= record.charge;
            if let Some(face) = self.faces.get_mut(&record.face) {
                face.pending -= record.charge;
            }
        }
        Some(entry)
    }
}

/// What is to be asked of others.
struct Ask {
    place: PitPlace,
    /// Who wants to know; `None` if a refusal is the reason to ask.
    from: Option<FaceId>,
    nonce: [u8; 4],
    expires: Time,
    /// How many further forwarders it may pass.
    hop_limit: Option<u8>,
}

/// What came of asking.
enum Outcome {
    Sent,
    /// It was asked before, and an answer is still due.
    Waiting,
    /// There is nobody to ask.
    NoWay(NackReason),
}

impl Outcome {
    /// What it means that nobody was chosen.
    fn of(asked: &[OutRecord], now: Time, is_alive: impl Fn(FaceId) -> bool) -> Self {
        let is_pending = |record: &OutRecord| record.is_pending(now, &is_alive);
        if asked.iter().any(is_pending) {
            return Self::Waiting;
        }
        let reasons = asked.iter().filter_map(|record| record.nack);
        Self::NoWay(reasons.min().unwrap_or(NackReason::NoRoute))
    }
}

/// How far packets with a name may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Not off this machine.
    Machine,
    /// To neighbours.
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
