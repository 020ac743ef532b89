//! Numbers as people read them.

use std::time::Duration;

/// `x` with so many significant digits (at least one); very large and very small numbers with an exponent.
pub fn significant(x: f64, digits: usize) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.into();
    }
    if x == 0.0 {
        return "0".into();
    }
    let digits = digits.clamp(1, 17);
    // Rounding may carry into the next power of ten: ask the rounded number for its exponent.
    let scientific = format!("{x:.*e}", digits - 1);
    let exponent: i32 = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    if (-4..7.max(digits as i32)).contains(&exponent) {
        format!("{x:.*}", (digits as i32 - 1 - exponent).max(0) as usize)
    } else {
        scientific
    }
}

/// A whole number with commas between thousands.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A length of time: `850 µs`, `12.3 ms`, `4.56 s`, `2 min 05 s`, `3 h 07 min`, `2 d 04 h`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let whole = seconds.round() as u64;
    match seconds {
        0.0 => "0 s".into(),
        s if s < 999.5e-6 => format!("{:.0} µs", (s * 1e6).max(1.0)),
        s if s < 0.9995 => format!("{} ms", significant(s * 1e3, 3)),
        s if s < 59.95 => format!("{} s", significant(s, 3)),
        s if s < 3599.5 => format!("{} min {:02} s", whole / 60, whole % 60),
        s if s < 86_370.0 => {
            let minutes = whole.saturating_add(30) / 60;
            format!("{} h {:02} min", minutes / 60, minutes % 60)
        }
        _ => {
            let hours = whole.saturating_add(1800) / 3600;
            format!("{} d {:02} h", hours / 24, hours % 24)
        }
    }
}

/// An amount of memory in binary units: `512 B`, `1.50 KiB`, `23.4 MiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut size = n as f64 / 1024.0;
    let mut unit = 0;
    // 1023.5 and more would be written 1024.
    while size >= 1023.5 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{} {}", significant(size, 3), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_digits() {
        for (x, expected) in [
            (0.0, "0"),
            (1.0, "1.000"),
            (-0.123456, "-0.1235"),
            (999.96, "1000"),
            (9.99996, "10.00"),
            (12_345.6, "12346"),
            (9_999_999.9, "1.000e7"),
            (0.00012345, "0.0001234"),
            (0.000099996, "0.0001000"),
            (1.5e-7, "1.500e-7"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::MAX, "1.798e308"),
            (5e-324, "4.941e-324"),
        ] {
            assert_eq!(significant(x, 4), expected, "{x}");
        }
        assert_eq!(significant(0.25, 0), "0.2");
        assert_eq!(significant(1.0, 100), significant(1.0, 17));
    }

    #[test]
    fn counts_have_commas() {
        for (n, expected) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (12_345, "12,345"),
            (123_456, "123,456"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(count(n), expected);
        }
    }

    #[test]
    fn durations_choose_their_unit() {
        for (seconds, expected) in [
            (0.0, "0 s"),
            (1e-9, "1 µs"),
            (850e-6, "850 µs"),
            (0.01234, "12.3 ms"),
            (0.9996, "1.00 s"),
            (4.561, "4.56 s"),
            (59.97, "1 min 00 s"),
            (125.2, "2 min 05 s"),
            (3599.6, "1 h 00 min"),
            (11_220.0, "3 h 07 min"),
            (86_380.0, "1 d 00 h"),
            (187_200.0, "2 d 04 h"),
        ] {
            assert_eq!(duration(Duration::from_secs_f64(seconds)), expected, "{seconds}");
        }
        assert!(duration(Duration::MAX).ends_with(" h"));
    }

    #[test]
    fn bytes_choose_their_unit() {
        for (n, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.50 KiB"),
            (1024 * 1024 - 1, "1.00 MiB"),
            (24_536_678, "23.4 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(n), expected, "{n}");
        }
    }
}
