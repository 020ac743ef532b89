//! Saving an incremental sketch inside a container of its owner, and going on from it.
//!
//! Both sketches are stored: their last bits depend on the order in which rows entered.

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::{IncrementalOptions, IncrementalSketch};
use crate::error::Result;
use crate::kernel::{Kernel, SupportSet};
use crate::persist::Container;

/// What of a sketch goes into the document of its owner; the arrays go beside it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SketchHeader {
    options: IncrementalOptions,
    entered: u64,
    features: usize,
}

impl IncrementalSketch {
    /// Writes the arrays, named `sketch_…`, and gives the part for the document.
    pub fn write(&self, file: &mut Container) -> Result<SketchHeader> {
        file.put_rows("sketch_row", self.held.rows().rows())?;
        file.put_rows("sketch_sample", self.map.centres().rows())?;
        for (name, matrix) in
            [("sketch_phi_pp", &self.phi_pp), ("sketch_phi_pm", &self.phi_pm), ("sketch_weights", &self.map.weights)]
        {
            let (rows, cols) = (matrix.nrows(), matrix.ncols());
            let data = (0..rows * cols).map(|i| matrix[(i / cols, i % cols)]).collect();
            file.put_f64(name, &[rows, cols], data)?;
        }
        let features = self.held.features();
        Ok(SketchHeader { options: self.options.clone(), entered: self.entered, features })
    }

    /// Reads what [`write`](Self::write) wrote, and checks it.
    pub fn read(kernel: &Kernel, header: SketchHeader, file: &mut Container) -> Result<Self> {
        let SketchHeader { options, entered, features } = header;
        let rows = file.take_rows("sketch_row", features)?;
        let samples = file.take_rows("sketch_sample", features)?;
        if samples.len() != options.sample_size || entered.min(options.most_rows as u64) != rows.len() as u64 {
            return Err(file.malformed("a sketch whose rows or samples are not as many as its settings say"));
        }
        // The sizes below are allocated: the arrays of the file must have paid for them.
        let (p, m, k) = (options.projection_size, options.sample_size, options.rank);
        let phi_pp = take_matrix(file, "sketch_phi_pp", p, p)?;
        let phi_pm = take_matrix(file, "sketch_phi_pm", p, m)?;
        let weights = take_matrix(file, "sketch_weights", m, k)?;
        let mut held = SupportSet::new(kernel, features, options.most_rows);
        (0..rows.len()).for_each(|i| held.push(rows.rows().row(i)));
        let mut sketch = Self::empty(options, rows.len(), held, samples.rows())
            .map_err(|error| file.malformed(format!("a sketch with {error}")))?;
        for place in 0..rows.len() as u64 {
            sketch.transform.push_row(sketch.number_in(place, entered), &mut sketch.entries);
        }
        (sketch.phi_pp, sketch.phi_pm, sketch.map.weights) = (phi_pp, phi_pm, weights);
        sketch.entered = entered;
        Ok(sketch)
    }

    /// The number of the row in a place, of so many that entered.
    fn number_in(&self, place: u64, entered: u64) -> u64 {
        let places = self.options.most_rows as u64;
        match entered.checked_sub(1) {
            // The newest number that leaves this remainder.
            Some(newest) if newest >= place => newest - (newest - place) % places,
            _ => place,
        }
    }
}

fn take_matrix(file: &mut Container, name: &str, rows: usize, cols: usize) -> Result<Mat<f64>> {
    let (shape, data) = file.take_finite(name, 2)?;
    if shape != [rows, cols] {
        return Err(file.malformed(format!("tensor '{name}' has shape {shape:?}, expected [{rows}, {cols}]")));
    }
    Ok(Mat::from_fn(rows, cols, |i, j| data[i * cols + j]))
}
