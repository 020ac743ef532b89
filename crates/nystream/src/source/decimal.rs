//! From a decimal mantissa and a power of ten to the nearest double, without reading the digits again.
//!
//! Eisel and Lemire's algorithm: D. Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience
//! 51 (2021). The mantissa `w` times the leading 128 bits of `5^q` has the leading bits of the result; they decide the
//! rounding unless the bits left out could carry, which is noticed.
//!
//! Departures from the paper:
//! - Powers from `10^-128` to `10^128` only, so the table takes 4 KB and results are neither subnormal nor infinite.
//! - Outside that range, and where the paper falls back on exact arithmetic, the caller asks the standard library.
//! - The table is worked out by the compiler.

/// The largest power of ten, either way.
const LARGEST: i64 = 128;

/// The leading 128 bits of `5^q`, from `q = -LARGEST` on, upper half first; the highest bit is set.
static POWERS_OF_FIVE: [[u64; 2]; 2 * LARGEST as usize + 1] = powers_of_five();

/// Exact doubles.
static POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Mantissas below are left to Clinger's fast path. That would do up to 2^53, but numbers of 16 and 17 digits mix in real
/// files, and going back and forth between two ways costs more than the longer one.
const SHORT: u64 = 1 << 50;

/// The double nearest to `mantissa * 10^exponent`, ties to even; `None` where this takes longer arithmetic.
#[inline(always)]
pub(super) fn nearest(mantissa: u64, exponent: i64) -> Option<f64> {
    // W. Clinger, "How to read floating point numbers accurately", PLDI 1990: both are exact, one operation rounds once.
    if mantissa < SHORT && exponent.unsigned_abs() < POWERS_OF_TEN.len() as u64 {
        let power = POWERS_OF_TEN[exponent.unsigned_abs() as usize];
        return Some(if exponent < 0 { mantissa as f64 / power } else { mantissa as f64 * power });
    }
    eisel_lemire(mantissa, exponent)
}

#[inline]
fn eisel_lemire(mantissa: u64, exponent: i64) -> Option<f64> {
    let index = usize::try_from(exponent.wrapping_add(LARGEST)).ok()?;
    let [upper, lower] = *POWERS_OF_FIVE.get(index)?;
    if mantissa == 0 {
        return Some(0.0);
    }
    let shift = mantissa.leading_zeros();
    let normal = mantissa << shift;
    let (mut high, mut low) = product(normal, upper);
    // The lower half matters only if it could carry into the 55 bits that decide.
    if high & 0x1FF == 0x1FF {
        let (carry, _) = product(normal, lower);
        let (sum, overflow) = low.overflowing_add(carry);
        (high, low) = (high + u64::from(overflow), sum);
        // Bits beyond the table's 128 could still carry, unless those were all.
        if low == u64::MAX && !(-27..=55).contains(&exponent) {
            return None;
        }
    }
    let upper_bit = (high >> 63) as i64;
    let mut significand = high >> (upper_bit + 9);
    // Halfway between two doubles: only small powers have such products, exactly. Then to even, not up.
    if low <= 1 && (-4..=23).contains(&exponent) && significand & 3 == 1 && significand << (upper_bit + 9) == high {
        significand &= !1;
    }
    significand += significand & 1;
    significand >>= 1;
    // floor(log2(10^q)) = floor(217706 q / 2^16) for these powers. Rounding up to 2^53 carries into the exponent as it
    // should, so the leading bit of the significand is added and not cut off.
    let binary = ((217_706 * exponent) >> 16) + 63 + upper_bit - i64::from(shift) + 1023;
    Some(f64::from_bits(((binary as u64 - 1) << 52) + significand))
}

/// Upper and lower half.
#[inline]
const fn product(a: u64, b: u64) -> (u64, u64) {
    let both = a as u128 * b as u128;
    ((both >> 64) as u64, both as u64)
}

/// Limbs of the exact numbers below, lowest first: `5^128` has 298 bits, and `2^511 / 5^128` still has 213.
type Limbs = [u64; 8];

