//! Blocks one after the other, by two workers that do not wait for each other at the end of each.
//!
//! A block is three tasks: making its features; learning it, that is telling which rows are learnt, adding to the sums and
//! solving for the next start; predicting it. Features need nothing. Learning needs the features, and the block before
//! learnt. Predicting needs the start that the block was learnt from. Each worker takes what can be done, learning first.
//! What a task computes is the same whoever does it, and whenever.
//!
//! Handing every block to two threads and waiting for both took 0.69 ms a block of cod-rna with 200 atoms, for 0.92 ms of work: a
//! thread that had gone to sleep woke after 0.08 ms, and at the end one waited for the other. So a worker with nothing to do
//! keeps looking. The first stays until nothing is left to begin. The other leaves when it has looked for long: while a task of the first waits for
//! the parts of a parallel loop, its thread may take up the second worker of another line, and two lines that did so must
//! not wait for each other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use faer::{MatMut, MatRef};

use super::loading::{Features, Loaded};
use super::passing::Passing;
use super::predicting::Predicting;
use super::{Innovations, Learnt, Regulariser, Start, resize};
use crate::error::{Error, Result};
use crate::linalg::side_by_side;
use crate::rows::Rows;
use crate::solver::levelling::Levelling;
use crate::solver::loss::Loss;
use crate::solver::nystrom::NystromSums;

/// Blocks in the works at a time.
const MOST: usize = 4;
/// Blocks that are learnt and wait to be predicted: each holds a start.
const MOST_WAITING: usize = 2;
/// Multiply-adds of a product of a block from which on blocks are handed to all threads one by one: waking a thread is
/// nothing beside them, and several in the works took up to a tenth more time with 1,000 atoms (likely, because they do not all
/// stay in the last cache).
const LARGE: usize = 100_000_000;
/// How long the second worker looks for something to do.
const PATIENCE: Duration = Duration::from_millis(50);
/// Looks before the thread lets others run.
const LOOKS: u32 = 1000;

/// Rows to be learnt together.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// The rows.
    pub rows: Rows<'a>,
    /// Rows × targets.
    pub targets: MatRef<'a, f64>,
    /// One a row, all above 0; none: all 1.
    pub weights: Option<&'a [f64]>,
}

/// A block in the works.
#[derive(Debug, Default)]
pub(super) struct Job {
    pub loaded: Loaded,
    passing: Passing,
    /// √w y, column-major.
    targets: Vec<f64>,
    /// Σw k(x,x) of the rows that are learnt.
    energy: f64,
}

impl Job {
    fn load(&mut self, make: &Features, block: Block) {
        self.loaded.load(make, block.rows, block.weights);
        self.load_targets(block);
    }

    fn load_targets(&mut self, Block { targets, weights, .. }: Block) {
        resize(&mut self.targets, targets.nrows() * targets.ncols());
        let mut scaled = MatMut::from_column_major_slice_mut(&mut self.targets, targets.nrows(), targets.ncols());
        scaled.copy_from(targets);
        if let Some(weights) = weights {
            for column in scaled.col_iter_mut() {
                column.iter_mut().zip(weights).for_each(|(y, w)| *y *= w.sqrt());
            }
        }
    }
}

/// Memory that lines use again.
#[derive(Debug, Default)]
pub(super) struct Works {
    /// Blocks whose features were made before their turn.
    ahead: VecDeque<Job>,
    spare: Vec<Job>,
    starts: Vec<Start>,
    /// Most jobs that any line had, and rows that any block had.
    jobs: usize,
    tallest: usize,
}

impl Works {
    /// A job to use by the way.
    pub fn job(&mut self) -> &mut Job {
        if self.spare.is_empty() {
            self.spare.push(Job::default());
        }
        &mut self.spare[0]
    }

    /// Features made ahead are of no use any more.
    pub fn forget_ahead(&mut self) {
        self.spare.extend(self.ahead.drain(..));
    }

    /// Bytes held, at most: how many jobs there are is a matter of chance.
    pub fn size_bytes(&self, width: usize, outputs: usize, loss: Loss) -> usize {
        let copies = if loss == Loss::Squared { 1 } else { 2 };
        let strips = self.ahead.iter().chain(&self.spare).map(|job| job.loaded.workspace_bytes()).max().unwrap_or(0);
        let job = 8 * self.tallest * (copies * (width + outputs) + 2) + strips;
        self.jobs * (job + 8 * width * (width.next_multiple_of(8) + outputs))
    }
}

/// What is made of blocks, and from what.
pub(super) struct Line<'a> {
    pub make: Features<'a>,
    pub regulariser: Regulariser<'a>,
    pub loss: Loss,
    pub sums: &'a mut NystromSums,
    pub predicting: &'a mut Predicting,
    pub works: &'a mut Works,
}

