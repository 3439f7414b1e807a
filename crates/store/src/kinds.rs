//! Arrays with one item for each kind of record, in the order of [`Kind::ALL`], and the noun of each kind.

use tacho_model::Kind;

/// The noun for records of a kind in messages.
pub const fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::Sample => "samples",
        Kind::Entry => "entries",
        Kind::Execution => "calls",
    }
}

pub const fn of_kind<T>([samples, entries, executions]: &[T; 3], kind: Kind) -> &T {
    match kind {
        Kind::Sample => samples,
        Kind::Entry => entries,
        Kind::Execution => executions,
    }
}

pub const fn of_kind_mut<T>([samples, entries, executions]: &mut [T; 3], kind: Kind) -> &mut T {
    match kind {
        Kind::Sample => samples,
        Kind::Entry => entries,
        Kind::Execution => executions,
    }
}
