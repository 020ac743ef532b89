//! All rows so far, packed for the kernels of a new row with every one of them (k̄ of INK, Eq. 1).
//!
//! Full packs of 1,024 rows never change. The rest is packed anew every 32 rows; fewer than 32 are taken in pairs.
//! Packs depend on the number of rows alone, so how the stream is cut into calls does not matter.

use rayon::prelude::*;

use crate::kernel::{Centres, Kernel};
use crate::rows::{Row, RowBlock, Rows};

const PACK: usize = 1024;
const GROUP: usize = 32;
/// Kernels of fewer numbers are not worth handing to other threads.
const PARALLEL: usize = 1 << 17;

/// The rows of a stream.
#[derive(Debug, Clone)]
pub(super) struct History {
    full: Vec<Centres>,
    /// Rows after the full packs.
    rest: RowBlock,
    /// The whole groups of `rest`.
    groups: Option<Centres>,
}

impl History {
    /// No rows yet, of the kind and width of `like`.
    pub(super) fn new(like: Rows) -> Self {
        Self { full: Vec::new(), rest: RowBlock::like(like), groups: None }
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.full.len() * PACK + self.rest.len()
    }

    /// Number of columns.
    pub(super) fn cols(&self) -> usize {
        self.rest.cols()
    }

    /// Row `i`, from 0.
    pub(super) fn row(&self, i: usize) -> Row<'_> {
        match self.full.get(i / PACK) {
            Some(pack) => pack.rows().row(i % PACK),
            None => self.rest.rows().row(i - self.full.len() * PACK),
        }
    }

    /// The chosen rows.
    pub(super) fn gather(&self, chosen: impl IntoIterator<Item = usize>) -> RowBlock {
        let mut block = RowBlock::like(self.rest.rows());
        chosen.into_iter().for_each(|i| block.push(self.row(i)));
        block
    }

    /// Appends a row.
    pub(super) fn push(&mut self, row: Row) {
        self.rest.push(row);
        if self.rest.len() == PACK {
            self.full.push(Centres::new(self.rest.rows()));
            self.rest = RowBlock::like(self.rest.rows());
            self.groups = None;
        } else if self.rest.len().is_multiple_of(GROUP) {
            self.groups = Some(Centres::new(self.rest.rows()));
        }
    }

    /// k̄: the kernels of `row` with every row so far.
    pub(super) fn kernels(&self, kernel: &Kernel, row: Row, out: &mut Vec<f64>) {
        out.clear();
        out.resize(self.len(), 0.0);
        let (packed, rest) = out.split_at_mut(self.full.len() * PACK);
        if packed.len() * (8 + self.cols()) < PARALLEL {
            packed.chunks_mut(PACK).zip(&self.full).for_each(|(out, pack)| kernel.row(row, pack, out));
        } else {
            packed.par_chunks_mut(PACK).zip(&self.full).for_each(|(out, pack)| kernel.row(row, pack, out));
        }
        let grouped = self.groups.as_ref().map_or(0, Centres::len);
        if let Some(groups) = &self.groups {
            kernel.row(row, groups, &mut rest[..grouped]);
        }
        for (i, out) in rest.iter_mut().enumerate().skip(grouped) {
            *out = kernel.pair(row, self.rest.rows().row(i));
        }
    }

    /// Bytes held.
    pub(super) fn size_bytes(&self) -> u64 {
        let packs = self.full.iter().chain(&self.groups).map(Centres::size_bytes).sum::<usize>();
        (packs + self.rest.size_bytes()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::oracle;
    use super::*;

    #[test]
    fn kernels_with_all_rows_equal_the_pairs() {
        // Wide enough for the packs to go parallel.
        let cols = PARALLEL / PACK / 2;
        let block = oracle::normal_rows(2 * PACK + 3 * GROUP + 7, cols, 1);
        let mut sparse = RowBlock::sparse(cols);
        sparse.extend(block.rows());
        for rows in [block.rows(), sparse.rows()] {
            let mut history = History::new(rows);
            (0..rows.len()).for_each(|i| history.push(rows.row(i)));
            assert_eq!((history.len(), history.cols()), (rows.len(), cols));
            for kernel in oracle::kernels() {
                let mut found = Vec::new();
                history.kernels(&kernel, rows.row(5), &mut found);
                for i in 0..rows.len() {
                    let expected = kernel.pair(rows.row(5), rows.row(i));
                    assert!((found[i] - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{i}");
                }
            }
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut found = Vec::new();
                pool.install(|| history.kernels(&oracle::kernels()[0], rows.row(9), &mut found));
                found
            };
            assert_eq!(on(1), on(3));
            let some = [0, PACK - 1, PACK, 2 * PACK, 2 * PACK + 50];
            assert_eq!(history.gather(some), RowBlock::gather(rows, &some));
        }
    }
}
