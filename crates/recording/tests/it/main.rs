//! The integration tests of this crate in one program. Golden vectors, which other platforms run, are a
//! program of their own.

mod recordings_play_as_recorded;
