//! A progress bar for long work: on stderr, only on a terminal, removed when the work is done.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar of `length` steps; invisible when stderr is not a terminal.
pub fn bar(length: u64, what: &str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    if let Ok(style) = ProgressStyle::with_template("{prefix:<12} [{bar:24}] {wide_msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
