//! sin(x) and cos(x) together, written so that compilers turn loops over them into vector code.
//!
//! x = n π/2 + r with |r| ≤ π/4 (W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980, chapter 8: π/2
//! in three parts, so that n times the first two is exact), then the polynomials of fdlibm (Sun Microsystems, 1993) for
//! sin r and cos r, exchanged and negated by the last two bits of n.
//!
//! Departures from the book: both functions at once; arguments beyond 8 · 10⁵, where n has too many bits, are left to the
//! standard library.

use pulp::Simd;

use super::vector::{LANES, multiply_add};

/// Arguments up to this size are reduced here: n has 19 bits at most.
pub(super) const LARGEST: f64 = 8e5;
/// 1.5 · 2⁵²: added to a number, rounds it to a whole one, which then stands in the last bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// 1.5 · 2²⁰: what is added to it keeps its whole part in the upper 32 bits, its fraction in the lower.
const SPLIT: f64 = 1_572_864.0;
const UPPER: u64 = 0xffff_ffff_0000_0000;
const SIGN: u64 = 1 << 63;
// π/2 in two parts.
const FUSED_HALF_PI: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17];
// The same, 33 bits in each of the first two of three parts.
const HALF_PI: [f64; 3] = [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_6e-21];
// Highest power first, of r².
const SIN: [f64; 6] = [
    1.589_690_995_211_55e-10,
    -2.505_076_025_340_686_3e-8,
    2.755_731_370_707_006_8e-6,
    -1.984_126_982_985_795e-4,
    8.333_333_333_322_49e-3,
    -1.666_666_666_666_663_2e-1,
];
const COS: [f64; 6] = [
    -1.135_964_755_778_819_5e-11,
    2.087_572_321_298_175e-9,
    -2.755_731_435_139_066_3e-7,
    2.480_158_728_947_673e-5,
    -1.388_888_888_887_411e-3,
    4.166_666_666_666_66e-2,
];

/// Lanes that go through the polynomials side by side: enough to hide the latency of a multiply-add, few enough to stay
/// in registers.
const ABREAST: usize = 16;

/// sin and cos of all lanes, within 1e-15.
#[inline(always)]
pub(super) fn sin_cos_lanes<const FMA: bool>(x: &[f64; LANES]) -> ([f64; LANES], [f64; LANES]) {
    let (mut sines, mut cosines) = ([0.0; LANES], [0.0; LANES]);
    let groups = x.as_chunks::<ABREAST>().0.iter();
    let out = sines.as_chunks_mut::<ABREAST>().0.iter_mut().zip(cosines.as_chunks_mut::<ABREAST>().0);
    let mut large = 0u64;
    for (x, (sines, cosines)) in groups.zip(out) {
        (*sines, *cosines) = reduced::<FMA>(x);
        for i in 0..ABREAST {
            large |= u64::from(x[i].abs() > LARGEST);
        }
    }
    if large != 0 {
        look_again(x, &mut sines, &mut cosines);
    }
    (sines, cosines)
}

#[cold]
#[inline(never)]
fn look_again(x: &[f64], sines: &mut [f64], cosines: &mut [f64]) {
    for i in 0..x.len() {
        if x[i].abs() > LARGEST {
            (sines[i], cosines[i]) = x[i].sin_cos();
        }
    }
}

