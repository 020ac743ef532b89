//! One run of one method on one stream, and many of them at once.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use nystream::rows::Rows;
use nystream::sketch::{
    EstimateOracle, ExactOracle, InkOptions, InkOracle, Oversampling, Schedule, SequentialDictionary, Squeak,
    SqueakOptions,
};
use nystream::{Error, Result};

use super::problem::{Problem, Step};
use super::{ACCURACY, AGAIN, BLOCK, FAILURE_PROB, LEVERAGE_RIDGE};
use crate::statistics::{largest, mean};

/// What is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    PerPoint,
    /// Blocks of one row: per point without line 5's floor p̃/2.
    WithoutFloor,
    Blocked,
    Lazy,
    Merged2,
    Merged4,
    /// All rows but the last per point, merged with a dictionary of that one.
    MergedLast,
    Blocks5,
    Blocks100,
    InkOracle,
    InkEstimate,
}

impl Method {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::PerPoint => "per point",
            Self::WithoutFloor => "per point, no floor",
            Self::Blocked => "blocked",
            Self::Lazy => "lazy",
            Self::Merged2 => "merged, 2 parts",
            Self::Merged4 => "merged, 4 parts",
            Self::MergedLast => "merged, last row",
            Self::Blocks5 => "blocks of 5",
            Self::Blocks100 => "blocks of 100",
            Self::InkOracle => "INK-ORACLE",
            Self::InkEstimate => "INK-ESTIMATE",
        }
    }

    /// Whether there is a dictionary of everything before the end.
    pub(super) fn follows(self) -> bool {
        !matches!(self, Self::Merged2 | Self::Merged4 | Self::MergedLast)
    }

    fn schedule(self) -> Schedule {
        match self {
            Self::WithoutFloor => Schedule::Blocks { rows: 1 },
            Self::Blocked => Schedule::Blocks { rows: BLOCK },
            Self::Blocks5 => Schedule::Blocks { rows: 5 },
            Self::Blocks100 => Schedule::Blocks { rows: 100 },
            Self::Lazy => Schedule::Lazy { rows: BLOCK, growth: Schedule::GROWTH },
            _ => Schedule::PerPoint,
        }
    }
}

/// What one run came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Run {
    /// Whether Eq. 11 held at every checked step.
    pub holds_always: bool,
    /// At the end.
    pub holds: bool,
    pub ratio: f64,
    /// The largest ratio of all checked steps.
    pub worst_ratio: f64,
    pub atoms: f64,
    /// Σ Q of SQUEAK, Σ b of INK.
    pub copies: f64,
    /// The largest copies/(q̄ d_eff) of all checked steps.
    pub worst_copies: f64,
    /// The q̄ that the theorem asks for at the end.
    pub theorem: f64,
    /// Atoms at the end after [`AGAIN`] further scorings, of runs that were scored once more.
    pub again: [f64; AGAIN.len()],
}

/// The runs of one method at one q̄.
pub(super) struct Runs {
    pub method: Method,
    pub oversampling: u64,
    pub runs: Vec<Run>,
}

impl Runs {
    /// Of how many runs the claim is true.
    pub(super) fn count(&self, claim: impl Fn(&Run) -> bool) -> u64 {
        self.runs.iter().filter(|run| claim(run)).count() as u64
    }

    pub(super) fn share(&self, claim: impl Fn(&Run) -> bool) -> f64 {
        self.count(claim) as f64 / self.runs.len() as f64
    }

    pub(super) fn mean(&self, of: impl Fn(&Run) -> f64) -> f64 {
        mean(self.runs.iter().map(of))
    }

    pub(super) fn largest(&self, of: impl Fn(&Run) -> f64) -> f64 {
        largest(self.runs.iter().map(of))
    }

    pub(super) fn values(&self, of: impl Fn(&Run) -> f64) -> Vec<f64> {
        self.runs.iter().map(of).collect()
    }
}

/// What one seed came to: the dictionary as it stands at every checked step, and a copy of it scored once more.
type Outcome = (Run, Option<Run>);

/// Runs the method with seeds from `first_seed`.
pub(super) fn repeat(problem: &Problem, method: Method, q: u64, first_seed: u64, seeds: u64) -> Result<Runs> {
    let runs = outcomes(problem, method, q, first_seed..first_seed + seeds, false)?;
    Ok(Runs { method, oversampling: q, runs: runs.into_iter().map(|(run, _)| run).collect() })
}

