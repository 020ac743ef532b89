//! Generated streams: `synth:name?parameter=value&…`, deterministic given `seed`, of any length in constant memory.
//!
//! Features are `x1`, `x2`, …; the last column is `target`. Row t (from 1) is the same however the stream is cut, and in
//! a longer stream. U is uniform on the interval given, N standard normal, all draws independent.
//!
//! - `friedman` (regression; Friedman, "Multivariate adaptive regression splines", Annals of Statistics 1991, section
//!   4.3): x ~ U[0,1]^d, target = 10 sin(π x1 x2) + 20 (x3 − ½)² + 10 x4 + 5 x5 + noise·N.
//!   Parameters: n = 10000, seed = 0, noise = 1, d = 10 (at least 5; the rest are irrelevant).
//! - `waves` (regression, high coherence): 96 % of the rows fall into 4 tight clusters with centres ~ U[−2,2]^d, 4 % into
//!   40 tight, far-away ones with centres ~ U[−10,10]^d; x = centre + 0.1·N^d, target = Σ_j sin(2 x_j) / √d + noise·N.
//!   Uniform samples miss the rare clusters, leverage scores find them. Parameters: n = 10000, seed = 0, noise = 0.1,
//!   d = 3.
//! - `rings` (two classes, −1 and 1, drawn evenly): r = 1 for −1, r = 2 for 1, angle a ~ U[0,2π],
//!   x = (r + noise·N)·(cos a, sin a). Parameters: n = 10000, seed = 0, noise = 0.2.
//! - `drift` (regression, moving target): x ~ U[−1,1]^d, target = sin(π (x1 cos a + x2 sin a)) + noise·N with the angle
//!   a = 2π t / period. Parameters: n = 10000, seed = 0, noise = 0.1, d = 4 (at least 2), period = 5000.
//! - `adversarial` (two classes, −1 and 1; Zhang and Liao, "Incremental Randomized Sketching for Online Kernel Learning",
//!   ICML 2019, section 6.4): blocks of `repeat` times the same example, its label flipped in every even block.
//!   Parameters: n = 5000, seed = 0, d = 24, repeat = 10: the sizes of the paper's `german-1`; n = 10000 and repeat = 20
//!   are those of `german-2`.
//!   Departure from the paper: its examples come from the set `german`; ours are drawn afresh for every block,
//!   x ~ N^d with label sign(Σ_j x_j / √d + ½·N).

use std::f64::consts::{PI, TAU};

use super::{RecordBlock, RecordSource, Schema};
use crate::error::{Error, Result};
use crate::random::Generator;

/// The prefix of generator locations.
pub(super) const PREFIX: &str = "synth:";

const BIG_CLUSTERS: usize = 4;
const RARE_CLUSTERS: usize = 40;

/// Streams of the generator, so that parameters of a task do not depend on how many rows are drawn.
const ROW_STREAM: u64 = 0;
const TASK_STREAM: u64 = 1;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Task {
    Friedman,
    Waves,
    Rings,
    Drift,
    Adversarial,
}

/// The parameters; each task knows some of them.
#[derive(Debug, Clone)]
struct Settings {
    n: u64,
    seed: u64,
    noise: f64,
    d: usize,
    period: u64,
    repeat: u64,
}

impl Task {
    fn parse(name: &str) -> Result<Self> {
        Ok(match name {
            "friedman" => Self::Friedman,
            "waves" => Self::Waves,
            "rings" => Self::Rings,
            "drift" => Self::Drift,
            "adversarial" => Self::Adversarial,
            _ => {
                let expected = "one of friedman, waves, rings, drift, adversarial";
                return Err(Error::InvalidParam { name: "synth generator", found: format!("'{name}'"), expected });
            }
        })
    }

