//! `cargo xtask test`: every test and documentation example, and a closing count.

use crate::run::{Outcome, cargo, check_keeping};

/// Runs everything; the runners' closing lines are repeated at the end.
pub fn run() -> Outcome {
    let mut tests = cargo(["test", "--workspace", "--locked", "--no-fail-fast"]);
    let closing = check_keeping(&mut tests, |line| line.starts_with("test result:"))?;
    println!("\nRust tests, runner by runner:");
    closing.iter().for_each(|line| println!("  {line}"));
    let passed: u64 = closing.iter().filter_map(|line| count(line, "passed")).sum();
    let ignored: u64 = closing.iter().filter_map(|line| count(line, "ignored")).sum();
    println!("  {passed} passed, {ignored} ignored");
    if passed == 0 { Err("no test ran".to_owned()) } else { Ok(()) }
}

/// The number before `word` in a runner's closing line.
fn count(line: &str, word: &str) -> Option<u64> {
    let before = line.split(word).next().filter(|before| before.len() < line.len())?;
    before.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn closing_lines_are_counted() {
        let line = "test result: ok. 26 passed; 0 failed; 3 ignored; 0 measured; 10 filtered out; finished in 0.91s";
        assert_eq!(count(line, "passed"), Some(26));
        assert_eq!(count(line, "ignored"), Some(3));
        assert_eq!(count("Doc-tests nystream", "passed"), None);
    }
}
