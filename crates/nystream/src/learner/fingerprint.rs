//! Tells whether two readings of a source begin alike, however they were cut into blocks.

use sha2::{Digest, Sha256};

use crate::rows::Row;
use crate::source::{RecordBlock, Schema};

/// A running hash of records.
#[derive(Debug, Clone)]
pub(super) struct Fingerprint {
    numbers: Sha256,
    /// Cells that are not numbers, with their places.
    oddities: Sha256,
}

impl Fingerprint {
    pub fn new(schema: &Schema) -> Self {
        let mut numbers = Sha256::new();
        // The width of sparse rows is known only as far as they were read.
        if let Schema::Table { names, .. } = schema {
            numbers.update(format!("{names:?}"));
        }
        Self { numbers, oddities: Sha256::new() }
    }

    pub fn add(&mut self, block: &RecordBlock) {
        let rows = block.cells.rows();
        for i in 0..rows.len() {
            match rows.row(i) {
                Row::Dense(values) => values.iter().for_each(|v| self.numbers.update(v.to_bits().to_le_bytes())),
                Row::Sparse { indices, values } => {
                    self.numbers.update((indices.len() as u64).to_le_bytes());
                    indices.iter().for_each(|j| self.numbers.update(j.to_le_bytes()));
                    values.iter().for_each(|v| self.numbers.update(v.to_bits().to_le_bytes()));
                }
            }
            if let Some(label) = block.labels.get(i) {
                self.numbers.update(label.to_bits().to_le_bytes());
            }
        }
        for oddity in &block.oddities {
            self.oddities.update((block.first_row + oddity.row as u64).to_le_bytes());
            self.oddities.update((oddity.column as u64).to_le_bytes());
            self.oddities.update(block.text(oddity.cell).unwrap_or_default().as_bytes());
            self.oddities.update([0]);
        }
    }

    /// As 64 hexadecimal digits.
    pub fn digits(&self) -> String {
        let mut both = self.numbers.clone();
        both.update(self.oddities.clone().finalize());
        both.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