/// The same of SQUEAK, as it stands and scored once more.
pub(super) fn repeat_both(problem: &Problem, method: Method, q: u64, first_seed: u64, seeds: u64) -> Result<[Runs; 2]> {
    let both = outcomes(problem, method, q, first_seed..first_seed + seeds, true)?;
    let (standing, settled): (Vec<Run>, Vec<Option<Run>>) = both.into_iter().unzip();
    let settled = settled.into_iter().collect::<Option<Vec<Run>>>();
    let settled = settled.ok_or(Error::Internal("INK scores nothing again"))?;
    Ok([standing, settled].map(|runs| Runs { method, oversampling: q, runs }))
}

/// The same on any number of threads: every run is a thread's own.
fn outcomes(problem: &Problem, method: Method, q: u64, seeds: Range<u64>, settle: bool) -> Result<Vec<Outcome>> {
    let next = AtomicU64::new(seeds.start);
    let work = || -> Result<Vec<(u64, Outcome)>> {
        // Alone in its pool, so that small matrices are not shared out to other threads.
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let alone = alone.map_err(|_| Error::Internal("no thread could be started"))?;
        let mut done = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return Ok(done);
            }
            done.push((seed, alone.install(|| once(problem, method, q, seed, settle))?));
        }
    };
    let threads = rayon::current_num_threads().min((seeds.end - seeds.start) as usize).max(1);
    let parts: Result<Vec<_>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined = handles.into_iter().map(|handle| match handle.join() {
            Ok(part) => part,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    });
    let mut all: Vec<(u64, Outcome)> = parts?.into_iter().flatten().collect();
    all.sort_by_key(|&(seed, _)| seed);
    Ok(all.into_iter().map(|(_, outcome)| outcome).collect())
}

fn once(problem: &Problem, method: Method, q: u64, seed: u64, settle: bool) -> Result<Outcome> {
    let ink = InkOptions {
        accuracy: ACCURACY,
        failure_prob: FAILURE_PROB,
        oversampling: q,
        seed,
        ..InkOptions::new(problem.kernel, LEVERAGE_RIDGE)
    };
    let n = problem.rows.len();
    match method {
        Method::InkOracle => {
            let mut ink = InkOracle::<ExactOracle>::new(ink)?;
            let sum = |ink: &InkOracle<ExactOracle>| ink.atoms().iter().map(|atom| atom.inflation).sum();
            Ok((follow(problem, q, &mut ink, sum, |_, _| Ok(()))?, None))
        }
        Method::InkEstimate => {
            let mut ink = InkOracle::<EstimateOracle>::new(ink)?;
            let sum = |ink: &InkOracle<EstimateOracle>| ink.atoms().iter().map(|atom| atom.inflation).sum();
            Ok((follow(problem, q, &mut ink, sum, |_, _| Ok(()))?, None))
        }
        Method::Merged2 => merged(problem, q, seed, &[0, n / 2, n], settle),
        Method::Merged4 => merged(problem, q, seed, &[0, n / 4, n / 2, 3 * n / 4, n], settle),
        Method::MergedLast => merged(problem, q, seed, &[0, n - 1, n], settle),
        _ => {
            let mut squeak = squeak(problem, method, q, seed)?;
            if !settle {
                return Ok((follow(problem, q, &mut squeak, copies, |_, _| Ok(()))?, None));
            }
            let mut settled = Run::nothing_yet();
            let see = |step: &Step, squeak: &Squeak| settled.see_settled(problem, step, q, squeak);
            let run = follow(problem, q, &mut squeak, copies, see)?;
            settled.score_again(&squeak)?;
            settled.theorem = run.theorem;
            Ok((run, Some(settled)))
        }
    }
}

fn squeak(problem: &Problem, method: Method, q: u64, seed: u64) -> Result<Squeak> {
    Squeak::new(SqueakOptions {
        accuracy: ACCURACY,
        failure_prob: FAILURE_PROB,
        oversampling: Oversampling::Fixed(q),
        schedule: method.schedule(),
        seed,
        ..SqueakOptions::new(problem.kernel, LEVERAGE_RIDGE)
    })
}

