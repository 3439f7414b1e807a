//! May this client send? Checks the token of HELLO.
//!
//! Step before: `connection.rs` has read HELLO. Step after: `commit.rs` writes what the token permits.

use std::net::IpAddr;

use tacho_ingest::wire::{ErrorCode, Hello, Session};

use super::farewell::Farewell;
use crate::access::token::Role;
use crate::access::{Access, Counted, Gate, Reason, Refusal};

/// Returns the access of the client. Until the second value is dropped, the session counts toward the token's limit on sessions.
///
/// # Errors
/// The last frame for a client that the gate refuses, or whose token does not permit sending or has too many sessions.
pub(super) fn enter(
    gate: &Gate,
    hello: &Hello,
    session: &Session,
    peer: IpAddr,
) -> Result<(Access, Option<Counted>), Farewell> {
    let token = hello.token.as_ref().map(|token| token.text());
    let access = gate.enter(token, (Some(peer), "agent")).map_err(|refusal| {
        let code = match refusal {
            Refusal::TooMany(_) => ErrorCode::TooManyConnections,
            _ => ErrorCode::Unauthorized,
        };
        Farewell::new(code, refusal.message())
    })?;
    let name = access.name().unwrap_or_default();
    let refuse = |reason: Reason, message: String| {
        access.refuse(reason, 1, &message);
        Err(Farewell::new(ErrorCode::Forbidden, message))
    };
    if !access.permits(Role::Write) {
        return refuse(Reason::Role, format!("token {name:?} does not have the role write"));
    }
    if let Some(confinement) = access.confinement().filter(|own| !own.admits(session.executions())) {
        let message = format!(
            "token {name:?} is confined to {}, and this client is {}: set its service",
            confinement.text,
            session.executions()
        );
        return refuse(Reason::Selector, message);
    }
    let counted = access.session().map_err(|max| {
        Farewell::new(ErrorCode::TooManyConnections, format!("token {name:?} may have {max} sessions"))
    })?;
    Ok((access, counted))
}
