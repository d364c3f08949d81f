//! Where among ascending sizes a size lies, in about as many steps for 40,000 as for 40.
//!
//! A binary search waits for memory at each halving. Here a size is made a [`key`], whose leading
//! digits name a bucket of a node; the bucket says where to look, and there are a few sizes to
//! compare with. Sizes spread over powers of two are spread evenly over keys. Where many crowd into
//! one bucket, it has a node of its own.

/// Sizes in ascending order, the first 0.
pub(super) struct Index {
    /// Behind the last, [`STRIDE`] that fill the last stride up.
    sizes: Vec<u64>,
    last: usize,
    root: Node,
    nodes: Vec<Node>,
    /// Where to look; or, with [`NODE`], a node.
    buckets: Vec<u32>,
}

/// Buckets of equally many keys each, from `base` on.
#[derive(Clone, Copy)]
struct Node {
    base: u64,
    /// A bucket has `1 << shift` keys.
    shift: u32,
    first: u32,
    last: u32,
}

/// The bit of a bucket that is a node.
const NODE: u32 = 1 << 31;

/// So many sizes are searched at a time, in three halvings without a branch. A bucket with more
/// becomes a node.
const STRIDE: usize = 7;

impl Index {
    /// `sizes` ascends from 0 and may repeat itself.
    pub(super) fn new(mut sizes: Vec<u64>) -> Self {
        let count = sizes.len();
        let root = Node { base: 0, shift: 0, first: 0, last: 0 };
        sizes.resize(count + STRIDE, u64::MAX);
        let mut index =
            Index { sizes, last: count - 1, root, nodes: Vec::new(), buckets: Vec::new() };
        // The first, 0, is where a search starts that finds nothing else.
        index.root = index.node(1, count);
        index
    }

    /// The sizes.
    pub(super) fn sizes(&self) -> &[u64] {
        &self.sizes[..=self.last]
    }

    /// The last of the sizes that are at most `bytes`.
    pub(super) fn find(&self, bytes: u64) -> usize {
        let key = key(bytes);
        let mut node = &self.root;
        let mut at = loop {
            // What comes before the node's base comes before every bucket: in the first.
            let bucket = (key.saturating_sub(node.base) >> node.shift).min(u64::from(node.last));
            let entry = self.buckets[node.first as usize + bucket as usize];
            if entry & NODE == 0 {
                break entry as usize;
            }
            node = &self.nodes[(entry & !NODE) as usize];
        };
        loop {
            let after: &[u64; STRIDE] =
                self.sizes[at + 1..].first_chunk().expect("behind the last there are as many");
            let mut passed = 4 * usize::from(after[3] <= bytes);
            passed += 2 * usize::from(after[passed + 1] <= bytes);
            passed += usize::from(after[passed] <= bytes);
            at += passed;
            if passed < STRIDE || at >= self.last {
                return at.min(self.last);
            }
        }
    }

    /// A node for the sizes from `start` to before `end`. Adds its buckets, and the nodes below it.
    fn node(&mut self, mut start: usize, end: usize) -> Node {
        let sizes = &self.sizes[start..end];
        let base = sizes.first().map_or(0, |size| key(*size));
        let span = sizes.last().map_or(0, |size| key(*size) - base);
        let count = (2 * sizes.len()).next_power_of_two();
        // As many keys a bucket as it takes for the last size to be in one of `count` buckets.
        let shift = u64::BITS.saturating_sub(span.leading_zeros() + count.trailing_zeros());
        let last = span >> shift;
        let first = self.buckets.len();
        self.buckets.resize(first + last as usize + 1, 0);
        for bucket in 0..=last {
            let inside = |size: &&u64| (key(**size) - base) >> shift == bucket;
            let next = start + self.sizes[start..end].iter().take_while(inside).count();
            // Sizes of one key cannot be told apart by a node.
            let crowd =
                next - start > 2 * STRIDE && key(self.sizes[start]) < key(self.sizes[next - 1]);
            self.buckets[first + bucket as usize] = if crowd {
                let below = self.node(start, next);
                self.nodes.push(below);
                (self.nodes.len() as u32 - 1) | NODE
            } else {
                start as u32 - 1
            };
            start = next;
        }
        Node { base, shift, first: first as u32, last: last as u32 }
    }
}

/// The size's number of bits, and below it the bits that follow its first: greater for greater
/// sizes, and as much greater for as many times greater ones. The least bits of the greatest sizes
/// have no place in it.
fn key(bytes: u64) -> u64 {
    let bytes = bytes | 1;
    let first = bytes.leading_zeros();
    let follow = bytes << first << 1;
    (u64::from(63 - first) << 58) | (follow >> 6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Crowds at every scale: near powers of two, near one another, repeated, and at the very end.
    fn sizes() -> impl Strategy<Value = Vec<u64>> {
        let size = (0u32..64, 0u64..40, any::<bool>()).prop_map(|(bits, off, below)| {
            let near = 1u64 << bits;
            if below { near.saturating_sub(off) } else { near.saturating_add(off) }
        });
        let crowd = (any::<u64>(), 1u64..1 << 40, 0usize..200).prop_map(|(from, step, n)| {
            (0..n as u64).map(|i| from.saturating_add(i * step)).collect()
        });
        let part = prop_oneof![vec(size, 0..100), crowd, vec(any::<u64>(), 0..10)];
        vec(part, 0..4).prop_map(|parts| {
            let mut sizes: Vec<u64> = parts.into_iter().flatten().chain([0]).collect();
            sizes.sort_unstable();
            sizes
        })
    }

    proptest! {
        #[test]
        fn a_size_is_found_where_a_search_one_by_one_finds_it(
            sizes in sizes(), others in vec(any::<u64>(), 8),
        ) {
            let index = Index::new(sizes.clone());
            let beside = |s: &u64| [s.saturating_sub(1), *s, s.saturating_add(1)];
            for bytes in sizes.iter().flat_map(beside).chain(others).chain([0, u64::MAX]) {
                let want = sizes.iter().rposition(|s| *s <= bytes).expect("0 is among them");
                prop_assert_eq!(index.find(bytes), want, "{} in {:?}", bytes, &sizes);
            }
        }
    }
}