/// `scale` times both, of a few registers, of arguments up to [`LARGEST`], where multiply-adds are fused. Written with
/// explicit vectors: left to itself, the compiler moves most of the numbers to memory and back.
#[inline(always)]
pub(super) fn sin_cos_registers<const N: usize, S: Simd>(
    simd: S,
    x: [S::f64s; N],
    scale: f64,
) -> ([S::f64s; N], [S::f64s; N]) {
    let constant = |value: f64| simd.splat_f64s(value);
    let bits = |value: S::f64s| simd.transmute_u64s_f64s(value);
    let shifted = |value: S::u64s, by: u32| -> S::u64s {
        // The lower half is 0, so shifting the 32-bit halves is shifting the whole.
        let halves: S::u32s = pulp::bytemuck::cast(value);
        pulp::bytemuck::cast(simd.wrapping_dyn_shl_u32s(halves, simd.splat_u32s(by)))
    };
    let (mut split, mut r, mut squared) = ([simd.splat_u64s(0); N], x, x);
    for i in 0..N {
        let sum = simd.mul_add_f64s(x[i], constant(std::f64::consts::FRAC_2_PI), constant(SPLIT + 0.5));
        split[i] = simd.and_u64s(bits(sum), simd.splat_u64s(UPPER));
    }
    for i in 0..N {
        let n = simd.sub_f64s(simd.transmute_f64s_u64s(split[i]), constant(SPLIT));
        // Fused, the first of two parts may have all its bits: x − n π/2 is a multiple of 2⁻⁵³ below 1, hence exact.
        let first = simd.mul_add_f64s(n, constant(-FUSED_HALF_PI[0]), x[i]);
        r[i] = simd.mul_add_f64s(n, constant(-FUSED_HALF_PI[1]), first);
        squared[i] = simd.mul_f64s(r[i], r[i]);
    }
    // The cosine's polynomial is scaled as it stands, the sine by its factor r.
    let (mut s, mut c) = ([constant(SIN[0]); N], [constant(scale * COS[0]); N]);
    for k in 1..SIN.len() {
        for i in 0..N {
            s[i] = simd.mul_add_f64s(s[i], squared[i], constant(SIN[k]));
        }
        for i in 0..N {
            c[i] = simd.mul_add_f64s(c[i], squared[i], constant(scale * COS[k]));
        }
    }
    for i in 0..N {
        let scaled = simd.mul_f64s(r[i], constant(scale));
        let sine = simd.mul_add_f64s(simd.mul_f64s(squared[i], scaled), s[i], scaled);
        let cosine = simd.mul_add_f64s(c[i], squared[i], constant(-0.5 * scale));
        let cosine = simd.mul_add_f64s(cosine, squared[i], constant(scale));
        // Odd n exchanges the two; its second bit turns the sine round, that of n + 1 (the exclusive or of both) the
        // cosine. The two bits alone, at the upper end of a number, make it ±2 if n is odd, else ±0.
        let both = shifted(split[i], 30);
        let (odd, second) = (shifted(split[i], 31), simd.and_u64s(both, simd.splat_u64s(SIGN)));
        let straight = simd.equal_f64s(simd.transmute_f64s_u64s(both), constant(0.0));
        let turned = |value: S::f64s, sign: S::u64s| simd.transmute_f64s_u64s(simd.xor_u64s(bits(value), sign));
        s[i] = turned(simd.select_f64s(straight, sine, cosine), second);
        c[i] = turned(simd.select_f64s(straight, cosine, sine), simd.xor_u64s(odd, second));
    }
    (s, c)
}

