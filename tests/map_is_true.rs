//! Every path that the map of the repository names exists.

use std::fs;

use prescient_tests::markdown::paths;
use prescient_tests::repository::root;

#[test]
fn every_path_in_the_map_exists() {
    let file = root().join("ARCHITECTURE.md");
    let text = fs::read_to_string(file).expect("there is a map");
    let mut wrong = paths(&text);
    assert!(
        wrong.len() > 20,
        "a map names more than {} paths",
        wrong.len()
    );
    wrong.retain(|path| !root().join(&path.target).exists());
    let wrong: Vec<_> = wrong
        .iter()
        .map(|path| format!("ARCHITECTURE.md:{}: there is no {}", path.line, path.target))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
