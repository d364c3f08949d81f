//! Vectors of bytes, as wide as the instruction set makes them, and what is done to their lanes.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_bf16;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(crate) use self::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use self::avx512::Avx512;
#[cfg(target_arch = "x86_64")]
pub(crate) use self::avx512_bf16::Avx512Bf16;
pub(crate) use self::portable::Portable;
use super::format::Format;

/// A vector: bytes alone, so that any bits are one.
///
/// # Safety
///
/// Implementors are plain bytes. Whoever calls a method is compiled for their instruction set, and
/// runs on a machine that has it.
pub(crate) unsafe trait Vector: Copy {
    /// Bytes.
    const LEN: usize = size_of::<Self>();

    /// Reads a vector at any alignment.
    ///
    /// # Safety
    ///
    /// `LEN` bytes can be read.
    unsafe fn load(from: *const u8) -> Self;

    /// Reads `len` bytes, fewer than `LEN`; the others are zero.
    ///
    /// # Safety
    ///
    /// `len` bytes can be read; no other is.
    unsafe fn load_first(from: *const u8, len: usize) -> Self;

    /// Writes a vector at any alignment.
    ///
    /// # Safety
    ///
    /// `LEN` bytes can be written.
    unsafe fn store(self, to: *mut u8);

    /// Writes the first `len` bytes, fewer than `LEN`.
    ///
    /// # Safety
    ///
    /// `len` bytes can be written; no other is.
    unsafe fn store_first(self, to: *mut u8, len: usize);

    /// Writes a vector past the caches.
    ///
    /// # Safety
    ///
    /// `LEN` bytes can be written, at a multiple of `LEN`.
    unsafe fn stream(self, to: *mut u8);

    /// Orders what has been streamed before any later store.
    fn fence();

    /// f32 lanes as they are, but with one NaN.
    #[inline(always)]
    fn canonical_f32(self) -> Self {
        map(self, |value: f32| if value.is_nan() { f32::NAN } else { value })
    }

    /// f64 lanes as they are, but with one NaN.
    #[inline(always)]
    fn canonical_f64(self) -> Self {
        map(self, |value: f64| if value.is_nan() { f64::NAN } else { value })
    }

    /// The f32 values of binary16 lanes, in an order that [`Vector::narrow_f16`] undoes.
    #[inline(always)]
    fn widen_f16(self) -> [Self; 2] {
        [
            map(self, |two: u32| BINARY16.widen(two & 0xffff, 16)),
            map(self, |two: u32| BINARY16.widen(two >> 16, 16)),
        ]
    }

    /// Rounds f32 lanes to binary16; a NaN becomes the canonical one.
    #[inline(always)]
    fn narrow_f16([low, high]: [Self; 2]) -> Self {
        let low = map(low, |value: u32| BINARY16.narrow(value, 16));
        zip(low, high, |low, high: u32| low | BINARY16.narrow(high, 16) << 16)
    }

    /// Rounds f32 lanes to bfloat16, the lower and the upper ones of pairs of 32 bits; a NaN becomes
    /// the canonical one.
    #[inline(always)]
    fn narrow_bf16([lower, upper]: [Self; 2]) -> Self {
        zip(lower.canonical_f32(), upper.canonical_f32(), |lower, upper| {
            nearest(lower) >> 16 | nearest(upper) & 0xffff_0000
        })
    }
}

const BINARY16: Format =
    Format { mantissa: 10, bias: 15, largest: 0x7c00, special: 0x7c00, nan: 0x7e00 };

/// Rounds to the upper half, ties to even, of bits that are not a NaN's but for the canonical one.
/// The addition carries into the exponent as it should, up to infinity.
#[inline(always)]
fn nearest(bits: u32) -> u32 {
    bits.wrapping_add(0x7fff + (bits >> 16 & 1))
}

/// `f` of each lane.
#[inline(always)]
pub(crate) fn map<V: Vector, A: Copy>(v: V, f: impl Fn(A) -> A) -> V {
    zip(v, v, |a, _| f(a))
}

/// `f` of each pair of lanes.
#[inline(always)]
pub(crate) fn zip<V: Vector, A: Copy>(a: V, b: V, f: impl Fn(A, A) -> A) -> V {
    let mut out = a;
    let (a, b) = ((&raw const a).cast::<A>(), (&raw const b).cast::<A>());
    let mut lane = 0;
    while lane < const { V::LEN / size_of::<A>() } {
        // SAFETY: lanes of vectors, which are plain bytes; lanes are numbers, so that any bits
        // are one.
        unsafe {
            let value = f(a.add(lane).read_unaligned(), b.add(lane).read_unaligned());
            (&raw mut out).cast::<A>().add(lane).write_unaligned(value);
        }
        lane += 1;
    }
    out
}

#[cfg(test)]
mod tests;
