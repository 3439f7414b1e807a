//! What is known about the clients of a network?

use std::hash::Hash;
use std::net::IpAddr;

use super::bounded::Bounded;

/// Limit on the pairs of network and key that are distinguished. Further networks share one value for each key.
pub const NETWORKS_MAX: usize = 4_096;

/// Values by network and key.
#[derive(Debug)]
pub struct Networks<K, V>(Bounded<(Option<IpAddr>, K), V>);

impl<K, V> Default for Networks<K, V> {
    fn default() -> Self {
        Self(Bounded::default())
    }
}

impl<K: Copy + Eq + Hash, V: Default> Networks<K, V> {
    /// The value of the network of an address. At the limit, values for which `is_over` returns true are removed.
    pub fn of(&mut self, address: Option<IpAddr>, key: K, is_over: impl Fn(&V) -> bool) -> &mut V {
        self.0.of((address.map(network), key), (NETWORKS_MAX, (None, key)), is_over)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// An IPv4 address, or the first 64 bits of an IPv6 address. A client usually has all addresses with these bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6([a, b, c, d, 0, 0, 0, 0].into())
        }
        address => address,
    }
}
