//! The `nystream` command: parses options, calls the library, prints. It computes nothing itself.

mod args;
mod commands;
mod memory;
mod output;
mod plot;
mod progress;
mod report;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    Sketch(commands::sketch::SketchArgs),
    Inspect(commands::inspect::InspectArgs),
    Completions(commands::completions::CompletionsArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let common = &cli.common;
    if let Some(threads) = common.threads {
        // Only a second call could fail, and there is none.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads)).build_global();
    }
    let result = match &cli.command {
        Command::Demo(args) => commands::demo::run(args, common),
        Command::Fit(args) => commands::fit::run(args, common),
        Command::Predict(args) => commands::predict::run(args, common),
        Command::Score(args) => commands::score::run(args, common),
        Command::Sketch(args) => commands::sketch::run(args, common),
        Command::Inspect(args) => commands::inspect::run(args, common),
        Command::Completions(args) => commands::completions::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(output::Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(output::Failure::Library(error)) => {
            eprintln!("nystream: {error}");
            ExitCode::from(2)
        }
    }
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
}
