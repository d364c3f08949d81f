//! The loop over blocks: one for all dtypes and reduce ops.

use super::element::Element;
use super::number::Number;

/// A reduce op.
pub(crate) trait Combine {
    fn combine<A: Number>(a: A, b: A) -> A;

    #[inline(always)]
    fn finish<A: Number>(acc: &mut [A], world: usize) {
        let _ = (acc, world);
    }
}

/// Elements of a block: the accumulators stay in the first-level cache, and vector loops have
/// something to run over.
const BLOCK: usize = 512;

/// Reduces `count` elements of each source into `output`.
///
/// # Safety
///
/// As for [`super::reduce`].
pub(super) unsafe fn combine<E: Element, O: Combine>(
    sources: &[*const u8],
    output: *mut u8,
    count: usize,
) {
    let mut acc = [E::Acc::ZERO; BLOCK];
    let mut start = 0;
    while start < count {
        let acc = &mut acc[..BLOCK.min(count - start)];
        let at = start * E::SIZE;
        for (rank, source) in sources.iter().enumerate() {
            // SAFETY: inside the source. The output may be a source: what lies at this place has
            // been read from every source before it is written.
            unsafe {
                if rank == 0 {
                    E::fold(source.add(at), acc, |_, first| first);
                } else {
                    E::fold(source.add(at), acc, O::combine);
                }
            }
        }
        O::finish(acc, sources.len());
        // SAFETY: inside the output.
        unsafe { E::store(acc, output.add(at)) };
        start += acc.len();
    }
}

pub(super) struct Sum;
pub(super) struct Prod;
pub(super) struct Min;
pub(super) struct Max;
pub(super) struct Average;

impl Combine for Sum {
    #[inline(always)]
    fn combine<A: Number>(a: A, b: A) -> A {
        A::sum(a, b)
    }
}

impl Combine for Prod {
    #[inline(always)]
    fn combine<A: Number>(a: A, b: A) -> A {
        A::product(a, b)
    }
}

impl Combine for Min {
    #[inline(always)]
    fn combine<A: Number>(a: A, b: A) -> A {
        A::min(a, b)
    }
}

impl Combine for Max {
    #[inline(always)]
    fn combine<A: Number>(a: A, b: A) -> A {
        A::max(a, b)
    }
}

impl Combine for Average {
    #[inline(always)]
    fn combine<A: Number>(a: A, b: A) -> A {
        A::sum(a, b)
    }

    #[inline(always)]
    fn finish<A: Number>(acc: &mut [A], world: usize) {
        for a in acc {
            *a = a.divided(world as u8);
        }
    }
}
