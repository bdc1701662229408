//! A line that moves while a run is under way, on terminals only.

use std::{io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

/// A spinner that counts ticks; silent where nobody watches.
pub fn spinner(name: &str, method: &str) -> ProgressBar {
    line("{spinner} {msg} tick {pos} ({per_sec})").with_message(format!("{name} {method}"))
}

/// A spinner with whatever it is told to say; hidden where nobody watches.
pub fn status() -> ProgressBar {
    line("{spinner} {msg}")
}

fn line(template: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(100));
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
