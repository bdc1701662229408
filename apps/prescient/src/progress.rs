//! A line that moves while a run is under way, on terminals only.

use std::{io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

/// A spinner that counts ticks; silent where nobody watches.
pub fn spinner(name: &str, method: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {msg} tick {pos} ({per_sec})");
    let bar = ProgressBar::new_spinner().with_message(format!("{name} {method}"));
    bar.enable_steady_tick(Duration::from_millis(100));
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
