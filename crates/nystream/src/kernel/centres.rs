//! Centres packed for evaluation: feature-major panels or an inverted index, and centred rows for products.

use super::transform::Norms;
use super::vector::{LANES, Lanes};
use crate::rows::{DenseRows, Row, RowBlock, Rows};

/// Sparse centres are spread out into panels up to this many bytes.
const PANEL_BYTES: usize = 64 << 20;
/// Sparse centres fuller than one entry in this many are spread out: adding a whole panel costs per centre
/// about a twentieth of adding one listed entry.
const PANEL_SPARSITY: usize = 20;
/// Dense rows and centres up to this many columns are compared by differences, wider ones by matrix
/// products (measured with AVX2: differences are faster at 20 columns, products at 54).
pub(super) const DIRECT_COLUMNS: usize = 32;

/// Bytes of kernel values that stay in the second cache, beside what is evaluated and what is made of them.
const STRIP_BYTES: usize = 256 << 10;
/// Rows that a matrix product with the centres should have.
const PRODUCT_ROWS: usize = 128;

/// A set of centres, packed for fast evaluation against rows.
///
/// Beside the rows as given it holds a feature-major copy (dense rows, and sparse ones that are short
/// or full enough; else an inverted index with one entry per stored value), and for dense rows of more
/// than a few columns a copy with the mean subtracted. Sparse rows of few columns that are mostly
/// filled are held as dense ones too.
#[derive(Debug, Clone)]
pub struct Centres {
    rows: RowBlock,
    pub(super) layout: Layout,
    /// Squared norms, by panel.
    pub(super) norms: Vec<Norms>,
    pub(super) centred: Option<Centred>,
    /// Sparse rows of few columns, most of them filled, as dense ones.
    pub(super) filled: Option<RowBlock>,
}

/// The centres by feature.
#[derive(Debug, Clone)]
pub(super) enum Layout {
    /// Feature `k` of centres `32 p..32 p + 32` is `panels[p * cols + k]`.
    Panels(Vec<Lanes>),
    /// Only the non-zero values.
    Index(InvertedIndex),
}

/// For every feature that occurs, the centres that have it.
#[derive(Debug, Clone)]
pub(super) struct InvertedIndex {
    /// Increasing.
    features: Vec<u32>,
    /// Feature `features[f]` has entries `offsets[f]..offsets[f + 1]`.
    offsets: Vec<usize>,
    centres: Vec<u32>,
    values: Vec<f64>,
}

/// Dense centres around their mean, where norms are smallest and products lose least.
#[derive(Debug, Clone)]
pub(super) struct Centred {
    pub(super) mean: Vec<f64>,
    /// Row-major, as the centres.
    pub(super) points: Vec<f64>,
    /// Squared norm of each.
    pub(super) norms: Vec<f64>,
}

impl Centres {
    /// Packs `rows`.
    pub fn new(rows: Rows) -> Self {
        let mut copy = RowBlock::like(rows);
        copy.extend(rows);
        let squared = |i: usize| rows.row(i).squared_norm();
        let starts = (0..rows.len()).step_by(LANES);
        let norms = starts.map(|start| Norms::new((start..rows.len().min(start + LANES)).map(squared))).collect();
        let layout = if spread(rows) { Layout::Panels(panels(rows)) } else { Layout::Index(InvertedIndex::new(rows)) };
        let centred = match rows {
            Rows::Dense(dense) if dense.cols() > DIRECT_COLUMNS => Some(Centred::new(dense)),
            _ => None,
        };
        let filled = mostly_filled(rows).then(|| {
            let mut filled = RowBlock::dense(rows.cols());
            let mut values = Vec::new();
            for i in 0..rows.len() {
                values.clear();
                fill(rows.row(i), rows.cols(), &mut values);
                filled.push(Row::Dense(&values));
            }
            filled
        });
        Self { rows: copy, layout, norms, centred, filled }
    }

    /// The centres as they were given.
    pub fn rows(&self) -> Rows<'_> {
        self.rows.rows()
    }

    /// Number of centres.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of columns.
    pub fn dim(&self) -> usize {
        self.rows.cols()
    }

    /// Rows to evaluate at a time where the values are to be used while they are at hand: as many as leave room for them in the second cache.
    pub(super) fn strip_rows(&self) -> usize {
        let least = if self.centred.is_some() { PRODUCT_ROWS } else { LANES };
        (STRIP_BYTES / 8 / self.len().max(1) / LANES * LANES).clamp(least, 8 * LANES)
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        let layout = match &self.layout {
            Layout::Panels(panels) => size_of_val(&panels[..]),
            Layout::Index(index) => {
                index.features.len() * 4 + index.offsets.len() * 8 + index.centres.len() * 4 + index.values.len() * 8
            }
        };
        let centred = self.centred.as_ref().map_or(0, |c| (c.mean.len() + c.points.len() + c.norms.len()) * 8);
        let filled = self.filled.as_ref().map_or(0, RowBlock::size_bytes);
        self.rows.size_bytes() + layout + size_of_val(&self.norms[..]) + centred + filled
    }
}

