//! The sketch and its maps against literal dense transcriptions and the paper's lemma.

mod files;
mod lemma;
mod literal;
mod maps;

use super::{IncrementalOptions, PseudoInverse};
use crate::random::Generator;
use crate::rows::RowBlock;

fn options(seed: u64) -> IncrementalOptions {
    IncrementalOptions {
        projection_size: 15,
        sample_size: 9,
        rank: 6,
        blocks: 4,
        pseudo_inverse: PseudoInverse::Leading,
        most_rows: 1000,
        seed,
    }
}

/// Normal rows, far enough apart for kernel matrices that can be inverted.
fn normal_rows(n: usize, cols: usize, seed: u64) -> RowBlock {
    let mut rng = Generator::new(seed);
    RowBlock::Dense { data: (0..n * cols).map(|_| rng.normal()).collect(), len: n, cols }
}

/// The same rows, those below 0 left out.
fn sparse_rows(n: usize, cols: usize, seed: u64) -> RowBlock {
    let RowBlock::Dense { mut data, .. } = normal_rows(n, cols, seed) else { unreachable!("dense rows") };
    data.iter_mut().for_each(|v| *v = v.max(0.0));
    let mut rows = RowBlock::sparse(cols);
    rows.extend(RowBlock::Dense { data, len: n, cols }.rows());
    rows
}
