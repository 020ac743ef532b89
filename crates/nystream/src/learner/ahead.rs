//! Reading ahead: one thread reads and preprocesses blocks while another learns those before them.
//!
//! A few blocks go round between the two, so memory is bounded, and they arrive in the order of the source, so the result
//! is that of reading and learning in turns.

use std::sync::mpsc::{channel, sync_channel};

use crate::error::{Error, Result};
use crate::preprocess::{Batch, Binding, Preprocessor};
use crate::source::{RecordBlock, RecordSource};

/// Blocks that go round.
const BLOCKS: usize = 3;

/// A block read and preprocessed.
#[derive(Debug, Default)]
pub(super) struct Ready {
    pub batch: Batch,
    /// Records read; rows may be fewer where records are dropped.
    pub records: u64,
    /// How far the source was after it.
    pub progress: Option<f64>,
}

/// Calls `learn` with every block of up to `rows` records, in order, until the source ends or either side fails.
pub(super) fn read_ahead(
    source: &mut dyn RecordSource,
    preprocessor: &Preprocessor,
    binding: &mut Binding,
    rows: usize,
    learn: &mut dyn FnMut(&Ready) -> Result<()>,
) -> Result<()> {
    let (full, ready) = sync_channel::<Result<Ready>>(BLOCKS);
    let (used, free) = channel::<Ready>();
    for _ in 0..BLOCKS {
        used.send(Ready::default()).map_err(|_| Error::Internal("no reader"))?;
    }
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut block = RecordBlock::default();
            // Ends when the learning side has gone, with its end of either channel.
            for mut next in free {
                let read = source.read(&mut block, rows).and_then(|more| {
                    if more {
                        preprocessor.transform(binding, &block, &mut next.batch, true)?;
                        (next.records, next.progress) = (block.len() as u64, source.progress());
                    }
                    Ok(more)
                });
                let (message, last) = match read {
                    Ok(true) => (Ok(next), false),
                    Ok(false) => return,
                    Err(error) => (Err(error), true),
                };
                if full.send(message).is_err() || last {
                    return;
                }
            }
        });
        // Dropped on every way out, so that the reader does not wait for ever.
        let (ready, used) = (ready, used);
        for message in &ready {
            let block = message?;
            learn(&block)?;
            // No reader any more: the source has ended, and the last blocks are on their way.
            let _ = used.send(block);
        }
        Ok(())
    })
}
