//! Parse, plan, evaluate: PromQL, and the analyses of executions. No I/O.
