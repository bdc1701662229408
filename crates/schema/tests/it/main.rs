//! The integration tests of this crate in one program, which links in a fraction of the time of
//! one each.

mod attributes_reach_the_class;
mod both_ends_agree;
mod containers_become_contents;
mod events;
mod every_type_round_trips;
mod floats_keep_their_bounds;
mod optional_tables;
mod rotations_keep_three_components;
