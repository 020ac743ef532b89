//! Reading numeric CSV files beside pandas' C reader: one thread each, every cell to f64.
//!
//! Ours opens the file and reads it in blocks, as a fit does; the peer is `pandas.read_csv(engine="c")` with its
//! defaults but for one thread (`mode.max_threads`). Both read from the page cache. Ours rounds every number correctly; pandas' default may be off in the last
//! digit, so the sums of all cells are compared to 1e-9.

use std::fs;
use std::path::Path;

use nystream::source::{OpenOptions, RecordBlock, open};
use serde_json::json;

use crate::Outcome;
use crate::generate::{Digits, FEATURES, Growing};
use crate::machine::threads;
use crate::peers::{Peer, number};
use crate::table::{Table, seconds, verdict};
use crate::timing::timed;

const ROUNDS: usize = 4;
/// Kinds of file; each comes to about 160 MB.
const FILES: [(&str, Digits, usize); 2] = [("6 decimals", Digits::Six, 850_000), ("all digits", Digits::All, 400_000)];

/// Compares times and what was read.
pub fn run(folder: &Path) -> Outcome {
    println!("Numeric CSV, {} columns, 1 thread each, against `pandas.read_csv(engine=\"c\")`\n", FEATURES + 1);
    let mut peer = Peer::start(1)?;
    let mut table =
        Table::new(&["numbers", "file", "ours", "pandas", "ours MB/s", "pandas MB/s", "ratio", "target", "verdict"]);
    for (name, digits, rows) in FILES {
        let path = folder.join("numbers.csv");
        Growing::create(&path, rows, digits)?.grow(rows)?;
        let megabytes = fs::metadata(&path)?.len() as f64 / 1e6;
        let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            let (time, read) = threads(1)?.install(|| timed(|| read(&path)));
            ours = ours.min(time);
            let answer = peer.ask(&json!({ "task": "read_csv", "path": path }))?;
            theirs = theirs.min(number(&answer, "seconds")?);
            let (cells, sum) = read?;
            let their_cells = number(&answer, "rows")? * number(&answer, "columns")?;
            let their_sum = number(&answer, "sum")?;
            if cells as f64 != their_cells || (sum - their_sum).abs() > 1e-9 * sum.abs() {
                let both = format!("{cells} cells, sum {sum}; pandas: {their_cells} cells, sum {their_sum}");
                return Err(format!("{name}: the readers disagree: {both}").into());
            }
        }
        let ratio = theirs / ours;
        table.row([
            name.to_owned(),
            format!("{megabytes:.0} MB"),
            seconds(ours),
            seconds(theirs),
            format!("{:.0}", megabytes / ours),
            format!("{:.0}", megabytes / theirs),
            format!("{ratio:.2}"),
            "≥ 1".to_owned(),
            verdict(ratio >= 1.0),
        ]);
    }
    println!("{table}");
    Ok(())
}

/// Number of cells and their sum.
fn read(path: &Path) -> nystream::Result<(usize, f64)> {
    let mut source = open(&path.display().to_string(), &OpenOptions::default())?;
    let mut block = RecordBlock::default();
    let (mut cells, mut sum) = (0, 0.0);
    while source.read(&mut block, 4096)? {
        if let nystream::rows::Rows::Dense(rows) = block.cells.rows() {
            cells += rows.data().len();
            sum += rows.data().iter().sum::<f64>();
        }
    }
    Ok((cells, sum))
}
