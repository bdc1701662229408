//! The integration tests of this crate in one program, which links in a fraction of the time of
//! one each.

#[path = "../common/mod.rs"]
mod common;

mod bad_packets_are_refused;
mod content_store_answers;
mod interests_are_aggregated;
mod loops_end;
mod memory_is_bounded;
#[cfg(feature = "sockets")]
mod other_programs_interoperate;
mod packets_match_python_ndn;
mod packets_round_trip;
mod peers_discover_each_other;
mod prefixes_are_registered;
mod routes_follow_the_links;
mod routes_strategies_and_nacks;
#[cfg(feature = "sockets")]
mod sockets_carry_packets;
mod thousands_discover_those_around_them;
mod versions_reach_all_consumers;
