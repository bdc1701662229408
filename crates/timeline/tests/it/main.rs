//! The integration tests of this crate in one program, which links in a fraction of the time of
//! one each. Golden vectors, which other platforms run, are a program of their own.

mod another_peer_follows_and_leads;
mod bad_edits_are_refused_whole;
mod clients_follow_a_server;
mod curves_are_what_their_edits_say;
mod curves_follow_the_look_up_rules;
mod fitted_curves_stay_within_their_error;
mod frames_are_read_or_refused;
mod futures_can_change;
mod old_keyframes_go_within_bounds;
mod packed_keyframes_arrive;
mod packed_keyframes_reach_many;
