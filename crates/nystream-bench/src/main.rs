//! Benchmarks of nystream beside its peers, on the same arrays in one run: `cargo xtask bench [NAME…]`.

mod accuracy;
mod command;
mod csv;
mod fit;
mod generate;
mod kernel;
mod kernel_block;
mod learner_data;
mod learner_length;
mod learners;
mod machine;
mod memory;
mod options;
mod peers;
mod rows;
mod sketch;
mod sketch_peers;
mod stream;
mod table;
mod timing;

use std::fs;
use std::process::ExitCode;

use machine::{Product, threads};
use options::{Name, Options, USAGE};
use peers::Peer;

/// What went wrong, for a person.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("nystream-bench: {message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        // A benchmark that could not run; a missed target is not an error.
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("nystream-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs what was asked for. False if some benchmark could not run.
fn run(options: &Options) -> Outcome<bool> {
    println!("Machine: {}", machine::description());
    if options.names.iter().any(|name| name.has_peers()) {
        println!("Peers: {}", Peer::start(1)?.versions()?);
    }
    let mut product = Product::new();
    for count in [1, 2] {
        let rate = threads(count)?.install(|| product.rate(1.0)) / 1e9;
        println!("Matrix product, f64, 1500 x 1500, {count} thread{}: {rate:.1} GFLOP/s", ["", "s"][count - 1]);
    }
    drop(product);
    println!("Times are minima of runs in which ours and the peer's take turns.\n");

    fs::create_dir_all(&options.out).map_err(|e| format!("cannot make {}: {e}", options.out.display()))?;
    let mut all_ran = true;
    for &name in &options.names {
        println!("## {}\n", name.word());
        // Beside the results rather than in the system's folder, which may be memory. Deleted at the end.
        let scratch = tempfile::tempdir_in(&options.out)?;
        let outcome = match name {
            Name::Kernel => kernel::run(scratch.path()),
            Name::Fit => fit::run(scratch.path()),
            Name::Memory => memory::run(scratch.path(), options.rows),
            Name::Csv => csv::run(scratch.path()),
            Name::Sketch => {
                sketch::run(options.rows).and_then(|()| sketch_peers::run(scratch.path(), options.rows.is_some()))
            }
            Name::Rows => rows::run(),
            Name::Learners => learners::run(options).and_then(|()| match options.learners[..] {
                [] => learner_length::run(options),
                _ => Ok(()),
            }),
            Name::Stream => stream::run(scratch.path(), options.rows),
            Name::Accuracy => accuracy::run(&options.out, options.seed),
            Name::KernelBlock => {
                kernel_block::run();
                Ok(())
            }
        };
        if let Err(error) = outcome {
            println!("FAILED: {error}\n");
            all_ran = false;
        }
    }
    Ok(all_ran)
}