/// How far a line came.
pub(super) struct Outcome {
    /// Blocks that were predicted and summed.
    pub done: usize,
    /// Why there is no start after the last of them, if there is none.
    pub stopped: Option<Error>,
}

impl Line<'_> {
    /// Predicts and learns the blocks, from this start, which ends up as that of the next block, until there is none. What was
    /// predicted is appended. `upcoming` are the rows after them, as far as they are known and will have no weights.
    pub fn run(self, start: &mut Start, blocks: &[Block], upcoming: &[Rows], out: &mut Innovations) -> Result<Outcome> {
        let Self { mut make, regulariser, loss, sums, predicting, works } = self;
        // Levelling can wait until it is known which rows are learnt.
        let levelling = if loss == Loss::Squared { None } else { make.levelling.take() };
        let (total, width) = (blocks.len() + upcoming.len(), make.width());
        let mut ready: Vec<Option<Job>> = Vec::new();
        ready.resize_with(total, || None);
        for (i, block) in blocks.iter().enumerate().filter(|(_, block)| block.weights.is_none()) {
            let known = |job: &Job| job.loaded.rows.as_ref().is_some_and(|known| known.rows() == block.rows);
            if i > 0 && ready[i - 1].is_none() || !works.ahead.front().is_some_and(known) {
                break;
            }
            ready[i] = works.ahead.pop_front();
            ready[i].iter_mut().for_each(|job| job.load_targets(*block));
        }
        works.forget_ahead();
        works.jobs = works.jobs.max(total.min(MOST));
        works.tallest = blocks.iter().map(|block| block.rows.len()).fold(works.tallest, usize::max);
        let (spare, starts) = (std::mem::take(&mut works.spare), std::mem::take(&mut works.starts));
        let loads = ready.iter().take_while(|job| job.is_some()).count();
        let mut state = State {
            ready,
            waiting: VecDeque::new(),
            spare,
            starts,
            jobs: loads,
            loads,
            learnt: 0,
            last: blocks.len(),
            chain: Some(Chain { sums, start: Arc::new(std::mem::take(start)) }),
            predicting: Some(predicting),
            found: vec![Innovations::default(); blocks.len()],
            stopped: None,
            error: None,
            given_up: false,
        };
        // Nothing can begin without the first block: all threads.
        if let (None, Some(block)) = (&state.ready[0], blocks.first()) {
            let mut job = state.job().unwrap_or_default();
            job.load(&make, *block);
            (state.ready[0], state.loads) = (Some(job), 1);
        }
        let (state, steps) = (Mutex::new(state), AtomicU64::new(0));
        let shop = Shop { make, levelling, regulariser, loss, blocks, upcoming, state, steps };
        let largest = blocks.iter().map(|block| block.rows.len()).max().unwrap_or(0);
        if largest * width * width < LARGE {
            side_by_side(|| shop.work(true), || shop.work(false));
        } else {
            shop.in_step();
        }
        let state = shop.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.error {
            return Err(error);
        }
        let Some(chain) = state.chain else { return Err(Error::Internal("a block was left half learnt")) };
        *start = Arc::into_inner(chain.start).ok_or(Error::Internal("a start that is still in use"))?;
        (works.spare, works.starts) = (state.spare, state.starts);
        // What was made for later keeps its rows, to be known by them.
        let later = state.ready.into_iter().zip(blocks.iter().map(|block| block.rows).chain(upcoming.iter().copied()));
        for (job, rows) in later {
            match job {
                Some(mut job) if state.stopped.is_none() => {
                    job.loaded.remember(rows);
                    works.ahead.push_back(job);
                }
                job => works.spare.extend(job),
            }
        }
        for found in state.found.into_iter().take(state.learnt) {
            out.predictions.extend_from_slice(&found.predictions);
            out.variance_factors.extend_from_slice(&found.variance_factors);
        }
        Ok(Outcome { done: state.learnt, stopped: state.stopped })
    }
}

/// Where two workers meet.
struct Shop<'a> {
    make: Features<'a>,
    /// What is still to be done to the kernels of rows that are learnt.
    levelling: Option<Arc<Levelling>>,
    regulariser: Regulariser<'a>,
    loss: Loss,
    blocks: &'a [Block<'a>],
    upcoming: &'a [Rows<'a>],
    state: Mutex<State<'a>>,
    /// Tasks done.
    steps: AtomicU64,
}

/// What only one may do at a time: learning.
struct Chain<'a> {
    sums: &'a mut NystromSums,
    start: Arc<Start>,
}

