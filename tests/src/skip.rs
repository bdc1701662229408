//! Tests that cannot run everywhere.
//!
//! If a machine lacks what a test needs, the test prints so and passes; with `PRESCIENT_NO_SKIP`
//! set it fails instead, so that the deciding checks never pass by not running.

use std::env;
use std::io::Write;

/// Prints a line that starts with `skipped:`.
///
/// # Panics
///
/// If `PRESCIENT_NO_SKIP` is set.
pub fn skip(why: &str) {
    let strict = env::var_os("PRESCIENT_NO_SKIP").is_some_and(|value| !value.is_empty());
    skip_unless(strict, why);
}

pub(crate) fn skip_unless(strict: bool, why: &str) {
    let line = format!("skipped: {why}");
    assert!(!strict, "{line}");
    // Bypasses the test harness, which would hide the output of a passing test.
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "skipped: no such thing")]
    fn skipping_fails_where_nothing_may_be_skipped() {
        skip_unless(true, "no such thing");
    }
}
