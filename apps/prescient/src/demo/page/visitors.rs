//! The connections to the page, of which the number is limited.
//!
//! Idle connections must not lock out others. So a new connection always gets in; it replaces the
//! oldest that has not sent a request, or the oldest of all.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All connections.
#[derive(Default)]
pub(super) struct Visitors(Mutex<Guests>);

#[derive(Default)]
struct Guests {
    /// Connections so far.
    count: u64,
    /// Open connections in the order in which they were accepted.
    present: BTreeMap<u64, Guest>,
}

struct Guest {
    stream: TcpStream,
    has_asked: bool,
    /// It was shut down, and its thread is about to end.
    is_leaving: bool,
}

/// One connection, as long as its thread runs.
pub(super) struct Visit<'a> {
    visitors: &'a Visitors,
    number: u64,
}

impl Visitors {
    /// Registers a connection, and shuts down another if there are too many. `None` if connections
    /// that were shut down have not ended yet: then this one is closed without a response.
    pub(super) fn enter(&self, stream: &TcpStream) -> Option<Visit<'_>> {
        let stream = stream.try_clone().ok()?;
        let mut guests = self.guests();
        if guests.present.len() >= 2 * MAX_VISITORS {
            return None;
        }
        let staying = guests.present.values().filter(|guest| !guest.is_leaving);
        if staying.count() >= MAX_VISITORS {
            guests.send_one_away();
        }
        guests.count += 1;
        let number = guests.count;
        let guest = Guest {
            stream,
            has_asked: false,
            is_leaving: false,
        };
        guests.present.insert(number, guest);
        Some(Visit {
            visitors: self,
            number,
        })
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        // The lock is never held across a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guests {
    fn send_one_away(&mut self) {
        let staying = (self.present.iter_mut()).filter(|(_, guest)| !guest.is_leaving);
        let oldest = staying.min_by_key(|(number, guest)| (guest.has_asked, **number));
        if let Some((_, guest)) = oldest {
            guest.is_leaving = true;
            // This ends its thread's reads and writes; an error means that it is closed already.
            let _ = guest.stream.shutdown(Shutdown::Both);
        }
    }
}

impl Visit<'_> {
    /// Records that it has sent a request, so that it is not replaced first.
    pub(super) fn has_asked(&self) {
        if let Some(guest) = self.visitors.guests().present.get_mut(&self.number) {
            guest.has_asked = true;
        }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.visitors.guests().present.remove(&self.number);
    }
}

/// Browsers open up to six connections per tab.
const MAX_VISITORS: usize = 64;
