//! Running other programs from the workspace's root.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What went wrong, for a person.
pub type Outcome<T = ()> = Result<T, String>;

/// The workspace's root, wherever the command was typed.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// The cargo that runs us, in the workspace's root.
pub fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// Prints the command and runs it; anything but success is an error.
pub fn check(command: &mut Command) -> Outcome {
    let shown = show(command);
    eprintln!("$ {shown}");
    let status = command.status().map_err(|e| format!("cannot run {shown}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{shown}: {status}")) }
}

/// Like [`check`], and hands back the standard output's lines that `keep` wants, while passing all of it on.
pub fn check_keeping(command: &mut Command, keep: impl Fn(&str) -> bool) -> Outcome<Vec<String>> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let failed = |e: std::io::Error| format!("cannot run {shown}: {e}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut kept = Vec::new();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = String::from_utf8_lossy(&line.map_err(failed)?).into_owned();
            println!("{line}");
            if keep(&line) {
                kept.push(line);
            }
        }
    }
    let status = child.wait().map_err(failed)?;
    if status.success() { Ok(kept) } else { Err(format!("{shown}: {status}")) }
}

fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let mut shown: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(program) = shown.first_mut()
        && let Some(name) = program.rsplit(std::path::MAIN_SEPARATOR).next().map(str::to_owned)
    {
        *program = name;
    }
    shown.join(" ")
}
