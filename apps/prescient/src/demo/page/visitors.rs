//! Who is connected to the page, and who has to go when there are too many.
//!
//! Whoever opens connections and says nothing must not keep others out. So the newest always gets
//! in, in place of the oldest that has not asked for anything, or of the oldest of all.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All connections.
#[derive(Default)]
pub struct Visitors(Mutex<Guests>);

#[derive(Default)]
struct Guests {
    /// How many there ever were.
    count: u64,
    /// In the order in which they came.
    present: BTreeMap<u64, Guest>,
}

struct Guest {
    stream: TcpStream,
    has_asked: bool,
    /// It was sent away, and its thread is about to notice.
    is_leaving: bool,
}

/// One connection, as long as its thread runs.
pub struct Visit<'a> {
    visitors: &'a Visitors,
    number: u64,
}

impl Visitors {
    /// Lets a connection in, and sends another away if there are too many. `None` if those that were
    /// sent away do not go fast enough: then this one is closed without an answer.
    pub fn enter(&self, stream: &TcpStream) -> Option<Visit<'_>> {
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
        // Nobody panics while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guests {
    fn send_one_away(&mut self) {
        let staying = (self.present.iter_mut()).filter(|(_, guest)| !guest.is_leaving);
        let oldest = staying.min_by_key(|(number, guest)| (guest.has_asked, **number));
        if let Some((_, guest)) = oldest {
            guest.is_leaving = true;
            // Whoever reads or writes there is woken; one that is closed already is as good.
            let _ = guest.stream.shutdown(Shutdown::Both);
        }
    }
}

impl Visit<'_> {
    /// It has asked for something, and is not the first to go.
    pub fn has_asked(&self) {
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

/// Browsers hold up to six for each tab.
const MAX_VISITORS: usize = 64;
