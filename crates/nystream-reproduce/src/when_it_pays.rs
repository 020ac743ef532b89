//! `when-it-pays`: dictionaries of equal size on data where leverage scores should matter, and where they should not.

use nystream::Result;
use serde_json::{Value, json};

use crate::contest::{Choice, Contestant, Scores, Set, sets};
use crate::findings::{Findings, Verdict};
use crate::plot::{Chart, Kind, Series, side_by_side};
use crate::statistics::{geometric_mean, mean};
use crate::study::{Seeds, Settings};
use crate::table::{Align, Table, significant};

pub(crate) const MINUTES: u32 = 10;

const TRAIN: usize = 1500;
const TEST: usize = 1000;
const SEEDS: u64 = 40;
const SIZES: [usize; 3] = [50, 100, 200];
/// How many times uniform sampling's error SQUEAK's may be where scores cannot help.
const NO_WORSE: f64 = 1.05;

/// One contestant on one set at one size: a choice and its scores a seed.
struct Entry {
    contestant: Contestant,
    runs: Vec<(Choice, Scores)>,
}

/// All contestants on one set at one size.
struct Cell {
    size: usize,
    leverage_ridge: f64,
    entries: Vec<Entry>,
}

/// Takes one of the scores.
type Measure = fn(&Scores) -> f64;

const MEASURES: [(&str, Measure); 3] =
    [("‖K − K̃‖₂", |s| s.spectral), ("tr(K − K̃)/tr K", |s| s.trace), ("test RMSE", |s| s.rmse)];

impl Entry {
    fn mean(&self, of: impl Fn(&(Choice, Scores)) -> f64) -> f64 {
        mean(self.runs.iter().map(of))
    }
}

impl Cell {
    fn entry(&self, contestant: Contestant) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.contestant == contestant)
    }

    /// How many times uniform sampling's error, seed by seed, SQUEAK's is.
    fn quotient(&self, of: Measure) -> f64 {
        let (Some(ours), Some(theirs)) = (self.entry(Contestant::Squeak), self.entry(Contestant::Uniform)) else {
            return f64::NAN;
        };
        geometric_mean(ours.runs.iter().zip(&theirs.runs).map(|(ours, theirs)| of(&ours.1) / of(&theirs.1)))
    }
}

pub(crate) fn run(settings: &Settings, stage: &mut dyn FnMut(&str)) -> Result<Findings> {
    run_sized(settings.seeds_or(SEEDS)?, TRAIN, TEST, &SIZES, stage)
}

fn run_sized(
    seeds: Seeds,
    train: usize,
    test: usize,
    sizes: &[usize],
    stage: &mut dyn FnMut(&str),
) -> Result<Findings> {
    let mut results = Vec::new();
    for set in sets(train, test)? {
        let mut cells = Vec::new();
        for &size in sizes {
            stage(&format!("when-it-pays: {}, {size} atoms", set.name));
            cells.push(contest(&set, size, seeds)?);
        }
        results.push((set, cells));
    }
    let mut findings = Findings::new("when-it-pays", "When leverage scores pay");
    let fewer = if seeds.count < SEEDS { format!(" (fewer than the usual {SEEDS})") } else { String::new() };
    findings.text(format!(
        "{train} training rows, {test} test rows, means over {seeds}{fewer}. γ is such that SQUEAK (q̄ = 5, blocks of \
         64 rows) ends with about the size named; uniform, rpcholesky and batch-exact then get exactly as many atoms as that run \
         of SQUEAK ended with, INK-ESTIMATE as many as a budget. However chosen, atoms are judged as plain Nyström. Times \
         are those of choosing the atoms, measured on a machine that may have had other work."
    ));
    findings.verdicts(results.iter().map(|(set, cells)| verdict(set, cells)).collect());
    for (set, cells) in &results {
        findings.heading(set.name);
        findings.text(format!("{}.", set.about));
        findings.table(table(cells));
    }
    findings.figure("when-it-pays", "kernel error against the number of atoms", figure(&results));
    findings.data = numbers(&results, seeds, train);
    Ok(findings)
}

fn contest(set: &Set, size: usize, seeds: Seeds) -> Result<Cell> {
    let leverage_ridge = set.leverage_ridge_for(size, 1 << 32)?;
    let mut entries: Vec<Entry> =
        Contestant::ALL.iter().map(|&contestant| Entry { contestant, runs: Vec::new() }).collect();
    for seed in seeds.each() {
        let mut count = size;
        for entry in &mut entries {
            let choice = set.choose(entry.contestant, count, leverage_ridge, seed)?;
            if entry.contestant == Contestant::Squeak {
                count = choice.atoms.len();
            }
            let scores = set.judge(&choice.atoms)?;
            entry.runs.push((choice, scores));
        }
    }
    Ok(Cell { size, leverage_ridge, entries })
}

