//! Kernel matrices and diagonals of rows held in memory, with the checks every batch method needs.

use faer::Mat;

use crate::error::{Error, Result};
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::rows::{Row, Rows};

/// Relative to √(k(x, x) k(z, z)), the accuracy that kernel values are promised to have.
pub(super) const KERNEL_ACCURACY: f64 = 1e-12;

/// Bytes that the n × n matrices of one exact computation may take together.
const EXACT_BYTES: u64 = 4 << 30;

/// The symmetric kernel matrix of `rows`.
pub(super) fn kernel_matrix(kernel: &Kernel, rows: Rows) -> Mat<f64> {
    let n = rows.len();
    let mut matrix = Mat::zeros(n, n);
    kernel.block(rows, &Centres::new(rows), &mut KernelWorkspace::default(), matrix.as_mut());
    // The two triangles may differ in the last bits.
    for j in 0..n {
        for i in 0..j {
            matrix[(i, j)] = matrix[(j, i)];
        }
    }
    matrix
}

/// k(x, x) of every row, after checking that there are rows, that their values are finite, and that
/// so are the kernel values (off the diagonal they are then finite too, by Cauchy and Schwarz).
pub(super) fn checked_diagonal(kernel: &Kernel, rows: Rows) -> Result<Vec<f64>> {
    if rows.is_empty() {
        return Err(input(0, None, "no rows".to_owned(), "at least one row"));
    }
    if !rows.all_finite() {
        return Err(first_bad_value(rows));
    }
    let diagonal: Vec<f64> = (0..rows.len()).map(|i| kernel.diagonal(rows.row(i))).collect();
    match diagonal.iter().position(|v| !v.is_finite()) {
        Some(i) => {
            let found = format!("{} kernel value {}", kernel.name(), diagonal[i]);
            Err(input(i as u64 + 1, None, found, "values small enough for a finite kernel (scale the data)"))
        }
        None => Ok(diagonal),
    }
}

/// The error for data of which the kernel sees nothing (the linear kernel on rows of zeros).
pub(super) fn no_energy() -> Error {
    input(0, None, "a kernel matrix of zeros".to_owned(), "at least one row with a kernel value above 0")
}

/// Refuses more rows than `count` matrices of n × n numbers allow.
pub(super) fn require_exact_fits(what: &'static str, n: usize, count: u64) -> Result<()> {
    let needed_bytes = (n as u64).saturating_mul(n as u64).saturating_mul(8 * count);
    if needed_bytes > EXACT_BYTES {
        let advice = "give fewer rows, or use rpcholesky, two-pass-scores or uniform";
        return Err(Error::TooLarge { what, needed_bytes, allowed_bytes: EXACT_BYTES, advice });
    }
    Ok(())
}

fn first_bad_value(rows: Rows) -> Error {
    for i in 0..rows.len() {
        let (column, value) = match rows.row(i) {
            Row::Dense(values) => match values.iter().position(|v| !v.is_finite()) {
                Some(j) => (j, values[j]),
                None => continue,
            },
            Row::Sparse { indices, values } => match values.iter().position(|v| !v.is_finite()) {
                Some(j) => (indices[j] as usize, values[j]),
                None => continue,
            },
        };
        return input(i as u64 + 1, Some((column + 1).to_string()), value.to_string(), "a finite number");
    }
    Error::Internal("no value is to blame for rows that are not finite")
}

fn input(row: u64, column: Option<String>, found: String, expected: &str) -> Error {
    Error::Input { origin: "rows in memory".to_owned(), row, column, found, expected: expected.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_rows_are_named() {
        let kernel = Kernel::Linear;
        let text = |data: &[f64], len, cols| {
            checked_diagonal(&kernel, Rows::dense(data, len, cols).unwrap()).unwrap_err().to_string()
        };
        assert!(text(&[], 0, 2).contains("no rows"));
        let bad = text(&[1.0, 2.0, 3.0, f64::NAN], 2, 2);
        assert!(bad.contains("row 2") && bad.contains("'2'") && bad.contains("NaN"), "{bad}");
        assert!(text(&[1.0, 1e200], 2, 1).contains("row 2"));
    }

    #[test]
    fn the_matrix_equals_the_pairs() {
        let data: Vec<f64> = (0..21).map(|i| f64::from(i * i % 7)).collect();
        let rows = Rows::dense(&data, 7, 3).unwrap();
        let kernel = Kernel::laplacian(2.0).unwrap();
        let matrix = kernel_matrix(&kernel, rows);
        for (i, j) in (0..7).flat_map(|i| (0..7).map(move |j| (i, j))) {
            assert!((matrix[(i, j)] - kernel.pair(rows.row(i), rows.row(j))).abs() < 1e-12);
            assert_eq!(matrix[(i, j)], matrix[(j, i)]);
        }
    }

    #[test]
    fn too_many_rows_for_exact_work_are_refused() {
        assert!(require_exact_fits("test", 10_000, 3).is_ok());
        assert!(matches!(require_exact_fits("test", 100_000, 3), Err(Error::TooLarge { .. })));
    }
}
