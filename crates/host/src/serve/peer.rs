//! Who is at the other end of a request.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::{Extensions, HeaderMap, HeaderName};
use ipnet::IpNet;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Who is at the other end of a request; in the extensions of every one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The client's address; behind a trusted reverse proxy, the one that the proxy names.
    pub(crate) address: IpAddr,
    /// Whether the client speaks HTTPS, with us or with a trusted reverse proxy.
    pub(crate) secure: bool,
}

impl Peer {
    /// Of a request that did not come over a connection of ours. Nothing is believed of it.
    const UNKNOWN: Self = Self { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), secure: false };

    /// The one of a request, from its extensions.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or(Self::UNKNOWN)
    }

    /// The addresses that one household or machine chooses from freely: an IPv4 address, or the /64
    /// of an IPv6 one. Whoever is counted by less than that picks a new address for every try.
    pub(crate) fn network(&self) -> IpAddr {
        network_of(self.address)
    }
}

/// [`Peer::network`] of an address.
pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// The reverse proxies that are believed.
#[derive(Clone, Debug)]
pub(crate) struct Proxies(Vec<IpNet>);

impl Proxies {
    pub(crate) fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// Whether this address is one of them.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Who sent a request that came over a connection of `socket`.
    ///
    /// Each proxy appends the address it was called from, so the list is true from its right end
    /// up to the first address that is no trusted proxy: that one is the client. What stands left
    /// of it is the client's own word.
    pub(crate) fn peer(&self, socket: IpAddr, encrypted: bool, headers: &HeaderMap) -> Peer {
        let mut address = socket.to_canonical();
        if !self.trusts(address) {
            return Peer { address, secure: encrypted };
        }
        for value in headers.get_all(FORWARDED_FOR).iter().rev() {
            for hop in value.to_str().unwrap_or_default().rsplit(',') {
                // A hop that is no address: nothing left of it can be placed.
                let Some(hop) = hop_address(hop) else { return told(address, encrypted, headers) };
                address = hop;
                if !self.trusts(address) {
                    return told(address, encrypted, headers);
                }
            }
        }
        told(address, encrypted, headers)
    }
}

/// A client behind a trusted proxy, which says how it was called; if it does not, as it calls us.
fn told(address: IpAddr, encrypted: bool, headers: &HeaderMap) -> Peer {
    let Some(last) = headers.get_all(FORWARDED_PROTO).iter().next_back() else {
        return Peer { address, secure: encrypted };
    };
    let scheme = last.to_str().ok().and_then(|schemes| schemes.rsplit(',').next());
    Peer { address, secure: scheme.is_some_and(|it| it.trim().eq_ignore_ascii_case("https")) }
}

/// An address as proxies write them: bare, in brackets, or with a port.
fn hop_address(hop: &str) -> Option<IpAddr> {
    let hop = hop.trim();
    let bare = hop.strip_prefix('[').and_then(|hop| hop.strip_suffix(']')).unwrap_or(hop);
    let address = bare.parse().or_else(|_| hop.parse::<SocketAddr>().map(|at| at.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

/// Whether a request says of itself that it came from another machine.
///
/// A reverse proxy beside an open host would make the whole network local. Not every proxy says
/// so; from one that does, nothing is taken.
pub(crate) fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let foreign = |hop: &str| hop_address(hop).is_none_or(|address| !address.is_loopback());
    headers.contains_key(axum::http::header::FORWARDED)
        || headers
            .get_all(FORWARDED_FOR)
            .iter()
            .any(|value| value.to_str().map_or(true, |hops| hops.split(',').any(foreign)))
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
