//! `one-pass`: the streaming fit beside the two-pass fit with as many atoms: test errors, and the coverage of intervals.

use std::time::Instant;

use nystream::fit::{FitOptions, Silent, two_pass};
use nystream::learner::stream;
use nystream::learner::streaming::StreamingOptions;
use nystream::model::{TrainedModel, Wanted};
use nystream::preprocess::TaskRequest;
use nystream::source::{MemorySource, RecordBlock, RecordSource};
use nystream::{Error, Result};
use serde_json::{Value, json};

use crate::findings::{Findings, Verdict};
use crate::sets::{Numbers, file};
use crate::statistics::{geometric_mean, largest, mean};
use crate::study::{Seeds, Settings};
use crate::table::{Align, Table, count, significant};

pub(crate) const MINUTES: u32 = 10;

const SETS: [&str; 5] = ["california", "casp", "cpuact", "kin8nm", "pol"];
const BUDGETS: [usize; 2] = [200, 1000];
/// Splits of every set.
const SPLITS: u64 = 5;
/// How many times the error of two passes that of one may be.
const TARGET: f64 = 1.05;
/// Standard deviations on either side of a normal variable's mean that hold 90 % of it.
const NINETY: f64 = 1.6449;
/// Between these shares the interval of 90 % is to cover, on at least so many sets.
const COVERAGE: (f64, f64) = (0.86, 0.94);
const COVERED_SETS: usize = 4;

/// One fit, judged on the test rows.
#[derive(Debug, Clone, Copy)]
struct Fit {
    rmse: f64,
    /// Share of the test rows in their 90 % interval.
    coverage: f64,
    /// Mean standard deviation.
    deviation: f64,
    seconds: f64,
}

/// Both fits of every split of a set, with the same budget.
struct Cell {
    set: &'static str,
    budget: usize,
    /// Training rows.
    rows: u64,
    /// One pass, two passes.
    runs: Vec<[Fit; 2]>,
    /// What went wrong in splits that could not be fitted.
    failures: Vec<String>,
}

impl Cell {
    fn mean(&self, passes: usize, of: impl Fn(&Fit) -> f64) -> f64 {
        mean(self.runs.iter().map(|fits| of(&fits[passes - 1])))
    }

    /// One pass over two, split by split.
    fn ratios(&self, of: impl Fn(&Fit) -> f64) -> Vec<f64> {
        self.runs.iter().map(|[one, two]| of(one) / of(two)).collect()
    }

    fn error_ratio(&self) -> f64 {
        geometric_mean(self.ratios(|fit| fit.rmse))
    }

    /// Whether one pass does about as well in all splits; and in words.
    fn verdict(&self) -> (String, bool) {
        let ratio = self.error_ratio();
        let mut found = if self.runs.is_empty() { "no fit".to_owned() } else { format!("{ratio:.3} times") };
        if let Some(failure) = self.failures.first() {
            let splits = self.runs.len() + self.failures.len();
            found += &format!("; {} of {splits} splits failed: {failure}", self.failures.len());
        }
        (found, ratio <= TARGET && self.failures.is_empty())
    }

    /// A number over the splits that were fitted, if there are any.
    fn shown(&self, number: impl FnOnce() -> String) -> String {
        if self.runs.is_empty() { "failed".to_owned() } else { number() }
    }
}

pub(crate) fn run(settings: &Settings, stage: &mut dyn FnMut(&str)) -> Result<Findings> {
    run_sized(settings, &BUDGETS, stage)
}

