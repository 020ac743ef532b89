//! Panics: quiet where the library turns them into errors, one line where they are bugs.
//!
//! Decoders of Arrow and Parquet may panic on damaged files. The library catches that and returns an error, but Rust's
//! own hook would have printed the panic by then. So the hook only remembers, and whoever asked prints.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::{Mutex, PoisonError};

static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Runs `work`; a panic that nobody below caught becomes its message and place, printed nowhere.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
        let message = text.unwrap_or("a panic without a message");
        let place = panic.location().map(|place| format!(" ({}:{})", place.file(), place.line())).unwrap_or_default();
        let line = format!("{message}{place}").split_whitespace().collect::<Vec<_>>().join(" ");
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
    }));
    // The program ends after a panic, so nobody sees what it left half done.
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
        last.unwrap_or_else(|| "a panic without a message".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_panics_that_nobody_caught_are_reported() {
        // One test, because the hook is the whole process's.
        let default = std::panic::take_hook();
        let survived = caught(|| catch_unwind(|| panic!("in a decoder")).is_err());
        let reported = caught(|| -> () { panic!("of two\nlines") });
        let from_a_thread =
            caught(|| rayon::join(|| (), || -> () { panic!("in the {}", "pool") })).map(|_| ()).unwrap_err();
        set_hook(default);
        assert_eq!(survived, Ok(true));
        let reported = reported.unwrap_err();
        assert!(reported.starts_with("of two lines (") && reported.contains("panics.rs:"), "{reported}");
        assert!(from_a_thread.starts_with("in the pool"), "{from_a_thread}");
    }
}
