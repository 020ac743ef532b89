//! exp(x) for x ≤ 0, written so that compilers turn loops over it into vector code.
//!
//! x = n ln 2 + r with |r| ≤ ln 2 / 2 (W. J. Cody and W. Waite, Software Manual for the Elementary
//! Functions, 1980, chapter 6: ln 2 in two parts), then eʳ = 1 + r + r² q(r) with q of degree 9, the
//! interpolant of (eʳ − 1 − r)/r² at ten Chebyshev nodes (relative error 1.7e-17 before rounding),
//! and 2ⁿ added to the exponent bits.
//!
//! Departures from the book: no rational function, because a division costs more than four more
//! multiply-adds; results below the smallest normal number are flushed to 0.

use super::vector::multiply_add;

/// Below this the result is 0: e^SMALLEST is just above the smallest normal number, 2.2e-308.
pub(super) const SMALLEST: f64 = -708.396_418_532_264;

// 1.5 · 2⁵²: adding it rounds to an integer, which then sits in the lowest bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
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
    let shifted = multiply_add::<FMA>(x, std::f64::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = multiply_add::<FMA>(n, -LN2_LOW, multiply_add::<FMA>(n, -LN2_HIGH, x));
    let mut q = Q[0];
    for coefficient in &Q[1..] {
        q = multiply_add::<FMA>(q, r, *coefficient);
    }
    let power = multiply_add::<FMA>(r * r, q, r) + 1.0;
    let scaled = f64::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 52));
    if x > SMALLEST { scaled } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Difference in units in the last place, for two numbers that are normal and above 0.
    fn ulps(a: f64, b: f64) -> u64 {
        a.to_bits().abs_diff(b.to_bits())
    }

    fn both(x: f64) -> [f64; 2] {
        [exp_nonpositive::<true>(x), exp_nonpositive::<false>(x)]
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
        assert_eq!(both(0.0), [1.0; 2]);
        assert_eq!(both(-0.0), [1.0; 2]);
        assert_eq!(both(-1e-300), [1.0; 2]);
        for x in [SMALLEST, -745.0, -1e6, -f64::MAX, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(both(x), [0.0; 2], "{x}");
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
