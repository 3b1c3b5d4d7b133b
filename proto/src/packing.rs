//! Chunks of checkpoints and contents that are compressed while the wire is what they wait for.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use zstd::bulk::{Compressor, decompress};

use crate::v1;

/// The oldest version of the session's protocol in which both sides accept packed chunks.
pub const PACKED_CHUNKS: u32 = 9;
/// Metadata of a call by which a worker says that it accepts packed chunks: the key and the value.
pub const TAKES_PACKED: (&str, &str) = ("dormouse-takes-packed", "zstd");

/// zstd's fastest level with a positive number: higher levels cost more time of the processor than they save on the
/// wire.
const LEVEL: i32 = 1;
/// Most bytes of a chunk once it is unpacked, which is the longest chunk that either side sends.
const LARGEST: u32 = 256 << 10;
/// Weight, from 0 to 1, of the newest measurement in a running mean.
const NEWEST: f64 = 0.25;
/// Number of chunks sent without packing before packing is tried again: later chunks may shrink more.
const RETRY: u32 = 64;

/// A message that carries the bytes of a chunk.
pub trait Carrier {
    /// The bytes as they are sent, and their number once they are unpacked; zero if they are not packed.
    fn carried(&mut self) -> (&mut Bytes, &mut u32);
}

impl Carrier for v1::CheckpointChunk {
    fn carried(&mut self) -> (&mut Bytes, &mut u32) {
        (&mut self.data, &mut self.unpacked)
    }
}

impl Carrier for v1::ContentChunk {
    fn carried(&mut self) -> (&mut Bytes, &mut u32) {
        (&mut self.data, &mut self.unpacked)
    }
}

/// A packed chunk that can't be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum BadChunk {
    /// The chunk is longer than the limit; with its length in bytes.
    #[error("a compressed chunk would have {0} bytes; the limit is {LARGEST}")]
    Long(u32),
    /// The chunk is not zstd, or its length is not the stated one.
    #[error("a compressed chunk of {said} bytes can't be unpacked: {why}")]
    Damaged {
        /// Length that the chunk states, in bytes.
        said: u32,
        /// What is wrong with the packed chunk, in words.
        why: String,
    },
}

/// Returns the bytes of a chunk, unpacked if they are packed. Blocks for as long as that takes, less than a
/// millisecond.
///
/// # Errors
///
/// The chunk is too long, or damaged.
pub fn unpack(chunk: &mut impl Carrier) -> Result<Bytes, BadChunk> {
    let (data, unpacked) = chunk.carried();
    let said = *unpacked;
    if said == 0 {
        return Ok(std::mem::take(data));
    }
    if said > LARGEST {
        return Err(BadChunk::Long(said));
    }
    let damaged = |why: String| BadChunk::Damaged { said, why };
    let bytes = decompress(data, said as usize).map_err(|error| damaged(error.to_string()))?;
    if bytes.len() != said as usize {
        return Err(damaged(format!("it has {}", bytes.len())));
    }
    Ok(bytes.into())
}

/// Measurements that decide whether the chunks of one transfer are packed: they are if packing takes less time than
/// sending the saved bytes would. All are in nanoseconds for each unpacked byte, except for `ratio`.
#[derive(Clone, Copy, Debug)]
struct Balance {
    /// Nanoseconds that the wire takes for each unpacked byte, as far as known; an upper bound if chunks never wait for
    /// the wire.
    wire: f64,
    /// Nanoseconds that packing takes for each byte.
    pack: f64,
    /// Packed bytes for each unpacked byte.
    ratio: f64,
    /// Number of chunks sent without packing since packing was last tried.
    since: u32,
}

impl Balance {
    /// The assumptions before anything is measured: a fast wire, a common processor and common data.
    const UNKNOWN: Self = Self { wire: 0.0, pack: 3.0, ratio: 0.5, since: 0 };

    /// Whether the next chunk is to be packed.
    fn is_worth(&mut self) -> bool {
        // Other data of the same transfer may be packed better: at best to nothing.
        self.since += 1;
        let tries = self.since >= RETRY && self.wire > self.pack;
        let is_worth = tries || self.wire * (1.0 - self.ratio) > self.pack;
        if is_worth {
            self.since = 0;
        }
        is_worth
    }

    /// Records that packing a chunk of `raw` bytes to `packed` bytes took this time.
    fn packed(&mut self, raw: usize, packed: usize, took: Duration) {
        self.pack = mean(self.pack, nanos(took) / raw.max(1) as f64);
        self.ratio = mean(self.ratio, packed as f64 / raw.max(1) as f64);
    }

    /// Records that a chunk of `bytes` was sent, `took` after the chunk before, having `waited` for the wire.
    fn went(&mut self, bytes: usize, took: Duration, waited: Duration) {
        let took_each = nanos(took) / bytes.max(1) as f64;
        self.wire = match waited * 8 >= took {
            true => mean(self.wire, took_each),
            false => self.wire.min(took_each),
        };
    }
}

fn mean(before: f64, newest: f64) -> f64 {
    before + NEWEST * (newest - before)
}

fn nanos(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e9
}

/// Packs the chunks of one transfer while its wire is slow.
pub struct Packing {
    balance: Balance,
    /// The compressor, made for the first chunk that is packed.
    compressor: Option<Compressor<'static>>,
    /// The instant at which the last chunk was sent.
    gone: Instant,
}

