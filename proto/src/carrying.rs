//! Packets between instances on different workers: what one message may hold, and how much an instance may send.

use std::time::{Duration, Instant};

use crate::v1::{CarriedPacket, CarriedPackets};

/// Most packets of one message.
pub const CARRIED_PACKETS: usize = 64;
/// Largest packet in bytes, as on EC2 between instances of a VPC.
pub const LARGEST_PACKET: u16 = 9001;
/// Most security groups of an instance.
pub const SECURITY_GROUPS: usize = 64;
/// Most bytes of the id or the name of a network or of a security group.
pub const NETWORK_NAME_BYTES: usize = 256;

/// Bytes that an instance may send to instances on other workers in a second.
const BYTES_PER_SECOND: u32 = 16 << 20;
/// Bytes that an instance may send at once after a pause.
const BURST_BYTES: u32 = 2 << 20;
/// Bytes that a packet counts for at least, as a small one takes a worker and the coordinator as long.
const LEAST_BYTES: u32 = 1024;

/// A message of carried packets that no worker and no coordinator sends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBatch {
    /// The message holds too many packets.
    #[error("{0} packets in one message; {CARRIED_PACKETS} are the most")]
    Packets(usize),
    /// A packet is too large.
    #[error("a packet of {0} bytes; {LARGEST_PACKET} are the most")]
    Bytes(usize),
    /// A packet comes with too many security groups.
    #[error("a packet with {0} security groups; {SECURITY_GROUPS} are the most")]
    Groups(usize),
    /// A packet comes with a long id of a network or a security group.
    #[error("a packet with a name of {0} bytes; {NETWORK_NAME_BYTES} are the most")]
    Name(usize),
}

/// Checks the sizes of a message of carried packets.
///
/// # Errors
///
/// The first bound that the message exceeds.
pub fn check_batch(batch: &CarriedPackets) -> Result<(), BadBatch> {
    let count = batch.packets.len();
    if count > CARRIED_PACKETS {
        return Err(BadBatch::Packets(count));
    }
    batch.packets.iter().try_for_each(check_packet)
}

fn check_packet(CarriedPacket { network, packet, groups }: &CarriedPacket) -> Result<(), BadBatch> {
    if packet.len() > usize::from(LARGEST_PACKET) {
        return Err(BadBatch::Bytes(packet.len()));
    }
    if groups.len() > SECURITY_GROUPS {
        return Err(BadBatch::Groups(groups.len()));
    }
    let longest = groups.iter().chain([network]).map(String::len).max().unwrap_or_default();
    if longest > NETWORK_NAME_BYTES { Err(BadBatch::Name(longest)) } else { Ok(()) }
}

/// What one instance may still send to instances on other workers: a token bucket, whose tokens are bytes.
#[derive(Clone, Debug)]
pub struct CarryBudget {
    left: u32,
    filled: Instant,
}

impl CarryBudget {
    /// Makes the budget of an instance that has sent nothing yet.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        Self { left: BURST_BYTES, filled: now }
    }

    /// Takes the bytes of a packet from the budget; returns false if they are not there: the packet is to be dropped.
    pub fn take_packet(&mut self, bytes: usize, now: Instant) -> bool {
        // Whole milliseconds, so that nothing is lost by rounding: the rest counts the next time.
        let passed = u32::try_from(now.saturating_duration_since(self.filled).as_millis());
        let passed = passed.unwrap_or(u32::MAX);
        if passed > 0 {
            let more = passed.saturating_mul(BYTES_PER_SECOND / 1000);
            self.left = self.left.saturating_add(more).min(BURST_BYTES);
            self.filled += Duration::from_millis(passed.into());
        }
        let cost = u32::try_from(bytes).unwrap_or(u32::MAX).max(LEAST_BYTES);
        let rest = self.left.checked_sub(cost);
        self.left = rest.unwrap_or(self.left);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(bytes: usize) -> CarriedPacket {
        CarriedPacket { packet: vec![0; bytes].into(), ..CarriedPacket::default() }
    }

    #[test]
    fn a_message_that_no_peer_sends_is_refused_by_name() {
        let check = |packets| check_batch(&CarriedPackets { packets });
        assert_eq!(check(vec![packet(9001); 64]), Ok(()));
        assert_eq!(check(vec![packet(1); 65]), Err(BadBatch::Packets(65)));
        let why = check(vec![packet(1), packet(9002)]).expect_err("it is too large").to_string();
        assert_eq!(why, "a packet of 9002 bytes; 9001 are the most");
        let groups = vec!["sg-1".to_owned(); 65];
        assert_eq!(check(vec![CarriedPacket { groups, ..packet(1) }]), Err(BadBatch::Groups(65)));
        let network = "x".repeat(257);
        assert_eq!(check(vec![CarriedPacket { network, ..packet(1) }]), Err(BadBatch::Name(257)));
        let groups = vec![String::new(), "x".repeat(300)];
        assert_eq!(check(vec![CarriedPacket { groups, ..packet(1) }]), Err(BadBatch::Name(300)));
    }

    #[test]
    fn an_instance_sends_so_much_at_once_and_so_much_a_second() {
        let begin = Instant::now();
        let mut budget = CarryBudget::new(begin);
        let mut send =
            |bytes, at| (0..1_000_000).take_while(|_| budget.take_packet(bytes, at)).count();
        // Small packets count for 1 KiB each.
        assert_eq!(send(40, begin), 2048);
        assert_eq!(send(8192, begin), 0);
        let second: usize =
            (1..=1000).map(|ms| send(8192, begin + Duration::from_millis(ms))).sum();
        assert!((2046..=2048).contains(&second), "{second} packets of 8 KiB in a second");
        // A pause fills it, and no more than that.
        assert_eq!(send(1024, begin + Duration::from_secs(3600)), 2048);
    }
}
