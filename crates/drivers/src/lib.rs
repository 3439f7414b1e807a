//! One file per back end; drivers::open(url) is the only registry.
