//! The integration tests of this crate in one program, which links in a fraction of the time of
//! one each. A test that sets the global recorder is a program of its own.

#[path = "../common/mod.rs"]
mod common;

mod a_killed_server_is_joined_again;
mod a_local_client_is_like_a_connection;
mod a_session_is_recorded;
mod a_world_is_shared;
mod carriers_are_alike;
mod clients_get_their_best;
mod clients_that_apply_nothing_are_closed;
mod clients_travel_and_take_authority;
mod ends_may_differ;
mod examples_say_what_they_show;
mod inputs_are_reconciled;
mod joining_ends_in_time;
mod nobody_is_heard_before_joining;
mod nonsense_is_refused;
mod one_client_does_not_drown_the_others;
mod own_movement_is_reconciled;
mod players_see_what_they_should;
mod priors_are_pinned;
mod samples_reach_back;
mod statistics_tell_what_happens;
mod the_obvious_code_works;
mod timelines_are_shared;
mod typed_events;
mod values_are_what_was_set;
mod views_are_set_per_peer;
