//! Recorded worlds and links, which are not part of the repository.
//!
//! They belong to their sources and are too large to commit, so a fresh clone has none. A test that
//! needs one is then skipped.

use std::env;
use std::path::{Path, PathBuf};

use crate::repository::root;
use crate::skip::skip;

/// The file or directory at a path such as `traces/rl_b2a19.trace.zst`; `None`, after a line that
/// starts with `skipped:`, if it is not on this machine.
///
/// # Panics
///
/// If it is missing and `PRESCIENT_NO_SKIP` is set.
pub fn recorded(path: &str) -> Option<PathBuf> {
    let shared = env::var_os("PRESCIENT_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| root().join("../shared"));
    let found = find(&shared, path);
    if found.is_none() {
        skip(&format!(
            "no {path} (set PRESCIENT_SHARED to where recordings are)"
        ));
    }
    found
}

fn find(shared: &Path, path: &str) -> Option<PathBuf> {
    Some(shared.join(path)).filter(|file| file.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_there_is_found() {
        assert!(find(root(), "Cargo.toml").is_some());
        assert!(find(root(), "such/recording").is_none());
    }
}
