//! Reserves a port before the store is open.
//!
//! On Linux, a bound socket with `SO_REUSEADDR` reserves nothing: another socket may bind the same address and listen. So
//! [`Port`] listens from the start. Until the port is handed over, its connections are closed at once.
//!
//! This file and `serve.rs` use each other: a port that is in use is one of the reasons why the server does not
//! start.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::config::Address;
use crate::connection_limit::ACCEPT_PAUSE;
use crate::serve::ServeError;

/// Limit on the connections that wait to be accepted at one port.
const BACKLOG: u32 = 1_024;

pub struct Port {
    key: &'static str,
    address: Address,
    bound: SocketAddr,
    hand_over: oneshot::Sender<()>,
    listener: JoinHandle<TcpListener>,
}

impl Port {
    /// Listens on an address. `key` names its setting in errors.
    ///
    /// # Errors
    /// `Listen` when another socket listens there, or when the address cannot be used.
    pub fn reserve(key: &'static str, address: Address) -> Result<Self, ServeError> {
        let listening = || {
            let socket = if address.0.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            // Otherwise the closed connections of an earlier server (TIME_WAIT) block the port for a minute.
            socket.set_reuseaddr(true)?;
            socket.bind(address.0)?;
            let listener = socket.listen(BACKLOG)?;
            Ok((listener.local_addr()?, listener))
        };
        let (bound, listener) = listening().map_err(|source| ServeError::Listen { key, address, source })?;
        let (hand_over, is_over) = oneshot::channel();
        let listener = tokio::spawn(close_connections(listener, is_over));
        Ok(Self { key, address, bound, hand_over, listener })
    }

    /// Hands over the listener and its address. From now on, connections wait until they are accepted.
    ///
    /// # Errors
    /// `Listen` when the runtime stops.
    pub async fn listener(self) -> Result<(TcpListener, SocketAddr), ServeError> {
        let Self { key, address, bound, hand_over, listener } = self;
        drop(hand_over);
        let listener = listener.await.map_err(io::Error::from);
        let listener = listener.map_err(|source| ServeError::Listen { key, address, source })?;
        Ok((listener, bound))
    }
}

/// Closes each connection until the sender of `is_over` is dropped.
async fn close_connections(listener: TcpListener, mut is_over: oneshot::Receiver<()>) -> TcpListener {
    loop {
        tokio::select! {
            _ = &mut is_over => return listener,
            accepted = listener.accept() => if accepted.is_err() {
                tokio::time::sleep(ACCEPT_PAUSE).await;
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    fn reserved() -> (Port, SocketAddr) {
        let port = Port::reserve("http", Address(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
        let address = port.bound;
        (port, address)
    }

    #[tokio::test]
    async fn a_reserved_port_is_closed_to_all_others() {
        let (port, address) = reserved();
        let error = Port::reserve("records", Address(address)).err().unwrap();
        assert!(error.to_string().starts_with(&format!("cannot listen on records {address}: ")), "{error}");
        let (listener, bound) = port.listener().await.unwrap();
        assert_eq!(bound, address);
        drop(listener);
        Port::reserve("records", Address(address)).unwrap();
    }

    /// Most servers set `SO_REUSEADDR`. Two sockets with this option may be bound to one address, but only one may listen.
    #[tokio::test]
    async fn a_socket_that_shares_its_address_cannot_listen_on_a_reserved_port() {
        let (_port, address) = reserved();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        let listening = socket.bind(address).and_then(|()| socket.listen(1));
        assert_eq!(listening.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[tokio::test]
    async fn connections_are_closed_until_the_port_is_handed_over() {
        let (port, address) = reserved();
        for _ in 0..2 {
            let mut early = TcpStream::connect(address).await.unwrap();
            assert_eq!(early.read(&mut [0]).await.unwrap_or(0), 0);
        }
        let (listener, _) = port.listener().await.unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let (mut served, _) = listener.accept().await.unwrap();
        served.write_all(b"!").await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), b'!');
    }

    #[tokio::test]
    async fn a_dropped_reservation_frees_the_port() {
        let (Port { hand_over, listener, .. }, address) = reserved();
        drop(hand_over);
        drop(listener.await.unwrap());
        Port::reserve("http", Address(address)).unwrap();
    }
}
