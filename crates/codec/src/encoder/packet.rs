//! Writes a full packet, or the part of it that fits the budget.

use alloc::vec::Vec;

use crate::{
    body::{self, Contents, write_body},
    budget::{self, PacketCosts},
    check::Checksum,
    config::{BEST_CONTEXTS, DEFAULT_CONTEXTS, Profile},
    header::{self, Header},
    history::Archive,
    known_entities::ReceiverView,
    layout::Layout,
    ledger::{Account, Cause, Ledger},
    log::Log,
    packet_coder::PacketCoder,
    range::RangeEncoder,
    shared_model::{Rows, SharedModel},
    units::{Sequence, Tick},
};

use super::Encoder;

impl Encoder {
    /// Writes the entities that have waited longest, as far as they fit.
    pub(super) fn write_partial(
        &mut self,
        archive: &Archive,
        contents: &Contents,
        packet_costs: &PacketCosts,
        now: Tick,
        limit: usize,
    ) -> Option<(Vec<u8>, Log)> {
        let mut attempts = 0;
        loop {
            let group_of = |id: u32| self.group(id, archive);
            let mut chosen = budget::choose(
                packet_costs,
                &self.known_entities,
                (self.newest, self.anchor.sequence),
                limit,
                self.surcharge,
                group_of,
                |id, cost, age| self.due(id, cost, age, archive),
            );
            let (bytes, log) = loop {
                let (bytes, log) =
                    self.write(archive, &self.partial_contents(contents, &chosen), now)?;
                if !chosen.drop_cut_groups(&log.covered, log.sequence) {
                    break (bytes, log);
                }
            };
            let cut = chosen.is_cut(&log.covered);
            self.surcharge.learn(cut, &self.packet_costs);
            attempts += 1;
            if !cut {
                return Some((bytes, log));
            }
            if attempts == ATTEMPTS {
                if !chosen.keep_next_left_out(&log.covered) {
                    return Some((bytes, log));
                }
                self.recycle(log);
                let mut alone = contents.clone();
                alone.despawns.clear();
                return self.write(archive, &self.partial_contents(&alone, &chosen), now);
            }
            self.recycle(log);
        }
    }

    pub(super) fn write(
        &mut self,
        archive: &Archive,
        contents: &Contents,
        now: Tick,
    ) -> Option<(Vec<u8>, Log)> {
        match self.config.profile {
            Profile::Default => self.write_with::<DEFAULT_CONTEXTS>(archive, contents, now),
            Profile::Best => self.write_with::<BEST_CONTEXTS>(archive, contents, now),
        }
    }

    fn write_with<const N: usize>(
        &mut self,
        archive: &Archive,
        contents: &Contents,
        now: Tick,
    ) -> Option<(Vec<u8>, Log)> {
        let full = contents.partial.is_none();
        let header = Header {
            epoch: self.epoch,
            sequence: Sequence(self.newest.0 + 1),
            tick: now,
            cursor: self.anchor.sequence,
            full,
            excluded: self.excluded.clone(),
        };
        let mut bytes = Vec::with_capacity(self.headroom + self.typical_len);
        bytes.resize(self.headroom, 0);
        let repeats = |log: &Log| {
            let ahead = header.sequence.0 - log.sequence.0;
            log.sequence > header.cursor && log.anchor().is_repeated(ahead)
        };
        let is_unique = !self.logs.iter().any(repeats);
        header::write(&header, &self.anchor, is_unique, &mut bytes);
        let header_len = bytes.len();
        let mut log = self.spare.pop().unwrap_or_default();
        log.begin(&header, self.anchor.tick);
        let mut scratch = core::mem::take(&mut self.scratch);
        let mark = self.shared_model.context_model.mark();
        self.packet_costs.clear();
        let mut packet_ledger = self.ledger.is_some().then(Ledger::default);
        let receiver_view = ReceiverView {
            archive,
            known_entities: &self.known_entities,
            layout: &self.layout,
        };
        let mut packet_coder = PacketCoder::<_, N> {
            coder: RangeEncoder::new(bytes, self.headroom),
            context_model: &mut self.shared_model.context_model,
            entity_states: &self.shared_model.entity_states,
            rows: &receiver_view,
            log: &mut log,
            ledger: packet_ledger.as_mut(),
            account: HEADER,
            sum: start_check(&header, &self.layout),
            counting: self.counting,
            cost: 0,
            max_decisions: usize::MAX,
            copy_work: 0,
            new_contents: Vec::new(),
            content_room: usize::MAX,
            invalid: false,
        };
        write_body(
            &mut packet_coder,
            contents,
            &receiver_view,
            now,
            &mut scratch,
            &mut self.packet_costs,
        );
        let work = packet_coder.work();
        let PacketCoder {
            coder,
            sum,
            invalid,
            cost,
            ..
        } = packet_coder;
        self.shared_model.context_model.rewind(mark);
        let mut bytes = coder.finish();
        let min_len = header_len + body::min_len(work, &self.shared_model.entity_states);
        if bytes.len() < min_len {
            bytes.resize(min_len, 0);
        }
        let check = finish_check(sum, &self.shared_model, &log, &receiver_view);
        header::set_check(&mut bytes, header_len, check);
        self.scratch = scratch;
        self.statistics.coded += self.packet_costs.len() as u64;
        if invalid {
            self.recycle(log);
            return None;
        }
        if let Some(mut packet_ledger) = packet_ledger {
            let rest = ((bytes.len() - self.headroom) as u64) << 19;
            packet_ledger.add(HEADER, rest.saturating_sub(cost));
            self.packet_ledger = packet_ledger;
        }
        Some((bytes, log))
    }
}

/// The check of a packet over its header, to be continued over the body.
pub(crate) fn start_check(header: &Header, layout: &Layout) -> Checksum {
    let mut sum = Checksum::new(u64::from(header.epoch));
    if let Some(prior) = &layout.prior {
        for half in prior.check {
            sum.add(half);
        }
    }
    sum.add(u64::from(header.sequence.0) << 32 | u64::from(header.cursor.0));
    sum.add(header.tick.0 << 1 | u64::from(header.full));
    sum
}

/// The check of a packet: over its contents, and over the part of the shared model whose turn it
/// is.
pub(crate) fn finish_check(
    mut sum: Checksum,
    shared_model: &SharedModel,
    log: &Log,
    rows: &dyn Rows,
) -> u16 {
    let is_known = |id: u32| {
        if log.full {
            log.despawns.binary_search(&id).is_err()
        } else {
            log.covered.binary_search(&id).is_ok()
        }
    };
    sum.add(shared_model.digest(log.sequence.0, log.tick, rows, &is_known));
    sum.short()
}

const HEADER: Account = Account {
    class: None,
    field: None,
    cause: Cause::Header,
};

/// How often a partial packet is chosen and written before it is sent although it was cut.
const ATTEMPTS: usize = 3;
