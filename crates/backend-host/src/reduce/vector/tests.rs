//! Every conversion of every instruction set, against the `half` crate.

use half::{bf16, f16};

use super::*;
use crate::reduce::Isa;
use crate::reduce::brain::Bf16;
use crate::reduce::element::Element;

#[test]
fn binary16_widens_and_rounds_to_the_nearest() {
    // The last one reduces nothing but bfloat16.
    on_every_isa(binary16::<Portable>, binary16::<Avx2>, binary16::<Avx512>, || ());
}

#[test]
fn bfloat16_widens_and_rounds_to_the_nearest() {
    on_every_isa(
        bfloat16::<Portable>,
        bfloat16::<Avx2>,
        bfloat16::<Avx512>,
        bfloat16::<Avx512Bf16>,
    );
}

#[test]
fn bfloat16_rounds_each_element_whatever_lies_beside_it() {
    on_every_isa(
        mixed_bfloat16::<Portable>,
        mixed_bfloat16::<Avx2>,
        mixed_bfloat16::<Avx512>,
        mixed_bfloat16::<Avx512Bf16>,
    );
}

#[cfg(not(target_arch = "x86_64"))]
use {Portable as Avx2, Portable as Avx512, Portable as Avx512Bf16};

fn on_every_isa(portable: fn(), avx2: fn(), avx512: fn(), avx512_bf16: fn()) {
    let _ = (avx2, avx512, avx512_bf16);
    for isa in Isa::available() {
        match isa {
            Isa::Portable => portable(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Bf16 => avx512_bf16(),
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

/// Each of these among ordinary values, at each place.
fn mixed_bfloat16<V: Vector>() {
    // An f32 and the bfloat16 that it becomes.
    const BESIDE: [(u32, u16); 9] = [
        (0x3f80_8000, 0x3f80), // ties
        (0x3f81_8000, 0x3f82),
        (0xbf80_8001, 0xbf81),
        (0x3f80_7fff, 0x3f80),
        (0x3fff_8000, 0x4000), // a carry into the exponent
        (0x0080_0000, 0x0080), // the least normal
        (0x0080_8000, 0x0080),
        (0x8000_0000, 0x8000),
        (0x7f7f_7fff, 0x7f7f), // the largest that stays finite
    ];
    const ONE: [(u32, u16); 15] = [
        (0x7fc0_0000, 0x7fc0), // NaNs
        (0xffc0_0000, 0x7fc0),
        (0x7fff_ffff, 0x7fc0),
        (0x7f80_0001, 0x7fc0),
        (0xffa0_0000, 0x7fc0),
        (0x0000_0001, 0x0000), // subnormals
        (0x8000_8000, 0x8000),
        (0x0000_8001, 0x0001),
        (0x8001_8000, 0x8002),
        (0x807f_8000, 0x8080),
        (0x007f_7fff, 0x007f),
        (0x7f80_0000, 0x7f80), // infinities, and what becomes one
        (0xff80_0000, 0xff80),
        (0x7f7f_8000, 0x7f80),
        (0xff7f_ffff, 0xff80),
    ];
    for one in ONE {
        for place in 0..V::LEN / 2 {
            let mut elements: Vec<_> = BESIDE.into_iter().cycle().take(V::LEN / 2).collect();
            elements[place] = one;
            let half = |upper: usize| {
                let wide: Vec<u32> =
                    elements.iter().skip(upper).step_by(2).map(|of| of.0).collect();
                // SAFETY: a vector's length.
                unsafe { V::load(wide.as_ptr().cast()) }
            };
            let got: Vec<u16> = lanes(Bf16::round::<V>([half(0), half(1)])).collect();
            let expected: Vec<u16> = elements.iter().map(|of| of.1).collect();
            assert_eq!(got, expected, "{:08x} at {place}", one.0);
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