    fn parameters(self) -> &'static str {
        match self {
            Self::Friedman | Self::Waves => "n, seed, noise, d",
            Self::Rings => "n, seed, noise",
            Self::Drift => "n, seed, noise, d, period",
            Self::Adversarial => "n, seed, d, repeat",
        }
    }

    fn defaults(self) -> Settings {
        let common = Settings { n: 10_000, seed: 0, noise: 0.1, d: 4, period: 5000, repeat: 10 };
        match self {
            Self::Friedman => Settings { noise: 1.0, d: 10, ..common },
            Self::Waves => Settings { d: 3, ..common },
            Self::Rings => Settings { noise: 0.2, d: 2, ..common },
            Self::Drift => common,
            Self::Adversarial => Settings { n: 5000, d: 24, ..common },
        }
    }

    fn smallest_width(self) -> usize {
        match self {
            Self::Friedman => 5,
            Self::Rings | Self::Drift => 2,
            Self::Waves | Self::Adversarial => 1,
        }
    }

    fn set(self, settings: &mut Settings, name: &str, value: &str) -> Result<()> {
        if !self.parameters().split(", ").any(|known| known == name) {
            let found = format!("'{name}'");
            return Err(Error::InvalidParam { name: "synth parameter", found, expected: self.parameters() });
        }
        match name {
            "n" => settings.n = whole("n", value, 1)?,
            "seed" => settings.seed = whole("seed", value, 0)?,
            "period" => settings.period = whole("period", value, 1)?,
            "repeat" => settings.repeat = whole("repeat", value, 1)?,
            "d" => {
                let width = whole("d", value, 1)?;
                if width > 100_000 || width < self.smallest_width() as u64 {
                    let expected = match self.smallest_width() {
                        5 => "a whole number from 5 to 100000",
                        2 => "a whole number from 2 to 100000",
                        _ => "a whole number from 1 to 100000",
                    };
                    return Err(Error::InvalidParam { name: "d", found: value.to_owned(), expected });
                }
                settings.d = width as usize;
            }
            _ => {
                settings.noise = value.parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0).ok_or_else(|| {
                    let expected = "a finite number, 0 or more";
                    Error::InvalidParam { name: "noise", found: format!("'{value}'"), expected }
                })?;
            }
        }
        Ok(())
    }
}

fn whole(name: &'static str, value: &str, least: u64) -> Result<u64> {
    let expected = if least == 0 { "a whole number, 0 or more" } else { "a whole number, 1 or more" };
    value.parse().ok().filter(|v| *v >= least).ok_or_else(|| Error::InvalidParam {
        name,
        found: format!("'{value}'"),
        expected,
    })
}

/// A generated stream.
pub(super) struct SynthSource {
    origin: String,
    schema: Schema,
    task: Task,
    settings: Settings,
    /// Centres of `waves`, row-major.
    centres: Vec<f64>,
    rng: Generator,
    rows_read: u64,
    /// The current example of `adversarial`, label last.
    example: Vec<f64>,
}

