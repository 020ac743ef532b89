//! `guarantees`: SQUEAK and INK against the exact kernel matrix, over many seeds.
//!
//! INK, Thm. 1 and 2, and SQUEAK, Thm. 1: Eq. 11, 0 ≼ K − K̃ ≼ γ/(1−ε) K(K + γI)⁻¹, holds at every step with probability
//! 1 − δ if q̄ is what the theorem asks for. Here four streams are followed with smaller and smaller q̄ too. Departures
//! from the theorems: "every step" is every checked one, eight of a stream.
//!
//! Schedules and merging are compared twice. As they stand they differ in *when* atoms were last scored: lazily, old atoms
//! may stand above their scores, per point the latest rows do, because of line 5's floor. So every dictionary is also scored
//! once more, on a copy, and these copies are what is judged.

mod problem;
mod runs;
mod schedules;
mod tables;

use nystream::Result;
use serde_json::{Value, json};

use crate::findings::Findings;
use crate::study::{Seeds, Settings};
use problem::{Problem, problems};
use runs::{Method, Runs, repeat, repeat_both};
use schedules::Comparisons;

pub(crate) const MINUTES: u32 = 12;

/// Rows of each stream.
const ROWS: usize = 200;
/// Checked steps of a stream.
const CHECKS: usize = 8;
/// Runs of everything.
const SEEDS: u64 = 200;
/// γ.
const LEVERAGE_RIDGE: f64 = 1.0;
/// ε.
const ACCURACY: f64 = 0.5;
/// δ.
const FAILURE_PROB: f64 = 0.1;
/// Rows of a block.
const BLOCK: usize = 25;
/// Further scorings of one dictionary, to see what their number does.
const AGAIN: [usize; 4] = [1, 2, 4, 16];
/// Schedules are judged at those q̄ where per-point runs keep the promise: Eq. 11 holds in this share of them at least, over all
/// streams. With fewer copies there is no promise that they could share.
const WORTH_JUDGING: f64 = 1.0 - FAILURE_PROB;
/// Chance of a false alarm in all judged comparisons together.
const FALSE_ALARM: f64 = 0.05;
/// A judged difference is looked for on this many times as many other seeds before it counts: of twenty runs without any, one
/// finds one.
const RETRIED: u64 = 3;
/// q̄ of SQUEAK, followed by the theorem's.
const SQUEAK_LADDER: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 512];
/// q̄ at which schedules are compared.
const COMPARED: [u64; 4] = [4, 16, 32, 64];
/// q̄ of INK, up to the first at which every row is kept in every run.
const INK_LADDER: [u64; 11] = [10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000];
const VARIANTS: [Method; 6] =
    [Method::WithoutFloor, Method::Blocked, Method::Lazy, Method::Merged2, Method::Merged4, Method::MergedLast];
/// Run beside them to see what the length of a block does.
const LENGTHS: [Method; 2] = [Method::Blocks5, Method::Blocks100];

/// Everything that was run on one stream.
struct Results {
    problem: Problem,
    /// Per point, up the ladder.
    ladder: Vec<Runs>,
    /// At each compared q̄: per point, then the variants, then the other lengths of blocks.
    compared: Vec<Vec<Runs>>,
    /// The same runs, their dictionaries scored once more.
    settled: Vec<Vec<Runs>>,
    /// INK-ORACLE and INK-ESTIMATE up their ladder.
    ink: [Vec<Runs>; 2],
}

impl Results {
    fn effective_dim(&self) -> f64 {
        self.problem.steps.last().map_or(f64::NAN, |step| step.effective_dim)
    }
}

/// What is run, made smaller by tests.
struct Plan {
    rows: usize,
    seeds: Seeds,
    squeak: Vec<u64>,
    compared: Vec<u64>,
    ink: Vec<u64>,
}

