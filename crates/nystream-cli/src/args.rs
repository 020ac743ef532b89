//! Options that several subcommands share, and their translation into the library's types.

use clap::Args;
use nystream::Error;
use nystream::error::nearest_hint;
use nystream::fit::{Bandwidth, FitOptions, KernelFamily};
use nystream::kernel::Kernel;
use nystream::preprocess::{Categorical, ColumnRef, Missing, Preprocessor, Scale, TableOptions, TaskRequest};
use nystream::source::{Format, OpenOptions, RecordSource, open};

/// Options of every subcommand.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Print one JSON object instead of a table
    #[arg(long, global = true)]
    pub json: bool,
    /// No progress bar, no table; errors only
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Threads to use (default: all cores); the results do not depend on it
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

/// How a file is read.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Reading")]
pub struct ReadArgs {
    /// csv, libsvm, jsonl, parquet or arrow (default: from the name, else the content)
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Whether the first line of a CSV file names the columns: yes or no (default: yes if it is not all numbers)
    #[arg(long, value_name = "YES|NO", value_parser = yes_or_no)]
    pub header: Option<bool>,
    /// Character between the cells of a CSV file, or the word tab (default: comma; tab for .tsv)
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    pub delimiter: Option<u8>,
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("expected yes or no".to_owned()),
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match (text, text.as_bytes()) {
        ("tab" | "\\t", _) => Ok(b'\t'),
        (_, [byte]) if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err("expected one ASCII character that is neither a quote nor a line end, or the word tab".to_owned()),
    }
}

impl ReadArgs {
    pub fn open(&self, location: &str) -> nystream::Result<Box<dyn RecordSource>> {
        let options = OpenOptions { format: self.format, header: self.header, delimiter: self.delimiter };
        open(location, &options)
    }
}

/// Which columns are what.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Columns")]
pub struct TableArgs {
    /// Target column, by name or number from 1 (default: `target`, else the last); repeat for several
    #[arg(long, value_name = "COLUMN", allow_negative_numbers = true)]
    pub target: Vec<ColumnRef>,
    /// Column to leave out; repeat for several
    #[arg(long, value_name = "COLUMN", allow_negative_numbers = true)]
    pub ignore: Vec<ColumnRef>,
    /// Text in feature columns: refuse, one-hot (levels learnt on the first pass), or COLUMN=LEVEL,LEVEL;... (default:
    /// refuse)
    #[arg(long, value_name = "HOW")]
    pub categorical: Option<Categorical>,
    /// Missing cells: refuse, mean (of the column) or drop (the row) (default: refuse)
    #[arg(long, value_name = "HOW")]
    pub missing: Option<Missing>,
    /// Targets as numbers or classes: auto, regression or classification (default: auto)
    #[arg(long, value_name = "TASK")]
    pub task: Option<TaskRequest>,
    /// Scaling of number columns: none, minmax, standard, or running (standard by the first rows of a stream) (default:
    /// standard)
    #[arg(long, value_name = "HOW")]
    pub scale: Option<Scale>,
}

impl TableArgs {
    /// The first of these options that was given.
    pub fn given(&self) -> Option<&'static str> {
        let all = [
            ("target", !self.target.is_empty()),
            ("ignore", !self.ignore.is_empty()),
            ("categorical", self.categorical.is_some()),
            ("missing", self.missing.is_some()),
            ("task", self.task.is_some()),
            ("scale", self.scale.is_some()),
        ];
        all.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }

    pub fn options(&self) -> TableOptions {
        TableOptions {
            targets: self.target.clone(),
            ignore: self.ignore.clone(),
            weights: None,
            categorical: self.categorical.clone().unwrap_or_default(),
            missing: self.missing.unwrap_or_default(),
            task: self.task.unwrap_or_default(),
            scale: self.scale.unwrap_or(Scale::Standard),
        }
    }
}

