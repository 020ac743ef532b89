//! The `nystream` command: parses options, calls the library, prints. It computes nothing itself.

mod args;
mod commands;
mod files;
mod learner_args;
mod memory;
mod output;
mod panics;
mod progress;
mod report;

use std::io::Write as _;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
// What figures and tables are made of, at home with the studies.
use nystream_reproduce::{plot, table};

/// Kernel machines for streams: one pass over the data, memory fixed in advance, an answer at any time.
#[derive(Debug, Parser)]
#[command(name = "nystream", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    common: args::Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(commands::demo::DemoArgs),
    Fit(commands::fit::FitArgs),
    Predict(commands::predict::PredictArgs),
    Score(commands::score::ScoreArgs),
    Evaluate(commands::evaluate::EvaluateArgs),
    Sketch(commands::sketch::SketchArgs),
    Merge(commands::merge::MergeArgs),
    Inspect(commands::inspect::InspectArgs),
    Reproduce(commands::reproduce::ReproduceArgs),
    Learners(commands::learners::LearnersArgs),
    Completions(commands::completions::CompletionsArgs),
}

/// Stack of every thread, as large as that of a main thread usually is.
const STACK_BYTES: usize = 8 << 20;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if wants_help(&error) => error.exit(),
        Err(error) => {
            complain(&usage_line(&error.to_string()));
            return ExitCode::from(2);
        }
    };
    match panics::caught(|| run(&cli)) {
        Ok(Ok(()) | Err(output::Failure::ReaderGone)) => ExitCode::SUCCESS,
        Ok(Err(output::Failure::Library(error))) => {
            complain(&error.to_string());
            ExitCode::from(2)
        }
        Err(message) => {
            complain(&format!("internal error (please report): {message}"));
            ExitCode::from(101)
        }
    }
}

/// Has the C library keep blocks of memory that are freed, for the next ones.
///
/// glibc takes blocks above a size from the system one by one and gives them back as they are freed, so that every matrix of
/// every small fit would be made of new pages. That size is the largest block freed so far (mallopt(3), M_MMAP_THRESHOLD, up
/// to 32 MB). Of the first 10,000 rows of a stream with 200 atoms it takes an eighth of the time, for 2 MB more. A thread of the
/// pool that does the same has room from then on (addresses, not memory) where it would have asked the system for a little
/// more 147 times, all other threads waiting. Elsewhere this does nothing.
fn keep_freed_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(24 << 20)));
}

fn run(cli: &Cli) -> output::Outcome {
    keep_freed_memory();
    let common = &cli.common;
    let threads = common.threads.map_or(0, usize::from);
    // Only a second call could fail, and there is none. Zero threads: as many as there are cores.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK_BYTES);
    let _ = pool.start_handler(|_| keep_freed_memory()).build_global();
    // On a thread of the pool: from elsewhere every parallel loop would wake a thread and wait for it.
    rayon::scope(|_| dispatch(cli))
}

fn dispatch(cli: &Cli) -> output::Outcome {
    let common = &cli.common;
    match &cli.command {
        Command::Demo(args) => commands::demo::run(args, common),
        Command::Fit(args) => commands::fit::run(args, common),
        Command::Predict(args) => commands::predict::run(args, common),
        Command::Score(args) => commands::score::run(args, common),
        Command::Evaluate(args) => commands::evaluate::run(args, common),
        Command::Sketch(args) => commands::sketch::run(args, common),
        Command::Merge(args) => commands::merge::run(args, common),
        Command::Inspect(args) => commands::inspect::run(args, common),
        Command::Reproduce(args) => commands::reproduce::run(args, common),
        Command::Learners(args) => commands::learners::run(args, common),
        Command::Completions(args) => commands::completions::run(args),
    }
}

/// Prints an error on one line of standard error.
fn complain(message: &str) {
    // If even that is closed, the exit code has to do.
    let _ = writeln!(std::io::stderr(), "nystream: {}", visible(message));
}

/// Names of files and columns may hold line breaks or escape sequences: those are written out.
fn visible(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for c in message.chars() {
        if c.is_control() { text.extend(c.escape_default()) } else { text.push(c) }
    }
    text
}

/// Help and version are asked for, or shown in full because nothing was asked for.
fn wants_help(error: &clap::Error) -> bool {
    !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

/// The parser's complaint on one line, like every other error of ours.
fn usage_line(complaint: &str) -> String {
    let lines = complaint.lines().map(str::trim).filter(|line| !line.is_empty());
    let said = lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let mut text = String::new();
    for line in said {
        text += if text.is_empty() {
            ""
        } else if line.starts_with("tip:") {
            "; "
        } else {
            " "
        };
        text += line.trim_start_matches("error: ");
    }
    text + "; --help tells more"
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn options_are_consistent_and_every_subcommand_shows_an_example() {
        let mut command = super::Cli::command();
        command.clone().debug_assert();
        for sub in command.get_subcommands_mut().filter(|c| c.get_name() != "help") {
            let help = sub.render_long_help().to_string();
            assert!(help.contains("nystream ") && help.contains("Example"), "{}", sub.get_name());
        }
    }

    #[test]
    fn complaints_of_the_parser_take_one_line() {
        let line = |arguments: &[&str]| {
            let error = super::Cli::command().try_get_matches_from(arguments).unwrap_err();
            super::usage_line(&error.to_string())
        };
        let missing = line(&["nystream", "fit", "x.csv"]);
        assert_eq!(missing, "the following required arguments were not provided: --model <FILE>; --help tells more");
        let unknown = line(&["nystream", "fit", "x.csv", "--modle", "m"]);
        assert!(unknown.contains("'--modle' found; tip: ") && !unknown.contains('\n'), "{unknown}");
    }
}
