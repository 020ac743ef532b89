//! Rows that go to a factor by reflections ([`Wave`]), 48 at a time, instead of to sums that are factored after every block.
//!
//! With many atoms this takes less work a row, and workers follow each other through the factor: each makes the features of 48 rows,
//! lets the factor take them up right behind the 48 before, and adds what else is summed when its turn comes. A turn never
//! waits for one that has not begun, and while it lasts its thread takes up nothing else: two lines of turns that share
//! their threads cannot wait for each other.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use faer::{MatMut, MatRef, Par};

use super::line::Block;
use super::loading::{Features, Loaded};
use super::{Innovations, resize};
use crate::error::{Error, Result};
use crate::linalg::{MOST_ROWS, NewRows, ReflectedFactor, Reflecting, Wave, parallelism, undivided};
use crate::solver::nystrom::NystromSums;

/// Workers, at most: more would have to wait for each other, and each needs memory.
const MOST_WORKERS: usize = 8;

/// Memory of a worker.
#[derive(Debug, Default)]
pub(super) struct Worker {
    loaded: Loaded,
    /// y, column-major.
    targets: Vec<f64>,
    reflecting: Reflecting,
}

impl Worker {
    pub fn size_bytes(&self) -> usize {
        8 * (self.loaded.features.capacity() + self.loaded.diagonals.capacity() + self.targets.capacity())
            + self.loaded.workspace_bytes()
            + self.reflecting.size_bytes()
    }
}

/// What all workers share.
struct Turns<'a, 'f> {
    make: Features<'a>,
    blocks: &'a [Block<'a>],
    /// Which rows of which block each turn takes.
    cuts: Vec<(usize, Range<usize>)>,
    wave: Wave<'f>,
    /// The next turn that nobody has begun.
    next: AtomicUsize,
    kept: Mutex<Kept<'a>>,
}

/// What turns leave behind, one after the other.
struct Kept<'a> {
    turns: usize,
    sums: &'a mut NystromSums,
    out: &'a mut Innovations,
}

/// Predicts and learns blocks without weights; what was predicted is appended.
pub(super) fn take_up(
    make: Features,
    factor: &mut ReflectedFactor,
    sums: &mut NystromSums,
    workers: &mut Vec<Worker>,
    blocks: &[Block],
    out: &mut Innovations,
) -> Result<()> {
    let cut = |(b, block): (usize, &Block)| {
        let rows = block.rows.len();
        (0..rows).step_by(MOST_ROWS).map(move |from| (b, from..(from + MOST_ROWS).min(rows)))
    };
    let cuts: Vec<_> = blocks.iter().enumerate().flat_map(cut).collect();
    let threads = match parallelism(usize::MAX) {
        Par::Seq => 1,
        Par::Rayon(threads) => threads.get(),
    };
    workers.resize_with(threads.min(cuts.len()).clamp(1, MOST_WORKERS), Worker::default);
    let kept = Mutex::new(Kept { turns: 0, sums, out });
    let turns = Turns { make, blocks, cuts, wave: Wave::new(factor), next: AtomicUsize::new(0), kept };
    rayon::scope(|scope| {
        let mut workers = workers.iter_mut();
        let own = workers.next();
        workers.for_each(|worker| scope.spawn(|_| undivided(|| turns.work(worker))));
        own.into_iter().for_each(|worker| undivided(|| turns.work(worker)));
    });
    if turns.wave.has_given_up() {
        return Err(Error::Internal("rows were left half learnt"));
    }
    Ok(())
}

impl Turns<'_, '_> {
    fn work(&self, worker: &mut Worker) {
        loop {
            let turn = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((block, rows)) = self.cuts.get(turn) else { return };
            let ended = self.wave.turn(|| self.take(worker, turn, self.blocks[*block], rows.clone()));
            if !ended {
                return;
            }
        }
    }

    /// One turn. False if it could not end, for one before it had not.
    fn take(&self, worker: &mut Worker, turn: usize, block: Block, rows: Range<usize>) -> bool {
        let Worker { loaded, targets, reflecting } = worker;
        let (height, width, outputs) = (rows.len(), self.make.width(), block.targets.ncols());
        loaded.load(&self.make, block.rows.slice(rows.start, rows.end), None);
        resize(targets, height * outputs);
        let mut targets = MatMut::from_column_major_slice_mut(targets, height, outputs);
        targets.copy_from(block.targets.subrows(rows.start, height));
        let features = MatRef::from_column_major_slice(&loaded.features[..height * width], height, width);
        self.wave.take_up(turn as u64, NewRows { features, targets: targets.as_ref() }, reflecting);
        self.wave.in_order(turn as u64, || {
            let Kept { turns, sums, out } = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            debug_assert_eq!(*turns, turn);
            *turns += 1;
            sums.add_beside(features, targets.as_ref(), loaded.diagonals[..height].iter().sum());
            for i in 0..height {
                out.variance_factors.push(reflecting.variance(i));
                out.predictions.extend((0..outputs).map(|t| targets[(i, t)] - reflecting.error(i, t)));
            }
        })
    }
}
