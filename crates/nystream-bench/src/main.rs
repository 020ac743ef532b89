//! Benchmarks of nystream beside its peers.

mod accuracy;
mod kernel_block;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("kernel-block") => kernel_block::run(),
        Some("accuracy") => {
            if let Err(error) = accuracy::run(std::path::Path::new(&arguments[1]), &arguments[2..], 1) {
                eprintln!("{error}");
                std::process::exit(2);
            }
        }
        _ => {
            eprintln!("usage: nystream-bench kernel-block");
            std::process::exit(2);
        }
    }
}
