//! The user at the other end of a connection on this host.

use std::net::{IpAddr, SocketAddr};

use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use tokio::net::TcpListener;

/// Who has a connection to the page. Looked up once for each: the system's tables take long to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    /// The user at the other end, where that is on this host.
    pub(super) user: Option<u32>,
}

impl Peer {
    pub(super) fn at(address: SocketAddr) -> Self {
        let is_here = address.ip().to_canonical().is_loopback();
        Self { address, user: is_here.then(|| user_of(address)).flatten() }
    }
}

impl Connected<IncomingStream<'_, TcpListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Self {
        Self::at(*stream.remote_addr())
    }
}

/// The user whose process has this end of a connection on loopback, by the system's tables; `None`: they
/// have no such connection.
fn user_of(peer: SocketAddr) -> Option<u32> {
    // Who dials by IPv4 has an end of IPv4, whatever the page's socket is.
    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    let table = if peer.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
    user_in(&std::fs::read_to_string(table).ok()?, peer)
}

/// The same, in a table of `proc(5)`: local address, remote address and state in hexadecimal, and the
/// user's number as the eighth column.
fn user_in(table: &str, peer: SocketAddr) -> Option<u32> {
    let wanted = format!("{}:{:04X}", hexadecimal(peer.ip()), peer.port());
    table.lines().skip(1).find_map(|line| {
        let mut columns = line.split_ascii_whitespace();
        (columns.nth(1)? == wanted).then(|| columns.nth(5)?.parse().ok())?
    })
}

/// An address as the kernel prints it: words of four bytes in the host's order.
fn hexadecimal(ip: IpAddr) -> String {
    let bytes = match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|word| format!("{:08X}", u32::from_ne_bytes(*word)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_is_of_who_made_it() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let ours = TcpStream::connect(address).expect("it listens");
        let peer = ours.local_addr().expect("its address");
        assert_eq!(user_of(peer), Some(nix::unistd::geteuid().as_raw()));
        let nobody = SocketAddr::new(peer.ip(), 1);
        assert_eq!(user_of(nobody), None);
    }

    #[test]
    fn tables_are_read_by_their_columns() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  \n   \
                     0: 0100007F:1CD5 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000 0\n";
        let user = |at: &str| user_in(table, at.parse().expect("an address"));
        assert_eq!((user("127.0.0.1:7381"), user("127.0.0.1:50000")), (Some(1000), None));
    }
}
