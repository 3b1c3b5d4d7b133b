//! The heads of packets that instances send to each other.

use std::net::Ipv4Addr;

/// Protocols whose packets are delivered, by their numbers (IANA).
pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// Type of the ICMP messages that say that a packet was not delivered (RFC 792).
const UNREACHABLE: u8 = 3;
/// Length of an ICMP message before the packet that it is about.
const ICMP_HEAD: usize = 8;
/// Bit of TCP's flags with which one side ends a connection: FIN.
const FINISHES: u8 = 0b1;
/// Bit of TCP's flags with which a connection begins: SYN.
const BEGINS: u8 = 0b10;
/// Bit of TCP's flags with which a connection is broken off: RST.
const RESETS: u8 = 0b100;

/// The two ends of a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PacketEnds {
    pub(super) source: (Ipv4Addr, u16),
    pub(super) destination: (Ipv4Addr, u16),
    /// [`TCP`] or [`UDP`].
    pub(super) protocol: u8,
}

impl PacketEnds {
    /// Returns the ends of the packets in the other direction.
    pub(super) const fn reversed(self) -> Self {
        Self { source: self.destination, destination: self.source, protocol: self.protocol }
    }
}

/// What a packet of TCP says about its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ConnectionSigns {
    /// True if the packet begins a connection.
    pub(super) begins: bool,
    /// True if it is the last one with data of its sender.
    pub(super) finishes: bool,
    /// True if it breaks the connection off.
    pub(super) resets: bool,
}

/// What is delivered by a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketKind {
    /// Data of a connection, or a datagram.
    Data { ends: PacketEnds, signs: ConnectionSigns },
    /// Says that a packet with these ends was not delivered; its sender is the destination of that packet.
    Undelivered(PacketEnds),
}

/// The head of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketHead {
    pub(super) source: Ipv4Addr,
    pub(super) destination: Ipv4Addr,
    pub(super) kind: PacketKind,
}

/// Reads the head of a packet of IPv4; `None`: the packet is of a kind that is not delivered, or is damaged. Parts of a packet that
/// was too large for its device are not delivered.
pub(super) fn read_head(packet: &[u8]) -> Option<PacketHead> {
    let (source, destination, protocol, data) = read_addresses(packet)?;
    let kind = match protocol {
        TCP | UDP => {
            let flags = if protocol == TCP { *data.get(13)? } else { 0 };
            PacketKind::Data {
                ends: read_ends(source, destination, protocol, data)?,
                signs: ConnectionSigns {
                    begins: flags & BEGINS != 0,
                    finishes: flags & FINISHES != 0,
                    resets: flags & RESETS != 0,
                },
            }
        }
        ICMP if *data.first()? == UNREACHABLE => {
            let (from, to, protocol, data) = read_addresses(data.get(ICMP_HEAD..)?)?;
            let is_known = protocol == TCP || protocol == UDP;
            // It comes from who did not get the packet, and goes to who has sent it: nobody else knows of it.
            let is_of_both = (from, to) == (destination, source);
            PacketKind::Undelivered(
                read_ends(from, to, protocol, data).filter(|_| is_known && is_of_both)?,
            )
        }
        _ => return None,
    };
    Some(PacketHead { source, destination, kind })
}

/// Reads source, destination and protocol of a packet of IPv4, and returns what follows its head.
fn read_addresses(packet: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr, u8, &[u8])> {
    let head = packet.first_chunk::<20>()?;
    let words = usize::from(head[0] & 0xf);
    let fragment = u16::from_be_bytes([head[6], head[7]]) & 0x3fff;
    if head[0] >> 4 != 4 || words < 5 || fragment != 0 {
        return None;
    }
    let address = |at: usize| {
        let bytes = packet.get(at..)?.first_chunk::<4>()?;
        Some(Ipv4Addr::from(*bytes))
    };
    Some((address(12)?, address(16)?, head[9], packet.get(words * 4..)?))
}

fn read_ends(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    data: &[u8],
) -> Option<PacketEnds> {
    let [a, b, c, d] = *data.first_chunk::<4>()?;
    let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    Some(PacketEnds { source: (source, from), destination: (destination, to), protocol })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A packet with these ends and flags of TCP.
    pub(in super::super) fn packet(ends: PacketEnds, flags: u8) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, ends.protocol, 0, 0];
        packet.extend(ends.source.0.octets());
        packet.extend(ends.destination.0.octets());
        packet.extend(ends.source.1.to_be_bytes());
        packet.extend(ends.destination.1.to_be_bytes());
        packet.extend([0; 9]);
        packet.extend([flags, 0, 0, 0, 0, 0, 0]);
        packet
    }

    /// A message of ICMP from `source` that says that a packet was not delivered.
    pub(in super::super) fn undelivered(source: Ipv4Addr, about: PacketEnds) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, ICMP, 0, 0];
        packet.extend(source.octets());
        packet.extend(about.source.0.octets());
        packet.extend([3, 3, 0, 0, 0, 0, 0, 0]);
        packet.extend(super::tests::packet(about, 0).iter().take(28));
        packet
    }

    pub(in super::super) fn ends(source: (u8, u16), destination: (u8, u16)) -> PacketEnds {
        let at = |(last, port)| (Ipv4Addr::new(10, 0, 0, last), port);
        PacketEnds { source: at(source), destination: at(destination), protocol: TCP }
    }

    #[test]
    fn a_head_has_the_ends_of_what_is_delivered() {
        let way = ends((1, 4000), (2, 80));
        let head = read_head(&packet(way, 0b10));
        let signs = ConnectionSigns { begins: true, finishes: false, resets: false };
        let kind = PacketKind::Data { ends: way, signs };
        let (source, destination) = (way.source.0, way.destination.0);
        assert_eq!(head, Some(PacketHead { source, destination, kind }));
        let head = read_head(&undelivered(destination, way)).map(|head| (head.source, head.kind));
        assert_eq!(head, Some((destination, PacketKind::Undelivered(way))));
        let third = Ipv4Addr::new(10, 0, 0, 3);
        assert_eq!(read_head(&undelivered(third, way)), None, "it has not got that packet");
    }

    #[test]
    fn what_is_cut_or_of_another_kind_has_no_head() {
        let whole = packet(ends((1, 4000), (2, 80)), 0);
        for length in 0..34 {
            assert_eq!(read_head(&whole[..length]), None, "{length} bytes");
        }
        let with = |at: usize, byte| {
            let mut packet = whole.clone();
            packet[at] = byte;
            read_head(&packet)
        };
        // IPv6, a head that is too short, parts of a larger packet, another protocol.
        assert_eq!([with(0, 0x65), with(0, 0x44), with(6, 0x20), with(7, 1)], [None; 4]);
        assert_eq!([with(9, 132), with(9, ICMP)], [None; 2]);
    }
}
