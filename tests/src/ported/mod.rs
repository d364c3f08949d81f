//! How two engines choose, told as their own code tells it: plain functions over tables that were
//! typed in from their sources. They share nothing with `policies/ported`, which is compared with
//! them.

pub mod sglang;
pub mod vllm;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Sizes around each of these constants, and over the whole range at ratios of 1.5 and 4/3.
pub fn sizes_around(constants: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut sizes = vec![0];
    for at in constants {
        sizes.extend([at.saturating_sub(16), at.saturating_sub(1), at, at + 1, at + 16]);
    }
    sizes.extend((0..32).flat_map(|bits| [1 << bits, 3 << bits]));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}