fn run_sized(settings: &Settings, budgets: &[usize], stage: &mut dyn FnMut(&str)) -> Result<Findings> {
    let splits = settings.seeds_or(SPLITS)?;
    let limit = settings.row_limit()?;
    let folder = settings.data_folder()?;
    let mut cells = Vec::new();
    for set in SETS {
        let numbers = Numbers::read(&file(folder, &format!("{set}.csv.gz")))?;
        for &budget in budgets {
            stage(&format!("one-pass: {set} with {budget} atoms"));
            let mut cell = Cell { set, budget, rows: 0, runs: Vec::new(), failures: Vec::new() };
            for seed in splits.each() {
                let (mut train, mut test) = numbers.split(seed, limit.unwrap_or(usize::MAX))?;
                match fits(&mut train, budget, seed) {
                    Ok([one, two]) => {
                        cell.rows = two.0.summary().rows;
                        cell.runs.push([judge(&one, &mut test)?, judge(&two, &mut test)?]);
                    }
                    // A fit that breaks down is a finding of ours and no reason to lose the others.
                    Err(error @ Error::NotPositiveDefinite { .. }) => cell.failures.push(error.to_string()),
                    Err(error) => return Err(error),
                }
            }
            cells.push(cell);
        }
    }
    let judged = limit.is_none() && splits.count >= SPLITS;
    Ok(report(&cells, budgets, splits, limit, judged))
}

/// A model with the seconds that it took.
type Timed = (TrainedModel, f64);

/// One pass and two passes over the same rows in the same order, defaults but for the budget.
fn fits(train: &mut MemorySource, budget: usize, seed: u64) -> Result<[Timed; 2]> {
    let mut options = FitOptions { budget, seed, ..FitOptions::default() };
    options.table.task = TaskRequest::Regression;
    let streaming = StreamingOptions { budget, seed, ..StreamingOptions::default() };
    let start = Instant::now();
    let one = stream(train, options.table.clone(), streaming, &mut Silent)?;
    let one = (one, start.elapsed().as_secs_f64());
    train.rewind()?;
    let start = Instant::now();
    let two = two_pass(train, &options, &mut Silent)?;
    Ok([one, (two, start.elapsed().as_secs_f64())])
}

fn judge((model, seconds): &Timed, test: &mut MemorySource) -> Result<Fit> {
    test.rewind()?;
    let mut predictor = model.predictor(test.schema(), test.origin())?;
    let mut block = RecordBlock::default();
    let (mut squared, mut inside, mut deviation, mut rows) = (0.0, 0.0, 0.0, 0.0);
    while test.read(&mut block, 4096)? {
        predictor.predict(&block, Wanted { targets: true, deviations: true })?;
        let (found, truth) = (predictor.predictions(), &predictor.batch().targets);
        for ((value, std), y) in found.values.iter().zip(&found.deviations).zip(truth) {
            squared += (value - y).powi(2);
            inside += f64::from(u8::from((value - y).abs() <= NINETY * std));
            deviation += std;
            rows += 1.0;
        }
    }
    Ok(Fit { rmse: (squared / rows).sqrt(), coverage: inside / rows, deviation: deviation / rows, seconds: *seconds })
}

