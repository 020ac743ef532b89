//! Options beside `--resume` and `--like`: those that say what the file says are fine, others are refused by name.

use std::fmt::Display;
use std::path::Path;

use nystream::Error;
use nystream::fit::{Bandwidth, Copies, SavedSketch};
use nystream::kernel::Kernel;
use nystream::sketch::{Oversampling, Schedule, SequentialDictionary};

use super::{Budget, ScheduleName, SketchArgs};

pub fn require_matching(args: &SketchArgs, path: &Path, saved: &SavedSketch) -> nystream::Result<()> {
    let file = File(path);
    let (sketch, preprocessor) = (saved.sketch(), saved.preprocessor());
    file.same("method", args.method, sketch.dictionary_method())?;
    args.require_fitting(sketch.dictionary_method())?;
    let resumed = args.stream.resume.is_some();
    if resumed {
        file.same("seed", args.seed, sketch.seed())?;
    }

    let kernel = sketch.kernel();
    file.same("kernel", args.kernel.kernel.as_deref(), kernel.name())?;
    match args.kernel.bandwidth {
        Some(Bandwidth::Fixed(value)) => file.same_number("bandwidth", Some(value), kernel.bandwidth())?,
        Some(_) => return Err(file.refuse("bandwidth", "to be chosen", kernel.bandwidth())),
        None => {}
    }
    let polynomial = match *kernel {
        Kernel::Polynomial { degree, scale, offset } => (Some(f64::from(degree)), Some(scale), Some(offset)),
        _ => (None, None, None),
    };
    file.same_number("degree", args.kernel.degree.map(f64::from), polynomial.0)?;
    file.same_number("kernel-scale", args.kernel.kernel_scale, polynomial.1)?;
    file.same_number("offset", args.kernel.offset, polynomial.2)?;

    let table = &args.table;
    file.same("scale", table.scale, preprocessor.scaling())?;
    file.same("missing", table.missing, preprocessor.missing())?;
    if !table.target.is_empty() && !table.target.iter().map(|t| &t.0).eq(preprocessor.target_names()) {
        let given = table.target.iter().map(|t| t.0.as_str()).collect::<Vec<_>>().join(", ");
        return Err(file.refuse("target", given, Some(preprocessor.target_names().join(", "))));
    }
    for (name, given) in [
        ("ignore", !table.ignore.is_empty()),
        ("categorical", table.categorical.is_some()),
        ("task", table.task.is_some()),
        ("sample", args.sample.is_some()),
    ] {
        if given {
            return Err(file.refuse(name, "this option", None::<f64>));
        }
    }
    require_matching_settings(args, &file, saved)
}

fn require_matching_settings(args: &SketchArgs, file: &File<'_>, saved: &SavedSketch) -> nystream::Result<()> {
    let (sketch, stream) = (saved.sketch(), &args.stream);
    let words = |budget: Option<usize>| budget.map_or("none".to_owned(), |atoms| atoms.to_string());
    let budget = args.budget.map(|budget| match budget {
        Budget::Atoms(atoms) => Some(atoms),
        Budget::Unlimited => None,
    });
    file.same("budget", budget.map(words), words(sketch.budget()))?;
    let (ridge, accuracy, failure_prob) = match (sketch.squeak_options(), sketch.ink_options()) {
        (Some(o), _) => (o.leverage_ridge, o.accuracy, o.failure_prob),
        (_, Some(o)) => (o.leverage_ridge, o.accuracy, o.failure_prob),
        _ => return Err(Error::Internal("a sketch without settings")),
    };
    file.same_number("leverage-ridge", args.leverage_ridge, Some(ridge))?;
    file.same_number("accuracy", args.accuracy, Some(accuracy))?;
    file.same_number("failure-prob", stream.failure_prob, Some(failure_prob))?;

    let fixed = |copies: u64| copies.to_string();
    let held = match (sketch.squeak_options().map(|o| o.oversampling), sketch.ink_options()) {
        (Some(Oversampling::Fixed(copies)), _) => fixed(copies),
        (Some(Oversampling::Theorem { expected_rows }), _) => match stream.oversampling {
            Some(Copies::Theorem { expected_rows: None }) => "theorem".to_owned(),
            _ => format!("theorem:{expected_rows}"),
        },
        (None, Some(ink)) => fixed(ink.oversampling),
        (None, None) => String::new(),
    };
    let given = stream.oversampling.map(|copies| match copies {
        Copies::Fixed(copies) => fixed(copies),
        Copies::Theorem { expected_rows: Some(rows) } => format!("theorem:{rows}"),
        Copies::Theorem { expected_rows: None } => "theorem".to_owned(),
        Copies::Usual => String::new(),
    });
    file.same("oversampling", given, held)?;

    let Some(options) = sketch.squeak_options() else { return Ok(()) };
    let bytes = |bytes: Option<u64>| bytes.map_or("none".to_owned(), |bytes| bytes.to_string());
    file.same("budget-bytes", stream.budget_bytes.map(|b| bytes(Some(b))), bytes(options.budget_bytes))?;
    file.same("schedule", stream.schedule.map(ScheduleName::name), ScheduleName::of(&options.schedule).name())?;
    file.same("block", stream.block, options.schedule.block())?;
    let growth = match options.schedule {
        Schedule::Lazy { growth, .. } => Some(growth),
        _ => None,
    };
    file.same_number("growth", stream.growth, growth)
}

/// The file that options are compared with.
struct File<'a>(&'a Path);

impl File<'_> {
    fn refuse(&self, name: &'static str, given: impl Display, held: Option<impl Display>) -> Error {
        let held = held.map_or("its own".to_owned(), |held| held.to_string());
        let found = format!("{given} for {}, which has {held}", self.0.display());
        Error::InvalidParam { name, found, expected: "what the file has, or no such option" }
    }

    fn same<T: PartialEq + Display>(&self, name: &'static str, given: Option<T>, held: T) -> nystream::Result<()> {
        match given {
            Some(given) if given != held => Err(self.refuse(name, given, Some(held))),
            _ => Ok(()),
        }
    }

    fn same_number(&self, name: &'static str, given: Option<f64>, held: Option<f64>) -> nystream::Result<()> {
        match given {
            Some(value) if given != held => Err(self.refuse(name, value, held)),
            _ => Ok(()),
        }
    }
}