/// Which kernel.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Kernel")]
pub struct KernelArgs {
    /// gaussian, laplacian, matern32, matern52, polynomial or linear (default: gaussian)
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// auto (median heuristic, refined on held-out rows), median, alignment, or a number (default: auto)
    #[arg(long, value_name = "SIGMA", allow_negative_numbers = true)]
    pub bandwidth: Option<Bandwidth>,
    /// Degree of the polynomial kernel (default: 3)
    #[arg(long, value_name = "N")]
    pub degree: Option<u32>,
    /// Factor of the inner product in the polynomial kernel (default: 1)
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub kernel_scale: Option<f64>,
    /// Constant added in the polynomial kernel (default: 1)
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub offset: Option<f64>,
}

/// The kernels by name.
const KERNELS: [&str; 6] = ["gaussian", "laplacian", "matern32", "matern52", "polynomial", "linear"];

impl KernelArgs {
    pub fn family(&self) -> nystream::Result<KernelFamily> {
        let name = self.kernel.as_deref().unwrap_or("gaussian");
        let polynomial = name == "polynomial";
        let given = [
            ("degree", self.degree.is_some()),
            ("kernel-scale", self.kernel_scale.is_some()),
            ("offset", self.offset.is_some()),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, given)| *given && !polynomial) {
            let found = format!("an option of the polynomial kernel with --kernel {name}");
            return Err(Error::InvalidParam { name: option, found, expected: "--kernel polynomial" });
        }
        Ok(KernelFamily::of(match name {
            "gaussian" => Kernel::gaussian(1.0)?,
            "laplacian" => Kernel::laplacian(1.0)?,
            "matern32" => Kernel::matern32(1.0)?,
            "matern52" => Kernel::matern52(1.0)?,
            "linear" => Kernel::Linear,
            "polynomial" => Kernel::polynomial(
                self.degree.unwrap_or(3),
                self.kernel_scale.unwrap_or(1.0),
                self.offset.unwrap_or(1.0),
            )
            .map_err(as_options)?,
            other => {
                return Err(Error::InvalidParam {
                    name: "kernel",
                    found: format!("'{other}'{}", nearest_hint(other, KERNELS)),
                    expected: "gaussian, laplacian, matern32, matern52, polynomial or linear",
                });
            }
        }))
    }
}

/// The library's `scale` of a polynomial is our `--kernel-scale`; `--scale` is another matter.
fn as_options(error: Error) -> Error {
    match error {
        Error::InvalidParam { name: "scale", found, expected } => {
            Error::InvalidParam { name: "kernel-scale", found, expected }
        }
        other => other,
    }
}

/// The options of a fit that concern columns and kernel; the caller fills in the rest.
pub fn fit_options(table: &TableArgs, kernel: &KernelArgs, seed: u64) -> nystream::Result<FitOptions> {
    Ok(FitOptions {
        table: table.options(),
        kernel: kernel.family()?,
        bandwidth: kernel.bandwidth.unwrap_or(Bandwidth::Auto),
        seed,
        ..FitOptions::default()
    })
}

/// Numbers of bytes as people write them: `500000`, `400MB`, `4GiB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim() {
        "" | "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024f64.powi(2),
        "GiB" => 1024f64.powi(3),
        _ => return Err("expected a number of bytes, such as 500000, 400MB or 4GiB".to_owned()),
    };
    match number.parse::<f64>() {
        Ok(value) if value > 0.0 => Ok((value * factor) as u64),
        _ => Err("expected a number of bytes above 0, such as 400MB".to_owned()),
    }
}

/// What the columns turned out to be, in words.
pub fn task_words(preprocessor: &Preprocessor) -> String {
    match preprocessor.task() {
        nystream::preprocess::Task::Regression { targets: 1 } => "regression".to_owned(),
        nystream::preprocess::Task::Regression { targets } => format!("regression of {targets} targets"),
        nystream::preprocess::Task::Classification { labels } => format!("classification of {} classes", labels.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_delimiters_are_read() {
        assert_eq!(bytes("400MB"), Ok(400_000_000));
        assert_eq!(bytes("1.5GiB"), Ok(1_610_612_736));
        assert!(bytes("lots").is_err() && bytes("0").is_err() && bytes("3 parsecs").is_err());
        assert_eq!(delimiter("tab"), Ok(b'\t'));
        assert_eq!(delimiter(";"), Ok(b';'));
        assert!(delimiter("ab").is_err() && delimiter("\"").is_err());
    }
}
