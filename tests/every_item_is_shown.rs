//! Every public item that a program reaches through the facade is shown in an example: in a listing
//! of the book, in a documentation test, or in a program under `examples`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use prescient_tests::markdown::rust_listings;
use prescient_tests::repository::{files, root};

/// Fails if a public method or re-exported name of the facade is added and never shown.
#[test]
fn every_public_item_of_the_facade_is_in_an_example() {
    let shown = shown_words();
    let missing: Vec<String> = public_names()
        .into_iter()
        .filter(|name| !shown.contains(name) && !UNSHOWN.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "not in any example: {missing:?}");
}

/// Fails if a listing of the book is not compiled: every page with Rust is among the documentation
/// tests of `tests/src/lib.rs`, and none is ignored.
#[test]
fn every_listing_of_the_book_is_compiled() {
    let compiled = read(root().join("tests/src/lib.rs"));
    for page in files("md") {
        let text = read(page.clone());
        let path = page.strip_prefix(root()).unwrap_or(&page).display();
        let path = path.to_string();
        // Zenoh is in a workspace of its own, because it takes six minutes to build.
        if !path.starts_with("book/")
            || path.ends_with("zenoh.md")
            || rust_listings(&text).is_empty()
        {
            continue;
        }
        assert!(
            !text.contains("```rust,ignore"),
            "{path} has an ignored listing"
        );
        let included = format!("{path}\")]");
        assert!(
            compiled.contains(&included),
            "the listings of {path} are not compiled"
        );
    }
}

/// Fails if a setting is added whose documentation does not say what holds without it.
#[test]
fn every_default_is_stated() {
    let sources = files("rs").into_iter();
    let sources = sources.filter(|path| SETTINGS.iter().any(|folder| is_below(path, folder)));
    let mut unstated = Vec::new();
    for path in sources {
        let text = read(path.clone());
        let mut documentation = String::new();
        for line in text.lines().map(str::trim_start) {
            if let Some(comment) = line.strip_prefix("///") {
                documentation.push_str(comment);
            } else if let Some(setter) = line.strip_prefix("pub fn with_") {
                let says = documentation.to_lowercase();
                let is_stated = STATES_A_DEFAULT.iter().any(|word| says.contains(word));
                let name = words(setter).next().unwrap_or_default().to_owned();
                if line.contains("(mut self") && !is_stated && !ADDS.contains(&&*name) {
                    unstated.push(format!("{}: with_{name}", path.display()));
                }
                documentation.clear();
            } else if !line.starts_with("#[") {
                documentation.clear();
            }
        }
    }
    assert!(unstated.is_empty(), "{unstated:#?}");
}

/// The names that programs get from the facade: what it re-exports, and the public functions of its
/// own types and of those that users of a world meet.
fn public_names() -> BTreeSet<String> {
    let facade = files("rs")
        .into_iter()
        .filter(|path| is_below(path, "crates/prescient/src"));
    let world = WORLD
        .iter()
        .map(|path| root().join("crates/replication/src").join(path));
    let mut names = BTreeSet::new();
    for path in facade.chain(world) {
        let text = read(path);
        let code = text
            .split("#[cfg(test)]\nmod tests")
            .next()
            .unwrap_or_default();
        names.extend(functions(code));
        names.extend(exports(code));
    }
    names
}

/// The names of public functions.
fn functions(code: &str) -> impl Iterator<Item = String> {
    let lines = code.lines().map(str::trim_start);
    let public = lines.filter_map(|line| line.strip_prefix("pub "));
    let named = public.filter_map(|line| Some(line.split_once("fn ")?.1));
    named.map(|rest| words(rest).next().unwrap_or_default().to_owned())
}

/// The names of `pub use`, except modules and what is renamed.
fn exports(code: &str) -> impl Iterator<Item = String> {
    let uses = code.split("pub use ").skip(1);
    let uses = uses.filter_map(|rest| rest.split_once(';').map(|(path, _)| path));
    let uses = uses.filter(|path| !path.contains(" as ") && !path.ends_with('*'));
    let names = uses.flat_map(|path| {
        let list = path.split_once('{').map_or(path, |(_, list)| list);
        let last = |path: &str| path.rsplit("::").next().unwrap_or_default().to_owned();
        let names = list
            .trim_end_matches('}')
            .split(',')
            .map(str::trim)
            .map(last);
        names.filter(|name| !name.is_empty()).collect::<Vec<_>>()
    });
    names.collect::<Vec<_>>().into_iter()
}

/// All words in code that users are shown.
fn shown_words() -> BTreeSet<String> {
    let mut shown = BTreeSet::new();
    let mut add = |code: &str| shown.extend(words(code).map(String::from));
    for page in files("md") {
        rust_listings(&read(page)).iter().for_each(|code| add(code));
    }
    for path in files("rs") {
        let text = read(path.clone());
        if is_below(&path, "crates/prescient/examples") || is_below(&path, "examples") {
            add(&text);
        } else if is_below(&path, "crates") {
            let comments = text.lines().filter_map(|line| {
                let line = line.trim_start();
                line.strip_prefix("//!")
                    .or_else(|| line.strip_prefix("///"))
            });
            let comments: Vec<&str> = comments
                .map(|line| line.strip_prefix(' ').unwrap_or(line))
                .collect();
            // A listing without a language is Rust in documentation.
            let page = comments.join("\n").replace("```no_run", "```rust");
            let mut is_open = false;
            let page: Vec<String> = (page.lines())
                .map(|line| match line.starts_with("```") {
                    true => {
                        is_open = !is_open;
                        match is_open && line == "```" {
                            true => "```rust".to_owned(),
                            false => line.to_owned(),
                        }
                    }
                    false => line.to_owned(),
                })
                .collect();
            rust_listings(&page.join("\n"))
                .iter()
                .for_each(|code| add(code));
        }
    }
    shown
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    text.split(move |char| !is_part(char))
        .filter(|word| !word.is_empty())
}

fn is_below(path: &std::path::Path, folder: &str) -> bool {
    path.starts_with(root().join(folder))
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(path).expect("files of the repository are readable")
}

/// Where the types are defined with which a world is made and changed.
const WORLD: [&str; 9] = [
    "authority.rs",
    "client/subscriber.rs",
    "config.rs",
    "hierarchy.rs",
    "publisher.rs",
    "relevance.rs",
    "views.rs",
    "world/mod.rs",
    "world/step.rs",
];

/// What only programs that carry packets of their own meet, or only layers above.
const UNSHOWN: [&str; 4] = ["handle_nack", "saturated", "waiting", "history"];

/// Where the settings are that programs pass through the facade.
const SETTINGS: [&str; 8] = [
    "crates/channels/src",
    "crates/codec/src",
    "crates/playout/src",
    "crates/prescient/src",
    "crates/recording/src",
    "crates/replication/src",
    "crates/timeline/src",
    "crates/transport/src",
];

const STATES_A_DEFAULT: [&str; 4] = ["default", "unless", "without", "until"];

/// What adds to something that has none of it.
const ADDS: [&str; 2] = ["note", "prior"];