pub(crate) fn run(settings: &Settings, stage: &mut dyn FnMut(&str)) -> Result<Findings> {
    let seeds = settings.seeds_or(SEEDS)?;
    let squeak = SQUEAK_LADDER.into_iter().chain([theorem_oversampling()]).collect();
    run_plan(&Plan { rows: ROWS, seeds, squeak, compared: COMPARED.to_vec(), ink: INK_LADDER.to_vec() }, stage)
}

fn run_plan(plan: &Plan, stage: &mut dyn FnMut(&str)) -> Result<Findings> {
    let mut results = Vec::new();
    for problem in problems(plan.rows)? {
        results.push(on(problem, plan, stage)?);
    }
    let mut findings = Findings::new("guarantees", "Guarantees against the exact kernel matrix");
    let comparisons = Comparisons::of(plan, &results, stage)?;
    tables::write(&mut findings, plan, &results, &comparisons);
    findings.data = numbers(plan, &results);
    Ok(findings)
}

fn on(problem: Problem, plan: &Plan, stage: &mut dyn FnMut(&str)) -> Result<Results> {
    let name = problem.name;
    // Every batch of runs has seeds of its own, so that no two samples that are compared depend on each other.
    let mut batch = 0;
    let mut next = |method: Method, q: u64| {
        stage(&format!("guarantees: {name}, {}, q̄ = {q}", method.name()));
        batch += 1;
        batch * Seeds::END + plan.seeds.first
    };
    let mut ladder = Vec::new();
    for &q in &plan.squeak {
        ladder.push(repeat(&problem, Method::PerPoint, q, next(Method::PerPoint, q), plan.seeds.count)?);
    }
    let (mut compared, mut settled) = (Vec::new(), Vec::new());
    for &q in &plan.compared {
        let (mut group, mut again) = (Vec::new(), Vec::new());
        for method in std::iter::once(Method::PerPoint).chain(VARIANTS).chain(LENGTHS) {
            let [standing, scored] = repeat_both(&problem, method, q, next(method, q), plan.seeds.count)?;
            group.push(standing);
            again.push(scored);
        }
        compared.push(group);
        settled.push(again);
    }
    let mut ink = [Vec::new(), Vec::new()];
    for (list, method) in ink.iter_mut().zip([Method::InkOracle, Method::InkEstimate]) {
        for &q in &plan.ink {
            list.push(repeat(&problem, method, q, next(method, q), plan.seeds.count)?);
            if list.last().is_some_and(|last| last.runs.iter().all(|run| run.atoms as usize == plan.rows)) {
                break;
            }
        }
    }
    Ok(Results { problem, ladder, compared, settled, ink })
}

/// SQUEAK's q̄ for the whole stream: 39 α log(2n/δ)/ε², α = (1+ε)/(1−ε).
fn theorem_oversampling() -> u64 {
    let factor = (1.0 + ACCURACY) / (1.0 - ACCURACY);
    (39.0 * factor * (2.0 * ROWS as f64 / FAILURE_PROB).ln() / ACCURACY.powi(2)).ceil() as u64
}

