//! The last rows with the errors of their predictions, all made before the rows were learnt: what standard deviations are
//! fitted to.

use std::collections::VecDeque;

use crate::error::Result;
use crate::persist::Container;
use crate::rows::{RowBlock, Rows};

/// Rows kept at least; twice as many at most, so that dropping old ones costs little.
const KEEP: usize = 1024;

/// Rows in the order of the stream: the first have their errors, the last wait for their turn.
#[derive(Debug, Default)]
pub(super) struct RecentErrors {
    rows: Option<RowBlock>,
    /// Row-major, of the first rows.
    errors: Vec<f64>,
    /// Codes of the others.
    awaited: VecDeque<f64>,
}

impl RecentErrors {
    /// Takes rows that are about to be learnt, with their codes.
    pub fn push(&mut self, rows: Rows, codes: &[f64]) {
        self.rows.get_or_insert_with(|| RowBlock::like(rows)).extend(rows);
        self.awaited.extend(codes);
    }

    /// Takes outputs of the rows that have waited longest.
    pub fn take(&mut self, outputs: &[f64], width: usize) {
        for (output, code) in outputs.iter().zip(self.awaited.drain(..outputs.len().min(self.awaited.len()))) {
            self.errors.push(output - code);
        }
        let surplus = (self.errors.len() / width).saturating_sub(KEEP);
        if surplus >= KEEP {
            self.drop_front(surplus, width);
        }
    }

    fn drop_front(&mut self, count: usize, width: usize) {
        if let Some(rows) = &mut self.rows {
            let rest = rows.rows().slice(count, rows.len());
            let mut kept = RowBlock::like(rest);
            kept.extend(rest);
            *rows = kept;
        }
        self.errors.drain(..count * width);
    }

    /// The last rows that have their errors, with these.
    pub fn last(&self, width: usize) -> Option<(Rows<'_>, &[f64])> {
        let have = self.errors.len() / width;
        let from = have.saturating_sub(KEEP);
        let rows = self.rows.as_ref()?;
        (have > 0).then(|| (rows.rows().slice(from, have), &self.errors[from * width..]))
    }

    /// Makes sparse rows wider.
    pub fn widen(&mut self, width: usize) {
        if let Some(rows) = &mut self.rows {
            rows.widen(width);
        }
    }

    /// Adds those of another stream; neither has rows that wait.
    pub fn merge(&mut self, other: Self, width: usize) {
        match (&mut self.rows, other.rows) {
            (Some(mine), Some(theirs)) => mine.extend(theirs.rows()),
            (mine @ None, theirs) => *mine = theirs,
            (Some(_), None) => {}
        }
        self.errors.extend(other.errors);
        let surplus = (self.errors.len() / width).saturating_sub(2 * KEEP);
        if surplus > 0 {
            self.drop_front(surplus, width);
        }
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.rows.as_ref().map_or(0, RowBlock::size_bytes) + 8 * (self.errors.len() + self.awaited.len())
    }

    /// Adds all of it to a file.
    pub fn put(&self, file: &mut Container) -> Result<()> {
        if let Some(rows) = self.rows.as_ref().filter(|rows| !rows.is_empty()) {
            file.put_rows("recent_row", rows.rows())?;
        }
        file.put_f64("recent_errors", &[self.errors.len()], self.errors.clone())?;
        file.put_f64("awaited_codes", &[self.awaited.len()], self.awaited.iter().copied().collect())
    }

    /// Takes out what [`put`](Self::put) added.
    pub fn from_file(file: &mut Container, features: usize, width: usize) -> Result<Self> {
        let (_, errors) = file.take_finite("recent_errors", 1)?;
        let (_, awaited) = file.take_finite("awaited_codes", 1)?;
        let numbers = errors.len() + awaited.len();
        let rows = if numbers == 0 { None } else { Some(file.take_rows("recent_row", features)?) };
        if numbers != rows.as_ref().map_or(0, RowBlock::len) * width || !errors.len().is_multiple_of(width) {
            return Err(file.malformed("recent rows and errors that do not belong together"));
        }
        Ok(Self { rows, errors, awaited: awaited.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_errors_stay_together_and_do_not_grow() {
        let mut recent = RecentErrors::default();
        // Row i is (i, −i), its codes i and 2i, its outputs 1 and 2 above; rows wait for up to 300 others.
        let (mut pushed, mut taken) = (0, 0);
        while taken < 9000 {
            let data: Vec<f64> = (pushed..pushed + 70).flat_map(|i| [f64::from(i), -f64::from(i)]).collect();
            let codes: Vec<f64> = (pushed..pushed + 70).flat_map(|i| [f64::from(i), f64::from(2 * i)]).collect();
            recent.push(Rows::dense(&data, 70, 2).unwrap(), &codes);
            pushed += 70;
            if pushed - taken >= 300 {
                let outputs: Vec<f64> =
                    (taken..taken + 300).flat_map(|i| [f64::from(i) + 1.0, f64::from(2 * i) + 2.0]).collect();
                recent.take(&outputs, 2);
                taken += 300;
                let (rows, errors) = recent.last(2).unwrap();
                assert_eq!((rows.len(), errors.len()), (1024.min(taken as usize), 2 * 1024.min(taken as usize)));
                assert!(errors.chunks_exact(2).all(|e| e == [1.0, 2.0]));
                let mut last = [0.0; 2];
                rows.row(rows.len() - 1).copy_to(&mut last);
                assert_eq!(last[0], f64::from(taken - 1));
            }
            assert!(recent.size_bytes() < 4 * (2048 + 600) * 8 * 2);
        }
        let mut file = Container::new("test", serde_json::json!({}));
        recent.put(&mut file).unwrap();
        let again = RecentErrors::from_file(&mut file, 2, 2).unwrap();
        assert_eq!((&again.rows, &again.errors, &again.awaited), (&recent.rows, &recent.errors, &recent.awaited));
        recent.awaited.clear();
        assert_eq!(recent.last(2).unwrap().1.len(), 2048);
    }
}
