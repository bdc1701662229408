//! No test may be switched off.

use std::fs;

use prescient_tests::repository::{files, root};

#[test]
fn no_test_is_switched_off() {
    // In two pieces, so that this line does not match.
    let marks = [concat!("#[", "ignore"), concat!("```", "ignore")];
    let mut wrong = Vec::new();
    for file in files("rs") {
        let text = fs::read_to_string(&file).expect("sources are readable");
        for (line, content) in text.lines().enumerate() {
            if marks.iter().any(|mark| content.contains(mark)) {
                let file = file.strip_prefix(root()).unwrap_or(&file).display();
                wrong.push(format!("{file}:{}", line + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "switched off: {}", wrong.join(", "));
}
