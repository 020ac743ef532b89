//! What learners are timed on: real sets of `NYSTREAM_DATA`, shuffled by a seed, sparse or dense.

use std::path::{Path, PathBuf};

use nystream::fit::{Bandwidth, FitOptions, Silent, TargetCodes, first_pass};
use nystream::kernel::Kernel;
use nystream::learner::Shuffled;
use nystream::random::Generator;
use nystream::rows::{Row, RowBlock, Rows};
use nystream::source::{OpenOptions, open};

use crate::Outcome;

/// Rows with targets ±1, in a random order, and a kernel for them.
pub struct Data {
    pub rows: RowBlock,
    pub targets: Vec<f64>,
    pub kernel: Kernel,
}

impl Data {
    /// The file of a set, if `NYSTREAM_DATA` names a folder that has it.
    pub fn find(set: &str) -> Option<PathBuf> {
        let folder = PathBuf::from(std::env::var_os("NYSTREAM_DATA")?);
        [".libsvm.gz", ".libsvm"].map(|ending| folder.join(format!("{set}{ending}"))).into_iter().find(|f| f.exists())
    }

    /// The first `most` rows in the order of a seed. Columns are divided by their largest absolute values.
    pub fn read(path: &Path, dense: bool, seed: u64, most: usize, bandwidth: Bandwidth) -> Outcome<Self> {
        let mut source = open(&path.to_string_lossy(), &OpenOptions::default())?;
        let mut options = FitOptions { sample: Some(usize::MAX), ..FitOptions::default() };
        options.table.scale = "minmax".parse()?;
        let first = first_pass(source.as_mut(), &options, &mut Silent)?;
        let codes = TargetCodes::of(&first.preprocessor);
        let mut coded = faer::Mat::new();
        codes.encode(&first.sample.targets, &mut coded);
        if coded.ncols() != 1 || first.preprocessor.labels().len() != 2 {
            return Err(format!("{}: not two classes", path.display()).into());
        }
        let mut order: Vec<usize> = (0..first.sample.len()).collect();
        order.sort_by_key(|&i| first.sample_rows[i]);
        Generator::new(seed).shuffle(&mut order);
        order.truncate(most);
        let all = first.sample.rows.rows();
        let mut rows = if dense { RowBlock::dense(all.cols()) } else { RowBlock::like(all) };
        order.iter().for_each(|&i| rows.push(all.row(i)));
        let targets = order.iter().map(|&i| coded[(i, 0)]).collect();
        let kernel = Shuffled::new(first).kernel(options.kernel, bandwidth)?;
        Ok(Self { rows, targets, kernel })
    }

    pub fn rows(&self) -> Rows<'_> {
        self.rows.rows()
    }

    /// Non-zero values of a sparse row, all values of a dense one, on the average.
    pub fn values_a_row(&self) -> f64 {
        let count = |row| match row {
            Row::Dense(values) | Row::Sparse { values, .. } => values.len(),
        };
        (0..self.rows.len()).map(|i| count(self.rows().row(i))).sum::<usize>() as f64 / self.rows.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_targets_in_any_order_dense_or_sparse() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.libsvm");
        // The sign of the first column is the class.
        let line = |i: i32| if i % 3 == 0 { format!("+1 1:{i} 4:2\n") } else { format!("-1 1:-{i} 2:1\n") };
        std::fs::write(&path, (1..100).map(line).collect::<String>()).unwrap();
        for dense in [false, true] {
            let data = Data::read(&path, dense, 1, 50, Bandwidth::Alignment).unwrap();
            assert_eq!((data.rows.len(), data.targets.len(), data.rows.is_sparse()), (50, 50, !dense));
            assert_eq!(data.values_a_row(), if dense { data.rows.cols() as f64 } else { 2.0 });
            let mut row = vec![0.0; data.rows.cols()];
            let signs: Vec<f64> = (0..50)
                .map(|i| {
                    data.rows().row(i).copy_to(&mut row);
                    assert!(row.iter().all(|value| value.abs() <= 1.0));
                    row[0].signum()
                })
                .collect();
            // Which class is called 1 is up to the file.
            assert!(signs.iter().zip(&data.targets).all(|(s, t)| s * t == signs[0] * data.targets[0]));
            assert!(signs.contains(&1.0) && signs.contains(&-1.0));
        }
    }
}
