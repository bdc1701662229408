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

    #[doc = include_str!("../../book/src/lan.md")]
    pub struct Lan;

    #[doc = include_str!("../../book/src/tuning.md")]
    pub struct Tuning;

    #[doc = include_str!("../../book/src/ticks.md")]
    pub struct Ticks;
}
