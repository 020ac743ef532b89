//! A square matrix that grows by a row and a column, without a copy each time.

use super::state::State;
use crate::error::Result;
use crate::persist::Container;

/// Row-major, with room to grow.
#[derive(Debug, Clone, Default)]
pub(super) struct Square {
    len: usize,
    stride: usize,
    numbers: Vec<f64>,
}

impl Square {
    /// Adds a row and a column of zeros.
    pub fn grow(&mut self) {
        if self.len == self.stride {
            // Never a power of two: rows at such distances crowd the same places of a cache.
            let stride = 2 * self.stride + 8;
            let mut numbers = vec![0.0; stride * stride];
            for (from, to) in self.numbers.chunks_exact(self.stride.max(1)).zip(numbers.chunks_exact_mut(stride)) {
                to[..self.stride].copy_from_slice(from);
            }
            (self.stride, self.numbers) = (stride, numbers);
        }
        self.len += 1;
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.numbers[i * self.stride..i * self.stride + self.len]
    }

    /// Row `i`.
    pub fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.numbers[i * self.stride..i * self.stride + self.len]
    }

    /// Column `j` becomes these numbers.
    pub fn set_column(&mut self, j: usize, numbers: &[f64]) {
        for (row, number) in self.numbers.chunks_exact_mut(self.stride).zip(numbers) {
            row[j] = *number;
        }
    }

    /// All numbers, with the distance from one row to the next.
    pub fn parts(&self) -> (&[f64], usize) {
        (&self.numbers, self.stride)
    }

    pub fn size_bytes(&self) -> usize {
        self.numbers.capacity() * 8
    }

    pub fn put(&self, file: &mut Container, name: &str) -> Result<()> {
        let numbers: Vec<f64> = (0..self.len).flat_map(|i| self.row(i)).copied().collect();
        file.put_numbers(name, &numbers)
    }

    pub fn take(file: &mut Container, name: &str, len: usize) -> Result<Self> {
        let numbers = file.take_numbers(name, len.saturating_mul(len))?;
        let mut square = Self::default();
        (0..len).for_each(|_| square.grow());
        (0..len).for_each(|i| square.row_mut(i).copy_from_slice(&numbers[i * len..(i + 1) * len]));
        Ok(square)
    }
}
