//! The facts of a socket: what it is, its two ends, and the options that programs set.

use std::{
    io,
    net::{SocketAddr, TcpStream},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr as UnixAddress, UnixStream},
    },
};

use dormouse_units::one_line;

/// Socket options that are compared before a checkpoint and after a restore: their level, number, and name. Each value is a number
/// or a short text.
const OPTIONS: [(libc::c_int, libc::c_int, &str); 37] = [
    (libc::SOL_SOCKET, libc::SO_DOMAIN, "family"),
    (libc::SOL_SOCKET, libc::SO_TYPE, "type"),
    (libc::SOL_SOCKET, libc::SO_PROTOCOL, "protocol"),
    (libc::SOL_SOCKET, libc::SO_ACCEPTCONN, "listens"),
    (libc::SOL_SOCKET, libc::SO_REUSEADDR, "SO_REUSEADDR"),
    (libc::SOL_SOCKET, libc::SO_REUSEPORT, "SO_REUSEPORT"),
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE, "SO_KEEPALIVE"),
    (libc::SOL_SOCKET, libc::SO_BROADCAST, "SO_BROADCAST"),
    (libc::SOL_SOCKET, libc::SO_OOBINLINE, "SO_OOBINLINE"),
    (libc::SOL_SOCKET, libc::SO_LINGER, "SO_LINGER"),
    (libc::SOL_SOCKET, libc::SO_SNDBUF, "SO_SNDBUF"),
    (libc::SOL_SOCKET, libc::SO_RCVBUF, "SO_RCVBUF"),
    (libc::SOL_SOCKET, libc::SO_RCVLOWAT, "SO_RCVLOWAT"),
    (libc::SOL_SOCKET, libc::SO_RCVTIMEO, "SO_RCVTIMEO"),
    (libc::SOL_SOCKET, libc::SO_SNDTIMEO, "SO_SNDTIMEO"),
    (libc::SOL_SOCKET, libc::SO_PASSCRED, "SO_PASSCRED"),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMP, "SO_TIMESTAMP"),
    (libc::SOL_SOCKET, libc::SO_MARK, "SO_MARK"),
    (libc::SOL_SOCKET, libc::SO_PRIORITY, "SO_PRIORITY"),
    (libc::SOL_SOCKET, libc::SO_DONTROUTE, "SO_DONTROUTE"),
    (libc::IPPROTO_TCP, libc::TCP_NODELAY, "TCP_NODELAY"),
    (libc::IPPROTO_TCP, libc::TCP_CORK, "TCP_CORK"),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, "TCP_KEEPIDLE"),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, "TCP_KEEPINTVL"),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, "TCP_KEEPCNT"),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, "TCP_USER_TIMEOUT"),
    (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, "TCP_DEFER_ACCEPT"),
    (libc::IPPROTO_TCP, libc::TCP_CONGESTION, "TCP_CONGESTION"),
    (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, "TCP_NOTSENT_LOWAT"),
    (libc::IPPROTO_TCP, libc::TCP_SYNCNT, "TCP_SYNCNT"),
    (libc::IPPROTO_TCP, libc::TCP_LINGER2, "TCP_LINGER2"),
    (libc::IPPROTO_IP, libc::IP_TOS, "IP_TOS"),
    (libc::IPPROTO_IP, libc::IP_TTL, "IP_TTL"),
    (libc::IPPROTO_IP, libc::IP_FREEBIND, "IP_FREEBIND"),
    (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, "IP_MTU_DISCOVER"),
    (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, "IPV6_V6ONLY"),
    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, "IPV6_TCLASS"),
];
/// Socket options that every program may set on its own sockets, and that are set again after a restore if CRIU hasn't done so.
const MENDED: [&str; 18] = [
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_KEEPALIVE",
    "SO_BROADCAST",
    "SO_OOBINLINE",
    "SO_RCVLOWAT",
    "SO_TIMESTAMP",
    "TCP_NODELAY",
    "TCP_CORK",
    "TCP_KEEPIDLE",
    "TCP_KEEPINTVL",
    "TCP_KEEPCNT",
    "TCP_USER_TIMEOUT",
    "TCP_DEFER_ACCEPT",
    "TCP_NOTSENT_LOWAT",
    "TCP_SYNCNT",
    "IP_MTU_DISCOVER",
    "IP_TTL",
];
/// Longest address of a socket that is recorded at a checkpoint, in bytes.
const ADDRESS_BYTES: usize = 160;

/// Returns the facts about a socket, as pairs of the fact's name and its text. Options that the socket does not have
/// are left out.
pub(super) fn socket_facts(socket: &OwnedFd) -> Vec<(String, String)> {
    let mut facts: Vec<_> = OPTIONS
        .iter()
        .filter_map(|(level, number, name)| {
            let value = read_option(socket, *level, *number)?;
            Some(((*name).to_owned(), value))
        })
        .collect();
    let ends = [("address", own_address(socket)), ("address of its peer", peer_address(socket))];
    let named = ends.into_iter().filter_map(|(about, end)| Some((about.to_owned(), end?)));
    facts.extend(named);
    let end = if is_hung_up(socket) { "gone" } else { "there" };
    facts.push(("its other end".to_owned(), end.to_owned()));
    facts
}

/// Returns the address to which a socket is bound; `None`: the socket has no address that can be named.
fn own_address(socket: &OwnedFd) -> Option<String> {
    let inet = TcpStream::from(socket.try_clone().ok()?).local_addr();
    let unix = || UnixStream::from(socket.try_clone().ok()?).local_addr().ok();
    address_text(inet.ok(), unix)
}

