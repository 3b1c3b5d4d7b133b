//! The message that a coordinator listens: its address, and the command to type on other hosts.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;

use dormouse_experiment::command_line;

/// The address at which a coordinator can be reached from other hosts.
pub(super) struct Reached {
    /// The name of this host, if it has one.
    name: Option<String>,
    /// The address that this host has on its network; `None`: the host has no such address.
    address: Option<IpAddr>,
    /// The option that sets the address at which workers reach the coordinator.
    option: &'static str,
}

impl Reached {
    /// The name and the address of this host, for a coordinator whose `option` says where workers reach it.
    pub(super) fn here(option: &'static str) -> Self {
        let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
        // Nothing is sent: the system says from which address it would be. The other one is in a
        // range for documents.
        let address = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
            socket.connect("192.0.2.1:9")?;
            socket.local_addr()
        });
        let address = address.ok().map(|at| at.ip()).filter(|at| !at.is_loopback());
        Self { name: name.filter(|name| !name.is_empty()), address, option }
    }
}

/// The token by which workers join, as it may be printed.
pub(super) struct Shown<'a> {
    file: &'a Path,
    /// The token itself, only if the text goes to a terminal.
    token: Option<String>,
}

impl<'a> Shown<'a> {
    /// Reads the token in this file.
    pub(super) fn new(file: &'a Path) -> Self {
        let read = || std::fs::read_to_string(file).ok();
        let token = std::io::stderr().is_terminal().then(read).flatten();
        Self { file, token: token.map(|token| token.trim().to_owned()) }
    }
}

/// Says that a coordinator listens at this address for this many workers, which join with this token; and the command
/// that starts a worker.
pub(super) fn invitation(
    address: SocketAddr,
    workers: u32,
    token: &Shown<'_>,
    reached: &Reached,
) -> String {
    let waits = if workers == 1 { "a worker" } else { "workers" };
    let secret = token.file.display();
    let mut said = format!(
        "listening on {address}; waiting for {waits} with --secret-file and a copy of {secret}"
    );
    let (ip, port) = (address.ip(), address.port());
    let at_address = |ip: IpAddr| SocketAddr::new(ip, port).to_string();
    let at: Vec<String> = match (ip.is_loopback(), ip.is_unspecified()) {
        (true, _) => {
            let option = reached.option;
            return format!(
                "{said}; from other hosts nobody gets here: {option} 0.0.0.0 lets them in"
            );
        }
        (_, false) => vec![at_address(ip)],
        (_, true) => {
            let named = reached.name.as_ref().map(|name| format!("{name}:{port}"));
            named.into_iter().chain(reached.address.map(at_address)).collect()
        }
    };
    let Some((first, others)) = at.split_first() else { return said };
    let worker = ["dormouse", "worker", "--coordinator", first, "--secret-file"];
    let line = |file| command_line(worker.into_iter().chain([file]));
    // Arguments can be seen by all on a host; what a shell's own `echo` says can't.
    let line = match &token.token {
        Some(token) => format!("echo {token} | {}", line("-")),
        None => line("secret"),
    };
    let _ = write!(said, "\non each of their hosts, as root: {line}");
    if !others.is_empty() {
        let _ = write!(said, "    (or {})", others.join(", "));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(address: &str, workers: u32) -> String {
        let reached = Reached {
            name: Some("lab1".to_owned()),
            address: Some(IpAddr::from([10, 0, 0, 5])),
            option: "--listen",
        };
        let address = address.parse().unwrap_or_else(|error| panic!("{address}: {error}"));
        let token = Shown { file: Path::new("/runs/r/secret"), token: None };
        invitation(address, workers, &token, &reached)
    }

    #[test]
    fn the_line_for_other_hosts_names_this_one() {
        assert_eq!(
            said("0.0.0.0:7380", 3),
            "listening on 0.0.0.0:7380; waiting for workers with --secret-file and a copy of \
             /runs/r/secret\n\
             on each of their hosts, as root: dormouse worker --coordinator lab1:7380 --secret-file \
             secret    (or 10.0.0.5:7380)"
        );
        let one = said("10.9.9.9:80", 1);
        assert!(one.contains("a worker with") && one.ends_with("10.9.9.9:80 --secret-file secret"));
        let alone = said("127.0.0.1:7380", 2);
        assert!(alone.lines().count() == 1 && alone.contains("--listen 0.0.0.0"), "{alone}");
        let reached = Reached { name: None, address: None, option: "--listen-workers" };
        let address = SocketAddr::from(([0, 0, 0, 0], 1));
        let token = Shown { file: Path::new("s"), token: Some("dm1.x".to_owned()) };
        let alone = invitation(SocketAddr::from(([127, 0, 0, 1], 1)), 1, &token, &reached);
        assert!(alone.ends_with("--listen-workers 0.0.0.0 lets them in"), "{alone}");
        let nowhere = invitation(address, 1, &token, &reached);
        assert_eq!(nowhere.lines().count(), 1, "{nowhere}");
        let there = invitation(SocketAddr::from(([10, 0, 0, 1], 1)), 1, &token, &reached);
        let line = "echo dm1.x | dormouse worker --coordinator 10.0.0.1:1 --secret-file -";
        assert!(there.ends_with(line), "{there}");
    }
}
