//! Recorded worlds and links, which are not part of the repository.
//!
//! They belong to their sources and are too large to commit, so a newcomer has none. A test that
//! needs one then says so and passes; where `PRESCIENT_NO_SKIP` is set it fails instead, so that
//! the checks that count never pass by not running.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::repository::root;

/// The file or directory at a path such as `traces/rl_b2a19.trace.zst`; `None`, after a line that
/// starts with `skipped:`, if it is not on this machine.
///
/// # Panics
///
/// If it is missing and `PRESCIENT_NO_SKIP` is set.
pub fn recorded(path: &str) -> Option<PathBuf> {
    let shared = env::var_os("PRESCIENT_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| root().join("../shared"));
    let strict = env::var_os("PRESCIENT_NO_SKIP").is_some_and(|value| !value.is_empty());
    find(&shared, path, strict)
}

fn find(shared: &Path, path: &str, strict: bool) -> Option<PathBuf> {
    let file = shared.join(path);
    if file.exists() {
        return Some(file);
    }
    let missing = format!("skipped: no {path} (set PRESCIENT_SHARED to where recordings are)");
    assert!(!strict, "{missing}");
    // Past the test harness, which would hide what a passing test prints.
    let _ = writeln!(std::io::stderr(), "{missing}");
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found() {
        assert!(find(root(), "Cargo.toml", true).is_some());
    }

    #[test]
    #[should_panic(expected = "skipped: no such/recording")]
    fn what_is_missing_fails_where_nothing_may_be_skipped() {
        find(root(), "such/recording", true);
    }
}
