//! The integration tests of this crate in one program, which links in a fraction of the time of
//! one each. Tests that measure allocations, and golden vectors that other platforms run, are programs
//! of their own.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/forger.rs"]
mod forger;
#[path = "../survival/link.rs"]
mod link;
#[path = "../survival/motions.rs"]
mod motions;
#[path = "../common/pair.rs"]
mod pair;
#[path = "../common/scenarios.rs"]
mod scenarios;
#[path = "../survival/schemas.rs"]
mod schemas;

mod a_tick_takes_several_packets;
mod an_archive_may_be_too_short;
mod an_id_keeps_its_class;
mod bad_packets_leave_no_trace;
mod bases_need_no_answers;
mod both_ends_answer_questions;
mod containers_cost_what_changed;
mod containers_survive_loss;
mod declarations_pay_off;
mod every_kind_of_field_survives;
mod every_type_of_state_survives;
mod groups_travel_together;
mod long_round_trips_have_no_cliff;
mod many_peers_share_an_archive;
mod models_never_diverge;
mod precision_reaches_who_comes_to_rest;
mod priors_give_a_head_start;
mod rates_may_have_rates;
mod references_leak_nothing;
mod relations_are_found;
mod samples_are_what_was_confirmed;
mod weights_decide_whose_turn_it_is;
mod what_is_sent_once_stays_exact;
