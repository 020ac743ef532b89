//! `drift`: streams in their own order, where what was true before may no longer be: forgetting off and on, reopening off
//! and on, and beside them the prediction that the previous target comes again.

use std::path::Path;

use nystream::fit::{FirstPass, FitOptions, Silent, first_pass};
use nystream::learner::Shuffled;
use nystream::learner::streaming::{Reopen, StreamingOptions};
use nystream::source::{OpenOptions, open};
use nystream::{Error, Result};
use serde_json::{Value, json};

use crate::findings::Findings;
use crate::plot::{Chart, Kind, Series, side_by_side};
use crate::sets::file;
use crate::statistics::{largest, mean};
use crate::study::{Seeds, Settings};
use crate::table::{Align, Table, count, significant};

pub(crate) const MINUTES: u32 = 10;

/// Files of the folder, each with a name for people.
const FILES: [(&str, &str); 4] = [
    ("elec2", "elec2.csv.gz"),
    ("weather", "weather.csv.gz"),
    ("nyc_flights", "nyc_flights.csv.gz"),
    ("covtype.binary", "covtype.binary.libsvm.gz"),
];
/// Rows of the generated stream: ten turns of its target.
const GENERATED: usize = 50_000;
const BUDGET: usize = 200;
const HALF_LIVES: [Option<u32>; 4] = [None, Some(500), Some(2000), Some(10_000)];
const SEEDS: u64 = 3;
/// Rows of the window that the library's recent error looks at.
const WINDOW: usize = 1000;

/// A way to run the learner, and what came of it.
struct Variant {
    half_life: Option<u32>,
    reopen: Reopen,
    /// A seed each.
    errors: Vec<f64>,
    /// Of the first seed: rows so far, and the error of the last ones.
    curve: Vec<(f64, f64)>,
    /// Times that atoms were changed after the head, a seed each; not a number where the learner could not be solved.
    changes: Vec<f64>,
    rows_per_second: f64,
}

/// One stream.
struct Stream {
    name: &'static str,
    classes: bool,
    rows: usize,
    variants: Vec<Variant>,
    previous: Previous,
}

pub(crate) fn run(settings: &Settings, stage: &mut dyn FnMut(&str)) -> Result<Findings> {
    run_sized(settings, BUDGET, stage)
}

fn run_sized(settings: &Settings, budget: usize, stage: &mut dyn FnMut(&str)) -> Result<Findings> {
    let seeds = settings.seeds_or(SEEDS)?;
    let limit = settings.row_limit()?;
    let folder = settings.data_folder()?;
    let most = limit.unwrap_or(usize::MAX);
    let mut streams = Vec::new();
    for (name, location) in locations(folder, most) {
        streams.push(follow(name, &location, budget, seeds, most, stage)?);
    }
    Ok(report(&streams, budget, seeds, limit))
}

fn locations(folder: &Path, most: usize) -> Vec<(&'static str, String)> {
    let generated = format!("synth:drift?n={}", GENERATED.min(most));
    let files = FILES.iter().map(|(name, packed)| (*name, file(folder, packed).to_string_lossy().into_owned()));
    std::iter::once(("synth:drift", generated)).chain(files).collect()
}

/// Runs every variant over one stream.
fn follow(
    name: &'static str,
    location: &str,
    budget: usize,
    seeds: Seeds,
    most: usize,
    stage: &mut dyn FnMut(&str),
) -> Result<Stream> {
    stage(&format!("drift: reading {name}"));
    let mut source = open(location, &OpenOptions::default())?;
    let options = FitOptions { sample: Some(usize::MAX), ..FitOptions::default() };
    let first = first_pass(source.as_mut(), &options, &mut Silent)?;
    let previous = Previous::of(&first, most);
    let data = Shuffled::new(first);
    let mut variants = Vec::new();
    for reopen in [Reopen::Auto, Reopen::Off] {
        for half_life in HALF_LIVES {
            stage(&format!("drift: {name}, {}, {}", forgetting(half_life), reopening(reopen)));
            let mut variant = Variant {
                half_life,
                reopen,
                errors: Vec::new(),
                curve: Vec::new(),
                changes: Vec::new(),
                rows_per_second: 0.0,
            };
            let mut seconds = 0.0;
            for seed in seeds.each() {
                let half_life = half_life.map(f64::from);
                let learner = StreamingOptions { budget, half_life, reopen, seed, ..StreamingOptions::default() };
                let run = data.evaluate_first(learner, None, most)?;
                let (_, error, _) = run.learner.score().point(data.classes());
                variant.errors.push(error);
                variant.changes.push(match run.learner.status() {
                    Ok(status) => status.changes as f64,
                    // The predictions are there all the same: the table says that the model would not be.
                    Err(Error::NotPositiveDefinite { .. }) => f64::NAN,
                    Err(error) => return Err(error),
                });
                seconds += run.time.as_secs_f64();
                if seed == seeds.first {
                    variant.curve = run.curve.iter().map(|(rows, _, recent)| (*rows as f64, *recent)).collect();
                }
            }
            variant.rows_per_second = data.len().min(most) as f64 * seeds.count as f64 / seconds;
            variants.push(variant);
        }
    }
    Ok(Stream { name, classes: data.classes(), rows: data.len().min(most), variants, previous })
}

