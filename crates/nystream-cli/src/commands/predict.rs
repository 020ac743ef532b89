//! `nystream predict`: predictions for a file, to standard output or a file, as CSV.

use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use nystream::Error;
use nystream::fit::Observer;
use nystream::model::{Predictions, TrainedModel, Wanted};
use nystream::persist::write_atomically_with;
use nystream::preprocess::{Batch, Missing};
use nystream::source::RecordBlock;

use crate::args::{Common, ReadArgs};
use crate::files::Files;
use crate::output::{Failure, Outcome, show, stdout_failure};
use crate::progress::Progress;
use crate::report::Report;

/// Predict the rows of a file
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nystream predict houses.nys new-houses.csv --std > predictions.csv
  nystream predict a9a.nys new.libsvm --probabilities --out predictions.csv

The output is CSV with a header: a column a target (or `label`), then `std` or probabilities. If the model leaves out
rows with missing cells, a first column `row` tells which rows of the file remain (from 1).")]
pub struct PredictArgs {
    /// Model file
    model: PathBuf,
    /// File with the features of the training data, `-` for standard input, or `synth:...`
    data: String,
    /// Where to write predictions (default: standard output)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Add the standard deviation of each prediction
    #[arg(long)]
    std: bool,
    /// Add the probability of each class
    #[arg(long)]
    probabilities: bool,
    #[command(flatten)]
    read: ReadArgs,
}

const BLOCK: usize = 4096;

pub fn run(args: &PredictArgs, common: &Common) -> Outcome {
    let start = Instant::now();
    if common.json && args.out.is_none() {
        let found = "no --out, with --json".to_owned();
        let expected = "a file for the predictions, because standard output gets the JSON object";
        return Err(Error::InvalidParam { name: "out", found, expected }.into());
    }
    let files = Files::new().reads("MODEL", Some(&args.model)).data(&args.data);
    files.writes("out", args.out.as_ref()).require_apart()?;
    let model = TrainedModel::load(&args.model)?;
    let classifier = model.calibration().is_some();
    let wrong = |name, found: &str, expected| Error::InvalidParam { name, found: found.to_owned(), expected };
    if args.std && classifier {
        return Err(wrong("std", "a model of classes", "a regression model (classes have --probabilities)").into());
    }
    if args.probabilities && !classifier {
        return Err(wrong("probabilities", "a regression model", "a model of classes (numbers have --std)").into());
    }
    let mut predictor = Predictor { args, model: &model, progress: Progress::new(!common.quiet && !common.json) };
    let rows = match &args.out {
        Some(path) => write_atomically_with(path, |file| -> Result<u64, Failure> {
            predictor.write(&mut BufWriter::new(file), |e| Error::io(path, "write", e).into())
        })?,
        None => predictor.write(&mut BufWriter::new(std::io::stdout().lock()), stdout_failure)?,
    };
    predictor.progress.finish();
    if let Some(path) = &args.out {
        let mut report = Report::new();
        report.put("out", path.display().to_string());
        report.put("rows", rows);
        report.put_seconds("seconds_total", start.elapsed());
        return show(&report, common);
    }
    Ok(())
}

struct Predictor<'a> {
    args: &'a PredictArgs,
    model: &'a TrainedModel,
    progress: Progress,
}

impl Predictor<'_> {
    fn write(&mut self, out: &mut dyn Write, failed: impl Fn(std::io::Error) -> Failure) -> Result<u64, Failure> {
        let model = self.model;
        let mut source = self.args.read.open(&self.args.data)?;
        self.progress.stage("predicting");
        let numbered = model.preprocessor().missing() == Missing::Drop;
        let (mut block, mut text) = (RecordBlock::default(), String::new());
        let mut predictor = None;
        let mut rows = 0;
        self.header(numbered, &mut text);
        while source.read(&mut block, BLOCK)? {
            let predictor = match &mut predictor {
                Some(predictor) => predictor,
                None => predictor.insert(model.predictor(source.schema(), source.origin())?),
            };
            predictor.predict(&block, Wanted { targets: false, deviations: self.args.std })?;
            let values = predictor.predictions();
            self.lines(numbered, predictor.batch(), values, &mut text);
            out.write_all(text.as_bytes()).map_err(&failed)?;
            text.clear();
            rows += values.rows as u64;
            self.progress.rows(block.len() as u64, source.progress());
        }
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(&failed)?;
        Ok(rows)
    }

    fn header(&self, numbered: bool, text: &mut String) {
        let mut names = Vec::new();
        if numbered {
            names.push("row".to_owned());
        }
        if self.model.calibration().is_some() {
            names.push("label".to_owned());
            if self.args.probabilities {
                names.extend(self.model.labels().iter().map(|label| format!("probability_{label}")));
            }
        } else {
            let targets = self.model.preprocessor().target_names();
            names.extend(targets.iter().cloned());
            if self.args.std {
                let std = |name: &String| if targets.len() == 1 { "std".to_owned() } else { format!("std_{name}") };
                names.extend(targets.iter().map(std));
            }
        }
        let quoted: Vec<String> = names.iter().map(|name| csv_cell(name)).collect();
        text.push_str(&quoted.join(","));
        text.push('\n');
    }

    fn lines(&self, numbered: bool, batch: &Batch, values: &Predictions, text: &mut String) {
        let labels = self.model.labels();
        let width = values.values.len().checked_div(values.rows).unwrap_or(0);
        let classes = labels.len();
        for i in 0..values.rows {
            if numbered {
                let _ = write!(text, "{},", batch.source_row(i));
            }
            if classes > 0 {
                text.push_str(&csv_cell(&labels[values.values[i] as usize]));
                if self.args.probabilities {
                    for p in &values.probabilities[i * classes..(i + 1) * classes] {
                        text.push(',');
                        push_number(text, *p);
                    }
                }
            } else {
                let row = i * width..(i + 1) * width;
                let deviations = values.deviations.get(row.clone()).unwrap_or_default();
                for (t, number) in values.values[row].iter().chain(deviations).enumerate() {
                    text.push_str(if t == 0 { "" } else { "," });
                    push_number(text, *number);
                }
            }
            text.push('\n');
        }
    }
}

/// All the digits that tell a number from its neighbours, but never hundreds of zeros.
fn push_number(text: &mut String, number: f64) {
    let plain = number == 0.0 || (1e-5..1e16).contains(&number.abs());
    let _ = if plain { write!(text, "{number}") } else { write!(text, "{number:e}") };
}

/// A CSV cell, quoted if it must be.
fn csv_cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{csv_cell, push_number};

    #[test]
    fn numbers_are_short_and_come_back() {
        for (number, expected) in [(0.0, "0"), (-2.5, "-2.5"), (1e-300, "1e-300"), (-1.25e20, "-1.25e20"), (0.1, "0.1")]
        {
            let mut text = String::new();
            push_number(&mut text, number);
            assert_eq!((text.as_str(), text.parse()), (expected, Ok(number)));
        }
    }

    #[test]
    fn cells_with_commas_or_quotes_are_quoted() {
        assert_eq!(csv_cell("plain"), "plain");
        assert_eq!(csv_cell("a,b"), "\"a,b\"");
        assert_eq!(csv_cell("say \"hi\""), "\"say \"\"hi\"\"\"");
    }
}
