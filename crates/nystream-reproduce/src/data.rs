//! Generated rows: clustered, heavy-tailed, of low coherence, of polynomial decay; and streams with targets.

use nystream::Result;
use nystream::random::Generator;
use nystream::rows::{RowBlock, Rows};
use nystream::source::{OpenOptions, RecordBlock, open};

/// Streams of the generator, so that the place of clusters does not depend on how many rows are drawn.
const ROW_STREAM: u64 = 0;
const TASK_STREAM: u64 = 1;

/// One cluster with nine tenths of the rows, and `rare` small ones of sizes 1 : 2 : 3 : …, far apart: centres uniform on
/// [−`reach`, `reach`]^d, normal rows of deviation 0.3 around them.
pub(crate) fn unbalanced_clusters(n: usize, d: usize, rare: usize, reach: f64, seed: u64) -> RowBlock {
    let mut task = Generator::with_stream(seed, TASK_STREAM);
    let centres: Vec<f64> = (0..(rare + 1) * d).map(|_| reach * (2.0 * task.uniform() - 1.0)).collect();
    let shares = (rare * (rare + 1) / 2) as u64;
    let mut rng = Generator::with_stream(seed, ROW_STREAM);
    let mut row = vec![0.0; d];
    let mut rows = RowBlock::dense(d);
    for _ in 0..n {
        let cluster = if rng.bernoulli(0.9) { 0 } else { triangular_root(rng.below(shares)) };
        row.iter_mut().zip(&centres[cluster * d..]).for_each(|(x, c)| *x = c + 0.3 * rng.normal());
        rows.push(nystream::rows::Row::Dense(&row));
    }
    rows
}

/// The k ≥ 1 with k(k−1)/2 ≤ place < k(k+1)/2.
fn triangular_root(place: u64) -> usize {
    let mut k = 1;
    while k * (k + 1) / 2 <= place {
        k += 1;
    }
    k as usize
}

/// Standard normal rows.
pub(crate) fn normal(n: usize, d: usize, seed: u64) -> RowBlock {
    let mut rng = Generator::new(seed);
    filled(n, d, || rng.normal())
}

/// Uniform on [0, 1]^d.
pub(crate) fn uniform(n: usize, d: usize, seed: u64) -> RowBlock {
    let mut rng = Generator::new(seed);
    filled(n, d, || rng.uniform())
}

/// Rows of Student's t distribution with two degrees of freedom in every direction: infinite variance, so that some
/// rows are far from all others.
pub(crate) fn student(n: usize, d: usize, seed: u64) -> RowBlock {
    let mut rng = Generator::new(seed);
    let mut rows = RowBlock::dense(d);
    for _ in 0..n {
        // χ² with two degrees of freedom over two is exponential.
        let scale = (-(1.0 - rng.uniform()).ln()).sqrt().recip();
        let row: Vec<f64> = (0..d).map(|_| scale * rng.normal()).collect();
        rows.push(nystream::rows::Row::Dense(&row));
    }
    rows
}

fn filled(n: usize, d: usize, mut draw: impl FnMut() -> f64) -> RowBlock {
    RowBlock::Dense { data: (0..n * d).map(|_| draw()).collect(), len: n, cols: d }
}

/// Rows with a target each.
pub(crate) struct Labelled {
    pub rows: RowBlock,
    pub targets: Vec<f64>,
}

impl Labelled {
    /// The rows with Σ_j sin(x_j)/√d plus noise of deviation 0.1: smooth, and as lively far out as in the middle.
    pub(crate) fn waves_on(rows: RowBlock, seed: u64) -> Self {
        let mut rng = Generator::with_stream(seed, 2);
        let scale = (rows.cols().max(1) as f64).sqrt().recip();
        let target = |i: usize| match rows.rows().row(i) {
            nystream::rows::Row::Dense(x) => scale * x.iter().map(|x| x.sin()).sum::<f64>() + 0.1 * rng.normal(),
            nystream::rows::Row::Sparse { .. } => f64::NAN,
        };
        let targets = (0..rows.len()).map(target).collect();
        Self { rows, targets }
    }

    /// A generator of the library, its last column the target.
    pub(crate) fn read(location: &str) -> Result<Self> {
        let mut source = open(location, &OpenOptions::default())?;
        let mut block = RecordBlock::default();
        let (mut data, mut targets, mut cols) = (Vec::new(), Vec::new(), 0);
        while source.read(&mut block, 4096)? {
            let cells = block.cells.rows();
            cols = cells.cols() - 1;
            let mut row = vec![0.0; cells.cols()];
            for i in 0..cells.len() {
                cells.row(i).copy_to(&mut row);
                data.extend_from_slice(&row[..cols]);
                targets.push(row[cols]);
            }
        }
        Ok(Self { rows: RowBlock::Dense { data, len: targets.len(), cols }, targets })
    }

    pub(crate) fn part(&self, start: usize, end: usize) -> (Rows<'_>, &[f64]) {
        (self.rows.rows().slice(start, end), &self.targets[start..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_have_their_shares() {
        assert_eq!([0, 1, 2, 3, 5, 6].map(triangular_root), [1, 2, 2, 3, 3, 4]);
        let rows = unbalanced_clusters(2000, 2, 8, 100.0, 1);
        let near = |i: usize, j: usize| match (rows.rows().row(i), rows.rows().row(j)) {
            (nystream::rows::Row::Dense(a), nystream::rows::Row::Dense(b)) => {
                a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() < 25.0
            }
            _ => false,
        };
        // Nine tenths, with a standard deviation of 0.7 %.
        let largest = (0..50).map(|i| (0..2000).filter(|&j| near(i, j)).count()).max().unwrap();
        assert!((1700..1900).contains(&largest), "{largest}");
    }

    #[test]
    fn heavy_tails_reach_far() {
        let far = |rows: RowBlock| (0..rows.len()).filter(|&i| rows.rows().row(i).squared_norm() > 100.0).count();
        assert!(far(student(2000, 2, 1)) > 10 && far(normal(2000, 2, 1)) == 0);
    }

    #[test]
    fn generators_are_read_with_targets() {
        let waves = Labelled::read("synth:waves?n=50&d=2").unwrap();
        assert_eq!((waves.rows.len(), waves.rows.cols(), waves.targets.len()), (50, 2, 50));
        assert_eq!(waves.part(10, 15).1.len(), 5);
    }
}
