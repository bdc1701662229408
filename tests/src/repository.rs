//! Finds the repository's own files.

use std::fs;
use std::path::{Path, PathBuf};

/// The directory that holds the workspace.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("this package lies in the workspace")
}

/// All files with an extension, sorted, except built and hidden ones.
pub fn files(extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    visit(root(), extension, &mut found);
    found.sort();
    found
}

fn visit(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).expect("directories of the repository are readable");
    for entry in entries {
        let path = entry.expect("entries are readable").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let built = name.starts_with("target") || name == "node_modules";
        if path.is_dir() && !built && !name.starts_with('.') {
            visit(&path, extension, found);
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
}
