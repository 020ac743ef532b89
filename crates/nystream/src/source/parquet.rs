//! Parquet files, a few thousand rows at a time.

use std::fs::File;
use std::path::PathBuf;

use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::arrow::{Batches, guarded};
use super::input::Input;
use super::{RecordBlock, RecordSource, Schema, refuse};
use crate::error::{Error, Result};

/// How many rows are decoded at a time.
const BATCH_ROWS: usize = 4096;

/// Reads Parquet files.
pub(super) struct ParquetSource {
    origin: String,
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    batches: Batches,
    reader: ParquetRecordBatchReader,
    rows: u64,
}

impl ParquetSource {
    /// Opens a Parquet file, which must be a regular one: its directory is at the end.
    pub fn open(input: Input) -> Result<Self> {
        let origin = input.origin().to_owned();
        let Some(path) = input.plain_path() else {
            return Err(refuse(
                &origin,
                0,
                None,
                "Parquet data that comes as a stream",
                "a plain Parquet file on disk",
            ));
        };
        let path = path.to_owned();
        let file = File::open(&path).map_err(|e| Error::io(&path, "open", e))?;
        let metadata = guarded(&origin, || ArrowReaderMetadata::load(&file, Default::default()))?;
        let batches = Batches::new(&origin, metadata.schema().fields())?;
        let rows = u64::try_from(metadata.metadata().file_metadata().num_rows()).unwrap_or(0);
        let reader = start(&origin, file, &metadata)?;
        Ok(Self { origin, path, metadata, batches, reader, rows })
    }
}

fn start(origin: &str, file: File, metadata: &ArrowReaderMetadata) -> Result<ParquetRecordBatchReader> {
    guarded(origin, || {
        ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone()).with_batch_size(BATCH_ROWS).build()
    })
}

impl RecordSource for ParquetSource {
    fn origin(&self) -> &str {
        &self.origin
    }

    fn schema(&self) -> &Schema {
        &self.batches.schema
    }

    fn read(&mut self, block: &mut RecordBlock, max_rows: usize) -> Result<bool> {
        let reader = &mut self.reader;
        self.batches.read(block, max_rows, || reader.next())
    }

    fn rereadable(&self) -> bool {
        true
    }

    fn rewind(&mut self) -> Result<()> {
        let file = File::open(&self.path).map_err(|e| Error::io(&self.path, "open", e))?;
        self.reader = start(&self.origin, file, &self.metadata)?;
        self.batches.rewind();
        Ok(())
    }

    fn progress(&self) -> Option<f64> {
        Some(if self.rows == 0 { 1.0 } else { (self.batches.rows_read() as f64 / self.rows as f64).min(1.0) })
    }
}
