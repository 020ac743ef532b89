//! Scaling by the first rows of a stream, for rows in memory.

use super::preprocessor::{ColumnKind, Inputs, Preprocessor};
use super::statistics::{Moments, SparseMoments};
use crate::rows::{Row, RowBlock};

/// Standardises rows by means and deviations of the first `count` of them, as a stream that has seen no more does: dense
/// columns get mean 0 and deviation 1 there, sparse ones are divided by their deviation, zeros included. Columns that are
/// constant there are not divided, and those that are not numbers (`numbers`, one a column; none: all are) are left as
/// they are.
pub fn standardise_by_first(rows: &mut RowBlock, count: usize, numbers: Option<&[bool]>) {
    let count = count.min(rows.len());
    let is_number = |j: usize| numbers.is_none_or(|numbers| numbers.get(j).copied().unwrap_or(true));
    let divisor = |mean: f64, variance: f64| {
        let deviation = variance.sqrt();
        let constant = deviation < f64::MIN_POSITIVE || deviation <= 1e-12 * mean.abs();
        if constant || !deviation.is_finite() { 1.0 } else { deviation }
    };
    match rows {
        RowBlock::Dense { data, cols, .. } if *cols > 0 => {
            let mut moments = Moments::new(*cols);
            data.chunks_exact(*cols).take(count).for_each(|row| moments.push(row));
            let scale = |j: usize| match is_number(j) {
                true => (moments.mean(j), divisor(moments.mean(j), moments.variance(j))),
                false => (0.0, 1.0),
            };
            let scales: Vec<(f64, f64)> = (0..*cols).map(scale).collect();
            for row in data.chunks_exact_mut(*cols) {
                row.iter_mut().zip(&scales).for_each(|(value, (shift, scale))| *value = (*value - shift) / scale);
            }
        }
        RowBlock::Dense { .. } => {}
        RowBlock::Sparse { .. } => {
            let mut moments = SparseMoments::default();
            for i in 0..count {
                if let Row::Sparse { indices, values } = rows.rows().row(i) {
                    indices.iter().zip(values).for_each(|(&j, &value)| moments.push(j as usize, value));
                }
            }
            let scale = |j: usize| {
                let (mean, variance) = moments.mean_and_variance(j, count as u64);
                if is_number(j) { divisor(mean, variance) } else { 1.0 }
            };
            let scales: Vec<f64> = (0..rows.cols()).map(scale).collect();
            if let RowBlock::Sparse { indices, values, .. } = rows {
                values.iter_mut().zip(indices).for_each(|(value, j)| *value /= scales[*j as usize]);
            }
        }
    }
}

impl Preprocessor {
    /// Which features are numbers, not parts of a category; none if all are.
    pub fn number_features(&self) -> Option<Vec<bool>> {
        match &self.parts.inputs {
            Inputs::Sparse { .. } => None,
            Inputs::Table { kinds, .. } => {
                let number = |kind: &ColumnKind| matches!(kind, ColumnKind::Number);
                Some(kinds.iter().flat_map(|kind| std::iter::repeat_n(number(kind), kind.width())).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_columns_are_standard_on_the_first_rows() {
        let mut rows = RowBlock::dense(3);
        for row in [[1.0, 5.0, 1.0], [3.0, 5.0, 0.0], [7.0, 6.0, 1.0]] {
            rows.push(Row::Dense(&row));
        }
        standardise_by_first(&mut rows, 2, Some(&[true, true, false]));
        // Mean 2, deviation 1; a constant is shifted alone; the third column is no number.
        let RowBlock::Dense { data, .. } = rows else { panic!("dense rows became sparse") };
        assert_eq!(data, [-1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 5.0, 1.0, 1.0]);
    }

    #[test]
    fn sparse_columns_are_divided_by_deviations_with_zeros() {
        let mut rows = RowBlock::sparse(3);
        for (indices, values) in [(vec![0], vec![4.0]), (vec![1], vec![1.0]), (vec![0, 2], vec![6.0, 9.0])] {
            rows.push(Row::Sparse { indices: &indices, values: &values });
        }
        standardise_by_first(&mut rows, 2, None);
        // Column 0 is 4, 0: deviation 2. Column 1 is 0, 1: 0.5. Column 2 has not come yet.
        let RowBlock::Sparse { values, .. } = rows else { panic!("sparse rows became dense") };
        assert_eq!(values, [2.0, 2.0, 3.0, 9.0]);
    }
}
