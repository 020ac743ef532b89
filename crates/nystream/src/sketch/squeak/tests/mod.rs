//! Tests of SQUEAK: against a literal transcription, the lemma, the expectation, and what must hold on any stream.

mod budget;
mod expectation;
mod files;
mod laws;
mod lemma;
mod literal;
mod merging;

use super::super::oracle;
use super::*;
use crate::rows::Row;

/// Per point, in blocks, lazily.
fn schedules() -> [Schedule; 3] {
    [Schedule::PerPoint, Schedule::Blocks { rows: 16 }, Schedule::Lazy { rows: 16, growth: 1.5 }]
}

fn options(schedule: Schedule) -> SqueakOptions {
    SqueakOptions { schedule, ..SqueakOptions::new(Kernel::gaussian(1.5).unwrap(), 0.5) }
}

fn squeak_of(options: &SqueakOptions, rows: Rows) -> Squeak {
    let mut squeak = Squeak::new(options.clone()).unwrap();
    squeak.insert(rows).unwrap();
    squeak
}

/// Everything that a dictionary is, to the last bit.
fn bytes(squeak: &Squeak) -> Vec<u8> {
    squeak.to_container().unwrap().to_bytes().unwrap()
}

/// (row number, Q, p̃) of every atom.
fn held(squeak: &Squeak) -> Vec<(u64, u64, f64)> {
    squeak.atoms.standing().iter().map(|point| (point.number, point.copies, point.probability)).collect()
}

fn sparse_copy(block: &RowBlock) -> RowBlock {
    let mut sparse = RowBlock::sparse(block.cols());
    sparse.extend(block.rows());
    sparse
}

/// n rows that are all the same.
fn repeated(row: &[f64], n: usize) -> RowBlock {
    let mut block = RowBlock::dense(row.len());
    (0..n).for_each(|_| block.push(Row::Dense(row)));
    block
}
