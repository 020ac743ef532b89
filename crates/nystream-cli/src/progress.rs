//! Progress on the terminal, on standard error: a bar where the end is known, a spinner elsewhere.

use crate::table::{clean, count, duration};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nystream::fit::Observer;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Full length of the bar.
const WHOLE: u64 = 10_000;
/// The text is made anew this often at most; rows may be reported one at a time.
const REFRESH: Duration = Duration::from_millis(100);
const SPINNER: &str = "{spinner} {prefix}  {wide_msg}";
const BAR: &str = "{spinner} {prefix}  [{bar:16}] {percent:>3} %  {wide_msg}";

/// An observer that shows how far a computation is, and leaves no trace of it at the end.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    refreshed: Option<Instant>,
    rows: u64,
    has_end: bool,
    /// An error so far, in words.
    running: String,
}

impl Progress {
    /// Shows an error so far beside the rows.
    pub fn running(&mut self, name: &str, value: f64) {
        if self.bar.is_some() && value.is_finite() {
            self.running = format!("{name} {value:.4}, ");
        }
    }

    /// Shows nothing unless `visible`, nor where standard error is not a terminal.
    pub fn new(visible: bool) -> Self {
        let shown = visible && std::io::stderr().is_terminal();
        Self::on(shown.then(ProgressDrawTarget::stderr))
    }

    fn on(target: Option<ProgressDrawTarget>) -> Self {
        let bar = target.map(|target| ProgressBar::with_draw_target(Some(WHOLE), target));
        Self { bar, started: Instant::now(), refreshed: None, rows: 0, has_end: false, running: String::new() }
    }

    /// Removes the bar from the terminal; a later stage shows it again. Dropping does this too.
    pub fn finish(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Progress {
    fn stage(&mut self, name: &str) {
        let Some(bar) = &self.bar else { return };
        (self.started, self.refreshed, self.rows, self.has_end) = (Instant::now(), None, 0, false);
        bar.reset();
        bar.set_style(style(SPINNER));
        self.running.clear();
        bar.set_message("");
        bar.set_prefix(clean(name));
        // Solving takes long and reports no rows: the spinner turns by itself.
        bar.enable_steady_tick(REFRESH);
        bar.tick();
    }

    fn rows(&mut self, rows: u64, fraction: Option<f64>) {
        let Some(bar) = &self.bar else { return };
        self.rows = self.rows.saturating_add(rows);
        let now = Instant::now();
        if self.refreshed.is_some_and(|last| now - last < REFRESH) {
            return;
        }
        self.refreshed = Some(now);
        let fraction = fraction.filter(|fraction| fraction.is_finite()).map(|fraction| fraction.clamp(0.0, 1.0));
        if fraction.is_some() != self.has_end {
            self.has_end = fraction.is_some();
            bar.set_style(style(if self.has_end { BAR } else { SPINNER }));
        }
        bar.set_position((fraction.unwrap_or(0.0) * WHOLE as f64) as u64);
        bar.set_message(format!("{}{}", self.running, summary(self.rows, now - self.started, fraction)));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("█▉▊▋▌▍▎▏ ")
}

/// Time left, rows so far, rows per second: what is not known yet is left out, and what matters least
/// stands last, where a narrow terminal cuts it off.
fn summary(rows: u64, elapsed: Duration, fraction: Option<f64>) -> String {
    let seconds = elapsed.as_secs_f64();
    let rows_text = format!("{} rows", count(rows));
    // The first moments say little about the speed.
    if seconds < 0.2 {
        return rows_text;
    }
    let left = fraction.filter(|fraction| *fraction > 0.0).map(|fraction| seconds * (1.0 - fraction) / fraction);
    let left = match left.map(Duration::try_from_secs_f64) {
        Some(Ok(left)) => format!("{} left, ", coarse(left)),
        _ => String::new(),
    };
    format!("{left}{rows_text}, {} rows/s", count((rows as f64 / seconds).round() as u64))
}

/// An estimate, so no fractions of a second.
fn coarse(time: Duration) -> String {
    let seconds = time.as_secs_f64().round();
    if seconds < 60.0 { format!("{seconds} s") } else { duration(time) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::io;
    use std::sync::{Arc, Mutex};

    /// A terminal that remembers everything written to it, and how it looks now.
    #[derive(Debug, Clone, Default)]
    struct Screen(Arc<Mutex<(String, String)>>);

    impl Screen {
        fn progress(&self) -> Progress {
            Progress::on(Some(ProgressDrawTarget::term_like(Box::new(self.clone()))))
        }
        fn history(&self) -> String {
            self.0.lock().unwrap().0.clone()
        }
        fn now(&self) -> String {
            self.0.lock().unwrap().1.trim().to_string()
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            let mut screen = self.0.lock().unwrap();
            screen.0.push_str(text);
            screen.1.push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().1.clear();
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn stages_rows_and_fractions_are_shown_and_cleared() {
        let screen = Screen::default();
        let mut progress = screen.progress();
        progress.stage("first pass");
        progress.rows(1500, Some(0.25));
        progress.bar.as_ref().unwrap().force_draw();
        assert!(screen.now().contains("first pass  ["), "{}", screen.now());
        assert!(screen.now().contains("25 %  1,500 rows"), "{}", screen.now());
        progress.stage("solving");
        progress.bar.as_ref().unwrap().force_draw();
        assert!(screen.now().contains("solving"), "{}", screen.now());
        assert!(!screen.now().contains("rows") && !screen.now().contains('%'), "{}", screen.now());
        progress.finish();
        assert_eq!(screen.now(), "");
        progress.stage("second pass");
        progress.rows(10, None);
        progress.bar.as_ref().unwrap().force_draw();
        assert!(screen.now().contains("second pass  10 rows"), "{}", screen.now());
        drop(progress);
        assert_eq!(screen.now(), "");
        assert!(screen.history().contains("solving"));
    }

    #[test]
    fn odd_fractions_do_no_harm() {
        let screen = Screen::default();
        for fraction in [f64::NAN, f64::INFINITY, -1.0, 7.0, 0.0] {
            let mut progress = screen.progress();
            progress.rows(u64::MAX, Some(fraction));
            progress.stage("pass");
            progress.rows(u64::MAX, Some(fraction));
            progress.rows(u64::MAX, Some(fraction));
        }
        assert_eq!(screen.now(), "");
    }

    #[test]
    fn invisible_is_silent() {
        let mut progress = Progress::new(false);
        progress.stage("pass");
        progress.rows(1, Some(0.5));
        progress.finish();
        assert!(progress.bar.is_none());
    }

    #[test]
    fn summaries_leave_out_what_is_unknown() {
        let after = Duration::from_secs;
        assert_eq!(summary(1000, Duration::ZERO, Some(0.5)), "1,000 rows");
        assert_eq!(summary(1000, after(2), None), "1,000 rows, 500 rows/s");
        assert_eq!(summary(1000, after(2), Some(0.0)), "1,000 rows, 500 rows/s");
        assert_eq!(summary(90_000, after(30), Some(0.25)), "1 min 30 s left, 90,000 rows, 3,000 rows/s");
        assert_eq!(summary(90_000, after(4), Some(0.25)), "12 s left, 90,000 rows, 22,500 rows/s");
        assert_eq!(summary(90_000, after(4), Some(0.5)), "4 s left, 90,000 rows, 22,500 rows/s");
        assert_eq!(summary(1, after(1), Some(1e-300)), "1 rows, 1 rows/s");
    }
}
