//! Blocks of IPv4 addresses, as VPCs and subnets have them.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Number of addresses of a subnet that EC2 reserves: the first four and the last.
pub(crate) const RESERVED: u32 = 5;

/// A block of addresses in CIDR notation, like `10.0.0.0/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpBlock {
    base: u32,
    bits: u8,
}

impl IpBlock {
    /// The default VPC's block, `172.31.0.0/16`.
    pub(crate) const DEFAULT_VPC: Self = Self { base: 0xac1f_0000, bits: 16 };

    /// Parses a block; bits of the address beyond the prefix are cleared, as EC2 does. `None`: the text is no block.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let (address, bits) = (address.parse::<Ipv4Addr>().ok()?, bits.parse::<u8>().ok()?);
        (bits <= 32).then(|| Self { base: u32::from(address) & mask(bits), bits })
    }

    /// The length of the prefix.
    pub(crate) const fn bits(self) -> u8 {
        self.bits
    }

    /// The number of addresses in the block; 2^32 - 1 for the block of all addresses.
    pub(crate) const fn size(self) -> u32 {
        if self.bits == 0 { u32::MAX } else { 1 << (32 - self.bits as u32) }
    }

    /// The number of addresses that instances can have in a subnet of this block.
    pub(crate) const fn usable(self) -> u32 {
        self.size().saturating_sub(RESERVED)
    }

    pub(crate) fn holds(self, other: Self) -> bool {
        other.bits >= self.bits && other.base & mask(self.bits) == self.base
    }

    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.holds(other) || other.holds(self)
    }

    /// The index of an address in the block, from 0; `None`: the block does not contain the address.
    pub(crate) fn place_of(self, address: Ipv4Addr) -> Option<u32> {
        let address = u32::from(address);
        (address & mask(self.bits) == self.base).then(|| address - self.base)
    }

    pub(crate) fn address(self, place: u32) -> Ipv4Addr {
        Ipv4Addr::from(self.base.wrapping_add(place))
    }

    /// The `number`-th subnet with this prefix length; `None`: the block has fewer.
    pub(crate) fn part(self, number: u32, bits: u8) -> Option<Self> {
        let size = Self { base: 0, bits }.size();
        let part = Self { base: self.base.checked_add(number.checked_mul(size)?)?, bits };
        self.holds(part).then_some(part)
    }
}

const fn mask(bits: u8) -> u32 {
    if bits == 0 { 0 } else { u32::MAX << (32 - bits as u32) }
}

impl fmt::Display for IpBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.base), self.bits)
    }
}

/// A block of IPv6 addresses in CIDR notation, like `2001:db8::/56`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ipv6Block {
    base: u128,
    bits: u8,
}

impl Ipv6Block {
    /// The `number`-th block of 56 bits among the addresses for documentation (RFC 3849), which no network routes.
    pub(crate) const fn provided(number: u64) -> Self {
        let base = 0x2001_0db8 << 96 | (number as u128 & 0xff_ffff) << 72;
        Self { base, bits: 56 }
    }

    /// Parses a block; bits of the address beyond the prefix are cleared. `None`: the text is no block.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let (address, bits) = (address.parse::<Ipv6Addr>().ok()?, bits.parse::<u8>().ok()?);
        (bits <= 128).then(|| Self { base: u128::from(address) & mask_v6(bits), bits })
    }

    /// The length of the prefix.
    pub(crate) const fn bits(self) -> u8 {
        self.bits
    }

    pub(crate) fn holds(self, other: Self) -> bool {
        other.bits >= self.bits && other.base & mask_v6(self.bits) == self.base
    }

    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.holds(other) || other.holds(self)
    }
}

const fn mask_v6(bits: u8) -> u128 {
    if bits == 0 { 0 } else { u128::MAX << (128 - bits as u32) }
}

impl fmt::Display for Ipv6Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv6Addr::from(self.base), self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str) -> IpBlock {
        IpBlock::read(text).expect("it is a block")
    }

    #[test]
    fn blocks_are_read_written_and_compared() {
        assert_eq!(block("10.1.2.3/16").to_string(), "10.1.0.0/16");
        assert_eq!(IpBlock::DEFAULT_VPC.to_string(), "172.31.0.0/16");
        for wrong in ["1000.1.0.0/20", "10.0.0.0", "10.0.0.0/33", "::/0", "10.0.0.0/-1"] {
            assert_eq!(IpBlock::read(wrong), None, "{wrong}");
        }
        let (whole, part) = (block("10.0.0.0/16"), block("10.0.3.0/24"));
        assert!(whole.holds(part) && !part.holds(whole) && part.overlaps(whole));
        assert!(!block("10.1.0.0/24").overlaps(whole));
        assert!(block("0.0.0.0/0").holds(part));
        assert_eq!((block("10.0.0.0/28").usable(), block("10.0.0.0/16").usable()), (11, 65_531));
    }

    #[test]
    fn blocks_of_the_sixth_version_are_read_written_and_compared() {
        let block = |text: &str| Ipv6Block::read(text).expect("it is a block");
        assert_eq!(block("2001:db8:0:1ff::9/56").to_string(), "2001:db8:0:100::/56");
        assert_eq!(Ipv6Block::provided(1).to_string(), "2001:db8:0:100::/56");
        for wrong in ["10.0.0.0/8", "2001:db8::", "2001:db8::/129", "2001:db8::/-1"] {
            assert_eq!(Ipv6Block::read(wrong), None, "{wrong}");
        }
        let (whole, part) = (block("2001:db8::/56"), block("2001:db8:0:ff::/64"));
        assert!(whole.holds(part) && !part.holds(whole) && part.overlaps(whole));
        assert!(!whole.overlaps(block("2001:db8:0:100::/64")) && block("::/0").holds(whole));
    }

    #[test]
    fn addresses_have_their_places() {
        let subnet = block("10.0.3.0/24");
        assert_eq!(subnet.address(4).to_string(), "10.0.3.4");
        assert_eq!(subnet.place_of(Ipv4Addr::new(10, 0, 3, 9)), Some(9));
        assert_eq!(subnet.place_of(Ipv4Addr::new(10, 0, 4, 9)), None);
        let parts = (0..17).filter_map(|n| IpBlock::DEFAULT_VPC.part(n, 20));
        let parts: Vec<String> = parts.map(|part| part.to_string()).collect();
        assert_eq!((parts.len(), parts[15].as_str()), (16, "172.31.240.0/20"));
    }
}
