//! Parses a listen address: `IP:PORT` or `localhost:PORT`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// A listen address. With port 0 the system chooses a free port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Address(pub SocketAddr);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address: give IP:PORT, for example 127.0.0.1:7070")]
pub struct AddressError(String);

impl Address {
    pub const fn loopback(port: u16) -> Self {
        Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }

    pub const fn is_loopback(self) -> bool {
        self.0.ip().is_loopback()
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let fail = || AddressError(text.to_owned());
        match text.strip_prefix("localhost:") {
            Some(port) => port.parse().map(Self::loopback).map_err(|_| fail()),
            None => text.parse().map(Self).map_err(|_| fail()),
        }
    }
}

impl TryFrom<String> for Address {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
