//! Rows of a triangle that are taken up by several threads, one right behind the other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::aligned::Aligned;
use super::super::rank_update::STRIP;
use super::{NewRows, ReflectedFactor, Reflecting, Shape};

/// Looks before a thread lets others run.
const LOOKS: u32 = 1000;

/// A factor that takes up rows, in turns that follow each other down its blocks of rows: turn t comes to a block after
/// turn t − 1 has left it.
#[derive(Debug)]
pub struct Wave<'a> {
    shape: Shape,
    blocks: Vec<Part<'a>>,
    /// Turns that have done what is done in order.
    after: AtomicU64,
    given_up: AtomicBool,
}

/// A block of rows.
#[derive(Debug)]
struct Part<'a> {
    /// Turns that have left it.
    turns: AtomicU64,
    numbers: Mutex<&'a mut Aligned<STRIP>>,
}

impl<'a> Wave<'a> {
    /// Begins with turn 0.
    pub fn new(factor: &'a mut ReflectedFactor) -> Self {
        let shape = factor.shape();
        let part = |numbers| Part { turns: AtomicU64::new(0), numbers: Mutex::new(numbers) };
        let blocks = factor.blocks.iter_mut().map(part).collect();
        Self { shape, blocks, after: AtomicU64::new(0), given_up: AtomicBool::new(false) }
    }

    /// Takes rows up when it is their turn. All turns before it must have begun, or they are waited for in vain.
    pub fn take_up(&self, turn: u64, rows: NewRows, found: &mut Reflecting) {
        self.turn(|| found.take_up(self, turn, rows));
    }

    /// Does something after the same was done in all turns before this one; false if it never can be.
    pub fn in_order(&self, turn: u64, task: impl FnOnce()) -> bool {
        let ready = self.look(&self.after, turn);
        if ready {
            task();
            self.after.store(turn + 1, Ordering::Release);
        }
        ready
    }

    /// Runs what belongs to a turn: if it ends in a panic, others do not wait for it.
    pub fn turn<T>(&self, task: impl FnOnce() -> T) -> T {
        let mut guard = GiveUp { wave: self, ended: false };
        let result = task();
        guard.ended = true;
        result
    }

    /// Whether a turn ended in a panic; the factor is of no use then.
    pub fn has_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// The numbers of a block, when it is this turn's; none, if it never will be.
    pub(super) fn wait(&self, g: usize, turn: u64) -> Option<MutexGuard<'_, &'a mut Aligned<STRIP>>> {
        let ready = self.look(&self.blocks[g].turns, turn);
        ready.then(|| self.blocks[g].numbers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks until so many turns are over; false if they never will be.
    fn look(&self, over: &AtomicU64, turns: u64) -> bool {
        let mut looks = 0;
        while over.load(Ordering::Acquire) != turns {
            if self.has_given_up() {
                return false;
            }
            looks += 1;
            if looks % LOOKS == 0 {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        true
    }

    /// Leaves a block to the next turn.
    pub(super) fn pass(&self, g: usize, turn: u64, numbers: MutexGuard<'_, &'a mut Aligned<STRIP>>) {
        drop(numbers);
        self.blocks[g].turns.store(turn + 1, Ordering::Release);
    }
}

/// Other turns must not wait for one that ended in a panic.
struct GiveUp<'s, 'a> {
    wave: &'s Wave<'a>,
    ended: bool,
}

impl Drop for GiveUp<'_, '_> {
    fn drop(&mut self) {
        if !self.ended {
            self.wave.given_up.store(true, Ordering::Release);
        }
    }
}
