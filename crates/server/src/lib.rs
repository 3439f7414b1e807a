//! HTTP API, listeners, the embedded page, and the command line tacho.
