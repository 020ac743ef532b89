//! exp(x) for x ≤ 0, written so that compilers turn loops over it into vector code.
//!
//! x = n ln 2 + r with |r| ≤ ln 2 / 2 (W. J. Cody and W. Waite, Software Manual for the Elementary
//! Functions, 1980, chapter 6: ln 2 in two parts), then eʳ = 1 + r + r² q(r) with q of degree 9, the
//! interpolant of (eʳ − 1 − r)/r² at ten Chebyshev nodes (relative error 1.7e-17 before rounding),
//! and 2ⁿ added to the exponent bits. n is rounded by adding 1.5 · 2²⁰ + ½ and cutting off the lower 32 bits.
//!
//! Departures from the book: no rational function, because a division costs more than four more
//! multiply-adds; results below the smallest normal number are flushed to 0.

use pulp::Simd;

use super::vector::multiply_add;

/// Below this the result is 0: e^SMALLEST is just above the smallest normal number, 2.2e-308.
pub(super) const SMALLEST: f64 = -708.396_418_532_264;

// 1.5 · 2²⁰: what is added to it keeps its whole part in the upper 32 bits, its fraction in the lower.
const SPLIT: f64 = 1_572_864.0;
const UPPER: u64 = 0xffff_ffff_0000_0000;
// ln 2 = HIGH + LOW; HIGH ends in enough zero bits for n · HIGH to be exact.
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
// q, highest power first.
const Q: [f64; 10] = [
    2.510_042_415_700_506_7e-8,
    2.762_013_871_973_399_4e-7,
    2.755_726_837_868_419_2e-6,
    2.480_152_119_021_773e-5,
    1.984_126_986_310_596_8e-4,
    1.388_888_891_728_179_4e-3,
    8.333_333_333_330_051e-3,
    4.166_666_666_662_399e-2,
    1.666_666_666_666_666_9e-1,
    5.000_000_000_000_001e-1,
];

/// eˣ for x ≤ 0, within 1 unit in the last place; exactly 1 at 0; 0 below [`SMALLEST`] and for NaN.
#[inline(always)]
pub(super) fn exp_nonpositive<const FMA: bool>(x: f64) -> f64 {
    let split = f64::from_bits(multiply_add::<FMA>(x, std::f64::consts::LOG2_E, SPLIT + 0.5).to_bits() & UPPER);
    let n = split - SPLIT;
    let r = multiply_add::<FMA>(n, -LN2_LOW, multiply_add::<FMA>(n, -LN2_HIGH, x));
    let mut q = Q[0];
    for coefficient in &Q[1..] {
        q = multiply_add::<FMA>(q, r, *coefficient);
    }
    let power = multiply_add::<FMA>(r * r, q, r) + 1.0;
    let scaled = f64::from_bits(power.to_bits().wrapping_add(split.to_bits() << 20));
    if x > SMALLEST { scaled } else { 0.0 }
}

/// Registers that go through the polynomial side by side: enough to hide the latency of a multiply-add, few enough
/// to stay in registers.
pub(super) const ABREAST: usize = 4;

/// The same, in place, of all lanes. Written with explicit vectors: left to itself, the compiler evaluates one
/// register after the other, each step waiting for the last.
#[inline(always)]
pub(super) fn exp_lanes<const FMA: bool, S: Simd, const N: usize>(simd: S, values: &mut [f64; N]) {
    let (vectors, _) = S::as_mut_simd_f64s(values);
    let (groups, rest) = vectors.as_chunks_mut::<ABREAST>();
    if !FMA || !rest.is_empty() {
        values.iter_mut().for_each(|x| *x = exp_nonpositive::<FMA>(*x));
        return;
    }
    for group in groups {
        *group = exp_abreast(simd, *group);
    }
}