impl SynthSource {
    /// Opens `synth:name?parameter=value&…`.
    pub fn open(location: &str) -> Result<Self> {
        let text = location.strip_prefix(PREFIX).unwrap_or(location);
        let (name, query) = text.split_once('?').unwrap_or((text, ""));
        let task = Task::parse(name)?;
        let mut settings = task.defaults();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            task.set(&mut settings, name, value)?;
        }
        let names = (1..=settings.d).map(|j| format!("x{j}")).chain(["target".to_owned()]).collect();
        Ok(Self {
            origin: location.to_owned(),
            schema: Schema::Table { names, named: true },
            task,
            centres: if task == Task::Waves { wave_centres(&settings) } else { Vec::new() },
            rng: Generator::with_stream(settings.seed, ROW_STREAM),
            rows_read: 0,
            example: vec![0.0; settings.d + 1],
            settings,
        })
    }

    /// Fills `out` with the next row, target last.
    fn next_row(&mut self, out: &mut [f64]) {
        let Settings { d, noise, period, repeat, .. } = self.settings;
        let rng = &mut self.rng;
        let (x, target) = out.split_at_mut(d);
        match self.task {
            Task::Friedman => {
                x.fill_with(|| rng.uniform());
                target[0] = 10.0 * (PI * x[0] * x[1]).sin() + 20.0 * (x[2] - 0.5).powi(2) + 10.0 * x[3] + 5.0 * x[4];
                target[0] += noise * rng.normal();
            }
            Task::Waves => {
                let cluster = if rng.bernoulli(0.96) {
                    rng.below(BIG_CLUSTERS as u64)
                } else {
                    BIG_CLUSTERS as u64 + rng.below(RARE_CLUSTERS as u64)
                } as usize;
                x.iter_mut().zip(&self.centres[cluster * d..]).for_each(|(x, c)| *x = c + 0.1 * rng.normal());
                target[0] = x.iter().map(|x| (2.0 * x).sin()).sum::<f64>() / (d as f64).sqrt() + noise * rng.normal();
            }
            Task::Rings => {
                let outer = rng.bernoulli(0.5);
                let radius = if outer { 2.0 } else { 1.0 } + noise * rng.normal();
                let angle = TAU * rng.uniform();
                (x[0], x[1]) = (radius * angle.cos(), radius * angle.sin());
                target[0] = if outer { 1.0 } else { -1.0 };
            }
            Task::Drift => {
                x.fill_with(|| 2.0 * rng.uniform() - 1.0);
                let angle = TAU * ((self.rows_read + 1) % period) as f64 / period as f64;
                target[0] = (PI * (x[0] * angle.cos() + x[1] * angle.sin())).sin() + noise * rng.normal();
            }
            Task::Adversarial => {
                let (block, round) = (self.rows_read / repeat + 1, self.rows_read % repeat);
                if round == 0 {
                    let (features, label) = self.example.split_at_mut(d);
                    features.fill_with(|| rng.normal());
                    let score = features.iter().sum::<f64>() / (d as f64).sqrt() + 0.5 * rng.normal();
                    let flip = if block % 2 == 0 { -1.0 } else { 1.0 };
                    label[0] = if score >= 0.0 { flip } else { -flip };
                }
                out.copy_from_slice(&self.example);
            }
        }
        self.rows_read += 1;
    }
}

fn wave_centres(settings: &Settings) -> Vec<f64> {
    let mut rng = Generator::with_stream(settings.seed, TASK_STREAM);
    let mut centres = Vec::with_capacity((BIG_CLUSTERS + RARE_CLUSTERS) * settings.d);
    for (clusters, reach) in [(BIG_CLUSTERS, 2.0), (RARE_CLUSTERS, 10.0)] {
        centres.extend((0..clusters * settings.d).map(|_| reach * (2.0 * rng.uniform() - 1.0)));
    }
    centres
}