fn report(cells: &[Cell], budgets: &[usize], splits: Seeds, limit: Option<usize>, judged: bool) -> Findings {
    let mut findings = Findings::new("one-pass", "One pass beside two");
    let cut = limit.map_or_else(String::new, |rows| format!(" Cut to {} rows of each order.", count(rows as u64)));
    let fewer = if judged { "" } else { " Targets are not judged on fewer splits or rows than usual." };
    findings.text(format!(
        "The streaming fit and the two-pass fit of the same rows in the same order with as many atoms, defaults otherwise; \
         inputs standardised (one pass: by its first rows). Rows are shuffled by the seed, nine tenths are learnt, the rest \
         judge. Means over {} split{}{}, ratios geometric means; {} threads.{cut}{fewer}",
        splits.count,
        if splits.count == 1 { "" } else { "s" },
        if splits.first > 0 { format!(" from seed {} on", splits.first) } else { String::new() },
        rayon::current_num_threads(),
    ));
    let verdict = |target: String, found: String, met: bool| Verdict { target, found, met: judged.then_some(met) };
    findings.heading("Test error");
    findings.table(errors(cells));
    let on_error = |cell: &Cell| {
        let target = format!("{} with {} atoms: at most {TARGET} times the error of two passes", cell.set, cell.budget);
        let (found, met) = cell.verdict();
        verdict(target, found, met)
    };
    findings.verdicts(cells.iter().map(on_error).collect());
    findings.heading("Uncertainty");
    findings.text(format!(
        "Share of the test rows within {NINETY} standard deviations of their prediction: 90 % is right."
    ));
    findings.table(uncertainty(cells));
    let (low, high) = COVERAGE;
    let on_coverage = |&budget: &usize| {
        let sets = cells.iter().filter(|cell| cell.budget == budget);
        let fits = |cell: &&Cell| cell.failures.is_empty() && (low..=high).contains(&cell.mean(1, |fit| fit.coverage));
        let (all, good) = (sets.clone().count(), sets.filter(fits).count());
        let between = format!("between {} and {}", percent(low), percent(high));
        let target = format!("one pass with {budget} atoms: coverage {between} on at least {COVERED_SETS} sets");
        verdict(target, format!("on {good} of {all}"), good >= COVERED_SETS)
    };
    findings.verdicts(budgets.iter().map(on_coverage).collect());
    findings.data = json!({
        "splits": splits.count, "first_seed": splits.first, "rows": limit, "threads": rayon::current_num_threads(),
        "runs": cells.iter().map(numbers).collect::<Vec<_>>(),
    });
    findings
}

fn errors(cells: &[Cell]) -> Table {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("set", Align::Left),
        right("rows learnt"),
        right("atoms"),
        right("RMSE, one pass"),
        right("RMSE, two passes"),
        right("ratio"),
        right("largest ratio"),
        right("time, one pass"),
        right("time, two passes"),
    ]);
    for cell in cells {
        table.row([
            cell.set.to_owned(),
            count(cell.rows),
            cell.budget.to_string(),
            cell.shown(|| significant(cell.mean(1, |fit| fit.rmse), 4)),
            cell.shown(|| significant(cell.mean(2, |fit| fit.rmse), 4)),
            cell.shown(|| format!("{:.3}", cell.error_ratio())),
            cell.shown(|| format!("{:.3}", largest(cell.ratios(|fit| fit.rmse)))),
            cell.shown(|| format!("{:.2} s", cell.mean(1, |fit| fit.seconds))),
            cell.shown(|| format!("{:.2} s", cell.mean(2, |fit| fit.seconds))),
        ]);
    }
    table
}

fn uncertainty(cells: &[Cell]) -> Table {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("set", Align::Left),
        right("atoms"),
        right("coverage, one pass"),
        right("coverage, two passes"),
        right("width of one over two"),
    ]);
    for cell in cells {
        table.row([
            cell.set.to_owned(),
            cell.budget.to_string(),
            cell.shown(|| percent(cell.mean(1, |fit| fit.coverage))),
            cell.shown(|| percent(cell.mean(2, |fit| fit.coverage))),
            cell.shown(|| format!("{:.3}", geometric_mean(cell.ratios(|fit| fit.deviation)))),
        ]);
    }
    table
}

fn percent(share: f64) -> String {
    format!("{} %", significant(100.0 * share, 3))
}