const fn powers_of_five() -> [[u64; 2]; 2 * LARGEST as usize + 1] {
    let mut table = [[0; 2]; 2 * LARGEST as usize + 1];
    let mut power: Limbs = [1, 0, 0, 0, 0, 0, 0, 0];
    // Rounding down after every division comes to the same as rounding down once, after the last.
    let mut reciprocal: Limbs = [0, 0, 0, 0, 0, 0, 0, 1 << 63];
    let mut q = 0;
    while q <= LARGEST as usize {
        table[LARGEST as usize + q] = leading_bits(&power);
        if q > 0 {
            let [upper, lower] = leading_bits(&reciprocal);
            // Rounded up where the product can be a whole number: 5^27 is the last power below 2^64.
            let up = (q <= 27) as u64;
            let (lower, carry) = lower.overflowing_add(up);
            table[LARGEST as usize - q] = [upper + carry as u64, lower];
        }
        let (mut carry, mut remainder) = (0, 0);
        let mut i = 0;
        while i < 8 {
            let five_times = power[i] as u128 * 5 + carry;
            (power[i], carry) = (five_times as u64, five_times >> 64);
            let dividend = remainder << 64 | reciprocal[7 - i] as u128;
            (reciprocal[7 - i], remainder) = ((dividend / 5) as u64, dividend % 5);
            i += 1;
        }
        q += 1;
    }
    table
}

/// The 128 bits from the highest one on, rounded down.
const fn leading_bits(limbs: &Limbs) -> [u64; 2] {
    let mut top = 7;
    while limbs[top] == 0 {
        top -= 1;
    }
    let next = if top > 0 { limbs[top - 1] } else { 0 };
    let last = if top > 1 { limbs[top - 2] } else { 0 };
    let both = (limbs[top] as u128) << 64 | next as u128;
    let shift = limbs[top].leading_zeros();
    let shifted = if shift == 0 { both } else { both << shift | (last >> (64 - shift)) as u128 };
    [(shifted >> 64) as u64, shifted as u64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_nearest(mantissa: u64, exponent: i64) {
        let expected: f64 = format!("{mantissa}e{exponent}").parse().unwrap();
        for ours in [nearest(mantissa, exponent), eisel_lemire(mantissa, exponent)].into_iter().flatten() {
            assert_eq!(ours.to_bits(), expected.to_bits(), "{mantissa}e{exponent}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn products_are_those_of_the_standard_library(mantissa in any::<u64>(), bits in 0..64u32, exponent in -130..=130i64) {
            assert_nearest(mantissa >> bits, exponent);
        }

        #[test]
        fn seventeen_to_nineteen_digits(mantissa in 10_000_000_000_000_000..10_000_000_000_000_000_000u64, exponent in -40..=22i64) {
            assert_nearest(mantissa, exponent);
            prop_assert!(nearest(mantissa, exponent).is_some());
        }

        /// Exactly between two doubles, and as near to that as a mantissa can be.
        #[test]
        fn halfway_cases(significand in (1u64 << 52)..(1 << 53), power in 0..=10u32, exponent in -4..=0i64) {
            // An odd number of 54 bits, times a power of two; divided by a power of ten if it has that as a factor.
            let halfway = (2 * significand + 1) << power;
            for mantissa in [halfway - 1, halfway, halfway + 1] {
                assert_nearest(mantissa, 0);
            }
            let scaled = (2 * (significand >> 10) + 1) * 10u64.pow(-exponent as u32) / 2;
            for mantissa in [scaled - 1, scaled, scaled + 1] {
                assert_nearest(mantissa, exponent);
            }
        }
    }

    #[test]
    fn every_power_of_ten_and_its_neighbours() {
        for exponent in -LARGEST..=LARGEST {
            for digits in 0..=19 {
                let power = 10u64.pow(digits);
                for mantissa in [power - 1, power, power + 1, power / 2 * 3] {
                    assert_nearest(mantissa, exponent);
                }
            }
            for bit in 0..64 {
                assert_nearest(1 << bit, exponent);
                assert_nearest((1 << bit) - 1, exponent);
            }
            assert_nearest(u64::MAX, exponent);
            assert_nearest((1 << 53) + 1, exponent);
        }
    }

    #[test]
    fn powers_out_of_range_are_declined() {
        for exponent in [i64::MIN, -LARGEST - 1, LARGEST + 1, i64::MAX] {
            assert_eq!(nearest(1 << 60, exponent), None);
        }
        assert_eq!(nearest(0, 100), Some(0.0));
    }

    #[test]
    fn the_table_is_normal_and_in_order_of_size() {
        for (i, [upper, _]) in POWERS_OF_FIVE.iter().enumerate() {
            assert_eq!(upper >> 63, 1, "5^{}", i as i64 - LARGEST);
        }
        let [upper, lower] = POWERS_OF_FIVE[LARGEST as usize + 27];
        assert_eq!((u128::from(upper) << 64 | u128::from(lower)).trailing_zeros(), 128 - 63); // 5^27 has 63 bits
        assert_eq!(POWERS_OF_FIVE[LARGEST as usize - 1], [0xCCCC_CCCC_CCCC_CCCC, 0xCCCC_CCCC_CCCC_CCCD]);
    }
}
