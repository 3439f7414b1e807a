//! The tests of the store, except `memory`. They are modules of one test binary, which is linked faster than many.

mod bounds;
mod callers;
mod common;
mod damage;
mod groups;
mod hardship;
mod jmx;
mod journal_damage;
mod journal_names;
mod known;
mod layers;
mod lossy;
mod one_thread;
mod pace;
mod resent;
mod stop;
mod store;
mod upkeep;
