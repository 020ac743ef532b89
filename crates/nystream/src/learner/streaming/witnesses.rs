//! A few rows of all that came, evenly spaced: what the old atoms left out of them tells what sums lose when atoms change.
//!
//! Every so many rows one is kept; when there are too many, every second goes, and from then on rows come half as often. No
//! random numbers: the same rows whatever the blocks.

use serde::{Deserialize, Serialize};

use crate::rows::{RowBlock, Rows};

/// Most rows kept.
const MOST: usize = 512;

/// Rows kept, and how they were chosen.
#[derive(Debug, Default, Clone)]
pub(super) struct Witnesses {
    rows: Option<RowBlock>,
    header: Header,
}

/// What is known of the rows besides their values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    /// Rows offered so far.
    offered: u64,
    /// One in so many of them was kept.
    spacing: u64,
}

impl Default for Header {
    fn default() -> Self {
        Self { offered: 0, spacing: 1 }
    }
}

impl Witnesses {
    /// As they were saved: none if such rows cannot have been kept.
    pub fn from_parts(rows: Option<RowBlock>, header: Header) -> Option<Self> {
        let count = rows.as_ref().map_or(0, RowBlock::len) as u64;
        let sound = header.spacing.is_power_of_two() && count == header.offered.div_ceil(header.spacing);
        (sound && count <= MOST as u64).then_some(Self { rows, header })
    }

    pub fn header(&self) -> Header {
        self.header
    }

    /// How many rows that were offered each one kept stands for.
    pub fn spacing(&self) -> f64 {
        self.header.spacing as f64
    }

    /// The rows, the oldest first; none before the first.
    pub fn rows(&self) -> Option<Rows<'_>> {
        self.rows.as_ref().filter(|rows| !rows.is_empty()).map(RowBlock::rows)
    }

    /// Offers the next rows of the stream.
    pub fn offer(&mut self, rows: Rows) {
        for i in 0..rows.len() {
            if self.header.offered.is_multiple_of(self.header.spacing) {
                self.rows.get_or_insert_with(|| RowBlock::like(rows)).push(rows.row(i));
                self.thin();
            }
            self.header.offered += 1;
        }
    }

    /// Makes room where there are too many.
    fn thin(&mut self) {
        while self.rows.as_ref().is_some_and(|rows| rows.len() > MOST) {
            self.halve();
        }
    }

    /// What each row counts for beside the others if a row counts for less by `decay` with every one offered after it.
    pub fn weights(&self, decay: f64) -> Vec<f64> {
        let Header { offered, spacing } = self.header;
        let count = self.rows.as_ref().map_or(0, RowBlock::len) as u64;
        (0..count).map(|i| decay.powf((offered - 1 - i * spacing) as f64)).collect()
    }

    /// Those of two streams, each as often as in the one where they are rarer.
    pub fn join(mut self, mut other: Self) -> Self {
        while self.header.spacing < other.header.spacing {
            self.halve();
        }
        while other.header.spacing < self.header.spacing {
            other.halve();
        }
        match (&mut self.rows, &other.rows) {
            (Some(rows), Some(more)) => rows.extend(more.rows()),
            (None, more) => self.rows = more.clone(),
            (_, None) => {}
        }
        // As if they had been offered one after the other, to the end of a spacing.
        self.header.offered = self.rows.as_ref().map_or(0, RowBlock::len) as u64 * self.header.spacing;
        self.thin();
        self
    }

    /// Lets every second row go.
    fn halve(&mut self) {
        if let Some(rows) = &mut self.rows {
            *rows = RowBlock::gather(rows.rows(), &(0..rows.len()).step_by(2).collect::<Vec<_>>());
        }
        self.header.spacing *= 2;
    }

    /// Makes sparse rows wider.
    pub fn widen(&mut self, width: usize) {
        self.rows.iter_mut().for_each(|rows| rows.widen(width));
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.rows.as_ref().map_or(0, RowBlock::size_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(count: usize, from: usize) -> Witnesses {
        let data: Vec<f64> = (from..from + count).map(|i| i as f64).collect();
        let mut witnesses = Witnesses::default();
        for part in data.chunks(37) {
            witnesses.offer(Rows::dense(part, part.len(), 1).unwrap());
        }
        witnesses
    }

    fn numbers(witnesses: &Witnesses) -> Vec<f64> {
        let rows = witnesses.rows().unwrap();
        let mut value = [0.0];
        (0..rows.len())
            .map(|i| {
                rows.row(i).copy_to(&mut value);
                value[0]
            })
            .collect()
    }

    #[test]
    fn they_are_few_and_evenly_spaced_however_they_come() {
        for count in [1, 500, 512, 513, 3000, 100_000] {
            let witnesses = offered(count, 0);
            let spacing = witnesses.header().spacing as usize;
            let expected: Vec<f64> = (0..count).step_by(spacing).map(|i| i as f64).collect();
            assert_eq!(numbers(&witnesses), expected);
            assert!(expected.len() <= MOST && (count <= MOST) == (spacing == 1), "{count}: {spacing}");
            assert!(count <= MOST || expected.len() > MOST / 2 - 1);
            let parts = (witnesses.rows.clone(), witnesses.header());
            assert!(Witnesses::from_parts(parts.0.clone(), parts.1).is_some());
            assert!(Witnesses::from_parts(None, parts.1).is_none());
        }
    }

    #[test]
    fn older_ones_count_for_less_where_rows_fade() {
        let witnesses = offered(1100, 0);
        assert_eq!(witnesses.header().spacing, 4);
        let weights = witnesses.weights(0.99);
        assert!((weights[0] - 0.99f64.powi(1099)).abs() < 1e-18 && (weights[274] - 0.99f64.powi(3)).abs() < 1e-12);
        assert!(witnesses.weights(1.0).iter().all(|&w| w == 1.0));
    }

    #[test]
    fn those_of_two_streams_count_alike() {
        let joined = offered(1500, 0).join(offered(300, 10_000));
        let (long, short): (Vec<f64>, Vec<f64>) = numbers(&joined).into_iter().partition(|&x| x < 9999.0);
        assert_eq!((long.len(), short.len()), (375, 75));
        assert!(Witnesses::from_parts(joined.rows.clone(), joined.header()).is_some());
        let full = offered(2000, 0).join(offered(2000, 10_000));
        assert!(numbers(&full).len() <= MOST && full.header().spacing == 8);
        assert_eq!(numbers(&Witnesses::default().join(offered(40, 0))).len(), 40);
    }
}