/// Errors of predicting every target, from the second on, by the one before: mistakes of classes, squares of numbers.
#[derive(Debug)]
struct Previous {
    /// Sums of the errors of the first rows: none of them, one, two, …
    sums: Vec<f64>,
}

impl Previous {
    /// Of the first `most` rows of a first pass that sampled all, in the order of the source.
    fn of(first: &FirstPass, most: usize) -> Self {
        let mut order: Vec<usize> = (0..first.sample.len()).collect();
        order.sort_by_key(|&i| first.sample_rows[i]);
        order.truncate(most);
        let targets: Vec<f64> = order.iter().map(|&i| first.sample.targets[i]).collect();
        Self::new(&targets, !first.preprocessor.labels().is_empty())
    }

    fn new(targets: &[f64], classes: bool) -> Self {
        let error = |pair: &[f64]| match classes {
            true => f64::from(u8::from(pair[0] != pair[1])),
            false => (pair[0] - pair[1]).powi(2),
        };
        // The first row has none before it: it adds nothing and is not counted.
        let mut sums = vec![0.0; 2];
        let mut sum = 0.0;
        for pair in targets.windows(2) {
            sum += error(pair);
            sums.push(sum);
        }
        Self { sums }
    }

    fn error(&self) -> f64 {
        let rows = self.sums.len() - 1;
        self.sums[rows] / (rows as f64 - 1.0)
    }

    /// The error of the last rows of so many; not a number for the first alone.
    fn recent(&self, rows: usize) -> f64 {
        let end = rows.min(self.sums.len() - 1);
        let start = end.saturating_sub(WINDOW).max(1);
        (self.sums[end] - self.sums[start.min(end)]) / end.saturating_sub(start) as f64
    }
}

fn forgetting(half_life: Option<u32>) -> String {
    half_life.map_or_else(|| "no forgetting".to_owned(), |rows| format!("half-life {}", count(u64::from(rows))))
}

fn reopening(reopen: Reopen) -> &'static str {
    match reopen {
        Reopen::Auto => "reopening",
        Reopen::Off => "no reopening",
    }
}

impl Variant {
    fn error(&self) -> f64 {
        mean(self.errors.iter().copied())
    }

    /// How often atoms changed, or that the last solution failed.
    fn changes_shown(&self) -> String {
        let changes = mean(self.changes.iter().copied());
        if changes.is_nan() { "solution FAILED".to_owned() } else { significant(changes, 3) }
    }

    fn words(&self) -> String {
        format!("{}, {}", forgetting(self.half_life), reopening(self.reopen))
    }
}

/// The worst of the windows that are full; not a number if none is.
fn worst(curve: &[(f64, f64)]) -> f64 {
    let worst = largest(curve.iter().filter(|(rows, _)| *rows >= WINDOW as f64).map(|point| point.1));
    if worst.is_finite() { worst } else { f64::NAN }
}

