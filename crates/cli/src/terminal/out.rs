//! Where commands write. Who reads a part and closes the pipe (`tacho query ... | head`) has what they want: that is no fault.
//!
//! The macros take the place of those of the standard library in the whole crate: these panic when nobody reads.

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

/// Why something could not be written, a closed pipe apart.
static FAULT: Mutex<Option<io::Error>> = Mutex::new(None);

/// Writes, or notes why not for [`fault`]. The command goes on: what it does counts, not only what it says.
pub fn to_stdout(text: fmt::Arguments<'_>) {
    if cfg!(test) {
        // Unit tests take down what is written so.
        return std::print!("{text}");
    }
    // At once: the buffer of stdout holds one line, and a table may have many.
    let written = io::stdout().lock().write_all(text.to_string().as_bytes());
    written.unwrap_or_else(note);
}

/// Writes where that can be done. There is nowhere to say that it cannot.
pub fn to_stderr(text: fmt::Arguments<'_>) {
    if cfg!(test) {
        return std::eprint!("{text}");
    }
    let _ = io::stderr().lock().write_all(text.to_string().as_bytes());
}

/// What went wrong with stdout, if anything did: a disk that is full, not a reader that has gone.
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
