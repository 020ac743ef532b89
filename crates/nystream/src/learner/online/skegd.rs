//! Sketched online gradient descent (SkeGD).
//!
//! X. Zhang and S. Liao, "Incremental Randomized Sketching for Online Kernel Learning", ICML 2019, Alg. 1. Kernel online
//! gradient descent fills a buffer of B rows; from them an incremental randomized sketch gives an explicit feature map φ,
//! in which the hypothesis is then a vector w. Every ρ rounds a row enters the sketch, the map is computed anew, and the
//! hypothesis is carried over to it.
//!
//! A round costs B kernel values at first, then s_m of them, s_m multiply-adds for the output and 2 s_m k for a step. A
//! round in which the map changes costs the kernels of the row with all rows held and a decomposition (see
//! [`IncrementalSketch`]). Beside the rows of the hypothesis (`atoms`: the buffer, later the sample) the rows that entered
//! the sketch are held, as many as option `history` says; the paper calls their number ν and does not count them in B.
//!
//! Departures from the paper:
//! - Line 9 asks |V| = B at every round, which stays true; read as: when it is so for the first time.
//! - Line 14, t mod ρ = 1, never holds for ρ = 1; there every round is meant.
//! - w is kept as u = Qw, so that f(x) = κ(x, samples)ᵀu; both are the same hypothesis. The factor (1 − ηλ) is kept apart
//!   and multiplied in when it has become small.
//! - Line 18 where φ(x) = 0 divides by 0; as the pseudo-inverse φ(x)† of section 4 has it, the hypothesis becomes 0.
//! - Line 18 keeps of the old hypothesis its value at one point. `transfer=project` keeps the values at all sampled points
//!   as well as the new map can (least squares), at the start too; ours.
//! - Rows held for the sketch are bounded by `history` for streams of any length, see [`IncrementalSketch`].

use faer::Mat;

use super::entry::{LearnerEntry, Make, OnlineLearner, Order};
use super::expansion::Expansion;
use super::kogd::{self, Kogd, SMALL};
use super::loss::Loss;
use super::options::Chosen;
use super::settings::{LearnerSettings, Targets};
use super::state::State;
use crate::error::{Error, Result};
use crate::kernel::SupportSet;
use crate::linalg::{Svd, add_gram_times, add_symmetric_times, add_transposed_times, dot, product, times};
use crate::persist::Container;
use crate::rows::Row;
use crate::sketch::incremental::{IncrementalSketch, SketchHeader};

mod options;
#[cfg(test)]
mod tests;

use options::{Plan, Transfer};

pub(super) static ENTRY: LearnerEntry = LearnerEntry {
    name: "skegd",
    title: "sketched online gradient descent",
    citation: "Zhang, Liao, \"Incremental Randomized Sketching for Online Kernel Learning\", ICML 2019, Alg. 1",
    targets: &[Targets::Classes],
    order: Order::First,
    cost: "O(s_m d + s_m k), O(B d) until the buffer is full",
    options: options::SPECS,
    make: Make::Rows { build, load },
};

#[derive(Debug)]
struct SkeGd {
    plan: Plan,
    loss: Loss,
    /// η
    step: f64,
    /// 1 − ηλ
    shrink: f64,
    /// t, rounds so far.
    rounds: u64,
    /// The next round of an update, t mod ρ = 1.
    due: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Fills the buffer V.
    Filling(Box<Kogd>),
    Sketching(Box<Sketching>),
}

#[derive(Debug)]
struct Sketching {
    sketch: IncrementalSketch,
    /// Qᵀ, row-major.
    map: Vec<f64>,
    /// QQᵀ, if a product with it costs no more than one with Qᵀ and one with Q; else nothing. Its rows are filled up with
    /// zeros to whole registers.
    gram: Vec<f64>,
    /// The sampled points x̃ with u = Qw, to be multiplied by `scale`, and κ(x, x̃) of the row looked at last.
    function: Expansion,
    scale: f64,
    /// φ(x)
    features: Vec<f64>,
}

fn build(settings: &LearnerSettings, chosen: &Chosen) -> Result<Box<dyn OnlineLearner>> {
    Ok(Box::new(new(settings, chosen)?))
}

fn new(settings: &LearnerSettings, chosen: &Chosen) -> Result<SkeGd> {
    let plan = Plan::new(settings, chosen)?;
    let first = kogd::new(settings, chosen, Expansion::new(settings))?;
    let Kogd { loss, step, shrink, .. } = first;
    Ok(SkeGd { plan, loss, step, shrink, rounds: 0, due: 1, stage: Stage::Filling(Box::new(first)) })
}

const SKETCH: &str = "sketch";
/// Numbers of a few whole registers, on any processor.
const REGISTERS: usize = 8;

