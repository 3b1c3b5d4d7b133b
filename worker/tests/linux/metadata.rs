//! The metadata endpoint of VMs, in networks of their own.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use dormouse_worker::{jail::switch_on, metadata::listen_in_vm};
use nix::sched::{CloneFlags, unshare};

/// Number of VMs whose networks are made one after the other: once, a new IPv6 address was not usable at once in every
/// second or third.
const VMS: u8 = 20;
/// Time limit for a VM to get its endpoint.
const SOON: Duration = Duration::from_secs(2);

/// The addresses of the endpoint in a new network that a program there has reached.
fn reached_in_new_network(n: u8) -> io::Result<Vec<IpAddr>> {
    let inside = thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET)?;
        switch_on()?;
        let listeners = listen_in_vm(Ipv4Addr::new(10, 0, 0, n))?;
        let reached = listeners.iter().map(|listener| {
            let address: SocketAddr = listener.local_addr()?;
            TcpStream::connect(address)?;
            listener.accept().map(|_| address.ip())
        });
        reached.collect()
    });
    inside.join().unwrap()
}

pub(crate) fn answer_by_ipv6() {
    let mut expected: Vec<IpAddr> = vec!["169.254.169.254".parse().unwrap()];
    if Path::new("/proc/net/if_inet6").exists() {
        expected.push("fd00:ec2::254".parse().unwrap());
    }
    for n in 4..4 + VMS {
        let begun = Instant::now();
        assert_eq!(reached_in_new_network(n).unwrap(), expected, "VM {n}");
        assert!(begun.elapsed() < SOON, "VM {n}: {:?}", begun.elapsed());
    }
}
