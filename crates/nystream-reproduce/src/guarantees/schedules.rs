//! Blocked, lazy and merged dictionaries beside per-point ones: as they stand, and scored once more.

use nystream::Result;
use nystream::sketch::Schedule;

use super::runs::{Method, Run, Runs, repeat_both};
use super::tables::percent;
use super::{AGAIN, BLOCK, FALSE_ALARM, Plan, RETRIED, Results, SEEDS, VARIANTS, WORTH_JUDGING};
use crate::findings::{Findings, Verdict};
use crate::statistics::{proportions_apart, proportions_p_value, quotient, ranks_p_value, standard_errors};
use crate::study::Seeds;
use crate::table::{Align, Table, count, significant};

/// Those that should be as good as per point.
const SCHEDULES: [Method; 4] = [Method::Blocked, Method::Lazy, Method::Merged2, Method::Merged4];
/// What is compared: Eq. 11, the error, the size.
const MEASURES: [&str; 3] = ["Eq. 11", "ratio", "atoms"];

/// Batches of seeds from here on are those of comparisons made once more.
const RETRIED_BATCHES: u64 = 1000;

/// When dictionaries are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Standing,
    Settled,
}

impl When {
    fn name(self) -> &'static str {
        match self {
            Self::Standing => "as they stand",
            Self::Settled => "scored once more",
        }
    }

    fn groups(self, results: &Results) -> &[Vec<Runs>] {
        match self {
            Self::Standing => &results.compared,
            Self::Settled => &results.settled,
        }
    }
}

/// One variant beside per point, on one stream, at one q̄.
struct Comparison {
    when: When,
    stream: &'static str,
    oversampling: u64,
    variant: Method,
    /// Of Eq. 11, the ratio, the atoms.
    p_values: [f64; 3],
    /// Shares of runs in which Eq. 11 holds; quotients of the means of ratio and atoms.
    shares: [f64; 2],
    quotients: [f64; 2],
    /// How far apart shares are (with a hit and a miss more each) and how large the quotients, with standard errors.
    apart: [(f64, f64); 3],
}

/// A judged difference, and the same comparison on other seeds.
struct Retried {
    /// Its place among all comparisons, and in what it differs.
    place: usize,
    measure: usize,
    again: Comparison,
}

/// All of them, and what of them is judged.
pub(super) struct Comparisons {
    all: Vec<Comparison>,
    /// The q̄ that are judged.
    judged: Vec<u64>,
    /// The p-value below which two samples count as different.
    level: f64,
    /// Differences found among those that are judged.
    retried: Vec<Retried>,
}

impl Comparisons {
    pub(super) fn of(plan: &Plan, results: &[Results], stage: &mut dyn FnMut(&str)) -> Result<Self> {
        let mut all = Vec::new();
        for when in [When::Standing, When::Settled] {
            for result in results {
                for group in when.groups(result) {
                    let others = group[1..=VARIANTS.len()].iter();
                    all.extend(others.map(|variant| Comparison::new(when, result.problem.name, variant, &group[0])));
                }
            }
        }
        let mut found = Self { all, judged: judged(results), level: 0.0, retried: Vec::new() };
        let tests = found.cells(When::Settled, true).count() * MEASURES.len();
        found.level = FALSE_ALARM / tests.max(1) as f64;
        found.retry(plan, results, stage)?;
        Ok(found)
    }

    /// Makes every judged comparison that differs once more, with seeds of its own.
    fn retry(&mut self, plan: &Plan, results: &[Results], stage: &mut dyn FnMut(&str)) -> Result<()> {
        let mut retried = Vec::new();
        for (place, c) in self.all.iter().enumerate().filter(|(_, c)| self.is_of(c, When::Settled, true)) {
            for measure in (0..MEASURES.len()).filter(|&i| c.p_values[i] < self.level) {
                let Some(result) = results.iter().find(|result| result.problem.name == c.stream) else { continue };
                stage(&format!("guarantees: {}, {}, q̄ = {}, other seeds", c.stream, c.variant.name(), c.oversampling));
                let mut batch = RETRIED_BATCHES + 2 * RETRIED * retried.len() as u64;
                let mut more = |method: Method| {
                    let first = batch * Seeds::END + plan.seeds.first;
                    batch += RETRIED;
                    repeat_both(&result.problem, method, c.oversampling, first, RETRIED * plan.seeds.count)
                };
                let ([_, variant], [_, reference]) = (more(c.variant)?, more(Method::PerPoint)?);
                let again = Comparison::new(c.when, c.stream, &variant, &reference);
                retried.push(Retried { place, measure, again });
            }
        }
        self.retried = retried;
        Ok(())
    }

