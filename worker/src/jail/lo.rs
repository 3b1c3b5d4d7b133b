//! The loopback device of a new network namespace.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr},
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
};

/// Index of the loopback device, which is the first device of every namespace.
const INDEX: libc::c_int = 1;

/// Switches on the loopback device of this thread's network namespace.
///
/// # Errors
///
/// The kernel's error.
pub fn switch_on() -> io::Result<()> {
    let mut request = device_request(c"lo");
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP).unwrap_or_default();
    ask_kernel(libc::AF_INET, libc::SIOCSIFFLAGS, &request)
}

/// Adds an address to the loopback device of this thread's network namespace, under a label such as `lo:1`.
pub(crate) fn take_address(label: &std::ffi::CStr, address: Ipv4Addr) -> io::Result<()> {
    set_addresses(label, address, Ipv4Addr::BROADCAST)
}

/// Sets the address and the mask of a device of this thread's network namespace, or of a label of it.
pub(super) fn set_addresses(
    label: &std::ffi::CStr,
    address: Ipv4Addr,
    mask: Ipv4Addr,
) -> io::Result<()> {
    for (call, address) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, mask)] {
        let mut request = device_request(label);
        request.ifr_ifru.ifru_addr = socket_address(address);
        ask_kernel(libc::AF_INET, call, &request)?;
    }
    Ok(())
}

/// Adds an IPv6 address to the loopback device of this thread's network namespace.
pub(crate) fn take_address_v6(address: Ipv6Addr) -> io::Result<()> {
    let address = libc::in6_addr { s6_addr: address.octets() };
    let request = libc::in6_ifreq { ifr6_addr: address, ifr6_prefixlen: 128, ifr6_ifindex: INDEX };
    ask_kernel(libc::AF_INET6, libc::SIOCSIFADDR, &request)
}

/// Makes a request about the network device called `name`.
#[expect(unsafe_code, reason = "a record of the C library, all of whose bits may be zero")]
pub(super) fn device_request(name: &std::ffi::CStr) -> libc::ifreq {
    // SAFETY: all-zero is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.to_bytes()) {
        *to = from.cast_signed();
    }
    request
}

/// Converts an address to the form that requests need: its family, a port, and its four bytes.
fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    for (to, from) in data.iter_mut().skip(2).zip(address.octets()) {
        *to = from.cast_signed();
    }
    let family = libc::sa_family_t::try_from(libc::AF_INET).unwrap_or_default();
    libc::sockaddr { sa_family: family, sa_data: data }
}

/// Makes a request to the kernel about the devices of this thread's network namespace.
#[expect(unsafe_code, reason = "no library here sets a device's flags and addresses")]
pub(super) fn ask_kernel<T>(
    family: libc::c_int,
    call: libc::c_ulong,
    request: &T,
) -> io::Result<()> {
    // SAFETY: takes numbers; a new descriptor that nobody else owns comes of it.
    let socket = unsafe {
        let fd = libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: a request of the size and kind that this call reads.
    match unsafe { libc::ioctl(socket.as_raw_fd(), call as _, std::ptr::from_ref(request)) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
