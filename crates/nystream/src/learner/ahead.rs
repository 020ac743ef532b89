//! Reading ahead: one thread reads blocks while another learns those before them.
//!
//! A few blocks go round between the two, so memory is bounded, and they arrive in the order of the source, so the result
//! is that of reading and learning in turns.

use std::sync::mpsc::{channel, sync_channel};

use crate::error::{Error, Result};
use crate::source::{RecordBlock, RecordSource};

/// Blocks that go round.
const BLOCKS: usize = 3;

/// A block, and how far the source was after it.
type Read = (RecordBlock, Option<f64>);

/// Calls `learn` with every block of up to `rows` records, in order, until the source ends or either side fails. `learn` may
/// keep the block and leave another in its place.
pub(super) fn read_ahead(
    source: &mut dyn RecordSource,
    rows: usize,
    learn: &mut dyn FnMut(&mut RecordBlock, Option<f64>) -> Result<()>,
) -> Result<()> {
    let (full, ready) = sync_channel::<Result<Read>>(BLOCKS);
    let (used, free) = channel::<RecordBlock>();
    for _ in 0..BLOCKS {
        used.send(RecordBlock::default()).map_err(|_| Error::Internal("no reader"))?;
    }
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // Ends when the learning side has gone, with its end of either channel.
            for mut block in free {
                let (message, last) = match source.read(&mut block, rows) {
                    Ok(true) => (Ok((block, source.progress())), false),
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
            let (mut block, progress) = message?;
            learn(&mut block, progress)?;
            // No reader any more: the source has ended, and the last blocks are on their way.
            let _ = used.send(block);
        }
        Ok(())
    })
}