    /// Whether it is of a schedule that should be as good, at a q̄ that is judged or at another.
    fn is_of(&self, c: &Comparison, when: When, judged: bool) -> bool {
        c.when == when && SCHEDULES.contains(&c.variant) && self.judged.contains(&c.oversampling) == judged
    }

    /// Whether other seeds found the difference too, on the same side.
    fn confirmed(&self, retried: &Retried) -> bool {
        let (first, again, measure) = (&self.all[retried.place], &retried.again, retried.measure);
        let same_side = first.lead(measure) * again.lead(measure) > 0.0;
        same_side && again.p_values[measure] < FALSE_ALARM / self.retried.len() as f64
    }

    /// Of the schedules that should be as good, at those q̄ that are judged or at the others.
    fn cells(&self, when: When, judged: bool) -> impl Iterator<Item = &Comparison> {
        let fits = move |c: &&Comparison| self.is_of(c, when, judged);
        self.all.iter().filter(fits)
    }

    pub(super) fn verdicts(&self, plan: &Plan) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for (when, judged) in [(When::Settled, true), (When::Standing, true), (When::Settled, false)] {
            let mut cells = self.cells(when, judged).peekable();
            if cells.peek().is_none() {
                continue;
            }
            let cells: Vec<&Comparison> = cells.collect();
            for (measure, name) in MEASURES.iter().enumerate() {
                let differ = cells.iter().filter(|c| c.p_values[measure] < self.level).count();
                let is_judged = when == When::Settled && judged;
                let confirmed = self.retried.iter().filter(|r| r.measure == measure && self.confirmed(r)).count();
                let again = if is_judged && differ > 0 {
                    format!(", {confirmed} of them with other seeds too")
                } else {
                    String::new()
                };
                verdicts.push(Verdict {
                    target: format!(
                        "blocked, lazy and merged indistinguishable from per point, {}, {}: {name}",
                        when.name(),
                        if judged { self.judged_words() } else { "at smaller q̄".to_owned() },
                    ),
                    found: format!(
                        "{differ} of {} comparisons differ{again} ({})",
                        cells.len(),
                        self.furthest(&cells, measure, is_judged),
                    ),
                    // Few seeds tell nothing apart.
                    met: (plan.seeds.count >= SEEDS && is_judged).then_some(confirmed == 0),
                });
            }
        }
        verdicts
    }

    /// The quotients of means, or the shares, that are furthest from per point's; if asked, also where they all lie, with confidence.
    fn furthest(&self, cells: &[&Comparison], measure: usize, confident: bool) -> String {
        let range = |value: &dyn Fn(&Comparison, f64) -> f64| {
            let low = cells.iter().map(|c| value(c, -1.0)).fold(f64::INFINITY, f64::min);
            let high = cells.iter().map(|c| value(c, 1.0)).fold(f64::NEG_INFINITY, f64::max);
            if measure == 0 {
                format!("{:+.1} to {:+.1} points", 100.0 * low, 100.0 * high)
            } else {
                format!("{low:.3} to {high:.3} times")
            }
        };
        let found = match measure {
            0 => range(&|c, _| c.shares[0] - c.shares[1]),
            _ => range(&|c, _| c.quotients[measure - 1]),
        };
        if !confident {
            return found;
        }
        let width = standard_errors(self.level);
        let sure = range(&|c, side| c.apart[measure].0 + side * width * c.apart[measure].1);
        format!("{found}; with {} % confidence in all at once {sure}", 100.0 * (1.0 - FALSE_ALARM))
    }

    fn judged_words(&self) -> String {
        let list: Vec<String> = self.judged.iter().map(|&q| count(q)).collect();
        format!("q̄ = {}", list.join(" and "))
    }

    pub(super) fn write(&self, findings: &mut Findings, results: &[Results]) {
        findings.text(format!(
            "Blocks of {BLOCK} rows; lazy with growth {}; merged from per-point dictionaries of 2 and 4 equal parts of \
             the stream, judged at the end, where the others are judged at every checked step. \"No floor\" is per point \
             without the floor p̃/2 of line 5 (blocks of one row). \"Merged, last row\" is a per-point dictionary of all rows \
             but the last, merged with one of that row alone.",
            Schedule::GROWTH,
        ));
        findings.text(format!(
            "Every dictionary is compared as it stands, and after it was scored once more at γ without new rows, which puts \
             out of the way when its atoms happened to be scored last. Judged are the latter, at those q̄ where Eq. 11 held at \
             every step in {} of all per-point runs at least: {}. Eq. 11 is compared by Fisher's exact test, ratio and atoms by \
             the test of Mann and Whitney; p < {} counts as different (Bonferroni, {} % for all tests that are judged). A judged \
             comparison that differs is made once more with {RETRIED} times as many seeds of its own, and counts if it differs there \
             too, on the same side ({} % for all of these). What does not differ need not be equal: for judged measures the verdicts \
             also say how far apart the means can be. Quotients of means are the variant's over per point's; * marks those \
             that differ.",
            percent(WORTH_JUDGING),
            if self.judged.is_empty() { "none".to_owned() } else { self.judged_words() },
            significant(self.level, 2),
            100.0 * FALSE_ALARM,
            100.0 * FALSE_ALARM,
        ));
        if !self.retried.is_empty() {
            findings.text("Judged comparisons that differ, and the same with other seeds:");
            findings.table(self.retried_table());
        }
        findings.table(self.summary());
        findings.text(LENGTHS_TEXT);
        findings.table(length_table(results));
        findings.text(AGAIN_TEXT);
        findings.table(again_table(results));
        findings.text("Every comparison:");
        findings.table(self.table());
    }

    fn retried_table(&self) -> Table {
        let right = |name| (name, Align::Right);
        let mut table = Table::new(&[
            ("stream", Align::Left),
            right("q̄"),
            ("variant", Align::Left),
            ("measure", Align::Left),
            right("apart"),
            right("p"),
            right("apart, other seeds"),
            right("p"),
            ("differs", Align::Left),
        ]);
        for retried in &self.retried {
            let (first, measure) = (&self.all[retried.place], retried.measure);
            let apart = |c: &Comparison| format!("{:+.2} %", 100.0 * c.lead(measure));
            let p = |c: &Comparison| significant(c.p_values[measure], 2);
            table.row([
                first.stream.to_owned(),
                count(first.oversampling),
                first.variant.name().to_owned(),
                MEASURES[measure].to_owned(),
                apart(first),
                p(first),
                apart(&retried.again),
                p(&retried.again),
                if self.confirmed(retried) { "yes" } else { "not confirmed" }.to_owned(),
            ]);
        }
        table
    }

    fn summary(&self) -> Table {
        let right = |name| (name, Align::Right);
        let mut table = Table::new(&[
            ("compared", Align::Left),
            ("variant", Align::Left),
            right("q̄"),
            right("Eq. 11 differs"),
            right("ratio differs"),
            right("ratio, quotient"),
            right("atoms differ"),
            right("atoms, quotient"),
        ]);
        let mut oversamplings: Vec<u64> = self.all.iter().map(|c| c.oversampling).collect();
        oversamplings.sort_unstable();
        oversamplings.dedup();
        for when in [When::Standing, When::Settled] {
            for variant in VARIANTS {
                for &q in &oversamplings {
                    let fits = |c: &&Comparison| c.when == when && c.variant == variant && c.oversampling == q;
                    let cells: Vec<&Comparison> = self.all.iter().filter(fits).collect();
                    let differ = |i: usize| {
                        let count = cells.iter().filter(|c| c.p_values[i] < self.level).count();
                        format!("{count} of {}", cells.len())
                    };
                    let range = |i: usize| {
                        let low = cells.iter().map(|c| c.quotients[i]).fold(f64::INFINITY, f64::min);
                        let high = cells.iter().map(|c| c.quotients[i]).fold(0.0, f64::max);
                        format!("{low:.3} to {high:.3}")
                    };
                    let names = [when.name().to_owned(), variant.name().to_owned(), count(q)];
                    table.row(names.into_iter().chain([differ(0), differ(1), range(0), differ(2), range(1)]));
                }
            }
        }
        table
    }

    fn table(&self) -> Table {
        let right = |name| (name, Align::Right);
        let mut table = Table::new(&[
            ("compared", Align::Left),
            ("stream", Align::Left),
            right("q̄"),
            ("variant", Align::Left),
            right("Eq. 11, per point's"),
            right("p"),
            right("ratio, quotient"),
            right("p"),
            right("atoms, quotient"),
            right("p"),
        ]);
        for c in &self.all {
            let p = |i: usize| {
                let mark = if c.p_values[i] < self.level { "*" } else { "" };
                format!("{}{mark}", significant(c.p_values[i], 2))
            };
            table.row([
                c.when.name().to_owned(),
                c.stream.to_owned(),
                count(c.oversampling),
                c.variant.name().to_owned(),
                format!("{} : {}", percent(c.shares[0]), percent(c.shares[1])),
                p(0),
                format!("{:.3}", c.quotients[0]),
                p(1),
                format!("{:.3}", c.quotients[1]),
                p(2),
            ]);
        }
        table
    }
}