fn numbers(plan: &Plan, results: &[Results]) -> Value {
    let runs = |runs: &Runs, d_eff: f64| {
        let q = runs.oversampling as f64;
        json!({
            "method": runs.method.name(),
            "oversampling": runs.oversampling,
            "holds_at_every_step": runs.method.follows().then(|| runs.share(|run| run.holds_always)),
            "holds_at_the_end": runs.share(|run| run.holds),
            "ratio": { "mean": runs.mean(|run| run.ratio), "max": runs.largest(|run| run.ratio) },
            "worst_ratio": { "mean": runs.mean(|run| run.worst_ratio), "max": runs.largest(|run| run.worst_ratio) },
            "atoms": runs.mean(|run| run.atoms),
            "atoms_share": runs.mean(|run| run.atoms) / (q * d_eff),
            "copies_share": runs.mean(|run| run.copies) / (q * d_eff),
            "theorem_oversampling": runs.largest(|run| run.theorem),
        })
    };
    let one = |result: &Results| {
        let d_eff = result.effective_dim();
        let list = |all: &[Runs]| all.iter().map(|r| runs(r, d_eff)).collect::<Vec<_>>();
        json!({
            "name": result.problem.name,
            "effective_dim": d_eff,
            "per_point": list(&result.ladder),
            "schedules": result.compared.iter().flat_map(|all| list(all)).collect::<Vec<_>>(),
            "schedules_scored_once_more": result.settled.iter().flat_map(|all| list(all)).collect::<Vec<_>>(),
            "ink_oracle": list(&result.ink[0]),
            "ink_estimate": list(&result.ink[1]),
        })
    };
    json!({
        "rows": plan.rows, "seeds": plan.seeds.count, "first_seed": plan.seeds.first, "checks": CHECKS, "leverage_ridge": LEVERAGE_RIDGE,
        "accuracy": ACCURACY, "failure_prob": FAILURE_PROB, "sets": results.iter().map(one).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(seeds: u64) -> Plan {
        Plan {
            rows: 48,
            seeds: Seeds { first: 0, count: seeds },
            squeak: vec![1, 8, theorem_oversampling()],
            compared: vec![4],
            ink: vec![30, 1_000_000],
        }
    }

    #[test]
    fn at_the_theorems_oversampling_every_run_keeps_the_bound() {
        for problem in problems(48).unwrap() {
            for method in [Method::PerPoint, Method::WithoutFloor, Method::Blocked, Method::Lazy, Method::Merged4] {
                let runs = repeat(&problem, method, theorem_oversampling(), 1, 3).unwrap();
                assert!(runs.runs.iter().all(|run| run.holds_always && run.holds), "{} {method:?}", problem.name);
                assert!(runs.largest(|run| run.worst_ratio) <= 1.0 && runs.largest(|run| run.worst_copies) <= 3.0);
            }
        }
    }

    #[test]
    fn one_copy_is_not_enough_and_ink_ends_with_every_row() {
        let problem = &problems(48).unwrap()[0];
        let poor = repeat(problem, Method::PerPoint, 1, 1, 10).unwrap();
        assert!(poor.share(|run| run.holds_always) < 0.5 && poor.mean(|run| run.atoms) < 30.0);
        let whole = repeat(problem, Method::InkOracle, 1_000_000, 1, 2).unwrap();
        assert!(whole.runs.iter().all(|run| run.atoms == 48.0 && run.copies == 48.0 && run.holds_always));
    }

    #[test]
    fn threads_do_not_matter_and_seeds_do() {
        let problem = &problems(48).unwrap()[2];
        let on = |threads: usize, first_seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| repeat(problem, Method::Merged2, 4, first_seed, 5).unwrap().runs)
        };
        assert_eq!(on(1, 7), on(3, 7));
        assert_ne!(on(1, 7), on(1, 70));
    }

    #[test]
    fn the_report_says_what_was_run() {
        let findings = run_plan(&small(4), &mut |_| {}).unwrap();
        let text = findings.to_markdown();
        for word in ["48 rows", "4 seeds (fewer than the usual 200)", "heavy-tailed", "INK-ESTIMATE", "merged, 4 parts"]
        {
            assert!(text.contains(word), "{word}");
        }
        assert!(!text.contains("NaN") && !text.contains("nan"), "{text}");
        assert_eq!(findings.figures().count(), 3);
        assert_eq!(findings.data["sets"].as_array().unwrap().len(), 4);
        assert_eq!(findings.data["sets"][0]["per_point"][2]["holds_at_every_step"], 1.0);
        let others = Plan { seeds: Seeds { first: 9, count: 4 }, ..small(4) };
        let others = run_plan(&others, &mut |_| {}).unwrap();
        assert!(others.to_markdown().contains("4 seeds from 9 on (fewer"));
        assert_ne!(others.data["sets"][0]["per_point"], findings.data["sets"][0]["per_point"]);
    }
}
