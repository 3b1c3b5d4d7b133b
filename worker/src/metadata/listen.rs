//! Where the metadata endpoint of a VM listens: at the addresses of clouds, in the VM's own network.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket},
    thread,
    time::{Duration, Instant},
};

use crate::jail::{take_address, take_address_v6};

/// The IPv4 address of clouds' metadata services.
pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
/// The address of EC2's metadata service in IPv6 networks.
pub(super) const ADDRESS_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
/// The port of clouds' metadata services.
pub(super) const PORT: u16 = 80;

/// The longest time that the kernel may take until a new IPv6 address can be used; it needs a fifth of a second at most.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval at which is checked whether a new IPv6 address can be used.
const PAUSE: Duration = Duration::from_millis(1);

/// Listens at the clouds' addresses in this thread's network, which also gets the VM's own address. IPv6 is left out
/// if the kernel has none.
///
/// # Errors
///
/// The kernel's error for the IPv4 address.
pub fn listen_in_vm(own: Ipv4Addr) -> io::Result<Vec<TcpListener>> {
    take_address(c"lo:1", ADDRESS)?;
    take_address(c"lo:2", own)?;
    let mut listeners = vec![TcpListener::bind((ADDRESS, PORT))?];
    if let Err(error) = take_address_v6(ADDRESS_V6) {
        tracing::debug!(%error, "metadata are not answered by IPv6, which this kernel does not have");
        return Ok(listeners);
    }
    match await_address(ADDRESS_V6).and_then(|()| TcpListener::bind((ADDRESS_V6, PORT))) {
        Ok(listener) => listeners.push(listener),
        Err(error) => tracing::warn!(%error, "metadata is not served over IPv6"),
    }
    Ok(listeners)
}

/// Waits until a new IPv6 address can be used. The kernel first checks, even on a loopback device, that no other host
/// has the address; until then nobody can listen there.
fn await_address(address: Ipv6Addr) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        match is_usable(address.into()) {
            Ok(()) => return Ok(()),
            Err(error) if is_early(&error) && Instant::now() < until => thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
}

/// Checks that this thread's network has the address and a route to it. Nothing is sent for that.
fn is_usable(address: IpAddr) -> io::Result<()> {
    UdpSocket::bind(SocketAddr::new(address, 0))?.connect(SocketAddr::new(address, PORT))
}

/// Returns whether an error means that an address can't be used yet, as it is too new.
fn is_early(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, HostUnreachable, NetworkUnreachable};
    matches!(error.kind(), AddrNotAvailable | HostUnreachable | NetworkUnreachable)
}