/// The compared q̄ at which the promise is kept often enough to be worth comparing.
fn judged(results: &[Results]) -> Vec<u64> {
    let Some(first) = results.first() else { return Vec::new() };
    let share = |group: usize| {
        let runs = || results.iter().map(|result| &result.compared[group][0]);
        let held: u64 = runs().map(|runs| runs.count(|run| run.holds_always)).sum();
        held as f64 / runs().map(|runs| runs.runs.len()).sum::<usize>().max(1) as f64
    };
    let groups = first.compared.iter().enumerate();
    groups.filter(|&(i, _)| share(i) >= WORTH_JUDGING).map(|(_, group)| group[0].oversampling).collect()
}

impl Comparison {
    /// How far it is from per point: a difference of shares, or a quotient less 1.
    fn lead(&self, measure: usize) -> f64 {
        match measure {
            0 => self.shares[0] - self.shares[1],
            _ => self.quotients[measure - 1] - 1.0,
        }
    }

    fn new(when: When, stream: &'static str, variant: &Runs, reference: &Runs) -> Self {
        // Merged dictionaries exist at the end only.
        let everywhere = variant.method.follows();
        let holds = |run: &Run| if everywhere { run.holds_always } else { run.holds };
        let ratio = |run: &Run| if everywhere { run.worst_ratio } else { run.ratio };
        let hits = |runs: &Runs| (runs.count(holds), runs.runs.len() as u64);
        let means = |of: &dyn Fn(&Run) -> f64| quotient(&variant.values(of), &reference.values(of));
        Self {
            when,
            stream,
            oversampling: variant.oversampling,
            variant: variant.method,
            p_values: [
                proportions_p_value(hits(variant), hits(reference)),
                ranks_p_value(&variant.values(ratio), &reference.values(ratio)),
                ranks_p_value(&variant.values(|run| run.atoms), &reference.values(|run| run.atoms)),
            ],
            shares: [variant.share(holds), reference.share(holds)],
            quotients: [
                variant.mean(ratio) / reference.mean(ratio),
                variant.mean(|run| run.atoms) / reference.mean(|run| run.atoms),
            ],
            apart: [proportions_apart(hits(variant), hits(reference)), means(&ratio), means(&|run| run.atoms)],
        }
    }
}

