//! How elements lie in memory, and their way into an accumulator and back.

use std::marker::PhantomData;

use super::number::Number;
use super::vector::Vector;

/// A dtype: vectors of its elements become vectors of accumulators, and these are rounded back.
pub(crate) trait Element {
    /// Bytes in memory.
    const SIZE: usize;
    /// What it is reduced in.
    type Acc: Number;
    /// The accumulators of a vector of elements: a vector for each time that they are larger.
    type Wide<V: Vector>: Copy + AsRef<[V]> + AsMut<[V]>;

    fn widen<V: Vector>(elements: V) -> Self::Wide<V>;

    /// To nearest, ties to even; a NaN becomes the canonical one.
    fn round<V: Vector>(wide: Self::Wide<V>) -> V;
}

/// A type that is its own accumulator.
pub(crate) struct Plain<T>(PhantomData<T>);

impl<T: Number> Element for Plain<T> {
    const SIZE: usize = size_of::<T>();
    type Acc = T;
    type Wide<V: Vector> = [V; 1];

    #[inline(always)]
    fn widen<V: Vector>(elements: V) -> [V; 1] {
        [elements]
    }

    #[inline(always)]
    fn round<V: Vector>([wide]: [V; 1]) -> V {
        T::canonical(wide)
    }
}