struct State<'a> {
    /// Blocks with features, in their places, until they are learnt.
    ready: Vec<Option<Job>>,
    /// Blocks that are learnt and not predicted yet, with the starts that they were learnt from.
    waiting: VecDeque<(usize, Job, Arc<Start>)>,
    spare: Vec<Job>,
    starts: Vec<Start>,
    /// Jobs in use.
    jobs: usize,
    /// Blocks whose features are made or being made, and blocks that are learnt or being learnt.
    loads: usize,
    learnt: usize,
    /// Blocks to be learnt.
    last: usize,
    chain: Option<Chain<'a>>,
    predicting: Option<&'a mut Predicting>,
    found: Vec<Innovations>,
    stopped: Option<Error>,
    error: Option<Error>,
    given_up: bool,
}

enum Task<'a> {
    Load { place: usize, job: Job },
    Learn { place: usize, job: Job, chain: Chain<'a>, next: Box<Start> },
    Predict { place: usize, job: Job, start: Arc<Start>, predicting: &'a mut Predicting, found: Innovations },
}

enum Done<'a> {
    Loaded { place: usize, job: Job },
    Learnt { place: usize, job: Job, chain: Chain<'a>, next: Box<Start>, made: Result<()> },
    Predicted { place: usize, job: Job, start: Arc<Start>, predicting: &'a mut Predicting, found: Result<Innovations> },
}

enum Next<'a> {
    Do(Box<Task<'a>>),
    /// Nothing now.
    Wait,
    /// Nothing any more.
    Leave,
}

impl<'a> State<'a> {
    fn job(&mut self) -> Option<Job> {
        if self.jobs == MOST {
            return None;
        }
        self.jobs += 1;
        Some(self.spare.pop().unwrap_or_default())
    }

    fn next(&mut self) -> Next<'a> {
        if self.given_up {
            return Next::Leave;
        }
        let place = self.learnt;
        if place < self.last
            && self.waiting.len() < MOST_WAITING
            && self.ready[place].is_some()
            && let Some(chain) = self.chain.take()
            && let Some(job) = self.ready[place].take()
        {
            self.learnt += 1;
            let next = Box::new(self.starts.pop().unwrap_or_default());
            return Next::Do(Box::new(Task::Learn { place, job, chain, next }));
        }
        // Learning must not wait for features.
        let starved = place < self.last && self.loads <= place && self.jobs < MOST;
        if !starved
            && !self.waiting.is_empty()
            && let Some(predicting) = self.predicting.take()
            && let Some((place, job, start)) = self.waiting.pop_front()
        {
            let found = std::mem::take(&mut self.found[place]);
            return Next::Do(Box::new(Task::Predict { place, job, start, predicting, found }));
        }
        let more = self.loads < self.ready.len() && self.stopped.is_none();
        if more && let Some(job) = self.job() {
            self.loads += 1;
            return Next::Do(Box::new(Task::Load { place: self.loads - 1, job }));
        }
        let over = self.learnt == self.last && self.waiting.is_empty() && self.chain.is_some();
        if over { Next::Leave } else { Next::Wait }
    }

    fn take_back(&mut self, done: Done<'a>) {
        match done {
            Done::Loaded { place, job } => self.ready[place] = Some(job),
            Done::Learnt { place, job, mut chain, next, made } => {
                let before = match made {
                    Ok(()) => std::mem::replace(&mut chain.start, Arc::new(*next)),
                    Err(error) => {
                        (self.stopped, self.last) = (Some(error), place + 1);
                        self.starts.push(*next);
                        Arc::clone(&chain.start)
                    }
                };
                self.waiting.push_back((place, job, before));
                self.chain = Some(chain);
            }
            Done::Predicted { place, job, start, predicting, found } => {
                self.starts.extend(Arc::into_inner(start));
                self.spare.push(job);
                self.jobs -= 1;
                self.predicting = Some(predicting);
                match found {
                    Ok(found) => self.found[place] = found,
                    Err(error) => (self.error, self.given_up) = (Some(error), true),
                }
            }
        }
    }
}

impl<'a> Shop<'a> {
    fn state(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, to_the_end: bool) {
        loop {
            let steps = self.steps.load(Ordering::Acquire);
            let next = self.state().next();
            match next {
                Next::Do(task) => {
                    let mut in_hand = InHand { shop: self, done: None };
                    in_hand.done = Some(self.perform(*task));
                }
                Next::Wait if self.wait(steps, to_the_end) => {}
                Next::Wait | Next::Leave => return,
            }
        }
    }

    fn perform(&self, task: Task<'a>) -> Done<'a> {
        match task {
            Task::Load { place, mut job } => {
                self.load(place, &mut job);
                Done::Loaded { place, job }
            }
            Task::Learn { place, mut job, chain, mut next } => {
                self.tell_apart(place, &mut job, &chain.start);
                let made = self.learn(place, &job, chain.sums, &mut next);
                Done::Learnt { place, job, chain, next, made }
            }
            Task::Predict { place, job, start, predicting, mut found } => {
                let found = self.predict(place, &job, &start, predicting, &mut found).map(|()| found);
                Done::Predicted { place, job, start, predicting, found }
            }
        }
    }

    fn load(&self, place: usize, job: &mut Job) {
        match self.blocks.get(place) {
            Some(block) => job.load(&self.make, *block),
            None => job.loaded.load(&self.make, self.upcoming[place - self.blocks.len()], None),
        }
    }

    /// All rows of a block.
    fn all<'j>(&self, place: usize, loaded: &'j Loaded, targets: &'j [f64]) -> Learnt<'j> {
        let shape = self.blocks[place].targets;
        Learnt::of(&loaded.features, targets, (shape.nrows(), self.make.width(), shape.ncols()))
    }

    /// Which rows of a block are learnt.
    fn tell_apart(&self, place: usize, job: &mut Job, start: &Start) {
        let Job { loaded, passing, targets, energy } = job;
        let all = self.all(place, loaded, targets);
        *energy = match self.loss {
            Loss::Squared => all.roots().iter().zip(&loaded.diagonals).map(|(root, k)| root * root * k).sum(),
            loss => passing.split(loss, all, start, &loaded.diagonals, self.levelling.as_deref()),
        };
    }

    fn learn(&self, place: usize, job: &Job, sums: &mut NystromSums, next: &mut Start) -> Result<()> {
        let all = self.all(place, &job.loaded, &job.targets);
        let learnt = match self.loss {
            Loss::Squared => all,
            _ => {
                sums.pass_over(job.passing.passed, job.passing.rows_passed(all.features.nrows()));
                job.passing.learnt()
            }
        };
        sums.add_weighted(learnt.features, learnt.targets, job.energy);
        next.make(sums, self.regulariser)
    }

    fn predict(
        &self,
        place: usize,
        job: &Job,
        start: &Start,
        predicting: &mut Predicting,
        found: &mut Innovations,
    ) -> Result<()> {
        let passing = (self.loss != Loss::Squared).then_some((&job.passing, self.levelling.as_deref()));
        predicting.predict(start, self.all(place, &job.loaded, &job.targets), passing, found)
    }

    /// Block after block, each on all threads.
    fn in_step(&self) {
        let state = &mut *self.state();
        while state.learnt < state.last && !state.given_up {
            let place = state.learnt;
            let (Some(mut job), Some(chain), Some(predicting)) =
                (state.ready[place].take(), state.chain.take(), state.predicting.take())
            else {
                return;
            };
            let (mut next, mut found) = (Box::new(state.starts.pop().unwrap_or_default()), Innovations::default());
            self.tell_apart(place, &mut job, &chain.start);
            let later = (state.loads == place + 1 && state.loads < state.ready.len()).then(|| state.job()).flatten();
            let Chain { sums, start } = chain;
            let (predicted, (made, later)) = side_by_side(
                || self.predict(place, &job, &start, predicting, &mut found),
                || {
                    let load = |mut later: Job| {
                        self.load(place + 1, &mut later);
                        later
                    };
                    // A thread that is done takes a part of it.
                    rayon::join(|| self.learn(place, &job, sums, &mut next), || later.map(load))
                },
            );
            state.learnt += 1;
            if let Some(job) = later {
                state.loads += 1;
                state.take_back(Done::Loaded { place: place + 1, job });
            }
            let (before, chain) = (Arc::clone(&start), Chain { sums, start });
            state.take_back(Done::Learnt { place, job, chain, next, made });
            let Some((place, job, _)) = state.waiting.pop_front() else { return };
            let found = predicted.map(|()| found);
            state.take_back(Done::Predicted { place, job, start: before, predicting, found });
        }
    }

    /// Looks until the other worker has done something; not for ever, unless it is `to_the_end`.
    fn wait(&self, steps: u64, to_the_end: bool) -> bool {
        let since = Instant::now();
        let mut looks = 0;
        while self.steps.load(Ordering::Acquire) == steps {
            looks += 1;
            if looks % LOOKS == 0 {
                if !to_the_end && since.elapsed() > PATIENCE {
                    return false;
                }
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        true
    }
}

/// A task that is being done. If it ends in a panic, the other worker must not wait for it.
struct InHand<'s, 'a> {
    shop: &'s Shop<'a>,
    done: Option<Done<'a>>,
}

impl Drop for InHand<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.shop.state();
        match self.done.take() {
            Some(done) => state.take_back(done),
            None => state.given_up = true,
        }
        drop(state);
        self.shop.steps.fetch_add(1, Ordering::Release);
    }
}
