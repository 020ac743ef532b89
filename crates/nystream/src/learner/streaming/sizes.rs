//! How large numbers may be. Targets, weights and kernels are multiplied and summed; if that overflows, one row spoils all that
//! was learnt before it, so such rows are refused.

use crate::kernel::Kernel;
use crate::rows::{Row, Rows};

/// The largest code, weight, feature and k(x, x): products of two, and of a third within rounding errors, stay finite however
/// many are summed.
const LARGEST: f64 = 1e100;

/// What a code must be.
pub(in crate::learner) const CODE: &str = "a number that can be squared and summed (at most 1e100 from the mean)";
/// What a weight must be.
const WEIGHT: &str = "a finite number above 0 that can be multiplied and summed (from 1e-100 to 1e100)";
/// What a number of a row must be for kernels of a distance.
const NUMBER: &str = "a number that can be squared and summed (at most 1e100)";
/// What it must be for kernels of an inner product.
const FACTOR: &str = "a number whose kernel can be squared and summed (k(x, x) at most 1e100)";

/// A number that cannot be learnt, and what was expected in its place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::learner) struct Unfit {
    pub row: usize,
    pub what: What,
    pub found: f64,
    pub expected: &'static str,
}

/// Which number of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::learner) enum What {
    /// The code of this output.
    Code(usize),
    Weight,
    /// The largest feature, which is this one.
    Feature(usize),
}

/// The first number that is too large, if one is.
pub(super) fn find_unfit(
    kernel: &Kernel,
    rows: Rows,
    codes: &[f64],
    outputs: usize,
    weights: Option<&[f64]>,
) -> Option<Unfit> {
    if let Some(i) = codes.iter().position(|code| !is_small(*code)) {
        return Some(Unfit { row: i / outputs, what: What::Code(i % outputs), found: codes[i], expected: CODE });
    }
    let weights = weights.unwrap_or_default();
    if let Some(row) = weights.iter().position(|weight| !(1.0 / LARGEST..=LARGEST).contains(weight)) {
        return Some(Unfit { row, what: What::Weight, found: weights[row], expected: WEIGHT });
    }
    let of_distance = kernel.bandwidth().is_some();
    let fits = |row: &Row| {
        if of_distance { numbers(row).iter().all(|v| is_small(*v)) } else { is_small(kernel.diagonal(*row)) }
    };
    let (row, large) = (0..rows.len()).map(|i| (i, rows.row(i))).find(|(_, row)| !fits(row))?;
    let (values, expected) = (numbers(&large), if of_distance { NUMBER } else { FACTOR });
    let place = (0..values.len()).max_by(|&a, &b| values[a].abs().total_cmp(&values[b].abs())).unwrap_or(0);
    let feature = match large {
        Row::Dense(_) => place,
        Row::Sparse { indices, .. } => indices.get(place).map_or(0, |j| *j as usize),
    };
    let found = values.get(place).copied().unwrap_or(0.0);
    Some(Unfit { row, what: What::Feature(feature), found, expected })
}

/// Not too large, and a number.
pub(in crate::learner) fn is_small(value: f64) -> bool {
    value.abs() <= LARGEST
}

fn numbers<'a>(row: &Row<'a>) -> &'a [f64] {
    match *row {
        Row::Dense(values) | Row::Sparse { values, .. } => values,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_that_is_too_large_is_found() {
        let (data, codes) = ([1.0, 2.0, -1e60, 3.0], [1.0, 2.0]);
        let rows = Rows::dense(&data, 2, 2).unwrap();
        let gaussian = Kernel::gaussian(1.0).unwrap();
        let find = |kernel: &Kernel, codes: &[f64], weights: Option<&[f64]>| {
            find_unfit(kernel, rows, codes, 1, weights).map(|unfit| (unfit.row, unfit.what, unfit.found))
        };
        assert_eq!(find(&gaussian, &codes, None), None);
        assert_eq!(find(&gaussian, &[1.0, 1e101], None), Some((1, What::Code(0), 1e101)));
        assert_eq!(find(&gaussian, &codes, Some(&[1e-101, 1.0])), Some((0, What::Weight, 1e-101)));
        assert_eq!(find(&gaussian, &codes, Some(&[1.0, 1e100])), None);
        // Squared, 1e60 is beyond 1e100.
        assert_eq!(find(&Kernel::Linear, &codes, None), Some((1, What::Feature(0), -1e60)));
        let sparse = crate::rows::SparseRows::new(&[0, 2], &[3, 7], &[1.0, 1e101], 9).unwrap();
        let unfit = find_unfit(&gaussian, Rows::Sparse(sparse), &[0.0], 1, None).unwrap();
        assert_eq!((unfit.row, unfit.what), (0, What::Feature(7)));
    }
}
