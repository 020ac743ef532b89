//! Data files of a table: checked, scaled, with targets ±1 or numbers within [0, 1], in any order.

use std::fs::File;
use std::io;
use std::path::Path;

use nystream::fit::{Bandwidth, FitOptions, Silent, TargetCodes, first_pass};
use nystream::kernel::Kernel;
use nystream::learner::online::Targets;
use nystream::random::Generator;
use nystream::rows::RowBlock;
use nystream::solver::{alignment_bandwidth, median_bandwidth};
use nystream::source::{OpenOptions, open};
use nystream::{Error, Result};
use sha2::{Digest, Sha256};

use super::file::{DataFile, Variant};

/// Whether the file is the one that the table speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Checked {
    Same,
    Missing,
    /// Another file of that name, with this checksum.
    Differs(String),
}

/// Compares a file's checksum with the table's.
pub(super) fn checked(folder: &Path, data: &DataFile) -> Result<Checked> {
    let path = folder.join(&data.file);
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Checked::Missing),
        Err(e) => return Err(Error::io(path, "open", e)),
    };
    let mut hash = Sha256::new();
    io::copy(&mut file, &mut hash).map_err(|e| Error::io(path, "read", e))?;
    let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(if found == data.sha256 { Checked::Same } else { Checked::Differs(found) })
}

/// A set in memory.
#[derive(Debug)]
pub(super) struct Loaded {
    /// In random order.
    pub rows: RowBlock,
    pub targets: Vec<f64>,
    pub kind: Targets,
    /// Places of the rows in the order of the file.
    order: Vec<usize>,
}

impl Loaded {
    /// Reads and scales a file.
    pub fn read(folder: &Path, data: &DataFile, scale: &str) -> Result<Self> {
        let mut source = open(&folder.join(&data.file).to_string_lossy(), &OpenOptions::default())?;
        let mut options = FitOptions { sample: Some(usize::MAX), ..FitOptions::default() };
        options.table.scale = scale.parse()?;
        let first = first_pass(source.as_mut(), &options, &mut Silent)?;
        let codes = TargetCodes::of(&first.preprocessor);
        if codes.outputs() != 1 {
            let found = format!("{} outputs in {}", codes.outputs(), data.file);
            return Err(Error::InvalidParam { name: "target", found, expected: "two classes or one number" });
        }
        let mut order: Vec<usize> = (0..first.sample.len()).collect();
        order.sort_by_key(|&i| first.sample_rows[i]);
        let (kind, targets) = match codes {
            TargetCodes::Classes { .. } => {
                let mut coded = faer::Mat::new();
                codes.encode(&first.sample.targets, &mut coded);
                (Targets::Classes, (0..coded.nrows()).map(|i| coded[(i, 0)]).collect())
            }
            TargetCodes::Numbers { .. } => (Targets::Numbers, unit_range(&first.sample.targets)),
        };
        Ok(Self { rows: first.sample.rows, targets, kind, order })
    }

    /// The Gaussian kernel by the variant's rule, from 1,000 random rows.
    pub fn kernel(&self, variant: &Variant) -> Result<Kernel> {
        let unit = Kernel::gaussian(1.0)?;
        let rows = self.rows.rows();
        Kernel::gaussian(match variant.bandwidth.parse()? {
            Bandwidth::Fixed(bandwidth) => bandwidth,
            Bandwidth::Median => median_bandwidth(rows),
            Bandwidth::Auto | Bandwidth::Alignment => alignment_bandwidth(&unit, rows, &self.targets, 1)?.0,
        })
    }

    /// The first rows of the order of this seed, as `nystream evaluate --shuffle` has it.
    pub fn permuted(&self, seed: u64, most: usize) -> (RowBlock, Vec<f64>) {
        let mut order = self.order.clone();
        Generator::new(seed).shuffle(&mut order);
        order.truncate(most);
        (RowBlock::gather(self.rows.rows(), &order), order.iter().map(|&i| self.targets[i]).collect())
    }
}

/// To [0, 1].
fn unit_range(numbers: &[f64]) -> Vec<f64> {
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let range = if high > low { high - low } else { 1.0 };
    numbers.iter().map(|number| (number - low) / range).collect()
}
