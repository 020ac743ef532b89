//! Running mean, variance and range of columns, one row at a time.
//!
//! Welford, "Note on a method for calculating corrected sums of squares and products", Technometrics
//! 4 (1962). Rows are taken one by one, never by block, so the result does not depend on how the stream
//! was cut; the loop over the columns of a row vectorises.
//! Departures: sparse columns run the recursion over stored entries only and add the zeros at the end
//! by the pairwise formula of Chan, Golub and LeVeque (1979).

/// Statistics of dense columns. NaN stands for a missing cell.
#[derive(Debug, Clone)]
pub(super) struct Moments {
    rows: u64,
    mean: Vec<f64>,
    squares: Vec<f64>,
    min: Vec<f64>,
    max: Vec<f64>,
    missing: Vec<u64>,
    any_missing: bool,
}

impl Moments {
    pub fn new(cols: usize) -> Self {
        Self {
            rows: 0,
            mean: vec![0.0; cols],
            squares: vec![0.0; cols],
            min: vec![f64::INFINITY; cols],
            max: vec![f64::NEG_INFINITY; cols],
            missing: vec![0; cols],
            any_missing: false,
        }
    }

    /// Takes a row of finite numbers.
    pub fn push(&mut self, row: &[f64]) {
        if self.any_missing {
            return self.push_with_missing(row);
        }
        self.rows += 1;
        let weight = 1.0 / self.rows as f64;
        let cols = row.len();
        let (mean, squares) = (&mut self.mean[..cols], &mut self.squares[..cols]);
        let (min, max) = (&mut self.min[..cols], &mut self.max[..cols]);
        for j in 0..cols {
            let x = row[j];
            let delta = x - mean[j];
            mean[j] += delta * weight;
            squares[j] += delta * (x - mean[j]);
            min[j] = if x < min[j] { x } else { min[j] };
            max[j] = if x > max[j] { x } else { max[j] };
        }
    }

    /// Takes a row that may have missing cells. Bit-equal to [`push`](Self::push) if it has none.
    pub fn push_with_missing(&mut self, row: &[f64]) {
        self.rows += 1;
        for (j, &x) in row.iter().enumerate() {
            if x.is_nan() {
                self.missing[j] += 1;
                self.any_missing = true;
                continue;
            }
            let weight = 1.0 / self.count(j) as f64;
            let delta = x - self.mean[j];
            self.mean[j] += delta * weight;
            self.squares[j] += delta * (x - self.mean[j]);
            self.min[j] = self.min[j].min(x);
            self.max[j] = self.max[j].max(x);
        }
    }

    /// Cells of column `j` that are not missing.
    pub fn count(&self, j: usize) -> u64 {
        self.rows - self.missing[j]
    }
    pub fn mean(&self, j: usize) -> f64 {
        self.mean[j]
    }
    /// Population variance; 0 without rows.
    pub fn variance(&self, j: usize) -> f64 {
        self.squares[j] / self.count(j).max(1) as f64
    }
    pub fn min(&self, j: usize) -> f64 {
        self.min[j]
    }
    pub fn max(&self, j: usize) -> f64 {
        self.max[j]
    }

    /// Whether the column's values agree to within rounding, or are too close for their variance to be a number.
    ///
    /// The test is on the range, which is exact, with a few units in the last place for values computed in
    /// different ways. A test on the deviation would call fine time stamps constant.
    pub fn is_constant(&self, j: usize) -> bool {
        let size = self.min[j].abs().max(self.max[j].abs());
        self.max[j] - self.min[j] <= 4.0 * f64::EPSILON * size || self.variance(j).sqrt() < f64::MIN_POSITIVE
    }
}

/// Statistics of one sparse column over its stored entries.
#[derive(Debug, Clone, Copy, Default)]
struct Entries {
    count: u64,
    missing: u64,
    mean: f64,
    squares: f64,
    max_abs: f64,
}

/// Statistics of sparse columns, implicit zeros included. Columns appear as they are met.
#[derive(Debug, Clone, Default)]
pub(super) struct SparseMoments {
    columns: Vec<Entries>,
}

impl SparseMoments {
    /// Takes an entry of column `j`; NaN if missing.
    pub fn push(&mut self, j: usize, x: f64) {
        if j >= self.columns.len() {
            self.columns.resize(j + 1, Entries::default());
        }
        let entries = &mut self.columns[j];
        if x.is_nan() {
            entries.missing += 1;
            return;
        }
        entries.count += 1;
        let delta = x - entries.mean;
        entries.mean += delta / entries.count as f64;
        entries.squares += delta * (x - entries.mean);
        entries.max_abs = entries.max_abs.max(x.abs());
    }

