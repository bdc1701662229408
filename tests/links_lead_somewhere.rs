//! Every relative link in every Markdown file leads to a file and a heading that exist.

use std::fs;
use std::path::Path;

use prescient_tests::markdown::{anchors, links};
use prescient_tests::repository::{files, root};

#[test]
fn every_relative_link_exists() {
    let pages = files("md");
    assert!(pages.contains(&root().join("README.md")));
    let mut wrong = Vec::new();
    for page in &pages {
        for link in links(&read(page)) {
            if !leads_somewhere(page, &link.target) {
                let page = page.strip_prefix(root()).unwrap_or(page).display();
                wrong.push(format!(
                    "{page}:{}: {} leads nowhere",
                    link.line, link.target
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn leads_somewhere(page: &Path, target: &str) -> bool {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => page.to_owned(),
        _ => page.with_file_name("").join(file),
    };
    let is_page = path.extension().is_some_and(|extension| extension == "md");
    path.exists() && (anchor.is_empty() || !is_page || anchors(&read(&path)).contains(anchor))
}

fn read(page: &Path) -> String {
    fs::read_to_string(page).expect("pages are readable")
}