impl Stream {
    fn measure(&self) -> &'static str {
        if self.classes { "share of mistakes" } else { "mean squared error" }
    }

    fn baseline(&self) -> &'static str {
        if self.classes { "previous label" } else { "previous value" }
    }

    fn previous_curve(&self) -> Vec<(f64, f64)> {
        let at = self.variants.first().map_or(&[][..], |variant| &variant.curve);
        at.iter().map(|&(rows, _)| (rows, self.previous.recent(rows as usize))).collect()
    }

    /// What the numbers say.
    fn words(&self) -> String {
        let least = |variants: &mut dyn Iterator<Item = &Variant>| {
            let best = variants.min_by(|a, b| a.error().total_cmp(&b.error()));
            best.map_or_else(String::new, |best| format!("{} ({})", significant(best.error(), 4), best.words()))
        };
        let previous = self.previous.error();
        let below = self.variants.iter().filter(|variant| variant.error() < previous).count();
        format!(
            "{} rows, {}. Least with forgetting: {}; without: {}. The {} gives {}: {below} of {} settings are below it.",
            count(self.rows as u64),
            self.measure(),
            least(&mut self.variants.iter().filter(|variant| variant.half_life.is_some())),
            least(&mut self.variants.iter().filter(|variant| variant.half_life.is_none())),
            self.baseline(),
            significant(previous, 4),
            self.variants.len(),
        )
    }

    fn table(&self) -> Table {
        let right = |name| (name, Align::Right);
        let mut table = Table::new(&[
            ("prediction", Align::Left),
            right(self.measure()),
            right("times the baseline"),
            right("worst window"),
            right("changes of atoms"),
            right("rows a second"),
        ]);
        let previous = self.previous.error();
        for variant in &self.variants {
            table.row([
                variant.words(),
                significant(variant.error(), 4),
                significant(variant.error() / previous, 3),
                significant(worst(&variant.curve), 3),
                variant.changes_shown(),
                count(variant.rows_per_second as u64),
            ]);
        }
        let worst = significant(worst(&self.previous_curve()), 3);
        table.row([self.baseline().to_owned(), significant(previous, 4), "1".to_owned(), worst]);
        table
    }

    /// Windowed errors with and without reopening, side by side.
    fn figure(&self) -> String {
        let chart = |reopen: Reopen| {
            let variants = self.variants.iter().filter(|variant| variant.reopen == reopen);
            let line =
                |variant: &Variant| Series::new(forgetting(variant.half_life), Kind::Line, variant.curve.clone());
            let mut series: Vec<Series> = variants.map(line).collect();
            series.push(Series::new(self.baseline(), Kind::Dashed, self.previous_curve()));
            Chart {
                title: format!("{}, {}", self.name, reopening(reopen)),
                x_label: "rows seen".into(),
                y_label: format!("{}, last {} rows", self.measure(), count(WINDOW as u64)),
                log_x: false,
                log_y: false,
                series,
            }
        };
        side_by_side(&[chart(Reopen::Auto), chart(Reopen::Off)], 1600, 500)
    }

    fn numbers(&self) -> Value {
        let variant = |variant: &Variant| {
            json!({
                "half_life": variant.half_life, "reopen": variant.reopen == Reopen::Auto, "errors": variant.errors,
                "changes": variant.changes, "rows_per_second": variant.rows_per_second, "recent_errors": variant.curve,
            })
        };
        json!({
            "stream": self.name, "rows": self.rows, "classes": self.classes, "previous": self.previous.error(),
            "previous_recent_errors": self.previous_curve(),
            "variants": self.variants.iter().map(variant).collect::<Vec<_>>(),
        })
    }
}

