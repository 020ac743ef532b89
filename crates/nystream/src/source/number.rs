//! Cells of text formats: decimal numbers, missing cells, or text.
//!
//! Numbers are exact (the nearest double, as `str::parse` gives). Their digits are read once, eight at a time; more than
//! 19 of them, leading zeros aside, and the largest powers of ten go to the standard library.

use super::decimal;

/// What a cell of a text format holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// A number, perhaps infinite, never NaN.
    Number(f64),
    /// Empty, or a spelling of "missing".
    Missing,
    /// Anything else.
    Text,
}

/// Spellings of a missing cell, in any mixture of cases; so is an empty cell.
pub const MISSING_SPELLINGS: [&str; 5] = ["NA", "N/A", "NaN", "null", "?"];

/// Reads a whole cell; spaces and tabs around it do not count.
pub fn cell(bytes: &[u8]) -> Cell {
    let bytes = trim(bytes);
    match prefix(bytes) {
        Some((value, length)) if length == bytes.len() => Cell::Number(value),
        _ => word(bytes),
    }
}

/// Strips spaces and tabs from both ends.
pub(super) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// A trimmed cell that is not a decimal number.
fn word(bytes: &[u8]) -> Cell {
    if bytes.is_empty() || MISSING_SPELLINGS.iter().any(|s| s.as_bytes().eq_ignore_ascii_case(bytes)) {
        return Cell::Missing;
    }
    let (negative, magnitude) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, bytes),
    };
    if magnitude.eq_ignore_ascii_case(b"inf") || magnitude.eq_ignore_ascii_case(b"infinity") {
        Cell::Number(if negative { f64::NEG_INFINITY } else { f64::INFINITY })
    } else if magnitude.eq_ignore_ascii_case(b"nan") {
        Cell::Missing // C prints some NaNs with a sign
    } else {
        Cell::Text
    }
}

/// The decimal number at the start of `bytes` and how many bytes it takes, if there is one.
#[inline(always)]
pub(super) fn prefix(bytes: &[u8]) -> Option<(f64, usize)> {
    let (negative, unsigned) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, bytes),
    };
    // One digit before the point is so common that the processor should bet on it.
    let (mut mantissa, mut rest) = match unsigned {
        [digit @ b'0'..=b'9', b'.', ..] => (u64::from(digit - b'0'), &unsigned[1..]),
        _ => take_digits(0, unsigned),
    };
    let mut digits = unsigned.len() - rest.len();
    let mut exponent = 0i64;
    if let [b'.', fraction @ ..] = rest {
        (mantissa, rest) = take_digits(mantissa, fraction);
        let decimals = fraction.len() - rest.len();
        exponent = -(decimals as i64);
        digits += decimals;
    }
    if digits == 0 {
        return None;
    }
    if let [b'e' | b'E', tail @ ..] = rest
        && let Some((power, tail)) = take_exponent(tail)
    {
        exponent = exponent.saturating_add(power);
        rest = tail;
    }
    // Up to 19 digits cannot overflow the mantissa.
    let known = if digits <= 19 { decimal::nearest(mantissa, exponent) } else { None };
    let magnitude = match known {
        Some(magnitude) => magnitude,
        None => {
            let number = &unsigned[..unsigned.len() - rest.len()];
            magnitude_of_many_digits(number, digits, mantissa, exponent)?
        }
    };
    Some((if negative { -magnitude } else { magnitude }, bytes.len() - rest.len()))
}

/// An unsigned number of more than 19 digits, or whose rounding takes longer arithmetic.
#[cold]
fn magnitude_of_many_digits(number: &[u8], digits: usize, mantissa: u64, exponent: i64) -> Option<f64> {
    let zeros = number.iter().take_while(|b| matches!(b, b'0' | b'.')).filter(|b| **b == b'0').count();
    if digits > 19
        && digits - zeros <= 19
        && let Some(magnitude) = decimal::nearest(mantissa, exponent)
    {
        return Some(magnitude);
    }
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// Appends the leading digits of `bytes` to `mantissa` (wrapping); returns it and what follows them.
#[inline(always)]
fn take_digits(mut mantissa: u64, mut bytes: &[u8]) -> (u64, &[u8]) {
    while let Some((eight, rest)) = bytes.split_first_chunk::<8>() {
        // The first byte is the lowest.
        let digits = u64::from_le_bytes(*eight) ^ 0x3030_3030_3030_3030;
        // Adding 0x76 carries 10 and above into the high bit. A carry out of a byte that is no digit spoils only later
        // ones.
        let others = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
        if others == 0 {
            mantissa = mantissa.wrapping_mul(100_000_000).wrapping_add(eight_digit_value(digits));
            bytes = rest;
            continue;
        }
        // Shifted up so that the digits come last, behind zeros. In two steps: there may be none, and shifting by 64
        // means nothing.
        let end = others.trailing_zeros();
        let value = eight_digit_value(digits << (63 - end) << 8);
        let count = end as usize / 8;
        return (mantissa.wrapping_mul(WHOLE_POWERS[count]).wrapping_add(value), &bytes[count..]);
    }
    while let [digit @ b'0'..=b'9', rest @ ..] = bytes {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        bytes = rest;
    }
    (mantissa, bytes)
}

static WHOLE_POWERS: [u64; 8] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The value of eight digits, the first in the lowest byte: pairs, then fours, then all eight.
#[inline]
fn eight_digit_value(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10 * 256 + 1) >> 8;
    let fours = (pairs & 0x00FF_00FF_00FF_00FF).wrapping_mul(100 * 65536 + 1) >> 16;
    (fours & 0x0000_FFFF_0000_FFFF).wrapping_mul(10_000 * (1 << 32) + 1) >> 32
}