/// Returns the address to which a socket is connected; `None`: the socket has no such address.
fn peer_address(socket: &OwnedFd) -> Option<String> {
    let inet = TcpStream::from(socket.try_clone().ok()?).peer_addr();
    let unix = || UnixStream::from(socket.try_clone().ok()?).peer_addr().ok();
    address_text(inet.ok(), unix)
}

fn address_text(
    inet: Option<SocketAddr>,
    unix: impl FnOnce() -> Option<UnixAddress>,
) -> Option<String> {
    let text = match inet {
        Some(inet) => inet.to_string(),
        None => {
            let unix = unix()?;
            let path = unix.as_pathname().map(|path| path.to_string_lossy().into_owned());
            let hidden = || Some(format!("@{}", String::from_utf8_lossy(unix.as_abstract_name()?)));
            path.or_else(hidden)?
        }
    };
    Some(one_line(&text, ADDRESS_BYTES).into_owned())
}

/// Returns whether poll(2) reports that the other end of a socket will send nothing more.
#[expect(unsafe_code, reason = "nix does not know POLLRDHUP")]
fn is_hung_up(socket: &OwnedFd) -> bool {
    let ends = libc::POLLHUP | libc::POLLRDHUP;
    let mut asked = libc::pollfd { fd: socket.as_raw_fd(), events: ends, revents: 0 };
    // SAFETY: the kernel reads and writes this one value, and does not wait.
    let found = unsafe { libc::poll(&raw mut asked, 1, 0) };
    found > 0 && asked.revents & ends != 0
}

/// Returns a function that sets the socket option called `name` to the value `numbers`; `None`: the option is not restored.
pub(super) fn option_setter(
    name: &str,
    numbers: &[i32],
) -> Option<impl FnOnce(&OwnedFd) -> io::Result<()>> {
    let (level, number, _) =
        OPTIONS.iter().find(|(_, _, it)| *it == name && MENDED.contains(it))?;
    let value: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    Some(move |socket: &OwnedFd| set_option(socket, (*level, *number), &value))
}

#[expect(
    unsafe_code,
    reason = "nix has a type for each option, and none for the numbers of options"
)]
fn set_option(
    socket: &OwnedFd,
    (level, number): (libc::c_int, libc::c_int),
    value: &[u8],
) -> io::Result<()> {
    let length = libc::socklen_t::try_from(value.len()).map_err(io::Error::other)?;
    // SAFETY: the kernel reads so many bytes, which are the caller's.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, number, value.as_ptr().cast(), length)
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the value of a socket option: one or two numbers, or a text; `None`: the socket has no such option.
#[expect(
    unsafe_code,
    reason = "nix has a type for each option, and none for the numbers of options"
)]
fn read_option(socket: &OwnedFd, level: libc::c_int, number: libc::c_int) -> Option<String> {
    let mut value = [0_u8; 64];
    let mut length = libc::socklen_t::try_from(value.len()).ok()?;
    // SAFETY: the kernel writes so many bytes at most, which are this call's.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            number,
            value.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let value = value.get(..usize::try_from(length).ok()?).filter(|_| got == 0)?;
    if number == libc::TCP_CONGESTION && level == libc::IPPROTO_TCP {
        let name = value.split(|byte| *byte == 0).next()?;
        return Some(String::from_utf8_lossy(name).into_owned());
    }
    let numbers = value.chunks_exact(4).filter_map(|four| four.try_into().ok());
    let numbers: Vec<_> = numbers.map(|four| i32::from_ne_bytes(four).to_string()).collect();
    Some(numbers.join(" "))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_end_whose_peer_is_gone_says_so() {
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let one = one.into();
        assert!(!is_hung_up(&one));
        let of_peer = |about: &str| socket_facts(&one).into_iter().any(|(name, _)| name == about);
        assert!(of_peer("its other end") && !of_peer("address of its peer"));
        drop(other);
        assert!(is_hung_up(&one));
    }

    #[test]
    fn a_socket_says_what_it_is_and_what_was_set() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let before = socket_facts(&listener.try_clone().unwrap().into());
        let of = |facts: &[(String, String)], about: &str| {
            facts.iter().find(|(name, _)| name == about).map(|(_, fact)| fact.clone())
        };
        assert_eq!(of(&before, "listens").as_deref(), Some("1"));
        assert_eq!(of(&before, "address"), Some(address));
        assert_eq!(of(&before, "address of its peer"), None);
        assert!(of(&before, "TCP_CONGESTION").is_some_and(|name| !name.is_empty()));
        listener.set_ttl(9).unwrap();
        let listener = listener.into();
        let after = socket_facts(&listener);
        let differ: Vec<_> = before.iter().zip(&after).filter(|(a, b)| a != b).collect();
        assert_eq!(
            differ,
            [(&("IP_TTL".to_owned(), "64".to_owned()), &("IP_TTL".to_owned(), "9".to_owned()))]
        );
        option_setter("IP_TTL", &[64]).unwrap()(&listener).unwrap();
        assert_eq!(socket_facts(&listener), before);
        assert!(option_setter("IP_TTL", &[]).unwrap()(&listener).is_err());
        // A privilege, nothing that is set, and nothing at all.
        for other in ["SO_MARK", "SO_PRIORITY", "family", "what"] {
            assert!(option_setter(other, &[1]).is_none(), "{other}");
        }
    }
}
