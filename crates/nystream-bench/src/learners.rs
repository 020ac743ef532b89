//! Every learner of the table at a budget of 200, one thread: rounds a second, beside the bare kernel evaluations of the
//! same rows.
//!
//! A learner takes rows in the order of a seed until its budget is full (20,000 rows), and is saved. Each turn reads it
//! back and times it over the rows that follow, 500 at a time; the smallest time of each 500 over all turns counts, so
//! that what happens seldom (SkeGD's new maps) is in the sum. Learners take turns, and after each 500 rows of a learner the
//! bare evaluations of the same rows are timed: kernels with as many centres as the learner has (random rows) into memory
//! that is there, the features for FOGD.

use std::hint::black_box;

use nystream::kernel::{Kernel, RandomFeatures, SupportSet};
use nystream::learner::online::{LEARNERS, Learner, LearnerEntry, LearnerSettings, Make, Order, Targets, find};
use nystream::learner::streaming::{StreamingOptions, StreamingRidge};
use nystream::persist::Container;
use nystream::random::Generator;
use nystream::rows::Rows;

use crate::Outcome;
use crate::learner_data::Data;
use crate::machine::threads;
use crate::options::Options;
use crate::table::{Table, verdict};
use crate::timing::timed;

pub const BUDGET: usize = 200;
/// Sets, and whether rows are dense.
const SETS: [(&str, bool); 4] = [("a9a", false), ("w7a", false), ("ijcnn1", true), ("cod-rna", true)];
/// Rows of a set, at most.
const MOST_ROWS: usize = 60_000;
/// Rows before the clock starts.
const WARM_ROWS: usize = 20_000;
/// Rows timed together.
const BLOCK: usize = 500;
const TURNS: usize = 7;

/// The set on which microseconds are judged.
const JUDGED_SET: &str = "a9a";
/// Most microseconds a round, learners of first order.
const ROUND_TARGET: f64 = 1.2;
/// How many times the bare evaluations a round may take, learners of first order.
const BARE_TARGET: f64 = 2.0;

/// Times the learners named, or all if none is, on all sets that are there. `rows` shortens them.
pub fn run(options: &Options) -> Outcome {
    let Options { rows, seed, bandwidth, .. } = *options;
    let learners: Vec<&'static LearnerEntry> = match &options.learners[..] {
        [] => LEARNERS.to_vec(),
        names => names.iter().map(|name| Ok(find(name)?)).collect::<Outcome<_>>()?,
    };
    for (set, dense) in SETS {
        let kind = if dense { "dense" } else { "sparse" };
        let Some(path) = Data::find(set) else {
            println!(
                "{set} ({kind}): SKIPPED, for NYSTREAM_DATA does not name a folder with it. Its targets do not count as met.\n"
            );
            continue;
        };
        let data = Data::read(&path, dense, seed, MOST_ROWS, bandwidth)?;
        let timed_rows = rows.unwrap_or(MOST_ROWS).min(data.rows.len().saturating_sub(WARM_ROWS));
        println!(
            "{set}, {kind}, {} columns, {:.1} values a row, Gaussian of bandwidth {:.3}; budget {BUDGET}, 1 thread; shuffled \
             with seed {seed}; rounds {} to {}\n",
            data.rows.cols(),
            data.values_a_row(),
            data.kernel.bandwidth().unwrap_or(0.0),
            WARM_ROWS + 1,
            WARM_ROWS + timed_rows,
        );
        let measured = threads(1)?.install(|| measure(&learners, &data, timed_rows))?;
        print(&measured, set == JUDGED_SET);
    }
    Ok(())
}

/// Seconds a round.
struct Measured {
    entry: &'static LearnerEntry,
    centres: usize,
    round: f64,
    bare: f64,
}

fn print(measured: &[Measured], judge_rounds: bool) {
    let mut table =
        Table::new(&["learner", "order", "centres", "rounds/s", "µs a round", "bare µs", "ratio", "target", "verdict"]);
    let micro = |seconds: f64| format!("{:.3}", seconds * 1e6);
    for Measured { entry, centres, round, bare } in measured {
        let ratio = round / bare;
        let (target, met) = match entry.order {
            Order::Second => (String::new(), String::new()),
            Order::First if judge_rounds => {
                let met = ratio <= BARE_TARGET && round * 1e6 < ROUND_TARGET;
                (format!("≤ {BARE_TARGET} bare, < {ROUND_TARGET} µs"), verdict(met))
            }
            Order::First => (format!("≤ {BARE_TARGET} bare"), verdict(ratio <= BARE_TARGET)),
        };
        table.row([
            entry.name.to_owned(),
            entry.order.word().to_owned(),
            centres.to_string(),
            format!("{:.0}", 1.0 / round),
            micro(*round),
            micro(*bare),
            format!("{ratio:.2}"),
            target,
            met,
        ]);
    }
    println!("{table}");
    let of = |name: &str| measured.iter().find(|m| m.entry.name == name).map(|m| m.round);
    if let (Some(skegd), Some(nogd)) = (of("skegd"), of("nogd")) {
        let ratio = skegd / nogd;
        println!("A round of SkeGD is {ratio:.2} rounds of NOGD; target ≤ 1: {}\n", verdict(ratio <= 1.0));
    }
}

/// A learner that has its rows, saved; the streaming ridge is taught them again every turn.
struct Subject {
    entry: &'static LearnerEntry,
    saved: Option<Container>,
    bare: Bare,
    /// Smallest times so far, of each block.
    rounds: Vec<f64>,
    bares: Vec<f64>,
}

