//! The choice of upstream faces for an Interest.

use prescient_channels::Time;

use super::face::FaceId;
use super::fib::NextHop;
use super::pit::OutRecord;

/// How a forwarder chooses among the next hops of a name.
///
/// No strategy sends an Interest to a face from which an answer is still due, not even after a
/// retransmission. (Later versions of NFD's best-route do, which breaks the aggregation of long-lived
/// Interests.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// The cheapest face that has not sent a Nack.
    #[default]
    BestRoute,
    /// All faces. For names that several applications receive, such as those of a sync group.
    Multicast,
}

impl Strategy {
    /// Adds the faces to send to now. `hops` are the eligible next hops, the cheapest first; `sent` are the
    /// Interest's out-records.
    pub(super) fn choose(
        self,
        hops: &[NextHop],
        sent: &[OutRecord],
        now: Time,
        is_alive: impl Fn(FaceId) -> bool,
        chosen: &mut Vec<FaceId>,
    ) {
        let record = |hop: &NextHop| sent.iter().find(|record| record.face == hop.face);
        let is_refused = |hop: &NextHop| record(hop).is_some_and(|record| record.is_refused(now));
        let is_pending = |record: &OutRecord| record.is_pending(now, &is_alive);
        match self {
            Self::BestRoute => {
                if sent.iter().any(is_pending) {
                    return;
                }
                let best = hops.iter().find(|hop| !is_refused(hop));
                chosen.extend(best.map(|hop| hop.face));
            }
            Self::Multicast => {
                let is_due =
                    |hop: &&NextHop| !is_refused(hop) && !record(hop).is_some_and(is_pending);
                chosen.extend(hops.iter().filter(is_due).map(|hop| hop.face));
            }
        }
    }
}
