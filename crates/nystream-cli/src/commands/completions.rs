//! `nystream completions`: shell completion scripts.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::output::{Outcome, print};

/// Print a shell completion script
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nystream completions bash > ~/.local/share/bash-completion/completions/nystream")]
pub struct CompletionsArgs {
    /// bash, zsh, fish, elvish or powershell
    shell: Shell,
}

pub fn run(args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "nystream", &mut script);
    print(&String::from_utf8_lossy(&script))
}
