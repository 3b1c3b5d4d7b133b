//! The user at the other end of a connection on this host.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use dormouse_coordinator::UnauthenticatedConnection;

/// State `TCP_ESTABLISHED` in the kernel's tables.
const ESTABLISHED: &str = "01";
/// Inode in a row of the kernel's tables whose socket belongs to no process.
const NO_INODE: &str = "0";

/// The remote end of a connection to the page.
#[derive(Clone, Debug)]
pub(super) struct PagePeer {
    pub(super) address: SocketAddr,
    /// This host's end of the connection.
    local: SocketAddr,
    /// User at the other end, looked up once: reading the kernel's tables takes long.
    user: Arc<OnceLock<Option<u32>>>,
    /// Place of this connection among the connections that are not accepted yet; `None` once the connection is
    /// accepted.
    candidate: Option<UnauthenticatedConnection>,
}

impl PagePeer {
    pub(super) fn at(address: SocketAddr, local: SocketAddr) -> Self {
        Self { address, local, user: Arc::default(), candidate: None }
    }

    /// A peer with a known user.
    pub(super) fn of_user(address: SocketAddr, user: Option<u32>) -> Self {
        Self { user: Arc::new(user.into()), ..Self::at(address, address) }
    }

    /// Adds the peer's place among the connections of the port.
    pub(super) fn with_candidate(self, candidate: UnauthenticatedConnection) -> Self {
        Self { candidate: Some(candidate), ..self }
    }

    /// User id at the other end, if that end is on this host; `None` otherwise.
    pub(super) fn user(&self) -> Option<u32> {
        let is_here = self.address.ip().to_canonical().is_loopback();
        *self.user.get_or_init(|| is_here.then(|| user_of(self.address, self.local)).flatten())
    }

    /// Lets the connection stay after an accepted request; false if there are too many.
    pub(super) fn admit(&self) -> bool {
        self.candidate.as_ref().is_none_or(UnauthenticatedConnection::admit_connection)
    }

    /// Counts a refused request of the connection.
    pub(super) fn refuse(&self) {
        if let Some(candidate) = &self.candidate {
            candidate.count_refused();
        }
    }
}

/// User whose process has the other end of a connection between two addresses of this host, by the
/// kernel's tables; `None` if there is no such connection.
fn user_of(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    // An IPv4 client may use an IPv6 socket, and so may the page.
    let plain = [peer, local].map(|end| SocketAddr::new(end.ip().to_canonical(), end.port()));
    let tables: &[&str] = match plain[0] {
        SocketAddr::V4(_) => &["/proc/net/tcp", "/proc/net/tcp6"],
        SocketAddr::V6(_) => &["/proc/net/tcp6"],
    };
    tables.iter().find_map(|table| user_in(&std::fs::read_to_string(table).ok()?, plain))
}

/// Looks the user up in one table of `proc(5)`. A row counts if it has both ends, is established
/// and belongs to a process: the row of a closed connection (TIME_WAIT) stays for a minute, belongs
/// to nobody, and names user 0.
fn user_in(table: &str, [peer, local]: [SocketAddr; 2]) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let columns: Vec<_> = line.split_ascii_whitespace().take(10).collect();
        let [_, from, to, state, _, _, _, user, _, inode] = columns[..] else { return None };
        let is_it = is_end(from, peer) && is_end(to, local);
        (is_it && state == ESTABLISHED && inode != NO_INODE).then(|| user.parse().ok())?
    })
}

/// Whether a column of a table is this end of a connection: its address in hexadecimal digits,
/// possibly an IPv4 address in IPv6 form, and its port.
fn is_end(column: &str, end: SocketAddr) -> bool {
    let port = format!("{:04X}", end.port());
    let Some((address, of)) = column.split_once(':') else { return false };
    let mapped = match end.ip() {
        IpAddr::V4(ip) => address_in_hex(ip.to_ipv6_mapped().into()),
        ip @ IpAddr::V6(_) => address_in_hex(ip),
    };
    of == port && (address == address_in_hex(end.ip()) || address == mapped)
}

/// An address as the kernel prints it: words of four bytes in the host's order.
fn address_in_hex(ip: IpAddr) -> String {
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
        // By IPv4, by IPv6, and by IPv4 to a socket of both.
        for (listen, dial) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("[::1]:0", "[::1]"),
            ("[::]:0", "127.0.0.1"),
            ("[::]:0", "[::ffff:127.0.0.1]"),
        ] {
            let Ok(listener) = TcpListener::bind(listen) else { continue };
            let port = listener.local_addr().expect("its address").port();
            let ours = TcpStream::connect(format!("{dial}:{port}")).expect("it listens");
            let (theirs, peer) = listener.accept().expect("it came");
            let local = theirs.local_addr().expect("its address");
            let user = Some(nix::unistd::geteuid().as_raw());
            assert_eq!(PagePeer::at(peer, local).user(), user, "{listen} from {dial}");
            let another = SocketAddr::new(local.ip(), 1);
            assert_eq!(PagePeer::at(peer, another).user(), None, "the same end, to another port");
            drop(ours);
            assert_eq!(PagePeer::at(peer, local).user(), None, "it is over");
        }
    }

    /// The kernel's rows after `nobody` has closed a connection from port 50000, and opened one from the same port to
    /// the page at port 7381.
    #[test]
    fn rows_of_connections_that_are_over_are_of_nobody() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        let rest = "00000000:00000000 00:00000000 00000000";
        let row = |from: &str, to: &str, state: &str, user: u32, inode: u32| {
            format!(
                "   0: {from} {to} {state} {rest} {user:>5}        0 {inode} 1 0000 20 4 30 10 -1\n"
            )
        };
        let (page, other) = ("0100007F:1CD5", "0100007F:0050");
        let them = "0100007F:C350";
        let over = row(them, other, "06", 0, 0);
        let ours = row(page, them, "01", 1000, 7);
        let ends = ["127.0.0.1:50000", "127.0.0.1:7381"];
        let user = |rows: &[&str], ends: [&str; 2]| {
            let table = head.to_owned() + &rows.concat();
            user_in(&table, ends.map(|end| end.parse().expect("an address")))
        };
        for (rows, found) in [
            (vec![over.clone(), row(them, page, "01", 65_534, 9)], Some(65_534)),
            (vec![row(them, page, "01", 65_534, 9), over.clone()], Some(65_534)),
            (vec![over.clone(), ours.clone()], None),
            // Closed while it is looked for, or in a state on the way there; a row that no process has.
            (vec![row(them, page, "06", 0, 0)], None),
            (vec![row(them, page, "04", 0, 0)], None),
            (vec![row(them, page, "08", 65_534, 9)], None),
            (vec![row(them, page, "01", 0, 0)], None),
            (vec!["   0: nonsense\n".to_owned(), "\n".to_owned()], None),
        ] {
            let rows: Vec<_> = rows.iter().map(String::as_str).collect();
            assert_eq!(user(&rows, ends), found, "{rows:?}");
        }
        // The same ends in IPv6's form, and those of IPv6.
        let mapped = |port: &str| format!("0000000000000000FFFF00000100007F:{port}");
        let row_6 = row(&mapped("C350"), &mapped("1CD5"), "01", 65_534, 9);
        assert_eq!(user(&[&row_6], ends), Some(65_534));
        let six = |port: &str| format!("00000000000000000000000001000000:{port}");
        let row_6 = row(&six("C350"), &six("1CD5"), "01", 65_534, 9);
        assert_eq!(user(&[&row_6], ["[::1]:50000", "[::1]:7381"]), Some(65_534));
        assert_eq!(user(&[&row_6], ends), None);
    }
}