/// Whether sparse rows are better taken for dense ones: few columns, of which at least half are not zero.
fn mostly_filled(rows: Rows) -> bool {
    match rows {
        Rows::Dense(_) => false,
        Rows::Sparse(sparse) => rows.cols() <= DIRECT_COLUMNS && 2 * sparse.entries() >= rows.len() * rows.cols(),
    }
}

/// Appends all values of a row, zeros too.
pub(super) fn fill(row: Row, cols: usize, out: &mut Vec<f64>) {
    let start = out.len();
    out.resize(start + cols, 0.0);
    for_each_entry(row, |k, value| out[start + k as usize] = value);
}

/// Whether panels, which store zeros too, suit these rows.
fn spread(rows: Rows) -> bool {
    match rows {
        Rows::Dense(_) => true,
        Rows::Sparse(sparse) => {
            let numbers = rows.len().next_multiple_of(LANES).saturating_mul(rows.cols());
            numbers <= PANEL_BYTES / 8 && sparse.entries().saturating_mul(PANEL_SPARSITY) >= numbers
        }
    }
}

fn panels(rows: Rows) -> Vec<Lanes> {
    let cols = rows.cols();
    let mut panels = vec![Lanes::ZERO; rows.len().div_ceil(LANES) * cols];
    for i in 0..rows.len() {
        let panel = &mut panels[i / LANES * cols..][..cols];
        match rows.row(i) {
            Row::Dense(values) => panel.iter_mut().zip(values).for_each(|(lanes, v)| lanes.0[i % LANES] = *v),
            Row::Sparse { indices, values } => {
                for (&k, &v) in indices.iter().zip(values) {
                    panel[k as usize].0[i % LANES] = v;
                }
            }
        }
    }
    panels
}

impl InvertedIndex {
    fn new(rows: Rows) -> Self {
        let mut entries = Vec::new();
        for i in 0..rows.len() {
            for_each_entry(rows.row(i), |k, v| entries.push((k, i as u32, v)));
        }
        entries.sort_unstable_by_key(|&(k, i, _)| (k, i));
        let mut index = Self { features: vec![], offsets: vec![0], centres: vec![], values: vec![] };
        for (k, i, v) in entries {
            if index.features.last() != Some(&k) {
                if !index.features.is_empty() {
                    index.offsets.push(index.centres.len());
                }
                index.features.push(k);
            }
            index.centres.push(i);
            index.values.push(v);
        }
        if !index.features.is_empty() {
            index.offsets.push(index.centres.len());
        }
        index
    }

    /// Adds the inner products of `x` with every centre to `sums`.
    pub(super) fn add_products(&self, x: Row, sums: &mut [f64]) {
        let mut from = 0;
        for_each_entry(x, |k, value| {
            // Both sides increase, so the search goes on where the last one ended.
            from += self.features[from..].partition_point(|&feature| feature < k);
            if self.features.get(from) == Some(&k) {
                let span = self.offsets[from]..self.offsets[from + 1];
                for (&centre, &z) in self.centres[span.clone()].iter().zip(&self.values[span]) {
                    sums[centre as usize] += value * z;
                }
            }
        });
    }
}

/// Calls `visit(column, value)` for the non-zero values of a row, in order.
fn for_each_entry(row: Row, mut visit: impl FnMut(u32, f64)) {
    match row {
        Row::Dense(values) => {
            for (k, &v) in values.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                visit(k as u32, v);
            }
        }
        Row::Sparse { indices, values } => indices.iter().zip(values).for_each(|(&k, &v)| visit(k, v)),
    }
}

impl Centred {
    fn new(rows: DenseRows) -> Self {
        let mut mean = vec![0.0; rows.cols()];
        // Divided before adding: sums of large values must not overflow.
        let share = 1.0 / rows.len().max(1) as f64;
        for i in 0..rows.len() {
            mean.iter_mut().zip(rows.row(i)).for_each(|(mean, value)| *mean += value * share);
        }
        let mut points = Vec::with_capacity(rows.data().len());
        let mut norms = Vec::with_capacity(rows.len());
        for i in 0..rows.len() {
            points.extend(rows.row(i).iter().zip(&mean).map(|(value, mean)| value - mean));
            norms.push(points[i * rows.cols()..].iter().map(|v| v * v).sum());
        }
        Self { mean, points, norms }
    }
}
