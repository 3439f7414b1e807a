//! Writes the output of the commands. It is not an error if a reader closes the pipe early (`tacho query ... | head`).
//!
//! In the whole crate, these macros replace the macros of the standard library, which panic on a closed pipe.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::Mutex;

macro_rules! print {
    ($($text:tt)*) => { $crate::terminal::out::to_stdout(format_args!($($text)*)) };
}

macro_rules! println {
    () => { $crate::terminal::out::to_stdout(format_args!("\n")) };
    ($($text:tt)*) => { $crate::terminal::out::to_stdout(format_args!("{}\n", format_args!($($text)*))) };
}

macro_rules! eprint {
    ($($text:tt)*) => { $crate::terminal::out::to_stderr(format_args!($($text)*)) };
}

macro_rules! eprintln {
    ($($text:tt)*) => { $crate::terminal::out::to_stderr(format_args!("{}\n", format_args!($($text)*))) };
}

/// The first error of a write to stdout, except for a closed pipe.
static FAULT: Mutex<Option<io::Error>> = Mutex::new(None);

/// Writes, or keeps the error for [`fault`]. The command continues, because it may have effects other than its output.
pub fn to_stdout(text: fmt::Arguments<'_>) {
    if cfg!(test) {
        // The test harness captures only the output of the standard macros.
        return std::print!("{text}");
    }
    // The text is formatted before it is written. stdout is flushed at each line end, so formatting directly into stdout would
    // be a system call for each line.
    let written = io::stdout().lock().write_all(text.to_string().as_bytes());
    written.unwrap_or_else(note);
}

/// Errors are ignored, because they cannot be reported.
pub fn to_stderr(text: fmt::Arguments<'_>) {
    if cfg!(test) {
        return std::eprint!("{text}");
    }
    let _ = io::stderr().lock().write_all(text.to_string().as_bytes());
}

/// Flushes stdout, and returns the first error of a write to it, for example a full disk. A closed pipe is not an error.
pub fn fault() -> Option<io::Error> {
    io::stdout().lock().flush().unwrap_or_else(note);
    FAULT.lock().ok()?.take()
}

fn note(error: io::Error) {
    if error.kind() != ErrorKind::BrokenPipe
        && let Ok(mut first) = FAULT.lock()
    {
        first.get_or_insert(error);
    }
}
