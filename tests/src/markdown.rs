//! A minimal Markdown reader that finds links, headings and paths.

use std::collections::BTreeSet;

/// A reference and its line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The target of the reference.
    pub target: String,
    /// The line of the reference.
    pub line: usize,
}

/// Targets of inline links, images and link definitions, except links to other sites.
pub fn links(text: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    for (line, content) in prose(text) {
        let content = without_code(content);
        let mut rest = content.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let end = rest.find([')', ' ']).unwrap_or(rest.len());
            found.push((line, rest[..end].to_owned()));
        }
        if let Some((label, target)) = content.split_once("]: ")
            && label.starts_with('[')
        {
            let target = target.split_whitespace().next().unwrap_or_default();
            found.push((line, target.to_owned()));
        }
    }
    let is_elsewhere = |target: &str| target.contains("://") || target.starts_with("mailto:");
    found.retain(|(_, target)| !is_elsewhere(target));
    let reference = |(line, target)| Reference { target, line };
    found.into_iter().map(reference).collect()
}

/// The Rust code of fenced blocks.
pub fn rust_listings(text: &str) -> Vec<String> {
    let mut listings = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(language), None) => open = Some((language.starts_with("rust"), String::new())),
            (Some(_), Some((is_rust, code))) => listings.extend(is_rust.then_some(code)),
            (None, Some((is_rust, mut code))) => {
                code.push_str(line);
                code.push('\n');
                open = Some((is_rust, code));
            }
            (None, None) => {}
        }
    }
    listings
}

/// The anchors that can be linked to with `#…`, as code hosts derive them from headings.
pub fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(text) {
        let Some(heading) = line.strip_prefix('#') else {
            continue;
        };
        let heading = heading.trim_start_matches('#').trim();
        let kept = |letter: char| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ => letter.is_alphanumeric().then_some(letter),
        };
        let base: String = heading.to_lowercase().chars().filter_map(kept).collect();
        let mut anchor = base.clone();
        let mut again = 0;
        while !found.insert(anchor.clone()) {
            again += 1;
            anchor = format!("{base}-{again}");
        }
    }
    found
}

/// Paths in backticks, and in code blocks marked `map`, where indentation is nesting and only the
/// first word of a line counts.
pub fn paths(text: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    for (line, content) in prose(text) {
        for code in content.split('`').skip(1).step_by(2) {
            if is_path(code) {
                found.push(Reference {
                    target: code.to_owned(),
                    line,
                });
            }
        }
    }
    found.extend(map_paths(text));
    found
}

fn map_paths(text: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut parents: Vec<(usize, String)> = Vec::new();
    let mut inside = false;
    for (index, content) in text.lines().enumerate() {
        if content.trim_start().starts_with("```") {
            inside = !inside && content.trim() == "```map";
            parents.clear();
            continue;
        }
        let Some(word) = content.split_whitespace().next().filter(|_| inside) else {
            continue;
        };
        let indent = content.len() - content.trim_start().len();
        parents.retain(|(outer, _)| *outer < indent);
        let parent = parents.last().map_or("", |(_, path)| path);
        let target = format!("{parent}{word}");
        if word.ends_with('/') {
            parents.push((indent, target.clone()));
        }
        found.push(Reference {
            target,
            line: index + 1,
        });
    }
    found
}

/// A path has a slash or a file extension, and only characters that occur in this repository's
/// paths.
fn is_path(code: &str) -> bool {
    const EXTENSIONS: [&str; 8] = [".md", ".rs", ".toml", ".json", ".html", ".js", ".h", ".c"];
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    let named = code.starts_with(|first: char| first.is_ascii_alphabetic() || first == '.');
    let is_file = EXTENSIONS.iter().any(|extension| code.ends_with(extension));
    named && code.chars().all(plain) && (code.contains('/') || is_file)
}

/// The numbered lines outside code blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            inside = !inside;
            return None;
        }
        (!inside).then_some((index + 1, line))
    })
}

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(references: &[Reference]) -> Vec<&str> {
        let targets = references.iter().map(|reference| reference.target.as_str());
        targets.collect()
    }

    #[test]
    fn listings_of_rust_are_found_and_others_are_not() {
        let text =
            "```rust,no_run\nlet a;\nlet b;\n```\n```sh\nls\n```\nlet c;\n```rust\nlet d;\n```";
        assert_eq!(rust_listings(text), ["let a;\nlet b;\n", "let d;\n"]);
    }

    #[test]
    fn links_are_found_and_code_is_not() {
        let text =
            "[a](b.md) ![c](d/e.png \"f\") `[g](h)`\n```\n[i](j)\n```\n[k]: l.md\n[m](https://n)";
        assert_eq!(targets(&links(text)), ["b.md", "d/e.png", "l.md"]);
        assert_eq!(links(text)[2].line, 5);
    }

    #[test]
    fn anchors_are_those_of_code_hosts() {
        let anchors = anchors("# One: two `three`\n## Same\n## Same\n```\n# not\n```");
        let anchors: Vec<_> = anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["one-two-three", "same", "same-1"]);
    }

    #[test]
    fn paths_are_distinguished_from_other_code() {
        let text =
            "`crates/schema` `README.md` `a::b` `1/60` `/game/player` `x y/z` `Step` `.ci/run`";
        assert_eq!(
            targets(&paths(text)),
            ["crates/schema", "README.md", ".ci/run"]
        );
    }

    #[test]
    fn a_map_nests_by_indentation() {
        let text = "```map\ncrates/\n  schema/  what\n    src/lib.rs\n  codec/\ntests/\n```\n```\nno/\n```";
        let expected = [
            "crates/",
            "crates/schema/",
            "crates/schema/src/lib.rs",
            "crates/codec/",
            "tests/",
        ];
        assert_eq!(targets(&paths(text)), expected);
    }
}
