//! The integration tests of this crate in one program, which links in a fraction of the time of
//! one each.

#[path = "../common/mod.rs"]
mod common;

mod blackouts_end;
mod clients_may_move;
mod errors_say_what_to_do;
mod loopback_carries_connections;
mod memory_carries_connections;
mod servers_end_in_time;
mod strangers_get_nothing;
mod tcp_servers_hold_little;
#[cfg(feature = "tokio")]
mod tokio_drives_the_same;
