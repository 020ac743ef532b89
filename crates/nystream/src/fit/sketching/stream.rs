//! Rows of a source through a sequential dictionary.

use super::file::SavedSketch;
use super::settings::SketchSettings;
use super::watch::Watch;
use crate::error::{Error, Result};
use crate::fit::choose::choose_kernel;
use crate::fit::codes::TargetCodes;
use crate::fit::observe::Observer;
use crate::fit::options::{Bandwidth, FitOptions};
use crate::fit::two_pass::first_pass;
use crate::preprocess::{Batch, Binding, Categorical, CodedBlock, Missing, Preprocessor, Scale, Scan};
use crate::sketch::{AnySequential, DictionaryMethod, SequentialDictionary};
use crate::source::{RecordBlock, RecordSource, Schema};

/// Records read at a time.
const READ: usize = 1024;

/// A dictionary of every row of a source. Columns, kernel and bandwidth are as `options` say.
///
/// Reads the source once if nothing is to be learnt from the rows beforehand, else twice; a source that cannot be read
/// twice is then refused, and the message says which options would change that.
pub fn sketch(
    source: &mut dyn RecordSource,
    options: &FitOptions,
    settings: &SketchSettings,
    watch: &mut Watch,
    observer: &mut dyn Observer,
) -> Result<SavedSketch> {
    options.validated()?;
    options.refuse_weights()?;
    settings.validated()?;
    if let Some(reason) = needs_first_reading(options, settings) {
        if !source.rereadable() {
            return Err(once(reason, source.origin()));
        }
        return in_two_readings(source, options, settings, watch, observer);
    }
    let stage = format!("dictionary: {}", settings.method);
    observer.stage(&stage);
    let (bandwidth, by) = match options.bandwidth {
        Bandwidth::Fixed(value) if options.kernel.has_bandwidth() => (value, Some("fixed")),
        _ => (1.0, None),
    };
    let kernel = options.kernel.with_bandwidth(bandwidth)?;
    let (mut block, mut coded) = (RecordBlock::default(), CodedBlock::default());
    let mut more = source.read(&mut block, READ)?;
    // Some sources know their columns only after the first block.
    if matches!(source.schema(), Schema::Labelled { .. }) && settings.method != DictionaryMethod::Squeak {
        if !source.rereadable() {
            return Err(once(("method", settings.method.to_string()), source.origin()));
        }
        source.rewind()?;
        return in_two_readings(source, options, settings, watch, observer);
    }
    let mut sketch = settings.start(&kernel, None)?;
    let mut scan = Scan::new(source.schema(), source.origin(), options.table.clone())?;
    while more {
        let seen = scan.rows();
        scan.encode(&block, &mut coded)?;
        // Neither scaled nor expanded: these are the rows themselves.
        watch.pass(&mut sketch, seen, coded.rows.rows()).map_err(|e| located(e, source.origin(), &block))?;
        observer.rows(block.len() as u64, source.progress());
        more = source.read(&mut block, READ)?;
    }
    watch.finish(&sketch)?;
    Ok(SavedSketch::new(&scan.finish()?, sketch, by))
}

fn in_two_readings(
    source: &mut dyn RecordSource,
    options: &FitOptions,
    settings: &SketchSettings,
    watch: &mut Watch,
    observer: &mut dyn Observer,
) -> Result<SavedSketch> {
    let first = first_pass(source, options, observer)?;
    observer.stage("bandwidth");
    let (kernel, by) = choose_kernel(options, &first.sample, &TargetCodes::of(&first.preprocessor))?;
    let rows = first.preprocessor.rows();
    let sketch = settings.start(&kernel, Some((rows, first.sample.rows.rows())))?;
    drop(first.sample);
    let mut saved = SavedSketch::new(&first.preprocessor, sketch, by);
    source.rewind()?;
    let found = saved.follow(source, watch, observer)?;
    require_same_rows(source.origin(), found, rows)?;
    Ok(saved)
}

/// A source that gives other rows than before is refused.
fn require_same_rows(origin: &str, found: u64, expected: u64) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let field = format!("number of rows of {origin} on the second reading");
    Err(Error::Incompatible { field, found: found.to_string(), expected: expected.to_string() })
}

/// Rows through a dictionary, by a preprocessor that is known.
pub(in crate::fit) struct Feed<'a> {
    preprocessor: &'a Preprocessor,
    binding: Option<Binding>,
    records: RecordBlock,
    batch: Batch,
}

impl<'a> Feed<'a> {
    pub(in crate::fit) fn new(preprocessor: &'a Preprocessor) -> Self {
        Self { preprocessor, binding: None, records: RecordBlock::default(), batch: Batch::default() }
    }

    /// Every row from where the source stands. Returns their number.
    pub(in crate::fit) fn run(
        mut self,
        source: &mut dyn RecordSource,
        sketch: &mut AnySequential,
        watch: &mut Watch,
        observer: &mut dyn Observer,
    ) -> Result<u64> {
        let before = sketch.rows();
        let mut passed = 0;
        while source.read(&mut self.records, READ)? {
            let binding = match &mut self.binding {
                Some(binding) => binding,
                None => self.binding.insert(self.preprocessor.bind(source.schema(), source.origin())?),
            };
            self.preprocessor.transform(binding, &self.records, &mut self.batch, false)?;
            let rows = self.batch.rows.rows();
            watch.pass(sketch, before + passed, rows).map_err(|e| located(e, source.origin(), &self.records))?;
            passed += rows.len() as u64;
            observer.rows(self.records.len() as u64, source.progress());
        }
        if passed == 0 {
            return Err(crate::error::input_error(source.origin(), 0, None, "no rows", "at least one row"));
        }
        watch.finish(sketch as &dyn SequentialDictionary)?;
        Ok(passed)
    }
}

/// The option that asks for a first reading, with its value; none if there is none.
fn needs_first_reading(options: &FitOptions, settings: &SketchSettings) -> Option<(&'static str, String)> {
    let table = &options.table;
    if options.kernel.has_bandwidth() && !matches!(options.bandwidth, Bandwidth::Fixed(_)) {
        return Some(("bandwidth", options.bandwidth.to_string()));
    }
    if table.scale != Scale::None {
        return Some(("scale", table.scale.to_string()));
    }
    if table.categorical != Categorical::Refuse {
        return Some(("categorical", "categories".to_owned()));
    }
    if table.missing == Missing::Mean {
        return Some(("missing", table.missing.to_string()));
    }
    settings.needs_rows().then(|| ("oversampling", "theorem".to_owned()))
}

fn once((name, value): (&'static str, String), origin: &str) -> Error {
    Error::InvalidParam {
        name,
        found: format!("{value} on {origin}, which can be read only once"),
        expected: "a source that can be read twice, such as a file; or --scale none, a number for --bandwidth, no \
                   --categorical, no --missing mean, no theorem for INK, and squeak for sparse rows",
    }
}

/// Errors about rows in memory, told of the records they were.
fn located(error: Error, origin: &str, records: &RecordBlock) -> Error {
    match error {
        Error::Input { row, column, found, expected, .. } if row > 0 => {
            Error::Input { origin: origin.to_owned(), row: records.first_row + row - 1, column, found, expected }
        }
        other => other,
    }
}
