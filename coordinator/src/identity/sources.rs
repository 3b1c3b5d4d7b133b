//! Counts refused calls by source address, so that guessing tokens doesn't keep the coordinator busy.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time for which refusals are remembered.
const WINDOW: Duration = Duration::from_secs(60);
/// Number of refusals within the last `WINDOW` after which a source must wait.
const FREE: u32 = 16;
/// Delay of further handshakes of a source with too many failed ones. At most [`super::candidates::MAX_CANDIDATES`]
/// handshakes are delayed at once.
const WAIT: Duration = Duration::from_secs(1);
/// Largest number of sources whose refusals are remembered.
const SOURCES: usize = 1024;

/// Number of refusals of each source since the current window began.
#[derive(Clone, Debug)]
pub(crate) struct RefusalSources(Arc<Mutex<(Instant, BTreeMap<IpAddr, u32>)>>);

impl Default for RefusalSources {
    fn default() -> Self {
        Self(Arc::new(Mutex::new((Instant::now(), BTreeMap::new()))))
    }
}

/// Returns the source of an address: for IPv6 its network, whose hosts one owner can number at will.
pub(super) fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(it) => IpAddr::V6(Ipv6Addr::from_bits(it.to_bits() & !u128::from(u64::MAX))),
        it @ IpAddr::V4(_) => it,
    }
}

impl RefusalSources {
    /// Counts a refused call or a failed handshake of an address.
    pub(crate) fn count_refusal(&self, address: IpAddr, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, refusals) = &mut *all;
        if now.saturating_duration_since(*since) > WINDOW || refusals.len() >= SOURCES {
            (*since, *refusals) = (now, BTreeMap::new());
        }
        *refusals.entry(source_of(address)).or_default() += 1;
    }

    /// Returns how long a handshake of an address must wait now.
    pub(crate) fn handshake_delay(&self, address: IpAddr, now: Instant) -> Duration {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, refusals) = &*all;
        let is_over = now.saturating_duration_since(*since) > WINDOW;
        let many = refusals.get(&source_of(address)).is_some_and(|many| *many >= FREE);
        if many && !is_over { WAIT } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_refused_again_and_again_waits_for_a_while_and_nobody_else_does() {
        let (sources, now) = (RefusalSources::default(), Instant::now());
        let bad = |n: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, n]);
        for n in 0..16 {
            assert_eq!(sources.handshake_delay(bad(n), now), Duration::ZERO);
            sources.count_refusal(bad(n), now);
        }
        assert_eq!(sources.handshake_delay(bad(99), now), WAIT, "another host of the same network");
        for good in ["2001:db8:0:1::1", "192.0.2.1"] {
            assert_eq!(
                sources.handshake_delay(good.parse().expect("an address"), now),
                Duration::ZERO
            );
        }
        assert_eq!(sources.handshake_delay(bad(1), now + WINDOW + WAIT), Duration::ZERO);
    }
}
