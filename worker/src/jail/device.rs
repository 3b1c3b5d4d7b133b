//! Network devices of cells, whose other end the worker has (tun(4)).

use std::{
    fs::{File, OpenOptions},
    io,
    net::Ipv4Addr,
    os::{fd::AsRawFd as _, unix::fs::OpenOptionsExt as _},
};

use super::lo::{ask_kernel, device_request, set_addresses};

/// The kernel's file by which network devices are made.
const FILE: &str = "/dev/net/tun";
/// Name of the device in a cell.
const NAME: &std::ffi::CStr = c"eth0";

/// Makes a network device of layer 3 with an address in this thread's network namespace, and switches it on; returns the other end of
/// the device, from which one packet is read at a time. Other addresses with the same leading bits are reached by it.
///
/// # Errors
///
/// The kernel's error.
pub(crate) fn open_network_device(
    address: Ipv4Addr,
    prefix_bits: u8,
    largest_packet: u16,
) -> io::Result<File> {
    let end =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(FILE)?;
    let mut request = device_request(NAME);
    let flags = libc::IFF_TUN | libc::IFF_NO_PI;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).unwrap_or_default();
    #[expect(unsafe_code, reason = "no library here makes such devices")]
    // SAFETY: a request of the size and kind that this call reads and writes.
    let made = unsafe { libc::ioctl(end.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix_bits.min(32))).unwrap_or(0);
    set_addresses(NAME, address, Ipv4Addr::from_bits(mask))?;
    let mut request = device_request(NAME);
    request.ifr_ifru.ifru_mtu = largest_packet.into();
    ask_kernel(libc::AF_INET, libc::SIOCSIFMTU, &request)?;
    let mut request = device_request(NAME);
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP).unwrap_or_default();
    ask_kernel(libc::AF_INET, libc::SIOCSIFFLAGS, &request)?;
    Ok(end)
}