fn load(settings: &LearnerSettings, chosen: &Chosen, file: &mut Container) -> Result<Box<dyn OnlineLearner>> {
    let mut learner = new(settings, chosen)?;
    [learner.rounds] = file.take_counts("rounds")?;
    learner.due = due_after(learner.rounds, learner.plan.cycle);
    learner.stage = match file.document.get(SKETCH).cloned() {
        None => Stage::Filling(Box::new(kogd::read(settings, chosen, file)?)),
        Some(header) => {
            let header: SketchHeader =
                serde_json::from_value(header).map_err(|e| file.malformed(format!("sketch: {e}")))?;
            let sketch = IncrementalSketch::read(&settings.kernel, header, file)?;
            if *sketch.options() != learner.plan.sketch || sketch.rows_entered() < settings.budget as u64 {
                return Err(file.malformed("a sketch of other settings"));
            }
            let mut stage = Sketching::new(sketch);
            stage.function.coefficients = file.take_numbers("coefficients", stage.function.len())?;
            stage.scale = file.take_numbers("scale", 1)?[0];
            if !(SMALL..=1.0).contains(&stage.scale) {
                return Err(file.malformed("a state that no run leads to"));
            }
            Stage::Sketching(Box::new(stage))
        }
    };
    Ok(Box::new(learner))
}

/// The first round after `rounds` of them with t mod ρ = 1; line 14, without a division every round.
fn due_after(rounds: u64, cycle: u64) -> u64 {
    let since = rounds.saturating_sub(1) % cycle;
    if rounds == 0 { 1 } else { rounds.saturating_add(cycle - since) }
}

impl OnlineLearner for SkeGd {
    // Alg. 1, line 4; the sign is taken by the caller.
    fn predict(&mut self, row: Row) -> f64 {
        match &mut self.stage {
            Stage::Filling(first) => first.predict(row),
            Stage::Sketching(second) => second.predict(row),
        }
    }

    fn learn(&mut self, row: Row, target: f64) -> Result<f64> {
        let round = self.rounds + 1;
        let output = match &mut self.stage {
            // Lines 5 to 7.
            Stage::Filling(first) if first.atoms() < self.plan.budget => first.learn(row, target)?,
            // Lines 9 to 12: T₀ = t, the sketches, φ and w. Nothing is learnt from this row, as printed.
            Stage::Filling(first) => {
                let output = first.predict(row);
                let second = Sketching::start(first, &self.plan, row, output)?;
                self.stage = Stage::Sketching(Box::new(second));
                output
            }
            // Lines 14 to 23.
            Stage::Sketching(second) => {
                let output = second.predict(row);
                let margin = if round == self.due {
                    second.update(row, output, self.plan.transfer)?
                } else {
                    // Lines 20 and 21.
                    output
                };
                second.step(self.shrink, -self.step * self.loss.derivative(margin, target));
                output
            }
        };
        self.rounds = round;
        if round == self.due {
            self.due = round.saturating_add(self.plan.cycle);
        }
        Ok(output)
    }

    fn atoms(&self) -> usize {
        match &self.stage {
            Stage::Filling(first) => first.atoms(),
            Stage::Sketching(second) => second.function.len(),
        }
    }

    fn size_bytes(&self) -> usize {
        match &self.stage {
            Stage::Filling(first) => first.size_bytes(),
            Stage::Sketching(second) => {
                let matrices = second.map.capacity() + second.gram.capacity();
                let numbers = matrices + second.features.capacity();
                second.sketch.size_bytes() + second.function.size_bytes() + numbers * 8
            }
        }
    }

    fn save(&self, file: &mut Container) -> Result<()> {
        file.put_counts("rounds", &[self.rounds])?;
        match &self.stage {
            Stage::Filling(first) => first.save(file),
            Stage::Sketching(second) => {
                let header = serde_json::to_value(second.sketch.write(file)?)
                    .map_err(|_| Error::Internal("a sketch that is not plain data"))?;
                match file.document.as_object_mut() {
                    Some(document) => document.insert(SKETCH.to_owned(), header),
                    None => return Err(Error::Internal("a learner's document is not an object")),
                };
                file.put_numbers("coefficients", &second.function.coefficients)?;
                file.put_numbers("scale", &[second.scale])
            }
        }
    }
}

impl Sketching {
    /// With a hypothesis of 0.
    fn new(sketch: IncrementalSketch) -> Self {
        let points = sketch.map().centres().rows();
        let (m, k) = (points.len(), sketch.map().dim());
        let mut support = SupportSet::new(sketch.map().kernel(), points.cols(), m);
        (0..m).for_each(|j| support.push(points.row(j)));
        let function = Expansion { support, coefficients: vec![0.0; m], kernels: vec![0.0; m] };
        let (map, features) = (Vec::with_capacity(m * k), vec![0.0; k]);
        let mut stage = Self { sketch, map, gram: Vec::new(), function, scale: 1.0, features };
        stage.copy_map();
        stage
    }