enum Running {
    One(Learner),
    Ridge(Box<StreamingRidge>),
}

impl Running {
    fn learn(&mut self, rows: Rows, targets: &[f64], out: &mut Vec<f64>) -> Outcome {
        out.clear();
        match self {
            Self::One(learner) => learner.learn_all(rows, targets, out)?,
            Self::Ridge(learner) => learner.learn(rows, targets, None, out)?,
        }
        Ok(())
    }
}

fn measure(learners: &[&'static LearnerEntry], data: &Data, timed_rows: usize) -> Outcome<Vec<Measured>> {
    let blocks = timed_rows.div_ceil(BLOCK);
    let mut subjects = learners.iter().map(|entry| Subject::new(entry, data, blocks)).collect::<Outcome<Vec<_>>>()?;
    let mut out = Vec::with_capacity(BLOCK);
    for _ in 0..TURNS {
        for subject in &mut subjects {
            let mut running = subject.start(data)?;
            for block in 0..blocks {
                let start = WARM_ROWS + block * BLOCK;
                let end = (start + BLOCK).min(WARM_ROWS + timed_rows);
                let rows = data.rows().slice(start, end);
                let (round, done) = timed(|| running.learn(rows, &data.targets[start..end], &mut out));
                done?;
                let (bare, ()) = timed(|| subject.bare.evaluate(rows));
                subject.rounds[block] = subject.rounds[block].min(round);
                subject.bares[block] = subject.bares[block].min(bare);
            }
        }
    }
    let mean = |times: &[f64]| times.iter().sum::<f64>() / timed_rows as f64;
    Ok(subjects
        .iter()
        .map(|s| Measured { entry: s.entry, centres: s.bare.centres(), round: mean(&s.rounds), bare: mean(&s.bares) })
        .collect())
}

/// The settings of a learner on a set.
pub fn settings(data: &Data, expected_rows: Option<u64>) -> LearnerSettings {
    let mut settings = LearnerSettings::new(data.kernel, data.rows.cols(), Targets::Classes);
    settings.budget = BUDGET;
    settings.expected_rows = expected_rows;
    settings
}

impl Subject {
    fn new(entry: &'static LearnerEntry, data: &Data, blocks: usize) -> Outcome<Self> {
        let mut saved = None;
        let warm = warm(entry, data)?;
        let centres = match &warm {
            Running::One(learner) => {
                saved = Some(learner.to_container()?);
                learner.atoms()
            }
            Running::Ridge(learner) => learner.dictionary().map_or(0, |dictionary| dictionary.len()),
        };
        let bare = match entry.name {
            "fogd" => Bare::features(&data.kernel, data.rows.cols(), centres)?,
            _ => Bare::kernels(data, centres),
        };
        Ok(Self { entry, saved, bare, rounds: vec![f64::INFINITY; blocks], bares: vec![f64::INFINITY; blocks] })
    }

    fn start(&self, data: &Data) -> Outcome<Running> {
        match &self.saved {
            Some(saved) => Ok(Running::One(Learner::from_container(saved.clone())?)),
            None => warm(self.entry, data),
        }
    }
}

/// The learner after the first rows.
fn warm(entry: &'static LearnerEntry, data: &Data) -> Outcome<Running> {
    let mut running = match entry.make {
        Make::Rows { .. } => Running::One(Learner::new(entry.name, settings(data, Some(data.rows.len() as u64)))?),
        Make::Blocks => {
            let options = StreamingOptions { budget: BUDGET, ..StreamingOptions::default() };
            Running::Ridge(Box::new(StreamingRidge::new(options, 1)?))
        }
    };
    let warm = WARM_ROWS.min(data.rows.len());
    running.learn(data.rows().slice(0, warm), &data.targets[..warm], &mut Vec::new())?;
    Ok(running)
}

/// What a round cannot do without.
enum Bare {
    Kernels { set: SupportSet, out: Vec<f64> },
    Features { map: RandomFeatures, weights: Vec<f64>, out: Vec<f64> },
}

impl Bare {
    fn kernels(data: &Data, centres: usize) -> Self {
        let mut set = SupportSet::new(&data.kernel, data.rows.cols(), centres);
        let chosen = Generator::new(1).choose(WARM_ROWS.min(data.rows.len()), centres);
        chosen.iter().for_each(|&i| set.push(data.rows().row(i)));
        Self::Kernels { set, out: vec![0.0; centres] }
    }

    fn features(kernel: &Kernel, columns: usize, features: usize) -> Outcome<Self> {
        let map = RandomFeatures::new(kernel, columns, features / 2, &mut Generator::new(1))?;
        let numbers = vec![0.0; map.len()];
        Ok(Self::Features { map, weights: numbers.clone(), out: numbers })
    }

    fn centres(&self) -> usize {
        match self {
            Self::Kernels { set, .. } => set.len(),
            Self::Features { map, .. } => map.dimension(),
        }
    }

    fn evaluate(&mut self, rows: Rows) {
        for i in 0..rows.len() {
            match self {
                Self::Kernels { set, out } => {
                    set.kernels(rows.row(i), out);
                    black_box(out);
                }
                Self::Features { map, weights, out } => {
                    black_box(map.weighted(rows.row(i), weights, out));
                    black_box(out);
                }
            }
        }
    }
}
