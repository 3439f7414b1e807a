//! Counters that only rise, and a macro for structs of them.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub struct CountByKind([Count; 3]);

impl CountByKind {
    pub fn add(&self, counts: [usize; 3]) {
        self.0.iter().zip(counts).for_each(|(count, n)| count.add(n as u64));
    }

    pub fn get(&self) -> [u64; 3] {
        self.0.each_ref().map(Count::get)
    }
}

/// Defines counters for the chosen fields of a struct of numbers.
macro_rules! counters {
    ($(#[$about:meta])* $name:ident of $numbers:ident { $($field:ident: $count:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        pub struct $name {
            $(pub $field: $count,)*
        }

        impl $name {
            /// The current counts. The caller sets the other fields, such as those with a comment that begins with "Now:".
            pub fn snapshot(&self) -> $numbers {
                $numbers { $($field: self.$field.get(),)* ..$numbers::default() }
            }
        }
    };
}
pub(crate) use counters;
