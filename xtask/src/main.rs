//! The project's daily commands. `cargo xtask` lists them.

mod bench;
mod docs;
mod layers;
mod lint;
mod run;
mod sources;
mod test;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask <command>

  test            every test and documentation example
  lint            format, clippy, documentation, layers, file sizes, unsafe, licences
  bench [ARGS]    the benchmarks, beside their Python peers; ARGS go to nystream-bench
  docs [--open]   the library's documentation, under target/doc
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next();
    let rest: Vec<String> = arguments.collect();
    let outcome = match (command.as_deref(), rest.as_slice()) {
        (Some("test"), []) => test::run(),
        (Some("lint"), []) => lint::run(),
        (Some("bench"), arguments) => bench::run(arguments),
        (Some("docs"), []) => docs::run(false),
        (Some("docs"), [open]) if open == "--open" => docs::run(true),
        (None, _) | (Some("help" | "--help" | "-h"), _) => {
            print!("{USAGE}");
            Ok(())
        }
        (Some(other), _) => Err(format!("not understood: {other} {}\n\n{USAGE}", rest.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
