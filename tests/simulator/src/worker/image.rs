//! Checkpoints of simulated processes: a head that says whose work they hold, and a seal.

use dormouse_units::{Attempt, CheckpointSeq, Ppm, TaskId};

use crate::witness::Image;

const MAGIC: [u8; 4] = *b"dmsi";
const HEAD: usize = 20;
const SEAL: usize = 32;

/// The bytes of an image, sealed by the run's key.
pub(super) fn encode(image: &Image, key: &[u8; 32]) -> Vec<u8> {
    let numbers = [image.task.get(), image.attempt.get(), image.number.get(), image.done.get()];
    let mut bytes = MAGIC.to_vec();
    for number in numbers {
        bytes.extend(number.to_le_bytes());
    }
    let seal = blake3::keyed_hash(key, &bytes);
    bytes.extend(seal.as_bytes());
    bytes
}

/// The image in these bytes; `None` where they are damaged, or nobody sealed them who has the key.
pub(super) fn decode(bytes: &[u8], key: &[u8; 32]) -> Option<Image> {
    let (head, seal) = bytes.split_at_checked(HEAD)?;
    let seal: [u8; SEAL] = seal.try_into().ok()?;
    let mut numbers = head.strip_prefix(&MAGIC)?.chunks_exact(4).map(|chunk| {
        let number: [u8; 4] = chunk.try_into().unwrap_or_default();
        u32::from_le_bytes(number)
    });
    let image = Image {
        task: TaskId::new(numbers.next()?),
        attempt: Attempt::new(numbers.next()?),
        number: CheckpointSeq::new(numbers.next()?),
        done: Ppm::new(numbers.next()?),
    };
    (blake3::keyed_hash(key, head) == blake3::Hash::from(seal)).then_some(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_read_back_and_no_other_bytes_are_one() {
        let image = Image {
            task: TaskId::new(7),
            attempt: Attempt::new(2),
            number: CheckpointSeq::new(3),
            done: Ppm::new(123_456),
        };
        let bytes = encode(&image, &[1; 32]);
        assert_eq!(decode(&bytes, &[1; 32]), Some(image));
        assert_eq!(decode(&bytes, &[2; 32]), None);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged, &[1; 32]), None, "byte {at}");
            assert_eq!(decode(&bytes[..at], &[1; 32]), None, "{at} bytes");
        }
    }
}