fn report(streams: &[Stream], budget: usize, seeds: Seeds, limit: Option<usize>) -> Findings {
    let mut findings = Findings::new("drift", "Streams that change");
    let cut = limit.map_or_else(String::new, |rows| format!(" Cut to the first {} rows.", count(rows as u64)));
    findings.text(format!(
        "Every row is predicted, then learnt, in the order of its source; {budget} atoms. Inputs are standardised by all rows, \
         which is known beforehand; nothing else is. The baseline predicts that the previous target comes again. Errors \
         are means over {seeds} of the learner; windows, of the first seed, are the last {} rows, and the worst is of \
         those at the points of the figure; {} threads.{cut}",
        count(WINDOW as u64),
        rayon::current_num_threads(),
    ));
    for stream in streams {
        findings.heading(stream.name);
        findings.text(stream.words());
        findings.table(stream.table());
        let file = format!("drift-{}", stream.name.replace([':', '.'], "-"));
        findings.figure(&file, format!("{}: error of the last rows", stream.name), stream.figure());
    }
    findings.data = json!({
        "budget": budget, "seeds": seeds.count, "first_seed": seeds.first, "rows": limit, "threads": rayon::current_num_threads(),
        "streams": streams.iter().map(Stream::numbers).collect::<Vec<_>>(),
    });
    findings
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use nystream::random::Generator;

    use super::*;

    #[test]
    fn the_previous_target_is_judged_from_the_second_row_on() {
        let labels = Previous::new(&[1.0, 1.0, -1.0, -1.0, 1.0], true);
        assert_eq!(labels.error(), 0.5);
        assert_eq!([2, 3, 5].map(|rows| labels.recent(rows)), [0.0, 0.5, 0.5]);
        assert!(labels.recent(1).is_nan());
        let values = Previous::new(&[1.0, 3.0, 2.0], false);
        assert_eq!((values.error(), values.recent(2), values.recent(3)), (2.5, 4.0, 2.5));
        // A change of label in each of the first 1000 rows, none in the next 1000.
        let targets: Vec<f64> = (0..2000).map(|i| if i < 1000 { f64::from(i % 2) } else { 1.0 }).collect();
        let long = Previous::new(&targets, true);
        assert_eq!([1000, 1500, 2000].map(|rows| long.recent(rows)), [1.0, 0.5, 0.0]);
    }

    /// Two classes whose meaning turns over in the middle.
    fn turning(rows: usize, seed: u64) -> impl Iterator<Item = ([f64; 2], i8)> {
        let mut rng = Generator::new(seed);
        (0..rows).map(move |i| {
            let x = [rng.normal(), rng.normal()];
            // One label in ten is wrong: where none is, the squared hinge has summed few rows before the turn, and there is
            // little to forget.
            let sign = if (i < rows / 2) == rng.bernoulli(0.9) { 1.0 } else { -1.0 };
            (x, if sign * (x[0] + 0.3 * x[1]) > 0.0 { 1 } else { -1 })
        })
    }

    #[test]
    fn forgetting_helps_where_the_classes_turn_over() {
        let folder = tempfile::tempdir().unwrap();
        for (seed, (_, packed)) in FILES.iter().enumerate() {
            let plain = packed.strip_suffix(".gz").unwrap();
            let mut text = String::new();
            if plain.ends_with(".csv") {
                text += "a,b,target\n";
                turning(3000, seed as u64).for_each(|([a, b], y)| writeln!(text, "{a},{b},{y}").unwrap());
            } else {
                turning(3000, seed as u64).for_each(|([a, b], y)| writeln!(text, "{y:+} 1:{a} 2:{b}").unwrap());
            }
            std::fs::write(folder.path().join(plain), text).unwrap();
        }
        let settings =
            Settings { seeds: Some(1), rows: Some(2900), data: Some(folder.path().to_owned()), ..Settings::default() };
        let findings = run_sized(&settings, 20, &mut |_| {}).unwrap();
        let text = findings.to_markdown();
        assert!(text.contains("Cut to the first 2,900 rows") && text.contains("previous value"), "{text}");
        assert!(text.contains("(drift-covtype-binary.svg)") && text.contains("| previous label"), "{text}");
        assert_eq!(findings.figures().count(), 5);
        let streams = findings.data["streams"].as_array().unwrap();
        assert_eq!(streams[0]["classes"], false);
        for stream in &streams[1..] {
            assert_eq!((&stream["rows"], &stream["classes"]), (&json!(2900), &json!(true)));
            // Labels are independent: half of them are like the one before, ± 1 %.
            assert!((stream["previous"].as_f64().unwrap() - 0.5).abs() < 0.05, "{}", stream["previous"]);
            let variants = stream["variants"].as_array().unwrap();
            assert_eq!(variants.len(), 8);
            let error = |i: usize| variants[i]["errors"][0].as_f64().unwrap();
            // With reopening and without: none, then the shortest half-life.
            assert!(error(1) < 0.8 * error(0) && error(5) < 0.8 * error(4), "{} {}", error(0), error(1));
            // Classes are known again at the end.
            let last = variants[1]["recent_errors"].as_array().unwrap().last().unwrap();
            assert!(last[0] == 2900.0 && last[1].as_f64().unwrap() < error(0), "{last}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let settings =
            Settings { seeds: Some(1), rows: Some(1000), data: Some(folder.path().to_owned()), ..Settings::default() };
        let message = run_sized(&settings, 10, &mut |_| {}).unwrap_err().to_string();
        assert!(message.contains("elec2.csv.gz"), "{message}");
    }
}
