//! Benchmarks of nystream beside its peers.

mod kernel_block;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("kernel-block") => kernel_block::run(),
        _ => {
            eprintln!("usage: nystream-bench kernel-block");
            std::process::exit(2);
        }
    }
}
