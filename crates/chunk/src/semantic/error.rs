//! Why can samples not be changed?

/// Invalid settings or samples.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SemanticError {
    #[error("tolerance is {got}, must be a number of at least 0")]
    Tolerance { got: f64 },
    #[error("relative tolerance is {got}, must be less than 1: with 1 every value could become 0")]
    Share { got: f64 },
    #[error("step of an aggregation is {got} ns, must be above 0")]
    Step { got: i64 },
    #[error("{times} times, but {values} values")]
    Length { times: usize, values: usize },
    #[error("times are not strictly ascending")]
    Order,
}
