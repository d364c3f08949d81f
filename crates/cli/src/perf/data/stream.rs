//! Random bytes that can be had from any position, without those before it.

/// The bytes that one rank draws for one call.
pub(super) struct Stream {
    seed: u64,
}

/// SplitMix64 (Steele, Lea, Flood 2014): its increment, and its mixing function below.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Stream {
    pub(super) fn of(call: u64, rank: u32) -> Stream {
        Stream { seed: mix(mix(call) ^ u64::from(rank)) }
    }

    /// Writes the bytes from number `first` of the stream on.
    pub(super) fn fill(&self, first: u64, bytes: &mut [u8]) {
        let mut word = first / 8;
        let mut within = (first % 8) as usize;
        let mut rest = bytes;
        while !rest.is_empty() {
            let drawn = mix(self.seed.wrapping_add(word.wrapping_mul(GOLDEN))).to_le_bytes();
            let taken = rest.len().min(8 - within);
            let (now, later) = rest.split_at_mut(taken);
            now.copy_from_slice(&drawn[within..within + taken]);
            rest = later;
            (word, within) = (word + 1, 0);
        }
    }
}

fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(GOLDEN);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_position_can_be_had_by_itself() {
        let mut whole = [0; 64];
        Stream::of(7, 3).fill(0, &mut whole);
        for first in 0..40 {
            let mut part = [0; 21];
            Stream::of(7, 3).fill(first as u64, &mut part);
            assert_eq!(part, whole[first..first + 21]);
        }
    }

    #[test]
    fn ranks_and_calls_differ() {
        let drawn = |call, rank| {
            let mut bytes = [0; 8];
            Stream::of(call, rank).fill(0, &mut bytes);
            bytes
        };
        assert_ne!(drawn(1, 0), drawn(1, 1));
        assert_ne!(drawn(1, 0), drawn(2, 0));
        assert_ne!(drawn(1, 2), drawn(2, 1));
    }
}
