//! A uniform sample of a stream of unknown length (Vitter's Algorithm R, 1985), seeded.
//!
//! Rows are taken one by one, so the sample does not depend on how the stream was cut into blocks.

use crate::preprocess::CodedBlock;
use crate::random::Generator;
use crate::rows::{Row, RowBlock};

/// Collects a sample of coded rows with their targets and row numbers.
#[derive(Debug)]
pub struct Reservoir {
    capacity: usize,
    rng: Generator,
    seen: u64,
    slots: Vec<Slot>,
    sparse: bool,
    width: usize,
}

#[derive(Debug, Default)]
struct Slot {
    row_number: u64,
    indices: Vec<u32>,
    values: Vec<f64>,
    targets: Vec<f64>,
    weight: Option<f64>,
}

impl Reservoir {
    /// An empty sample that will hold up to `capacity` rows.
    pub fn new(capacity: usize, rng: Generator) -> Self {
        Self { capacity, rng, seen: 0, slots: Vec::new(), sparse: false, width: 0 }
    }

    /// Number of rows offered so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Offers every row of a block.
    pub fn offer(&mut self, block: &CodedBlock) {
        let rows = block.rows.rows();
        self.sparse = block.rows.is_sparse();
        self.width = self.width.max(rows.cols());
        let targets = block.targets.len().checked_div(rows.len()).unwrap_or(0);
        for i in 0..rows.len() {
            let slot = if self.slots.len() < self.capacity {
                self.slots.push(Slot::default());
                self.slots.last_mut()
            } else {
                let place = self.rng.below(self.seen + 1) as usize;
                self.slots.get_mut(place)
            };
            if let Some(slot) = slot {
                slot.fill(self.seen, rows.row(i), &block.targets[i * targets..(i + 1) * targets]);
                slot.weight = block.weights.get(i).copied();
            }
            self.seen += 1;
        }
    }

    /// The sample in random order, with the rows' numbers in the stream (from 0, left-out rows not counted).
    pub fn finish(mut self) -> (CodedBlock, Vec<u64>) {
        self.rng.shuffle(&mut self.slots);
        let rows = if self.sparse { RowBlock::sparse(self.width) } else { RowBlock::dense(self.width) };
        let mut block = CodedBlock { rows, ..CodedBlock::default() };
        let mut numbers = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            numbers.push(slot.row_number);
            block.targets.extend_from_slice(&slot.targets);
            block.weights.extend(slot.weight);
            block.rows.push(if self.sparse {
                Row::Sparse { indices: &slot.indices, values: &slot.values }
            } else {
                Row::Dense(&slot.values)
            });
        }
        (block, numbers)
    }
}

impl Slot {
    fn fill(&mut self, row_number: u64, row: Row, targets: &[f64]) {
        self.row_number = row_number;
        self.indices.clear();
        self.values.clear();
        match row {
            Row::Dense(values) => self.values.extend_from_slice(values),
            Row::Sparse { indices, values } => {
                self.indices.extend_from_slice(indices);
                self.values.extend_from_slice(values);
            }
        }
        self.targets.clear();
        self.targets.extend_from_slice(targets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(from: usize, to: usize) -> CodedBlock {
        let mut rows = RowBlock::dense(1);
        (from..to).for_each(|i| rows.push(Row::Dense(&[i as f64])));
        CodedBlock { rows, targets: (from..to).map(|i| i as f64 * 10.0).collect(), ..CodedBlock::default() }
    }

    #[test]
    fn sample_does_not_depend_on_the_blocks_and_keeps_rows_with_their_targets() {
        let mut whole = Reservoir::new(20, Generator::new(1));
        whole.offer(&block(0, 500));
        let mut parts = Reservoir::new(20, Generator::new(1));
        for start in (0..500).step_by(50) {
            parts.offer(&block(start, start + 50));
        }
        let ((a, numbers), (b, _)) = (whole.finish(), parts.finish());
        assert_eq!(a, b);
        for (i, &number) in numbers.iter().enumerate() {
            assert_eq!(a.targets[i], number as f64 * 10.0);
        }
    }

    #[test]
    fn every_row_is_equally_likely() {
        let mut hits = [0u32; 40];
        for seed in 0..4000 {
            let mut sample = Reservoir::new(10, Generator::new(seed));
            sample.offer(&block(0, 40));
            sample.finish().1.iter().for_each(|&i| hits[i as usize] += 1);
        }
        // Binomial(4000, 1/4): standard deviation 27; 5 of them.
        assert!(hits.iter().all(|&h| (h as f64 - 1000.0).abs() < 137.0), "{hits:?}");
    }
}