impl RecordSource for SynthSource {
    fn origin(&self) -> &str {
        &self.origin
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(&mut self, block: &mut RecordBlock, max_rows: usize) -> Result<bool> {
        let columns = self.settings.d + 1;
        block.start_table(self.rows_read + 1, columns);
        let count = (max_rows.max(1) as u64).min(self.settings.n - self.rows_read) as usize;
        for row in block.push_table_rows(count).chunks_exact_mut(columns) {
            self.next_row(row);
        }
        Ok(!block.is_empty())
    }

    fn rereadable(&self) -> bool {
        true
    }

    fn rewind(&mut self) -> Result<()> {
        self.rows_read = 0;
        self.rng = Generator::with_stream(self.settings.seed, ROW_STREAM);
        Ok(())
    }

    fn progress(&self) -> Option<f64> {
        Some(self.rows_read as f64 / self.settings.n as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_source_laws, error_of, read_all};
    use super::super::{OpenOptions, RecordBlock, Schema, open};

    fn rows_of(location: &str) -> Vec<Vec<f64>> {
        let mut source = open(location, &OpenOptions::default()).unwrap();
        let mut block = RecordBlock::default();
        let mut rows = Vec::new();
        while source.read(&mut block, 64).unwrap() {
            let cells = block.cells.rows();
            (0..block.len()).for_each(|i| {
                let mut row = vec![0.0; cells.cols()];
                cells.row(i).copy_to(&mut row);
                rows.push(row);
            });
        }
        rows
    }

    #[test]
    fn every_generator_obeys_the_laws_and_its_seed() {
        for name in ["friedman", "waves", "rings", "drift", "adversarial"] {
            let mut source = open(&format!("synth:{name}?n=50&seed=3"), &OpenOptions::default()).unwrap();
            let records = assert_source_laws(source.as_mut());
            assert_eq!(records.len(), 50);
            let Schema::Table { names, named: true } = source.schema() else { panic!("no names") };
            assert_eq!((names[0].as_str(), names.last().unwrap().as_str()), ("x1", "target"));
            let read = |query: &str| {
                read_all(open(&format!("synth:{name}?{query}"), &OpenOptions::default()).unwrap().as_mut(), 7)
            };
            assert_eq!(read("n=60&seed=3")[..50], records, "a longer stream starts the same");
            assert_ne!(read("n=50&seed=4"), records);
        }
    }

    #[test]
    fn friedman_without_noise_is_the_formula() {
        for row in rows_of("synth:friedman?n=20&noise=0&d=6") {
            let [x1, x2, x3, x4, x5, _, y] = row[..] else { panic!("{} columns", row.len()) };
            let expected =
                10.0 * (std::f64::consts::PI * x1 * x2).sin() + 20.0 * (x3 - 0.5) * (x3 - 0.5) + 10.0 * x4 + 5.0 * x5;
            assert!((y - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn rings_without_noise_are_circles_and_classes_are_even() {
        let rows = rows_of("synth:rings?n=1000&noise=0");
        for row in &rows {
            let radius = if row[2] > 0.0 { 2.0 } else { 1.0 };
            assert!((row[0].hypot(row[1]) - radius).abs() < 1e-12);
        }
        // Mean 500, standard deviation 16.
        let outer = rows.iter().filter(|row| row[2] > 0.0).count();
        assert!((420..580).contains(&outer), "{outer}");
    }

    #[test]
    fn waves_have_rare_distant_rows() {
        // Big clusters reach 2 + 0.1·N at most; 4 % of the rows come from [-10, 10] instead.
        let rows = rows_of("synth:waves?n=10000&d=3");
        let far = rows.iter().filter(|row| row[..3].iter().any(|x| x.abs() > 2.6)).count();
        assert!((200..450).contains(&far), "{far}");
    }

    #[test]
    fn drift_turns_with_its_period() {
        let rows = rows_of("synth:drift?n=40&noise=0&d=2&period=40");
        // A quarter turn on, x2 has taken the place of x1.
        let quarter = &rows[9];
        assert!((quarter[2] - (std::f64::consts::PI * quarter[1]).sin()).abs() < 1e-12);
        let full = &rows[39];
        assert!((full[2] - (std::f64::consts::PI * full[0]).sin()).abs() < 1e-12);
    }

    #[test]
    fn adversarial_blocks_repeat_one_example() {
        let rows = rows_of("synth:adversarial?n=2000&repeat=4&d=3");
        assert!(rows.chunks(4).all(|block| block.iter().all(|row| row == &block[0])));
        assert!(rows.chunks(4).zip(rows.chunks(4).skip(1)).all(|(a, b)| a[0] != b[0]));
        // In odd blocks the label mostly follows the features' sum, in even ones it mostly opposes it.
        let follows = |start: usize| {
            rows.chunks(4).skip(start).step_by(2).filter(|b| b[0][..3].iter().sum::<f64>() * b[0][3] > 0.0).count()
        };
        assert!(follows(0) > 175 && follows(1) < 75, "{} and {}", follows(0), follows(1));
    }

    #[test]
    fn unknown_names_and_bad_values_are_refused() {
        for (location, parts) in [
            ("synth:moons", &["'moons'", "friedman, waves, rings, drift, adversarial"][..]),
            ("synth:friedman?m=3", &["'m'", "n, seed, noise, d"]),
            ("synth:rings?d=3", &["'d'", "n, seed, noise"]),
            ("synth:friedman?n=0", &["n: found '0'", "1 or more"]),
            ("synth:friedman?n=many", &["n: found 'many'"]),
            ("synth:friedman?d=4", &["d: found 4", "from 5"]),
            ("synth:friedman?noise=-1", &["noise: found '-1'"]),
            ("synth:friedman?seed", &["seed: found ''"]),
        ] {
            let message = error_of(open(location, &OpenOptions::default()));
            assert!(parts.iter().all(|part| message.contains(part)), "{location} gave {message:?}");
        }
    }
}