#[inline(always)]
fn reduced<const FMA: bool>(x: &[f64; ABREAST]) -> ([f64; ABREAST], [f64; ABREAST]) {
    let (mut rounded, mut r, mut squared) = ([0.0; ABREAST], [0.0; ABREAST], [0.0; ABREAST]);
    for i in 0..ABREAST {
        rounded[i] = multiply_add::<FMA>(x[i], std::f64::consts::FRAC_2_PI, ROUND);
    }
    for i in 0..ABREAST {
        let n = rounded[i] - ROUND;
        r[i] = multiply_add::<FMA>(-n, HALF_PI[0], x[i]);
        r[i] = multiply_add::<FMA>(-n, HALF_PI[1], r[i]);
        r[i] = multiply_add::<FMA>(-n, HALF_PI[2], r[i]);
        squared[i] = r[i] * r[i];
    }
    let (mut s, mut c) = ([SIN[0]; ABREAST], [COS[0]; ABREAST]);
    for k in 1..SIN.len() {
        for i in 0..ABREAST {
            s[i] = multiply_add::<FMA>(s[i], squared[i], SIN[k]);
        }
        for i in 0..ABREAST {
            c[i] = multiply_add::<FMA>(c[i], squared[i], COS[k]);
        }
    }
    let (mut sines, mut cosines) = ([0.0; ABREAST], [0.0; ABREAST]);
    for i in 0..ABREAST {
        let sine = multiply_add::<FMA>(squared[i] * r[i], s[i], r[i]).to_bits();
        let near_one = multiply_add::<FMA>(squared[i], -0.5, 1.0);
        let cosine = multiply_add::<FMA>(squared[i] * squared[i], c[i], near_one).to_bits();
        // Odd n exchanges the two; its second bit turns the sine round, that of n + 1 the cosine.
        let bits = rounded[i].to_bits();
        let exchanged = (bits & 1).wrapping_neg();
        let first = (sine & !exchanged) | (cosine & exchanged);
        let second = (cosine & !exchanged) | (sine & exchanged);
        sines[i] = f64::from_bits(first ^ ((bits & 2) << 62));
        cosines[i] = f64::from_bits(second ^ ((bits.wrapping_add(1) & 2) << 62));
    }
    (sines, cosines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::vector::{Vectorised, vectorised};
    use pulp::Arch;

    #[test]
    fn values_are_those_of_the_library() {
        let mut largest: f64 = 0.0;
        for i in 0..400_000 {
            // From 1e-6 to 1e6 and both signs, with every quadrant.
            let size = 10f64.powf(-6.0 + 12.0 * f64::from(i) / 400_000.0);
            let x = [if i % 2 == 0 { size } else { -size }; LANES];
            for (sines, cosines) in [sin_cos_lanes::<true>(&x), sin_cos_lanes::<false>(&x)] {
                largest = largest.max((sines[7] - x[7].sin()).abs()).max((cosines[7] - x[7].cos()).abs());
            }
        }
        assert!(largest < 1e-15, "{largest:e}");
    }

    struct Registers<'a>(&'a [f64; LANES], &'a mut [f64; LANES], &'a mut [f64; LANES]);

    impl Vectorised for Registers<'_> {
        #[inline(always)]
        fn run<const FMA: bool, S: Simd>(self, simd: S) {
            let out = S::as_mut_simd_f64s(self.1).0.iter_mut().zip(S::as_mut_simd_f64s(self.2).0);
            for (x, (sines, cosines)) in S::as_simd_f64s(self.0).0.iter().zip(out) {
                ([*sines], [*cosines]) = sin_cos_registers(simd, [*x], 1.0);
            }
        }
    }

    #[test]
    fn registers_are_as_good() {
        for i in 0..40_000 {
            let size = 10f64.powf(-6.0 + 11.9 * f64::from(i) / 40_000.0);
            let quarter = std::f64::consts::FRAC_PI_2 * f64::from(i - 20_000);
            let x = std::array::from_fn(|lane| [size, -size, quarter, 1.7 * quarter][lane % 4]);
            let (mut sines, mut cosines) = ([0.0; LANES], [0.0; LANES]);
            vectorised(Registers(&x, &mut sines, &mut cosines));
            for lane in 0..LANES {
                assert!(x[lane].abs() <= LARGEST);
                let apart = (sines[lane] - x[lane].sin()).abs().max((cosines[lane] - x[lane].cos()).abs());
                // Two roundings of numbers up to 1; where the processor does not fuse, of the parts of π/2 too.
                let fused = Arch::new().dispatch(Fused);
                assert!(apart < 1e-15 || !fused, "{}: {apart:e}", x[lane]);
            }
        }
    }

    struct Fused;

    impl pulp::WithSimd for Fused {
        type Output = bool;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> bool {
            !S::IS_SCALAR
        }
    }

    #[test]
    fn multiples_of_a_quarter_turn_and_ends() {
        for n in 0..2000 {
            let x = f64::from(n) * std::f64::consts::FRAC_PI_2;
            let (sines, cosines) = sin_cos_lanes::<true>(&[x; LANES]);
            assert!((sines[0] - x.sin()).abs() < 1e-15 && (cosines[0] - x.cos()).abs() < 1e-15, "{n}");
        }
        for x in [0.0, -0.0, 1e7, -1e300, 2e6] {
            let (sines, cosines) = sin_cos_lanes::<true>(&[x; LANES]);
            assert!((sines[3] - x.sin()).abs() < 1e-15 && (cosines[3] - x.cos()).abs() < 1e-15, "{x}");
        }
    }
}
