//! Text for people, at most 100 columns wide.

use serde_json::Value;

/// Breaks lines at spaces; the parts of a line after its first one are indented.
pub(crate) fn wrapped(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let (mut part, mut width) = (" ".repeat(indent), indent);
        let mut is_empty = true;
        // What is empty between two spaces keeps columns in line.
        for word in line.trim_start_matches(' ').split(' ') {
            let length = word.chars().count();
            if !is_empty && width + 1 + length > COLUMNS {
                lines.push(part.trim_end().to_owned());
                (part, width) = (" ".repeat(indent + 2), indent + 2);
                is_empty = true;
            }
            if !is_empty {
                part.push(' ');
                width += 1;
            }
            part.push_str(word);
            width += length;
            is_empty = false;
        }
        lines.push(part);
    }
    lines.join("\n")
}

/// The names and values of an object.
pub(crate) fn figures(object: &Value) -> String {
    let entries = object.as_object().into_iter().flatten();
    let entries: Vec<String> = entries
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name} {text}"),
            value => format!("{name} {value}"),
        })
        .collect();
    wrapped(&entries.join(", "))
}

/// The widest line.
pub(crate) const COLUMNS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a line may have a column more, or if the space between two words is not counted.
    #[test]
    fn lines_are_broken_at_spaces() {
        let word = "µ".repeat(33);
        let three = format!("{word} {word} {}", &word[..64]);
        assert_eq!(wrapped(&three), three, "100 columns");
        let four = wrapped(&format!("  {word} {word} {word} {word}\n\nend"));
        let expected = format!("  {word} {word}\n    {word} {word}\n\nend");
        assert_eq!(four, expected);
        let long = "x".repeat(200);
        assert_eq!(wrapped(&long), long, "a word is never broken");
        assert_eq!(wrapped("in   columns"), "in   columns");
    }
}
