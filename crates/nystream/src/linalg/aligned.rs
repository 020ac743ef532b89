//! Scratch numbers that begin where a line of the cache does: a register across the border of two lines is read and written
//! twice. Where memory begins otherwise is chance; it cost a projection onto 200 rows 4 % of its time.

use std::ops::{Deref, DerefMut};

/// Numbers in a cache line.
const LINE: usize = 8;

/// Parts of `N` numbers.
#[derive(Debug, Default)]
pub(super) struct Aligned<const N: usize> {
    memory: Vec<f64>,
    start: usize,
    parts: usize,
}

impl<const N: usize> Aligned<N> {
    /// So many parts of zeros.
    pub(super) fn zeros(parts: usize) -> Self {
        let memory = vec![0.0; parts * N + LINE];
        // Where that cannot be told it is not aligned, and right all the same.
        let start = memory.as_ptr().align_offset(LINE * size_of::<f64>()).min(LINE);
        Self { memory, start, parts }
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.memory.capacity() * size_of::<f64>()
    }
}

impl<const N: usize> Clone for Aligned<N> {
    /// In memory of its own, which begins elsewhere.
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.parts);
        copy.copy_from_slice(self);
        copy
    }
}

impl<const N: usize> Deref for Aligned<N> {
    type Target = [[f64; N]];

    fn deref(&self) -> &[[f64; N]] {
        self.memory[self.start..self.start + self.parts * N].as_chunks().0
    }
}

impl<const N: usize> DerefMut for Aligned<N> {
    fn deref_mut(&mut self) -> &mut [[f64; N]] {
        self.memory[self.start..self.start + self.parts * N].as_chunks_mut().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_many_as_asked_for_and_copies_equal() {
        assert!(Aligned::<4>::default().is_empty() && Aligned::<4>::zeros(0).is_empty());
        for parts in 1..20 {
            let mut numbers = Aligned::<4>::zeros(parts);
            assert!(numbers.len() == parts && numbers.as_flattened().iter().all(|number| *number == 0.0));
            numbers.as_flattened_mut().iter_mut().enumerate().for_each(|(i, number)| *number = i as f64);
            let copy = numbers.clone();
            assert_eq!(*copy, *numbers);
            assert_eq!(copy.as_ptr() as usize % 64, 0);
        }
    }
}