    fn copy_map(&mut self) {
        self.map.clear();
        let weights = self.sketch.map().weights();
        weights.col_iter().for_each(|column| self.map.extend(column.iter()));
        let (m, k) = (self.function.len(), self.features.len());
        if m <= 2 * k {
            let gram = product(weights, weights.transpose());
            let stride = m.next_multiple_of(REGISTERS);
            self.gram.resize(m * stride, 0.0);
            for (i, row) in self.gram.chunks_exact_mut(stride).enumerate() {
                (0..m).for_each(|j| row[j] = gram[(i, j)]);
            }
        }
    }

    /// Lines 11 and 12, at the row x_T₀ with the output f_T₀(x_T₀).
    fn start(first: &mut Kogd, plan: &Plan, row: Row, output: f64) -> Result<Self> {
        let buffer = &first.function.support;
        let mut second =
            Self::new(IncrementalSketch::start(buffer.kernel(), plan.sketch.clone(), buffer.rows().rows())?);
        second.function.support.kernels(row, &mut second.function.kernels);
        match plan.transfer {
            Transfer::Anchor => second.anchor(output),
            Transfer::Project => {
                let points = second.sketch.map().centres().rows();
                let values: Vec<f64> = (0..points.len()).map(|j| first.predict(points.row(j))).collect();
                second.project(&values)?;
            }
        }
        Ok(second)
    }

    fn predict(&mut self, row: Row) -> f64 {
        self.scale * self.function.output(row)
    }

    /// Lines 15 to 18, after [`predict`](Self::predict) of the same row; gives f̄(x).
    fn update(&mut self, row: Row, output: f64, transfer: Transfer) -> Result<f64> {
        let values = match transfer {
            Transfer::Anchor => Vec::new(),
            Transfer::Project => self.values_at_samples(),
        };
        // Lines 15 and 16.
        self.sketch.enter(row, &self.function.kernels)?;
        self.sketch.refresh()?;
        self.copy_map();
        match transfer {
            Transfer::Anchor => self.anchor(output),
            Transfer::Project => self.project(&values)?,
        }
        Ok(self.scale * dot(&self.function.coefficients, &self.function.kernels))
    }

    /// Line 18: w̄ = f(x) φ(x) / ‖φ(x)‖².
    fn anchor(&mut self, output: f64) {
        self.function.coefficients.fill(0.0);
        self.scale = 1.0;
        self.compute_features();
        let squared = dot(&self.features, &self.features);
        if squared > 0.0 {
            self.add_features(output / squared);
        }
    }

    /// f at the sampled points.
    fn values_at_samples(&self) -> Vec<f64> {
        let points = self.sketch.map().centres().rows();
        let Expansion { support, coefficients, .. } = &self.function;
        let mut kernels = vec![0.0; points.len()];
        (0..points.len()).map(|j| self.scale * support.weighted(points.row(j), coefficients, &mut kernels)).collect()
    }

    /// w̄ of least norm among those that minimise Σ_j (⟨w̄, φ(x̃_j)⟩ − value_j)².
    fn project(&mut self, values: &[f64]) -> Result<()> {
        let map = self.sketch.map();
        let features = map.features(map.centres().rows());
        let values = Mat::from_fn(values.len(), 1, |j, _| values[j]);
        let w = Svd::new(features.as_ref())?.solve(values.as_ref());
        let u = product(map.weights(), w.as_ref());
        self.function.coefficients.iter_mut().enumerate().for_each(|(j, out)| *out = u[(j, 0)]);
        self.scale = 1.0;
        Ok(())
    }

    /// Line 23: w ← (1 − ηλ) w + `along` φ(x), which is u ← (1 − ηλ) u + `along` QQᵀκ(x, x̃).
    fn step(&mut self, shrink: f64, along: f64) {
        self.scale *= shrink;
        if self.scale < SMALL {
            self.function.scale(self.scale);
            self.scale = 1.0;
        }
        if along != 0.0 {
            let factor = along / self.scale;
            let Expansion { kernels, coefficients, .. } = &mut self.function;
            if self.gram.is_empty() {
                add_gram_times(&self.map, kernels.len(), kernels, factor, coefficients);
            } else {
                let stride = kernels.len().next_multiple_of(REGISTERS);
                add_symmetric_times(&self.gram, stride, kernels, factor, coefficients);
            }
        }
    }

    /// Line 17: φ(x) = Qᵀκ(x, x̃), of the row looked at last.
    fn compute_features(&mut self) {
        times(&self.map, self.function.len(), &self.function.kernels, &mut self.features);
    }

    /// u ← u + `factor` Q φ(x).
    fn add_features(&mut self, factor: f64) {
        let stride = self.function.len();
        add_transposed_times(&self.map, stride, &self.features, factor, &mut self.function.coefficients);
    }
}
