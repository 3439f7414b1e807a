//! The listener of the native protocol: reads frames from sockets and sends acknowledgements.
//!
//! ```text
//!   native ── accepts, bounds ──▶ connection ── reads, decodes ──▶ commit ── appends ──▶ store
//!                                     │  ▲                            │
//!                       sessions: one connection per session          └── ACK, WAIT ──▶ outgoing
//!                                  control: the rules ── rule_updates ───── PROBES ──────▶
//! ```
//!
//! Step before: the sender of an agent (`agent/`). Step after: `crates/store/src/store.rs`.

mod commit;
mod connection;
mod counts;
mod farewell;
mod greeting;
mod http_request;
mod incoming;
mod large;
pub mod native;
mod outgoing;
mod patience;
mod rule_updates;
mod sessions;
mod shared;

pub use patience::Patience;
