//! Every conversion of every instruction set, against the `half` crate.

use half::{bf16, f16};

use super::*;
use crate::reduce::Isa;
use crate::reduce::brain::Bf16;
use crate::reduce::element::Element;

#[test]
fn binary16_widens_and_rounds_to_the_nearest() {
    on_every_isa(binary16::<Portable>, binary16::<Avx2>, binary16::<Avx512>);
}

#[test]
fn bfloat16_widens_and_rounds_to_the_nearest() {
    on_every_isa(bfloat16::<Portable>, bfloat16::<Avx2>, bfloat16::<Avx512>);
}

#[cfg(not(target_arch = "x86_64"))]
use {Portable as Avx2, Portable as Avx512};

fn on_every_isa(portable: fn(), avx2: fn(), avx512: fn()) {
    let _ = (avx2, avx512);
    for isa in Isa::available() {
        match isa {
            Isa::Portable => portable(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512(),
        }
    }
}

fn binary16<V: Vector>() {
    for code in 0..=u16::MAX {
        let value = f16::from_bits(code).to_f32();
        for wide in splat::<V, u16>(code).widen_f16() {
            assert!(lanes::<V, f32>(wide).all(|lane| same(lane, value)), "{code:04x}");
        }
        rounds_to_f16::<V>(value);
        if code & 0x7c00 != 0x7c00 {
            // To the next magnitude; what follows the largest is a power of two.
            let next = match code & 0x7fff {
                0x7bff => 65536f32.copysign(value),
                _ => f16::from_bits(code + 1).to_f32(),
            };
            around((value + next) / 2.0).for_each(rounds_to_f16::<V>);
        }
    }
    for value in [f32::MAX, f32::MIN_POSITIVE, 1e-45, f32::from_bits(0x7f80_0001)] {
        around(value).for_each(rounds_to_f16::<V>);
    }
}

#[track_caller]
fn rounds_to_f16<V: Vector>(value: f32) {
    let expected = if value.is_nan() { 0x7e00 } else { f16::from_f32(value).to_bits() };
    let got = V::narrow_f16([splat::<V, f32>(value); 2]);
    assert!(lanes::<V, u16>(got).all(|lane| lane == expected), "{value:e} to {expected:04x}");
}

fn bfloat16<V: Vector>() {
    for upper in 0..=u16::MAX {
        let value = bf16::from_bits(upper).to_f32();
        for wide in Bf16::widen(splat::<V, u16>(upper)) {
            assert!(lanes::<V, f32>(wide).all(|lane| same(lane, value)), "{upper:04x}");
        }
        for lower in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
            let value = f32::from_bits(u32::from(upper) << 16 | lower);
            let expected = if value.is_nan() { 0x7fc0 } else { bf16::from_f32(value).to_bits() };
            let got = Bf16::round([splat::<V, f32>(value); 2]);
            assert!(lanes::<V, u16>(got).all(|lane| lane == expected), "{upper:04x}{lower:04x}");
        }
    }
}

/// The value and its neighbours.
fn around(value: f32) -> impl Iterator<Item = f32> {
    [value.next_down(), value, value.next_up()].into_iter()
}

/// Equal bits, or a NaN for a NaN: widening need not keep its payload.
fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

fn splat<V: Vector, A: Copy>(value: A) -> V {
    let all = [value; 64];
    // SAFETY: no vector is longer.
    unsafe { V::load(all.as_ptr().cast()) }
}

fn lanes<V: Vector, A: Copy>(vector: V) -> impl Iterator<Item = A> {
    (0..V::LEN / size_of::<A>()).map(move |lane| {
        // SAFETY: a lane of the vector.
        unsafe { (&raw const vector).cast::<A>().add(lane).read_unaligned() }
    })
}