fn verdict(set: &Set, cells: &[Cell]) -> Verdict {
    let (words, limit) = if set.low_coherence {
        (format!("no more than {NO_WORSE} times uniform's errors"), NO_WORSE)
    } else {
        ("errors below uniform's at every size".to_owned(), 1.0)
    };
    let quotients: Vec<(String, bool)> = MEASURES
        .iter()
        .map(|(name, of)| {
            let all: Vec<f64> = cells.iter().map(|cell| cell.quotient(*of)).collect();
            let met = all.iter().all(|&q| if set.low_coherence { q <= limit } else { q < limit });
            let list: Vec<String> = all.iter().map(|&q| significant(q, 3)).collect();
            (format!("{name} {} times", list.join(", ")), met)
        })
        .collect();
    let found: Vec<&str> = quotients.iter().map(|(text, _)| text.as_str()).collect();
    Verdict::new(format!("{}: SQUEAK has {words}", set.name), found.join("; "), quotients.iter().all(|(_, met)| *met))
}

fn table(cells: &[Cell]) -> Table {
    let right = |name| (name, Align::Right);
    let [(spectral, _), (trace, _), (rmse, _)] = MEASURES;
    let mut table = Table::new(&[
        right("size"),
        right("γ"),
        ("method", Align::Left),
        right("atoms"),
        right(spectral),
        right(trace),
        right(rmse),
        right("time"),
    ]);
    for cell in cells {
        for entry in &cell.entries {
            table.row([
                cell.size.to_string(),
                significant(cell.leverage_ridge, 3),
                entry.contestant.name().to_owned(),
                format!("{:.1}", entry.mean(|(choice, _)| choice.atoms.len() as f64)),
                significant(entry.mean(|(_, scores)| scores.spectral), 4),
                significant(entry.mean(|(_, scores)| scores.trace), 4),
                significant(entry.mean(|(_, scores)| scores.rmse), 4),
                format!("{} ms", significant(1e3 * entry.mean(|(choice, _)| choice.seconds), 3)),
            ]);
        }
    }
    table
}

fn figure(results: &[(Set, Vec<Cell>)]) -> String {
    let chart = |(set, cells): &(Set, Vec<Cell>)| {
        let line = |contestant: Contestant| {
            let entries = cells.iter().filter_map(|cell| cell.entry(contestant));
            let point = |entry: &Entry| {
                (entry.mean(|(choice, _)| choice.atoms.len() as f64), entry.mean(|(_, scores)| scores.spectral))
            };
            Series::new(contestant.name(), Kind::Line, entries.map(point).collect())
        };
        Chart {
            title: set.name.into(),
            x_label: "atoms".into(),
            y_label: "‖K − K̃‖₂".into(),
            log_x: true,
            log_y: true,
            series: Contestant::ALL.into_iter().map(line).collect(),
        }
    };
    side_by_side(&results.iter().map(chart).collect::<Vec<_>>(), 1600, 430)
}

fn numbers(results: &[(Set, Vec<Cell>)], seeds: Seeds, train: usize) -> Value {
    let entry = |entry: &Entry| {
        json!({
            "method": entry.contestant.name(),
            "atoms": entry.mean(|(choice, _)| choice.atoms.len() as f64),
            "spectral_error": entry.mean(|(_, scores)| scores.spectral),
            "trace_share": entry.mean(|(_, scores)| scores.trace),
            "rmse": entry.mean(|(_, scores)| scores.rmse),
            "seconds": entry.mean(|(choice, _)| choice.seconds),
        })
    };
    let cell = |cell: &Cell| {
        json!({
            "size": cell.size,
            "leverage_ridge": cell.leverage_ridge,
            "methods": cell.entries.iter().map(entry).collect::<Vec<_>>(),
        })
    };
    let set = |(set, cells): &(Set, Vec<Cell>)| json!({ "name": set.name, "sizes": cells.iter().map(cell).collect::<Vec<_>>() });
    json!({ "rows": train, "seeds": seeds.count, "first_seed": seeds.first, "sets": results.iter().map(set).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_contest_gives_every_method_the_same_number_of_atoms() {
        let findings = run_sized(Seeds { first: 0, count: 2 }, 300, 100, &[40], &mut |_| {}).unwrap();
        assert!(findings.to_markdown().contains("2 seeds (fewer than the usual 40)"));
        assert_eq!(findings.all_verdicts().count(), 4);
        for set in findings.data["sets"].as_array().unwrap() {
            let methods = set["sizes"][0]["methods"].as_array().unwrap();
            let atoms = |name: &str| methods.iter().find(|m| m["method"] == name).unwrap()["atoms"].as_f64().unwrap();
            assert!((atoms("squeak") - 40.0).abs() < 20.0, "{set}");
            assert_eq!(atoms("squeak"), atoms("uniform"));
            assert_eq!(atoms("squeak"), atoms("batch-exact"));
            assert!(atoms("ink-estimate") <= atoms("squeak"));
        }
        // Clusters are where scores pay: uniform sampling leaves several times as much.
        let waves = findings.data["sets"][0]["sizes"][0]["methods"].as_array().unwrap();
        assert!(
            waves[0]["trace_share"].as_f64().unwrap() < 0.8 * waves[2]["trace_share"].as_f64().unwrap(),
            "{waves:?}"
        );
    }
}