fn numbers(cell: &Cell) -> Value {
    let all = |passes: usize| {
        let of = |value: fn(&Fit) -> f64| cell.runs.iter().map(|fits| value(&fits[passes - 1])).collect::<Vec<f64>>();
        json!({
            "rmse": of(|fit| fit.rmse), "coverage": of(|fit| fit.coverage),
            "mean_deviation": of(|fit| fit.deviation), "seconds": of(|fit| fit.seconds),
        })
    };
    json!({
        "set": cell.set, "budget": cell.budget, "rows": cell.rows, "ratio": cell.error_ratio(),
        "one_pass": all(1), "two_passes": all(2), "failures": cell.failures,
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use nystream::random::Generator;

    use super::*;

    /// A folder with a small set under each of the names: a sum of two columns of four, with normal noise of deviation 0.5.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (seed, set) in SETS.iter().enumerate() {
            let mut rng = Generator::new(seed as u64);
            let mut text = String::from("a,b,c,d,target\n");
            for _ in 0..1600 {
                let [a, b, c, d] = [(); 4].map(|()| rng.normal());
                let target = a.sin() + b + 0.5 * rng.normal();
                writeln!(text, "{a},{b},{c},{d},{target}").unwrap();
            }
            std::fs::write(folder.path().join(format!("{set}.csv")), text).unwrap();
        }
        folder
    }

    #[test]
    fn small_sets_are_judged_alike_and_not_against_the_targets() {
        let folder = folder();
        let settings =
            Settings { seeds: Some(1), rows: None, data: Some(folder.path().to_owned()), ..Settings::default() };
        let findings = run_sized(&settings, &[40], &mut |_| {}).unwrap();
        let text = findings.to_markdown();
        assert!(text.contains("## Uncertainty") && text.contains("1 split,"), "{text}");
        // A verdict a set and one on coverage; one split is too few.
        assert_eq!(findings.all_verdicts().count(), 6);
        assert!(findings.all_verdicts().all(|verdict| verdict.met.is_none()));
        for run in findings.data["runs"].as_array().unwrap() {
            assert_eq!(run["rows"], 1440);
            let number = |passes: &str, name: &str| run[passes][name][0].as_f64().unwrap();
            for passes in ["one_pass", "two_passes"] {
                // The noise alone is 0.5 ± 0.028 on 160 rows; without a fit it would be 1.3.
                assert!((0.36..0.8).contains(&number(passes, "rmse")), "{run}");
                // 90 % ± 2.4 % if deviations are right: five of them.
                assert!((0.78..=1.0).contains(&number(passes, "coverage")), "{run}");
                assert!((0.3..1.0).contains(&number(passes, "mean_deviation")), "{run}");
            }
            let ratio = number("one_pass", "rmse") / number("two_passes", "rmse");
            assert!((run["ratio"].as_f64().unwrap() / ratio - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_fit_that_fails_misses_the_target_and_is_told() {
        let fit = Fit { rmse: 1.0, coverage: 0.9, deviation: 1.0, seconds: 1.0 };
        let mut cell = Cell { set: "pol", budget: 10, rows: 9, runs: vec![[fit; 2]], failures: Vec::new() };
        assert_eq!(cell.verdict(), ("1.000 times".to_owned(), true));
        cell.failures.push("not positive definite".to_owned());
        let (found, met) = cell.verdict();
        assert!(!met && found.contains("1 of 2 splits failed: not positive"), "{found}");
        cell.runs.clear();
        let cells: Vec<Cell> = vec![cell];
        let findings = report(&cells, &[10], Seeds { first: 0, count: SPLITS }, None, true);
        assert!(findings.all_verdicts().all(|verdict| verdict.met == Some(false)));
        assert!(errors(&cells).to_markdown().contains("| failed |"));
    }

    #[test]
    fn rows_cut_the_sets_and_a_missing_set_is_named() {
        let folder = folder();
        let mut settings =
            Settings { seeds: Some(1), rows: Some(1000), data: Some(folder.path().to_owned()), ..Settings::default() };
        let findings = run_sized(&settings, &[20], &mut |_| {}).unwrap();
        assert_eq!(findings.data["runs"][0]["rows"], 900);
        assert!(findings.to_markdown().contains("Cut to 1,000 rows"));
        std::fs::remove_file(folder.path().join("pol.csv")).unwrap();
        let message = run_sized(&settings, &[20], &mut |_| {}).unwrap_err().to_string();
        assert!(message.contains("pol.csv.gz"), "{message}");
        settings.data = None;
        assert!(run_sized(&settings, &[20], &mut |_| {}).unwrap_err().to_string().contains("data"));
    }
}
