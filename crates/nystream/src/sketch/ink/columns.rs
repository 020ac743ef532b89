//! The stored columns of the kernel matrix: they grow by a number each a row, without ever being copied.
//!
//! A column is a list of pieces of fixed size, so that growing allocates one piece a column every `PIECE` rows, and
//! dropping a column frees it. The order of the columns is that of the atoms.

use rayon::prelude::*;

use crate::linalg::dot;

/// Numbers in a piece: 8 KiB.
const PIECE: usize = 1024;
/// Products of fewer numbers are not worth handing to other threads.
const PARALLEL: usize = 1 << 17;

/// Columns of the same length.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Columns {
    columns: Vec<Vec<Vec<f64>>>,
}

impl Columns {
    /// Number of columns.
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    /// Appends a column.
    pub(super) fn push(&mut self, numbers: impl IntoIterator<Item = f64>) {
        let mut column = Vec::new();
        numbers.into_iter().for_each(|number| append(&mut column, number));
        self.columns.push(column);
    }

    /// Drops the columns that are not kept; the others keep their order.
    pub(super) fn retain(&mut self, kept: &[bool]) {
        let mut kept = kept.iter();
        self.columns.retain(|_| kept.next().copied().unwrap_or(false));
    }

    /// Appends one number to every column.
    pub(super) fn grow(&mut self, numbers: &[f64]) {
        self.columns.iter_mut().zip(numbers).for_each(|(column, &number)| append(column, number));
    }

    /// Cᵀv. Each product is summed in the same order on any number of threads.
    pub(super) fn products(&self, vector: &[f64]) -> Vec<f64> {
        let one = |column: &Vec<Vec<f64>>| column.iter().zip(vector.chunks(PIECE)).map(|(c, v)| dot(c, v)).sum();
        if self.len() * vector.len() < PARALLEL {
            self.columns.iter().map(one).collect()
        } else {
            self.columns.par_iter().map(one).collect()
        }
    }

    /// The numbers of one column.
    pub(super) fn column(&self, index: usize) -> impl Iterator<Item = f64> + '_ {
        self.columns[index].iter().flatten().copied()
    }

    /// Bytes held.
    pub(super) fn size_bytes(&self) -> u64 {
        self.columns.iter().flatten().map(|piece| 8 * piece.capacity() as u64).sum()
    }
}

fn append(column: &mut Vec<Vec<f64>>, number: f64) {
    match column.last_mut() {
        Some(piece) if piece.len() < PIECE => piece.push(number),
        _ => {
            let mut piece = Vec::with_capacity(PIECE);
            piece.push(number);
            column.push(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_grow_and_shrink_in_order_and_multiply_rightly() {
        let mut columns = Columns::default();
        let length = 3 * PIECE + 5;
        let entry = |i: usize, j: usize| ((i * 7 + j * 13) % 11) as f64 - 5.0;
        for j in 0..4 {
            columns.push((0..length - 1).map(|i| entry(i, j)));
        }
        columns.grow(&[entry(length - 1, 0), entry(length - 1, 1), entry(length - 1, 2), entry(length - 1, 3)]);
        columns.retain(&[true, false, true, true]);
        assert_eq!(columns.len(), 3);
        let vector: Vec<f64> = (0..length).map(|i| (i % 3) as f64).collect();
        let products = columns.products(&vector);
        for (place, j) in [0, 2, 3].into_iter().enumerate() {
            assert!(columns.column(place).eq((0..length).map(|i| entry(i, j))));
            // Whole numbers: exact in any order.
            assert_eq!(products[place], (0..length).map(|i| entry(i, j) * vector[i]).sum::<f64>());
        }
        assert_eq!(columns.size_bytes(), 3 * 4 * 8 * PIECE as u64);
    }
}