#[inline(always)]
pub(super) fn exp_abreast<S: Simd>(simd: S, x: [S::f64s; ABREAST]) -> [S::f64s; ABREAST] {
    let constant = |value: f64| simd.splat_f64s(value);
    let upper = simd.splat_u64s(UPPER);
    let shift = simd.splat_u32s(20);
    let (mut split, mut r, mut q) = (x, x, [constant(Q[0]); ABREAST]);
    for i in 0..ABREAST {
        let sum = simd.mul_add_f64s(x[i], constant(std::f64::consts::LOG2_E), constant(SPLIT + 0.5));
        split[i] = simd.transmute_f64s_u64s(simd.and_u64s(simd.transmute_u64s_f64s(sum), upper));
    }
    for i in 0..ABREAST {
        let n = simd.sub_f64s(split[i], constant(SPLIT));
        let high = simd.mul_add_f64s(n, constant(-LN2_HIGH), x[i]);
        r[i] = simd.mul_add_f64s(n, constant(-LN2_LOW), high);
    }
    for coefficient in &Q[1..] {
        let coefficient = constant(*coefficient);
        for i in 0..ABREAST {
            q[i] = simd.mul_add_f64s(q[i], r[i], coefficient);
        }
    }
    for i in 0..ABREAST {
        let power = simd.add_f64s(simd.mul_add_f64s(simd.mul_f64s(r[i], r[i]), q[i], r[i]), constant(1.0));
        // The lower half is 0, so shifting the 32-bit halves is shifting the whole.
        let halves: S::u32s = pulp::bytemuck::cast(simd.transmute_u64s_f64s(split[i]));
        let exponent: S::u64s = pulp::bytemuck::cast(simd.wrapping_dyn_shl_u32s(halves, shift));
        let scaled = simd.transmute_f64s_u64s(simd.add_u64s(simd.transmute_u64s_f64s(power), exponent));
        q[i] = simd.select_f64s(simd.greater_than_f64s(x[i], constant(SMALLEST)), scaled, constant(0.0));
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::vector::{LANES, Vectorised, vectorised};
    use proptest::prelude::*;

    /// Difference in units in the last place, for two numbers that are normal and above 0.
    fn ulps(a: f64, b: f64) -> u64 {
        a.to_bits().abs_diff(b.to_bits())
    }

    struct Lanewise<'a>(&'a mut [f64; LANES]);

    impl Vectorised for Lanewise<'_> {
        #[inline(always)]
        fn run<const FMA: bool, S: Simd>(self, simd: S) {
            exp_lanes::<FMA, S, LANES>(simd, self.0);
        }
    }

    /// With and without fused multiply-add, and as vectors.
    fn both(x: f64) -> [f64; 3] {
        let mut lanes = [-1.0; LANES];
        lanes[13] = x;
        vectorised(Lanewise(&mut lanes));
        assert!(ulps(lanes[0], f64::exp(-1.0)) <= 1);
        [exp_nonpositive::<true>(x), exp_nonpositive::<false>(x), lanes[13]]
    }

    #[test]
    fn a_dense_grid_is_within_one_unit() {
        for i in 0..1_000_000 {
            let x = SMALLEST * (f64::from(i) + 0.37) / 1_000_001.0;
            for value in both(x) {
                assert!(ulps(value, x.exp()) <= 1, "{x}: {value:e} against {:e}", x.exp());
            }
        }
    }

    #[test]
    fn ends_are_exact() {
        assert_eq!(both(0.0), [1.0; 3]);
        assert_eq!(both(-0.0), [1.0; 3]);
        assert_eq!(both(-1e-300), [1.0; 3]);
        for x in [SMALLEST, -745.0, -1e6, -f64::MAX, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(both(x), [0.0; 3], "{x}");
        }
        let last = f64::from_bits(SMALLEST.to_bits() - 1);
        assert!(last.exp() >= f64::MIN_POSITIVE);
        assert!(both(last).iter().all(|v| ulps(*v, last.exp()) <= 1));
    }

    proptest! {
        #[test]
        fn any_scale_is_within_one_unit(magnitude in -60.0..9.46) {
            let x = -f64::exp2(magnitude);
            for value in both(x) {
                prop_assert!(ulps(value, x.exp()) <= 1, "{x}");
            }
        }
    }
}
