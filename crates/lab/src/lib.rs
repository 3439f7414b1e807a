//! Load, experiments, statistics.
