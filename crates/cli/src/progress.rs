//! A bar on the terminal while something takes long, and nothing anywhere else.

use std::{io::IsTerminal as _, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use turnkeep_store::verify::Progress;

use crate::transcript::printable;

/// How often the bar is drawn, in times a second.
const DRAWS: u8 = 10;

/// What a bar looks like.
const TEMPLATE: &str = "{msg} {wide_bar} {percent:>3} %";

/// A bar on standard error.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar, which is hidden where nobody would see it.
    pub(crate) fn start() -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr_with_hz(DRAWS)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(1), target);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar }
    }

    /// Goes on to the next of several things.
    pub(crate) fn begin(&self, what: &str, number: usize, of: usize) {
        let what = printable(what).replace('\n', "␊");
        self.bar.set_message(if of > 1 { format!("{number}/{of} {what}") } else { what });
        self.bar.set_position(0);
    }

    /// What is to be told how far that has come.
    pub(crate) fn progress(&self) -> Progress {
        let bar = self.bar.clone();
        Progress::new(move |done, of| {
            bar.set_length(of);
            bar.set_position(done);
        })
    }

    /// Says how far it has come.
    pub(crate) fn set(&self, done: u64, of: u64) {
        self.bar.set_length(of);
        self.bar.set_position(done);
    }

    /// Prints something without the bar in between.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
