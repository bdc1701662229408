//! Recorded and synthetic worlds, the methods to compare with, and the harness that runs them.
//!
//! Everything here is deterministic: a seed and a commit reproduce any run. The crate exists so
//! that a claim about bytes is one command away from being checked: [`world`] says what is true
//! at every tick, [`baseline`] holds the established ways to replicate it, and [`harness`] sends
//! the truth through a method, compares what arrives with it, and counts. [`rig`] is for timing
//! our own. [`link`] is a network of any quality, for whatever talks over one.

pub mod baseline;
pub mod harness;
pub mod link;
pub mod rig;
pub mod trace;
pub mod training;
pub mod world;