impl Packing {
    /// Begins the packing of a transfer.
    #[must_use]
    pub fn begin() -> Self {
        Self { balance: Balance::UNKNOWN, compressor: None, gone: Instant::now() }
    }

    /// Whether the next chunk is to be packed.
    pub fn is_worth(&mut self) -> bool {
        self.balance.is_worth()
    }

    /// Packs a chunk, if that makes it shorter. Blocks for as long as that takes.
    pub fn pack(&mut self, chunk: &mut impl Carrier) {
        let (data, unpacked) = chunk.carried();
        let Ok(raw) = u32::try_from(data.len()) else { return };
        if raw > LARGEST || *unpacked != 0 {
            return;
        }
        if self.compressor.is_none() {
            self.compressor = Compressor::new(LEVEL).ok();
        }
        let Some(compressor) = &mut self.compressor else { return };
        let begun = Instant::now();
        let Ok(packed) = compressor.compress(data) else { return };
        self.balance.packed(data.len(), packed.len(), begun.elapsed());
        if packed.len() < data.len() {
            (*data, *unpacked) = (packed.into(), raw);
        }
    }

    /// Records that a chunk of `bytes` (its size on the wire) was sent, having waited since the instant `since`.
    pub fn went(&mut self, bytes: usize, since: Instant) {
        let now = Instant::now();
        self.balance.went(bytes, now - self.gone, now - since);
        self.gone = now;
    }
}

impl fmt::Debug for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The context of zstd has none.
        f.debug_struct("Packing").field("balance", &self.balance).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(data: Vec<u8>) -> v1::ContentChunk {
        v1::ContentChunk { data: data.into(), ..v1::ContentChunk::default() }
    }

    #[test]
    fn a_chunk_is_packed_and_unpacked_if_that_makes_it_shorter() {
        let mut packing = Packing::begin();
        let plain: Vec<u8> = (0..200_000_u32).flat_map(|n| (n / 100).to_le_bytes()).collect();
        let mut packed = chunk(plain[..LARGEST as usize].to_vec());
        packing.pack(&mut packed);
        assert!(packed.unpacked == LARGEST && packed.data.len() < LARGEST as usize / 4);
        // What is packed is not packed again.
        let before = packed.clone();
        packing.pack(&mut packed);
        assert_eq!(packed, before);
        assert_eq!(unpack(&mut packed).ok().as_deref(), Some(&plain[..LARGEST as usize]));
        for short in [&b""[..], b"x"] {
            let mut as_it_is = chunk(short.to_vec());
            packing.pack(&mut as_it_is);
            assert_eq!(as_it_is, chunk(short.to_vec()));
            assert_eq!(unpack(&mut as_it_is).ok().as_deref(), Some(short));
        }
    }

    #[test]
    fn what_is_no_packed_chunk_is_refused() {
        let mut packed = chunk(vec![7; 1000]);
        Packing::begin().pack(&mut packed);
        let with = |unpacked, data: &[u8]| v1::ContentChunk { unpacked, ..chunk(data.to_vec()) };
        let cut = &packed.data[..packed.data.len() - 1];
        for mut bad in [with(999, &packed.data), with(1001, &packed.data), with(1000, cut)] {
            assert!(matches!(unpack(&mut bad), Err(BadChunk::Damaged { .. })), "{bad:?}");
        }
        assert!(matches!(unpack(&mut with(7, b"nonsense")), Err(BadChunk::Damaged { .. })));
        assert!(matches!(unpack(&mut with(LARGEST + 1, b"")), Err(BadChunk::Long(_))));
    }

    /// A balance after 100 chunks over a wire with so many nanoseconds for each byte that takes, where packing takes
    /// three for each and leaves this part of them; and how many of them were packed.
    fn played(wire: u64, ratio: f64) -> (Balance, usize) {
        const CHUNK: u64 = 262_144;
        let (mut balance, mut packed) = (Balance::UNKNOWN, 0);
        for _ in 0..100 {
            let (mut bytes, mut busy) = (CHUNK, Duration::ZERO);
            if balance.is_worth() {
                bytes = (CHUNK as f64 * ratio) as u64;
                busy = Duration::from_nanos(3 * CHUNK);
                balance.packed(CHUNK as usize, bytes as usize, busy);
                packed += 1;
            }
            let on_wire = Duration::from_nanos(wire * bytes);
            balance.went(bytes as usize, on_wire.max(busy), on_wire.saturating_sub(busy));
        }
        (balance, packed)
    }

    #[test]
    fn chunks_are_packed_where_that_takes_less_than_the_wire_for_what_it_saves() {
        // 1 Gbit/s; 10 Gbit/s.
        assert!(played(8, 0.3).1 > 90);
        assert_eq!(played(1, 0.3).1, 0);
        // What can't be packed is tried a few times.
        let (balance, tried) = played(8, 1.0);
        assert!((1..10).contains(&tried), "{tried} of {balance:?}");
        // A wire that is a tenth as fast as it was.
        let (mut balance, _) = played(1, 0.3);
        for _ in 0..20 {
            balance.went(262_144, Duration::from_millis(3), Duration::from_millis(3));
        }
        assert!(balance.is_worth());
    }
}
