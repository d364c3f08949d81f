//! What accumulators can do.

use super::vector::Vector;

/// An accumulator. `a` is always the value over the earlier ranks.
pub(crate) trait Number: Copy {
    fn sum(a: Self, b: Self) -> Self;
    fn product(a: Self, b: Self) -> Self;
    fn min(a: Self, b: Self) -> Self;
    fn max(a: Self, b: Self) -> Self;
    /// Divided by the number of ranks, at most 16.
    fn divided(self, world: u8) -> Self;
    /// Each lane as it is, but of all NaNs the one that results hold.
    fn canonical<V: Vector>(lanes: V) -> V;
}

macro_rules! floats {
    ($($float:ty: $canonical:ident)+) => {$(
        impl Number for $float {
            #[inline(always)]
            fn sum(a: Self, b: Self) -> Self {
                a + b
            }

            #[inline(always)]
            fn product(a: Self, b: Self) -> Self {
                a * b
            }

            // Comparisons and one selection, so that it compiles to vector code: `b` replaces `a`
            // if it is less, or if it is the first NaN.
            #[inline(always)]
            fn min(a: Self, b: Self) -> Self {
                if (b < a) | ((b != b) & (a == a)) { b } else { a }
            }

            #[inline(always)]
            fn max(a: Self, b: Self) -> Self {
                if (b > a) | ((b != b) & (a == a)) { b } else { a }
            }

            #[inline(always)]
            fn divided(self, world: u8) -> Self {
                self / Self::from(world)
            }

            #[inline(always)]
            fn canonical<V: Vector>(lanes: V) -> V {
                lanes.$canonical()
            }
        }
    )+};
}

macro_rules! integers {
    ($($int:ty)+) => {$(
        impl Number for $int {
            #[inline(always)]
            fn sum(a: Self, b: Self) -> Self {
                a.wrapping_add(b)
            }

            #[inline(always)]
            fn product(a: Self, b: Self) -> Self {
                a.wrapping_mul(b)
            }

            #[inline(always)]
            fn min(a: Self, b: Self) -> Self {
                a.min(b)
            }

            #[inline(always)]
            fn max(a: Self, b: Self) -> Self {
                a.max(b)
            }

            #[inline(always)]
            fn divided(self, world: u8) -> Self {
                self / world as Self
            }

            #[inline(always)]
            fn canonical<V: Vector>(lanes: V) -> V {
                lanes
            }
        }
    )+};
}

floats!(f32: canonical_f32 f64: canonical_f64);
integers!(i8 u8 i32 u32 i64 u64);
