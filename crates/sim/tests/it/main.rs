//! The integration tests of this crate in one program, which links in a fraction of the time of
//! one each.

#[path = "../worlds/mod.rs"]
mod worlds;

mod every_method_holds;
mod links_do_what_was_asked;
mod networks_change_under_way;
mod recorded_links_carry_no_more;
mod recordings_arrive;
mod the_harness_catches_lies;
mod the_relay_passes_datagrams;
mod worlds_become_traces;