const LENGTHS_TEXT: &str = "\
What the number of scorings does: p̃ is the least of all scores so far, and scores are noisy, so that an atom which was scored \
more often stands lower. Blocks score the less often the longer they are (mean atoms at the end, scored once more):";

/// Atoms against the rows of a block.
fn length_table(results: &[Results]) -> Table {
    let lengths = [
        (Method::PerPoint, "per point"),
        (Method::WithoutFloor, "blocks of 1"),
        (Method::Blocks5, "of 5"),
        (Method::Blocked, "of 25"),
        (Method::Blocks100, "of 100"),
        (Method::Lazy, "lazy, of 25"),
        (Method::Merged2, "merged, 2"),
        (Method::Merged4, "merged, 4"),
    ];
    let columns = [("stream", Align::Left), ("q̄", Align::Right)].into_iter();
    let columns: Vec<_> = columns.chain(lengths.map(|(_, name)| (name, Align::Right))).collect();
    let mut table = Table::new(&columns);
    for result in results {
        for group in &result.settled {
            let atoms = |(method, _): &(Method, &str)| {
                let runs = group.iter().find(|runs| runs.method == *method);
                runs.map_or_else(String::new, |runs| format!("{:.1}", runs.mean(|run| run.atoms)))
            };
            let start = [result.problem.name.to_owned(), count(group[0].oversampling)].into_iter();
            table.row(start.chain(lengths.iter().map(atoms)));
        }
    }
    table
}

const AGAIN_TEXT: &str = "\
The same without any other difference: dictionaries at the end of the stream, scored again and again at γ without new rows \
(mean atoms after so many further scorings):";