/// The signed integer at the start of `bytes` and what follows it, if there is one.
fn take_exponent(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (negative, unsigned) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, bytes),
    };
    let mut rest = unsigned;
    let mut power = 0i64;
    while let [digit @ b'0'..=b'9', tail @ ..] = rest {
        power = power.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
        rest = tail;
    }
    (rest.len() < unsigned.len()).then_some((if negative { -power } else { power }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bits(text: &str) -> Option<u64> {
        match cell(text.as_bytes()) {
            Cell::Number(value) => Some(value.to_bits()),
            _ => None,
        }
    }

    fn expected(text: &str) -> Option<u64> {
        text.parse::<f64>().ok().map(f64::to_bits)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn shortest_spellings_come_back(bits_in in any::<u64>()) {
            let value = f64::from_bits(bits_in);
            prop_assume!(value.is_finite());
            for text in [format!("{value}"), format!("{value:e}"), format!("{value:.3}")] {
                prop_assert_eq!(bits(&text), expected(&text), "{}", text);
            }
        }

        #[test]
        fn decimal_strings_agree_with_the_standard_library(text in "[+-]?[0-9]{0,22}(\\.[0-9]{0,22})?([eE][+-]?[0-9]{1,3})?") {
            prop_assert_eq!(bits(&text), expected(&text), "{}", text);
        }

        #[test]
        fn seventeen_to_nineteen_digits_agree_with_the_standard_library(
            text in "-?(0|[1-9][0-9]{0,3})\\.0{0,8}[1-9][0-9]{14,18}(e-?[0-9]{1,2})?",
        ) {
            prop_assert_eq!(bits(&text), expected(&text), "{}", text);
        }

        /// Numbers exactly between two doubles, in all their digits, and a little off.
        #[test]
        fn halfway_numbers_agree_with_the_standard_library(significand in (1u64 << 52)..(1 << 53), power in 0..=30u32) {
            let halfway = 2 * u128::from(significand) + 1;
            let (times, over) = (halfway << power, halfway * 5u128.pow(power)); // over: divided by 2^power, times 10^power
            for text in [
                format!("{times}"),
                format!("{times}.000000001"),
                format!("{}.9", times - 1),
                format!("{over}e-{power}"),
                format!("{over}1e-{}", power + 1),
                format!("{}9e-{}", over - 1, power + 1),
            ] {
                prop_assert_eq!(bits(&text), expected(&text), "{}", text);
            }
        }

        #[test]
        fn tiny_and_huge_numbers_agree_with_the_standard_library(
            text in "-?[0-9]\\.[0-9]{0,18}e(-?30[0-9]|-3[1-4][0-9]|-?1[0-9]{2})",
        ) {
            prop_assert_eq!(bits(&text), expected(&text), "{}", text);
        }

        #[test]
        fn odd_strings_agree_with_the_standard_library(text in "[-+.eE0-9x]{1,9}") {
            prop_assert_eq!(bits(&text), expected(&text), "{}", text);
        }
    }

    #[test]
    fn edges_of_the_fast_path_agree_with_the_standard_library() {
        for text in [
            "9007199254740992",
            "9007199254740993",
            "9007199254740993e22",
            "1e22",
            "1e23",
            "1e-22",
            "1e-23",
            "-0",
            "0.0",
            "-0e5",
            "1.",
            ".5",
            "12345678",
            "1234567.8",
            "123456789.12345678",
            "0.1",
            "1e400",
            "1e-400",
            "5e-324",
            "179769313486231570000e289",
            "1e99999999999999999999",
            "0e99999999999999999999",
            "0.00000000000000000000000000000000",
            "0.000000000000000000001234567890123456789",
            "9999999999999999999",
            "18446744073709551615",
            "18446744073709551616",
            "9007199254740993.0000000000000000000000001",
            "2.2250738585072011e-308",
            "2.2250738585072014e-308",
            "2.4703282292062328e-324",
            "1.7976931348623157e308",
            "1.7976931348623159e308",
        ] {
            assert_eq!(bits(text), expected(text), "{text}");
        }
    }

    #[test]
    fn missing_infinite_and_text_cells_are_told_apart() {
        for text in ["", "  ", "NA", "na", "N/A", "NaN", "nan", "-nan", "NULL", "null", "?", " ? "] {
            assert_eq!(cell(text.as_bytes()), Cell::Missing, "{text:?}");
        }
        assert_eq!(cell(b" inf\t"), Cell::Number(f64::INFINITY));
        assert_eq!(cell(b"-Infinity"), Cell::Number(f64::NEG_INFINITY));
        assert_eq!(cell(b" +1.5 "), Cell::Number(1.5));
        for text in ["abc", "1e", "1.2.3", "12a", ".", "+", "--1", "1 2", "0x10", "1_000", "\u{e9}"] {
            assert_eq!(cell(text.as_bytes()), Cell::Text, "{text:?}");
        }
    }

    #[test]
    fn a_prefix_stops_at_the_first_foreign_byte() {
        assert_eq!(prefix(b"12,5"), Some((12.0, 2)));
        assert_eq!(prefix(b"1e,5"), Some((1.0, 1)));
        assert_eq!(prefix(b",5"), None);
    }
}
