//! Writing a packet: the whole, or the part of it that fits.

use alloc::vec::Vec;

use crate::{
    body::{self, Contents, write_body},
    budget,
    check::Checksum,
    config::{FEW, MANY, Profile},
    header::{self, Header},
    history::Archive,
    layout::Layout,
    ledger::{Account, Cause, Ledger},
    log::Log,
    range::RangeEncoder,
    roster::Sight,
    session::Session,
    twin::{Rows, Twin},
    units::{Sequence, Tick},
};

use super::Encoder;

impl Encoder {
    /// Writes what fits and was waited for longest.
    pub(super) fn write_part(
        &mut self,
        archive: &Archive,
        contents: &Contents,
        now: Tick,
        limit: usize,
    ) -> Option<(Vec<u8>, Log)> {
        let bill = core::mem::take(&mut self.bill);
        let mut attempts = 0;
        loop {
            let group_of = |id: u32| self.group(id, archive);
            let mut chosen = budget::choose(
                &bill,
                &self.roster,
                (self.newest, self.cursor),
                limit,
                self.surcharge,
                group_of,
            );
            let (bytes, log) = loop {
                let (bytes, log) = self.write(archive, &self.part(contents, &chosen), now)?;
                if !chosen.drop_cut_groups(&log.covered, log.sequence) {
                    break (bytes, log);
                }
            };
            let cut = chosen.is_cut(&log.covered);
            self.surcharge.learn(cut, &self.bill);
            attempts += 1;
            if !cut {
                return Some((bytes, log));
            }
            if attempts == ATTEMPTS {
                if !chosen.keep_first_left_out(&log.covered) {
                    return Some((bytes, log));
                }
                self.retire(log);
                let mut alone = contents.clone();
                alone.despawns.clear();
                return self.write(archive, &self.part(&alone, &chosen), now);
            }
            self.retire(log);
        }
    }

    pub(super) fn write(
        &mut self,
        archive: &Archive,
        contents: &Contents,
        now: Tick,
    ) -> Option<(Vec<u8>, Log)> {
        match self.config.profile {
            Profile::Default => self.write_with::<FEW>(archive, contents, now),
            Profile::Best => self.write_with::<MANY>(archive, contents, now),
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
            cursor: self.cursor,
            full,
            excluded: self.excluded.clone(),
        };
        let mut bytes = Vec::with_capacity(self.usual_len);
        header::write(&header, self.cursor_tick, &mut bytes);
        let header_len = bytes.len();
        let mut log = self.spare.pop().unwrap_or_default();
        log.begin(header.sequence, now, header.cursor, full);
        let mut scratch = core::mem::take(&mut self.scratch);
        let moment = self.twin.bank.mark();
        self.bill.clear();
        let mut page = self.ledger.is_some().then(Ledger::default);
        let sight = Sight {
            archive,
            roster: &self.roster,
            layout: &self.layout,
        };
        let mut session = Session::<_, N> {
            coder: RangeEncoder::new(bytes),
            bank: &mut self.twin.bank,
            book: &self.twin.book,
            rows: &sight,
            log: &mut log,
            ledger: page.as_mut(),
            account: HEADER,
            sum: seed(&header, &self.layout),
            counting: self.counting,
            cost: 0,
            allowance: usize::MAX,
            charged: 0,
            made: Vec::new(),
            room: usize::MAX,
            invalid: false,
        };
        write_body(
            &mut session,
            contents,
            &sight,
            now,
            &mut scratch,
            &mut self.bill,
        );
        let unfolded = session.unfolded();
        let Session {
            coder,
            sum,
            invalid,
            cost,
            ..
        } = session;
        self.twin.bank.rewind(moment);
        let mut bytes = coder.finish();
        let least = header_len + body::least_len(unfolded, &self.twin.book);
        if bytes.len() < least {
            bytes.resize(least, 0);
        }
        let check = finish_check(sum, &self.twin, &log, &sight);
        header::set_check(&mut bytes, header_len, check);
        self.scratch = scratch;
        self.statistics.coded += self.bill.len() as u64;
        if invalid {
            self.retire(log);
            return None;
        }
        if let Some(mut page) = page {
            let rest = (bytes.len() as u64) << 19;
            page.add(HEADER, rest.saturating_sub(cost));
            self.page = page;
        }
        Some((bytes, log))
    }
}

/// Where the check of a packet starts from.
pub(crate) fn seed(header: &Header, layout: &Layout) -> Checksum {
    let mut sum = Checksum::new(u64::from(header.epoch));
    if let Some(beginning) = &layout.beginning {
        for half in beginning.check {
            sum.add(half);
        }
    }
    sum.add(u64::from(header.sequence.0) << 32 | u64::from(header.cursor.0));
    sum.add(u64::from(header.tick.0) << 1 | u64::from(header.full));
    sum
}

/// The check of a packet: what it says, and a part of what it was coded with.
pub(crate) fn finish_check(mut sum: Checksum, twin: &Twin, log: &Log, rows: &dyn Rows) -> u16 {
    let vouched = |id: u32| {
        if log.full {
            log.despawns.binary_search(&id).is_err()
        } else {
            log.covered.binary_search(&id).is_ok()
        }
    };
    sum.add(twin.digest(log.sequence.0, log.tick, rows, &vouched));
    sum.short()
}

const HEADER: Account = Account {
    class: None,
    field: None,
    cause: Cause::Header,
};

/// How often a packet is written anew because it had to be cut.
const ATTEMPTS: usize = 3;
