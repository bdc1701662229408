//! The integration tests of this crate in one program, which links in a fraction of the time of
//! one each. Tests that measure allocations are programs of their own.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../codec/tests/common/forger.rs"]
mod forger;

mod a_crowd_delays_itself;
mod a_desync_is_located;
mod a_hostile_server_fills_no_memory;
mod a_lost_connection_is_replaced;
mod any_number_of_readers;
mod bad_links_do_no_harm;
mod children_are_seen_with_their_parent;
mod clients_have_authority;
mod clients_see_the_truth;
mod hidden_neighbours_leave_no_trace;
mod keys_travel_with_entities;
mod large_worlds_are_joined_in_turn;
mod models_are_made_anew;
mod nonsense_is_refused;
mod peers_are_adapted;
mod peers_that_come_back_are_shown_all;
mod quality_is_set_from_above;
mod reports_can_be_forged;
mod samples_are_what_was_confirmed;
mod schemas_differ;
mod settings_are_told;
mod streams_need_no_answers;
mod tables_come_and_go;
mod ticks_overlap;
mod typed_events_are_small;
mod typed_events_can_be_forged;
mod types_need_not_be_known;
mod worlds_change;
