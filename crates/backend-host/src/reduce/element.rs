//! How elements lie in memory, and their way into an accumulator and back.

use std::marker::PhantomData;

use super::number::Number;

/// Moves elements between unaligned memory and blocks of accumulators.
pub(crate) trait Element {
    /// Bytes in memory.
    const SIZE: usize;
    /// What it is reduced in.
    type Acc: Number;

    /// Sets each accumulator to `f` of it and the element at its place.
    ///
    /// # Safety
    ///
    /// `acc.len()` elements can be read at `from`, at any alignment.
    unsafe fn fold(
        from: *const u8,
        acc: &mut [Self::Acc],
        f: impl Fn(Self::Acc, Self::Acc) -> Self::Acc,
    );

    /// Rounds each accumulator to an element.
    ///
    /// # Safety
    ///
    /// `acc.len()` elements can be written at `to`, at any alignment.
    unsafe fn store(acc: &[Self::Acc], to: *mut u8);
}

/// A type that is its own accumulator.
pub(crate) struct Plain<T>(PhantomData<T>);

impl<T: Number> Element for Plain<T> {
    const SIZE: usize = size_of::<T>();
    type Acc = T;

    #[inline(always)]
    unsafe fn fold(from: *const u8, acc: &mut [T], f: impl Fn(T, T) -> T) {
        let from = from.cast::<T>();
        for (at, a) in acc.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *a = f(*a, unsafe { from.add(at).read_unaligned() });
        }
    }

    #[inline(always)]
    unsafe fn store(acc: &[T], to: *mut u8) {
        let to = to.cast::<T>();
        for (at, a) in acc.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { to.add(at).write_unaligned(a.canonical()) };
        }
    }
}
