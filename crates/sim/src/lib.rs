//! Recorded and synthetic worlds, baseline methods, and the harness that runs them.
//!
//! Everything here is deterministic: a seed and a commit reproduce any run, so a claim about bytes
//! can be checked by one command. [`world`] provides the state of every tick, [`baseline`] the
//! established methods to replicate it, and [`harness`] runs a method, verifies the received state,
//! and counts bytes. [`rig`] is for timing our own codec. [`link`] simulates networks of any
//! quality.

pub mod baseline;
pub mod harness;
pub mod rig;
pub mod trace;
pub mod training;
pub mod world;

pub use prescient_links as link;
