//! The loop over vectors: one for all dtypes, reduce ops and instruction sets.

use super::Target;
use super::element::Element;
use super::number::Number;
use super::vector::{Vector, map, zip};

/// A reduce op.
pub(crate) trait Combine {
    fn combine<A: Number>(a: A, b: A) -> A;

    #[inline(always)]
    fn finish<V: Vector, A: Number>(acc: V, world: u8) -> V {
        let _ = world;
        acc
    }
}

/// Reduces `bytes` bytes of each source into the target: fewer than a vector.
///
/// # Safety
///
/// As for [`super::reduce`]; the machine has the vectors.
#[inline(always)]
pub(super) unsafe fn few<V: Vector, E: Element, O: Combine>(
    sources: &[*const u8],
    target: &Target,
    bytes: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { first::<V, E, O>(sources, target, 0, bytes) };
}

/// The same for a vector or more.
///
/// # Safety
///
/// As for [`few`].
#[inline(always)]
pub(super) unsafe fn many<V: Vector, E: Element, O: Combine>(
    sources: &[*const u8],
    target: &Target,
    bytes: usize,
) {
    let stream = target.stream && target.to.addr().is_multiple_of(E::SIZE);
    let (mut at, mut part) = (0, if stream { target.to.align_offset(V::LEN) } else { 0 });
    let past = |also: *mut u8| target.past && (also.addr() + part).is_multiple_of(V::LEN);
    let past = Past { to: stream, also: target.also.is_some_and(past) };
    // Less than a vector, the whole ones, and again less than one.
    // SAFETY: the pieces follow one another, and the last one ends with the sources.
    unsafe {
        loop {
            first::<V, E, O>(sources, target, at, part);
            at += part;
            if at == bytes {
                break;
            }
            at = match const { size_of::<E::Wide<V>>() / V::LEN } {
                1 => tiles::<V, E, O, 4>(sources, target, past, at, bytes),
                _ => tiles::<V, E, O, 2>(sources, target, past, at, bytes),
            };
            at = tiles::<V, E, O, 1>(sources, target, past, at, bytes);
            part = bytes - at;
        }
        if past.to || past.also {
            V::fence();
        }
    }
}

/// Which of the target's places are written past the caches; whole vectors of them are aligned.
#[derive(Clone, Copy)]
struct Past {
    to: bool,
    also: bool,
}

/// As many tiles as there are; returns where they end.
///
/// # Safety
///
/// As for [`tile`].
#[inline(always)]
unsafe fn tiles<V: Vector, E: Element, O: Combine, const TILE: usize>(
    sources: &[*const u8],
    target: &Target,
    past: Past,
    mut at: usize,
    bytes: usize,
) -> usize {
    while bytes - at >= TILE * V::LEN {
        // SAFETY: the caller's promise.
        unsafe { tile::<V, E, O, TILE>(sources, target, past, at) };
        at += TILE * V::LEN;
    }
    at
}

/// Reduces `TILE` vectors, in registers.
///
/// # Safety
///
/// They lie inside the sources and the target. The target may be a source: what lies at this place
/// is read from every source before it is written.
// Arrays are indexed: through iterators the compiler keeps them in memory.
#[expect(clippy::needless_range_loop)]
#[inline(always)]
unsafe fn tile<V: Vector, E: Element, O: Combine, const TILE: usize>(
    sources: &[*const u8],
    target: &Target,
    past: Past,
    at: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let read =
            |source: *const u8, vector: usize| E::widen(V::load(source.add(at + vector * V::LEN)));
        let mut acc = [read(sources[0], 0); TILE];
        for vector in 1..TILE {
            acc[vector] = read(sources[0], vector);
        }
        for source in &sources[1..] {
            for vector in 0..TILE {
                fold::<V, E, O>(&mut acc[vector], read(*source, vector));
            }
        }
        let mut results = [finish::<V, E, O>(acc[0], sources.len()); TILE];
        for vector in 1..TILE {
            results[vector] = finish::<V, E, O>(acc[vector], sources.len());
        }
        for vector in 0..TILE {
            let to = target.to.add(at + vector * V::LEN);
            if past.to { results[vector].stream(to) } else { results[vector].store(to) }
        }
        if let Some(also) = target.also {
            for vector in 0..TILE {
                let also = also.add(at + vector * V::LEN);
                if past.also { results[vector].stream(also) } else { results[vector].store(also) }
            }
        }
    }
}

/// Reduces `len` bytes, fewer than a vector.
///
/// # Safety
///
/// As for [`tile`].
#[inline(always)]
unsafe fn first<V: Vector, E: Element, O: Combine>(
    sources: &[*const u8],
    target: &Target,
    at: usize,
    len: usize,
) {
    if len == 0 {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let read = |source: *const u8| E::widen(V::load_first(source.add(at), len));
        let mut acc = read(sources[0]);
        for source in &sources[1..] {
            fold::<V, E, O>(&mut acc, read(*source));
        }
        let result = finish::<V, E, O>(acc, sources.len());
        result.store_first(target.to.add(at), len);
        if let Some(also) = target.also {
            result.store_first(also.add(at), len);
        }
    }
}

#[inline(always)]
fn fold<V: Vector, E: Element, O: Combine>(acc: &mut E::Wide<V>, next: E::Wide<V>) {
    for (acc, next) in acc.as_mut().iter_mut().zip(next.as_ref()) {
        *acc = zip(*acc, *next, O::combine::<E::Acc>);
    }
}

#[inline(always)]
fn finish<V: Vector, E: Element, O: Combine>(mut acc: E::Wide<V>, world: usize) -> V {
    for acc in acc.as_mut() {
        *acc = O::finish::<V, E::Acc>(*acc, world as u8);
    }
    E::round(acc)
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
    fn finish<V: Vector, A: Number>(acc: V, world: u8) -> V {
        map(acc, |a: A| a.divided(world))
    }
}