    fn column(&self, j: usize) -> Entries {
        self.columns.get(j).copied().unwrap_or_default()
    }

    /// Cells of column `j`, zeros included, missing ones not, after `rows` rows.
    pub fn cells(&self, j: usize, rows: u64) -> u64 {
        rows - self.column(j).missing
    }

    /// Mean and population variance of column `j` over `rows` rows.
    pub fn mean_and_variance(&self, j: usize, rows: u64) -> (f64, f64) {
        let entries = self.column(j);
        let (all, stored) = (self.cells(j, rows).max(1) as f64, entries.count as f64);
        let zeros = all - stored;
        let variance = (entries.squares + entries.mean * entries.mean * (stored * zeros / all)) / all;
        (entries.mean * (stored / all), variance)
    }
    pub fn max_abs(&self, j: usize) -> f64 {
        self.column(j).max_abs
    }
    /// Whether column `j` has entries.
    pub fn occurs(&self, j: usize) -> bool {
        self.column(j).count > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn two_pass(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n)
    }

    fn close(found: f64, expected: f64, size: f64) -> bool {
        (found - expected).abs() <= 1e-12 * size.max(expected.abs())
    }

    proptest! {
        #[test]
        fn dense_equals_two_passes(values in prop::collection::vec(-1e3..1e3f64, 1..300), offset in -1e3..1e3f64) {
            let column: Vec<f64> = values.iter().map(|v| v + offset).collect();
            let mut moments = Moments::new(2);
            for &v in &column {
                moments.push(&[v, -v]);
            }
            let (mean, variance) = two_pass(&column);
            prop_assert!(close(moments.mean(0), mean, 1e3));
            prop_assert!(close(moments.variance(0), variance, 1e6));
            prop_assert_eq!(moments.variance(1), moments.variance(0));
            prop_assert_eq!(moments.min(0), column.iter().copied().fold(f64::INFINITY, f64::min));
            prop_assert_eq!(moments.max(1), -moments.min(0));
        }

        #[test]
        fn sparse_equals_two_passes(values in prop::collection::vec(prop_oneof![Just(0.0), -1e3..1e3f64], 1..300)) {
            let mut moments = SparseMoments::default();
            for &v in values.iter().filter(|v| **v != 0.0) {
                moments.push(3, v);
            }
            let rows = values.len() as u64;
            let (mean, variance) = two_pass(&values);
            let found = moments.mean_and_variance(3, rows);
            prop_assert!(close(found.0, mean, 1e3));
            prop_assert!(close(found.1, variance, 1e6));
            prop_assert_eq!(moments.mean_and_variance(1, rows), (0.0, 0.0));
        }

        #[test]
        fn missing_cells_are_left_out(
            cells in prop::collection::vec((any::<bool>(), -1e3..1e3f64), 1..100)
        ) {
            let (mut with, mut without) = (Moments::new(2), Moments::new(1));
            for &(missing, v) in &cells {
                with.push_with_missing(&[if missing { f64::NAN } else { v }, v]);
                if !missing {
                    without.push(&[v]);
                }
            }
            prop_assert_eq!(with.count(0), without.count(0));
            prop_assert_eq!(with.mean(0).to_bits(), without.mean(0).to_bits());
            prop_assert_eq!(with.variance(0).to_bits(), without.variance(0).to_bits());
            prop_assert_eq!(with.count(1), cells.len() as u64);
        }
    }

    #[test]
    fn large_offsets_do_not_spoil_the_variance() {
        let mut moments = Moments::new(1);
        for i in 0..10_000 {
            moments.push(&[1e9 + f64::from(i % 2)]);
        }
        assert!((moments.variance(0) - 0.25).abs() < 1e-7);
    }

    #[test]
    fn constant_means_equal_up_to_rounding() {
        let columns =
            [[0.1 + 0.2, 0.3, 0.3], [7.0, 7.0, 7.0], [0.0, -0.0, 0.0], [0.0, 1e-170, 0.0], [1e12, 1e12 + 0.5, 1e12]];
        let mut moments = Moments::new(5);
        for i in 0..3 {
            moments.push(&columns.map(|column| column[i]));
        }
        assert_eq!([0, 1, 2, 3, 4].map(|j| moments.is_constant(j)), [true, true, true, true, false]);
    }
}
