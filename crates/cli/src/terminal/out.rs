//! Output of the commands. A reader that closes the pipe early (`tacho query ... | head`) is not an error.
//!
//! The macros replace those of the standard library in the whole crate, which panic on a closed pipe.

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

/// Why a write failed, except for a closed pipe.
static FAULT: Mutex<Option<io::Error>> = Mutex::new(None);

/// Writes, or keeps the error for [`fault`]. The command continues: its effect matters, not only its output.
pub fn to_stdout(text: fmt::Arguments<'_>) {
    if cfg!(test) {
        // Unit tests capture this output.
        return std::print!("{text}");
    }
    // In one call: the buffer of stdout holds one line, and a table may have many.
    let written = io::stdout().lock().write_all(text.to_string().as_bytes());
    written.unwrap_or_else(note);
}

/// Writes if possible. An error cannot be reported anywhere.
pub fn to_stderr(text: fmt::Arguments<'_>) {
    if cfg!(test) {
        return std::eprint!("{text}");
    }
    let _ = io::stderr().lock().write_all(text.to_string().as_bytes());
}

/// The error of stdout, if any: for example a full disk, but not a closed pipe.
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
