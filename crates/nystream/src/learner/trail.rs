//! A running fingerprint of every record, cheap enough to be taken of each: a few nanoseconds a number.
//!
//! It tells apart files that differ by accident; it is no defence against those made to look alike. How records are cut into
//! blocks does not matter: cells that are not numbers are counted apart, with their places.

use crate::rows::Row;
use crate::source::RecordBlock;

/// 2⁶⁴ divided by the golden ratio: its bits look random.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// What was seen so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trail {
    numbers: u64,
    /// Cells that are not numbers.
    oddities: u64,
}

impl Default for Trail {
    fn default() -> Self {
        Self { numbers: FACTOR, oddities: FACTOR }
    }
}

impl Trail {
    pub fn add(&mut self, block: &RecordBlock) {
        let rows = block.cells.rows();
        let mut state = self.numbers;
        for i in 0..rows.len() {
            match rows.row(i) {
                Row::Dense(values) => state = values.iter().fold(state, |state, v| mixed(state, v.to_bits())),
                Row::Sparse { indices, values } => {
                    state = mixed(state, indices.len() as u64);
                    for (j, v) in indices.iter().zip(values) {
                        state = mixed(mixed(state, u64::from(*j)), v.to_bits());
                    }
                }
            }
            if let Some(label) = block.labels.get(i) {
                state = mixed(state, label.to_bits());
            }
        }
        self.numbers = state;
        for oddity in &block.oddities {
            let place = [block.first_row + oddity.row as u64, oddity.column as u64];
            let state = place.into_iter().fold(self.oddities, mixed);
            let text = block.text(oddity.cell);
            let length = text.map_or(u64::MAX, |text| text.len() as u64);
            let bytes = text.unwrap_or_default().bytes().map(u64::from);
            self.oddities = bytes.fold(mixed(state, length), mixed);
        }
    }

    /// As 32 hexadecimal digits.
    pub fn digits(&self) -> String {
        format!("{:016x}{:016x}", self.numbers, self.oddities)
    }

    /// What [`digits`](Self::digits) wrote; nothing if these are no such digits.
    pub fn from_digits(digits: &str) -> Option<Self> {
        let half = |part: Option<&str>| u64::from_str_radix(part?, 16).ok();
        let right = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (numbers, oddities) = (half(digits.get(..16)), half(digits.get(16..)));
        if right { Some(Self { numbers: numbers?, oddities: oddities? }) } else { None }
    }
}

/// The next state: both halves of a product, so that every bit reaches every other.
fn mixed(state: u64, bits: u64) -> u64 {
    let product = u128::from(state ^ bits) * u128::from(FACTOR);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{OpenOptions, open_reader};

    fn trail(name: &str, text: &str, rows: usize) -> Trail {
        let reader = Box::new(std::io::Cursor::new(text.as_bytes().to_vec()));
        let mut source = open_reader(name, reader, &OpenOptions::default()).unwrap();
        let (mut trail, mut block) = (Trail::default(), RecordBlock::default());
        while source.read(&mut block, rows).unwrap() {
            trail.add(&block);
        }
        trail
    }

    #[test]
    fn blocks_do_not_matter_and_every_cell_does() {
        let text = "a,b,y\n1,red,2\n3,,4\n5,blue,6\n";
        let whole = trail("t.csv", text, 100);
        assert_eq!(trail("t.csv", text, 1), whole);
        assert_eq!(Trail::from_digits(&whole.digits()), Some(whole));
        for other in [
            "a,b,y\n1,red,2\n3,,4\n5,blue,7\n",
            "a,b,y\n1,red,2\n3,,4\n5,blau,6\n",
            "a,b,y\n1,red,2\n3,x,4\n5,blue,6\n",
            "a,b,y\n3,red,2\n1,,4\n5,blue,6\n",
            "a,b,y\n1,red,2\n5,blue,6\n3,,4\n",
            "a,b,y\n1,red,2\n3,,4\n",
        ] {
            assert_ne!(trail("t.csv", other, 100), whole, "{other}");
        }
        let sparse = "1 1:2 3:4\n0 2:5\n";
        let whole = trail("t.libsvm", sparse, 100);
        assert_eq!(trail("t.libsvm", sparse, 1), whole);
        for other in ["1 1:2 3:4\n0 3:5\n", "1 1:2 3:4\n1 2:5\n", "1 1:2\n0 2:5 3:4\n"] {
            assert_ne!(trail("t.libsvm", other, 100), whole, "{other}");
        }
        for wrong in ["", "12", "x0000000000000000000000000000000", "+000000000000000+000000000000000"] {
            assert_eq!(Trail::from_digits(wrong), None);
        }
    }
}
