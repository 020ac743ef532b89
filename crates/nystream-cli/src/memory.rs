//! How much memory this process has used.

/// The largest amount of memory that this process has had resident so far, in bytes; known on Linux
/// only, where the kernel counts to within some hundred KiB.
pub fn peak_bytes() -> Option<u64> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    high_water_mark(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Reads the line `VmHWM:   12345 kB`, whose kB are 1024 bytes (`man 5 proc`).
fn high_water_mark(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    value.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_status_of_a_process() {
        assert_eq!(
            high_water_mark("Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t    1234 kB\nVmRSS:\t 1 kB\n"),
            Some(1234 * 1024)
        );
    }

    #[test]
    fn anything_else_is_unknown() {
        for status in ["", "VmRSS:\t1 kB", "VmHWM:\t1 MB", "VmHWM:\t-1 kB", "VmHWM:\t18446744073709551615 kB"] {
            assert_eq!(high_water_mark(status), None, "{status}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_peak_outlasts_the_memory() {
        let before = peak_bytes().unwrap();
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        drop(block);
        let after = peak_bytes().unwrap();
        assert!(before > 0 && after > 60 << 20, "{before} {after}");
    }
}
