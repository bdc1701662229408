//! Tests of the whole repository, and helpers that tests of several crates share.
//!
//! The checks are functions of text, so that they are themselves tested: a check that cannot fail
//! is worse than none.

pub mod markdown;
pub mod recorded;
pub mod repository;
pub mod seeds;
pub mod skip;

/// The examples of the front page are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// So are those of the book's pages for users.
#[cfg(doctest)]
pub mod book {
    #[doc = include_str!("../../book/src/first_game.md")]
    pub struct FirstGame;

    #[doc = include_str!("../../book/src/events.md")]
    pub struct EventsPage;

    #[doc = include_str!("../../book/src/lan.md")]
    pub struct Lan;

    #[doc = include_str!("../../book/src/tuning.md")]
    pub struct Tuning;

    #[doc = include_str!("../../book/src/troubleshooting.md")]
    pub struct Troubleshooting;

    #[doc = include_str!("../../book/src/operating.md")]
    pub struct Operating;

    #[doc = include_str!("../../book/src/worlds.md")]
    pub struct Worlds;

    #[doc = include_str!("../../book/src/carriers.md")]
    pub struct Carriers;

    #[doc = include_str!("../../book/src/named.md")]
    pub struct Named;

    #[doc = include_str!("../../book/src/adaptation.md")]
    pub struct Adaptation;

    #[doc = include_str!("../../book/src/quality.md")]
    pub struct Quality;

    #[doc = include_str!("../../book/src/recordings.md")]
    pub struct Recordings;

    #[doc = include_str!("../../book/src/restarts.md")]
    pub struct Restarts;

    #[doc = include_str!("../../book/src/samples.md")]
    pub struct Samples;

    #[doc = include_str!("../../book/src/shown.md")]
    pub struct Shown;

    #[doc = include_str!("../../book/src/simulate.md")]
    pub struct Simulate;

    #[doc = include_str!("../../book/src/prediction.md")]
    pub struct Prediction;

    #[doc = include_str!("../../book/src/lag_compensation.md")]
    pub struct LagCompensation;

    #[doc = include_str!("../../book/src/input_buffer.md")]
    pub struct InputBufferPage;

    #[doc = include_str!("../../book/src/spectators.md")]
    pub struct Spectators;

    #[doc = include_str!("../../book/src/swarm.md")]
    pub struct Swarm;

    #[doc = include_str!("../../book/src/tables.md")]
    pub struct Tables;

    #[doc = include_str!("../../book/src/timeline.md")]
    pub struct Timeline;

    #[doc = include_str!("../../book/src/watching.md")]
    pub struct Watching;

    #[doc = include_str!("../../book/src/concepts.md")]
    pub struct Concepts;

    #[doc = include_str!("../../book/src/priors.md")]
    pub struct Priors;

    #[doc = include_str!("../../book/src/rows.md")]
    pub struct Rows;

    #[doc = include_str!("../../book/src/ticks.md")]
    pub struct Ticks;
}
