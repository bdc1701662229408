//! Colours, where the output is a terminal that wants them.

use std::io::IsTerminal;

/// A heading on standard output.
pub(crate) fn heading(text: &str) -> String {
    paint(text, "1", is_wanted(&std::io::stdout()))
}

/// The beginning of an error on standard error.
pub(crate) fn failure(text: &str) -> String {
    paint(text, "1;31", is_wanted(&std::io::stderr()))
}

/// Whether an output is a terminal, and `NO_COLOR` is not set (<https://no-color.org>).
fn is_wanted(output: &impl IsTerminal) -> bool {
    let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    output.is_terminal() && !is_refused
}

fn paint(text: &str, style: &str, is_wanted: bool) -> String {
    match is_wanted {
        true => format!("\x1b[{style}m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if files and pipes get escape sequences.
    #[test]
    fn only_terminals_get_colours() {
        assert_eq!(paint("bytes", "1", false), "bytes");
        assert_eq!(paint("bytes", "1", true), "\x1b[1mbytes\x1b[0m");
    }
}
