//! A source that stops on its way: no block goes beyond the next multiple of a number of records.

use super::{RecordBlock, RecordSource, Schema};
use crate::error::Result;

/// Cuts another source where its reader wants to look up, to save what was learnt. The records are the same.
pub struct Stops<'a> {
    source: &'a mut dyn RecordSource,
    every: u64,
    read: u64,
}

impl std::fmt::Debug for Stops<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stops").field("every", &self.every).field("read", &self.read).finish_non_exhaustive()
    }
}

impl<'a> Stops<'a> {
    /// Stops after every so many records (at least 1) of a source of which none were read.
    pub fn new(source: &'a mut dyn RecordSource, every: u64) -> Self {
        Self { source, every: every.max(1), read: 0 }
    }
}

impl RecordSource for Stops<'_> {
    fn origin(&self) -> &str {
        self.source.origin()
    }

    fn schema(&self) -> &Schema {
        self.source.schema()
    }

    fn read(&mut self, block: &mut RecordBlock, max_rows: usize) -> Result<bool> {
        let left = usize::try_from(self.every - self.read % self.every).unwrap_or(usize::MAX);
        let more = self.source.read(block, max_rows.clamp(1, left))?;
        self.read += block.len() as u64;
        Ok(more)
    }

    fn rereadable(&self) -> bool {
        self.source.rereadable()
    }

    fn rewind(&mut self) -> Result<()> {
        self.read = 0;
        self.source.rewind()
    }

    fn progress(&self) -> Option<f64> {
        self.source.progress()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::assert_source_laws;
    use super::super::{OpenOptions, open};
    use super::*;

    #[test]
    fn blocks_end_at_multiples_and_records_stay() {
        let location = "synth:friedman?n=50";
        let mut source = open(location, &OpenOptions::default()).unwrap();
        let plain = assert_source_laws(source.as_mut());
        source.rewind().unwrap();
        let mut stops = Stops::new(source.as_mut(), 7);
        assert_eq!(assert_source_laws(&mut stops), plain);
        stops.rewind().unwrap();
        let (mut block, mut ends) = (RecordBlock::default(), Vec::new());
        while stops.read(&mut block, 5).unwrap() {
            ends.push(block.first_row as usize + block.len() - 1);
        }
        assert_eq!(ends[..6], [5, 7, 12, 14, 19, 21]);
        assert_eq!(ends.last(), Some(&50));
    }
}
