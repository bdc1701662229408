//! A progress line on standard error, on terminals only.

use std::{io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

/// A spinner that counts ticks; hidden if there is no terminal.
pub(crate) fn spinner(name: &str, method: &str) -> ProgressBar {
    let style = "{spinner} {msg} tick {pos} ({per_sec})";
    line(style, true).with_message(format!("{name} {method}"))
}

/// A spinner with a message; hidden if not wanted or if there is no terminal.
pub(crate) fn status(is_wanted: bool) -> ProgressBar {
    line("{spinner} {msg}", is_wanted)
}

fn line(template: &str, is_wanted: bool) -> ProgressBar {
    if !is_wanted || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(100));
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
