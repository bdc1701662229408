//! The integration tests of this crate in one program, which links in a fraction of the time of
//! one each. Tests that measure allocations are programs of their own.

#[path = "../common/mod.rs"]
mod common;

mod a_closing_server_lets_nobody_in;
mod a_killed_server_is_noticed;
mod another_reader_understands;
mod blackouts_end;
mod broken_ends_are_closed;
mod bytes_stay_what_they_were;
mod clients_may_move;
mod clocks_agree;
mod clocks_may_jump;
mod damaged_packets_leave_no_trace;
mod everybody_knows_who_is_there;
mod handshakes_survive_bad_links;
mod memory_stays_bounded;
mod messages_arrive;
mod no_key_press_is_lost;
mod nobody_floods_a_server;
mod nonces_never_repeat;
mod nonsense_is_refused;
mod nothing_is_accepted_twice;
mod one_datagram_per_tick;
mod paths_may_shrink;
mod requests_and_blobs;
mod strangers_get_nothing;
mod tokens_are_good_once;