fn copies(squeak: &Squeak) -> u64 {
    squeak.copies().map(|(left, _)| left).sum()
}

/// Inserts the stream and judges it at every checked step, where `also` sees it too.
fn follow<D: SequentialDictionary>(
    problem: &Problem,
    q: u64,
    dictionary: &mut D,
    copies: impl Fn(&D) -> u64,
    mut also: impl FnMut(&Step, &D) -> Result<()>,
) -> Result<Run> {
    let mut run = Run::nothing_yet();
    let mut start = 0;
    for step in &problem.steps {
        dictionary.insert(problem.rows.rows().slice(start, step.t))?;
        dictionary.flush()?;
        start = step.t;
        run.see(problem, step, q, dictionary, copies(dictionary) as f64)?;
        also(step, dictionary)?;
    }
    run.theorem = dictionary.report()?.theorem.oversampling;
    Ok(run)
}

/// Per-point dictionaries of the parts between these rows, merged two by two; judged at the end.
fn merged(problem: &Problem, q: u64, seed: u64, ends: &[usize], settle: bool) -> Result<Outcome> {
    let mut level = Vec::new();
    for (part, range) in ends.windows(2).enumerate() {
        // Seeds of parts are far from those of other runs.
        let mut one = squeak(problem, Method::PerPoint, q, seed + ((part as u64 + 1) << 40))?;
        let rows: Rows = problem.rows.rows().slice(range[0], range[1]);
        one.insert(rows)?;
        level.push(one);
    }
    while level.len() > 1 {
        let mut pairs = level.into_iter();
        let mut next = Vec::new();
        while let (Some(left), right) = (pairs.next(), pairs.next()) {
            next.push(match right {
                Some(right) => left.merge(right)?,
                None => left,
            });
        }
        level = next;
    }
    let (Some(whole), Some(step)) = (level.pop(), problem.steps.last()) else {
        return Err(Error::Internal("nothing to merge"));
    };
    let mut run = Run::nothing_yet();
    run.see(problem, step, q, &whole, copies(&whole) as f64)?;
    run.theorem = whole.report()?.theorem.oversampling;
    if !settle {
        return Ok((run, None));
    }
    let mut settled = Run { theorem: run.theorem, ..Run::nothing_yet() };
    settled.see_settled(problem, step, q, &whole)?;
    settled.score_again(&whole)?;
    Ok((run, Some(settled)))
}

impl Run {
    fn nothing_yet() -> Self {
        Self {
            holds_always: true,
            holds: true,
            ratio: 0.0,
            worst_ratio: 0.0,
            atoms: 0.0,
            copies: 0.0,
            worst_copies: 0.0,
            theorem: 0.0,
            again: [0.0; AGAIN.len()],
        }
    }

    /// Judges a copy that has been scored once more.
    fn see_settled(&mut self, problem: &Problem, step: &Step, q: u64, squeak: &Squeak) -> Result<()> {
        let settled = squeak.rescored()?;
        self.see(problem, step, q, &settled, copies(&settled) as f64)
    }

    /// Counts the atoms of copies that have been scored more often.
    fn score_again(&mut self, squeak: &Squeak) -> Result<()> {
        let mut copy = squeak.clone();
        let mut scored = 0;
        for (atoms, times) in self.again.iter_mut().zip(AGAIN) {
            while scored < times {
                copy = copy.rescored()?;
                scored += 1;
            }
            *atoms = copy.atoms() as f64;
        }
        Ok(())
    }

    fn see(
        &mut self,
        problem: &Problem,
        step: &Step,
        q: u64,
        now: &dyn SequentialDictionary,
        copies: f64,
    ) -> Result<()> {
        let dictionary = now.dictionary()?;
        // A dictionary may lose its last atom at small q̄: K̃ is then 0.
        let judged = problem.judge(step, &dictionary)?;
        self.holds = judged.holds;
        self.holds_always &= judged.holds;
        self.ratio = judged.ratio;
        self.worst_ratio = self.worst_ratio.max(judged.ratio);
        (self.atoms, self.copies) = (dictionary.len() as f64, copies);
        self.worst_copies = self.worst_copies.max(copies / (q as f64 * step.effective_dim));
        Ok(())
    }
}