fn again_table(results: &[Results]) -> Table {
    let methods = [Method::PerPoint, Method::Blocked];
    let mut columns =
        vec![("stream", Align::Left), ("q̄", Align::Right), ("schedule", Align::Left), ("0", Align::Right)];
    let names: Vec<String> = AGAIN.iter().map(usize::to_string).collect();
    columns.extend(names.iter().map(|name| (name.as_str(), Align::Right)));
    let mut table = Table::new(&columns);
    for result in results {
        for (standing, settled) in result.compared.iter().zip(&result.settled) {
            for (before, after) in standing.iter().zip(settled).filter(|(runs, _)| methods.contains(&runs.method)) {
                let atoms = |mean: f64| format!("{mean:.1}");
                let start =
                    [result.problem.name.to_owned(), count(before.oversampling), before.method.name().to_owned()];
                let again = (0..AGAIN.len()).map(|i| atoms(after.mean(|run| run.again[i])));
                table.row(start.into_iter().chain([atoms(before.mean(|run| run.atoms))]).chain(again));
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guarantees::ROWS;
    use crate::guarantees::problem::problems;

    fn comparison(p_values: [f64; 3], shares: [f64; 2], quotients: [f64; 2]) -> Comparison {
        let (when, stream, variant) = (When::Settled, "heavy-tailed", Method::Merged4);
        let apart = [(0.0, 0.0); 3];
        Comparison { when, stream, oversampling: 64, variant, p_values, shares, quotients, apart }
    }

    #[test]
    fn a_difference_counts_if_other_seeds_find_it_on_the_same_side() {
        let first = || comparison([1e-5, 1.0, 1e-5], [0.5, 0.9], [1.0, 0.99]);
        let found = |measure: usize, again: [Comparison; 2]| {
            let retried = again.into_iter().map(|again| Retried { place: 0, measure, again }).collect();
            let all = Comparisons { all: vec![first()], judged: vec![64], level: 1e-3, retried };
            all.retried.iter().map(|retried| all.confirmed(retried)).collect::<Vec<_>>()
        };
        // Two are tried again: each at half of five in a hundred.
        let sizes =
            [comparison([1.0, 1.0, 0.02], [1.0; 2], [1.0, 0.995]), comparison([0.0, 0.0, 0.03], [1.0; 2], [1.0, 0.9])];
        assert_eq!(found(2, sizes), [true, false]);
        let other_side = comparison([1.0, 1.0, 1e-9], [1.0; 2], [1.0, 1.1]);
        assert_eq!(found(2, [other_side, comparison([1.0; 3], [1.0; 2], [1.0, 0.9])]), [false, false]);
        let shares =
            [comparison([0.01, 1.0, 1.0], [0.6, 0.8], [1.0; 2]), comparison([0.01, 1.0, 1.0], [0.8, 0.6], [1.0; 2])];
        assert_eq!(found(0, shares), [true, false]);
    }

    /// Lazy runs at q̄ = 4 differ in size (docs/guarantees.md): as if q̄ = 4 were judged.
    #[test]
    fn a_real_difference_is_tried_again_and_confirmed() {
        let problem = problems(ROWS).unwrap().remove(3);
        let plan = Plan {
            rows: ROWS,
            seeds: Seeds { first: 0, count: 60 },
            squeak: Vec::new(),
            compared: vec![4],
            ink: Vec::new(),
        };
        let both = |method, first| repeat_both(&problem, method, 4, first, 60).unwrap();
        let ([_, variant], [_, reference]) = (both(Method::Lazy, 0), both(Method::PerPoint, 100));
        let all = vec![Comparison::new(When::Settled, problem.name, &variant, &reference)];
        let results = [Results { problem, ladder: vec![], compared: vec![], settled: vec![], ink: [vec![], vec![]] }];
        let mut found = Comparisons { all, judged: vec![4], level: 1e-3, retried: Vec::new() };
        found.retry(&plan, &results, &mut |_| {}).unwrap();
        assert!(found.retried.iter().any(|r| r.measure == 2 && found.confirmed(r)), "{:?}", found.all[0].p_values);
        // Nothing is tried again that does not differ or is not judged.
        for (judged, level) in [(vec![4], 0.0), (vec![64], 1e-3)] {
            (found.judged, found.level) = (judged, level);
            found.retry(&plan, &results, &mut |_| {}).unwrap();
            assert!(found.retried.is_empty());
        }
    }
}
