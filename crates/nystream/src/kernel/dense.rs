//! Dense rows against dense centres, a tile of rows at a time: differences in few columns, products in many.

use faer::linalg::matmul::matmul;
use faer::reborrow::ReborrowMut;
use faer::{Accum, ContiguousFwd, MatMut, MatRef, Par};
use pulp::Simd;

use super::centres::{Centres, DIRECT_COLUMNS};
use super::gaussian;
use super::spec::squared_distance;
use super::transform::{Norms, Transform};
use super::vector::{LANES, Lanes, Vectorised, products, squared_distances, store, vectorised};
use crate::rows::{DenseRows, Row};

/// Columns (centres) of one matrix product: with the rows of a tile they stay in the first caches.
const PRODUCT_WIDTH: usize = 128;
/// Rows copied together into a column-major matrix.
const ROWS: usize = 8;

/// Scratch memory of one tile, grown once and reused.
#[derive(Debug, Default)]
pub(super) struct TileScratch {
    /// Rows feature by feature, 32 at a time.
    panels: Vec<Lanes>,
    /// Squared norms of the rows, 32 at a time.
    norms: Vec<Norms>,
    /// Rows as a column-major matrix, padded to a multiple of 32.
    points: Vec<f64>,
    /// Inner products; kernel values before they are written out.
    pub(super) products: Vec<f64>,
    /// Sparse rows as dense ones.
    pub(super) filled: Vec<f64>,
}

impl TileScratch {
    pub(super) fn size_bytes(&self) -> usize {
        self.panels.capacity() * size_of::<Lanes>()
            + self.norms.capacity() * size_of::<Norms>()
            + (self.points.capacity() + self.products.capacity() + self.filled.capacity()) * 8
    }
}

pub(super) type Columns<'a> = MatMut<'a, f64, usize, usize, ContiguousFwd>;

/// Kernels of a tile of rows with all centres. The tile's height is the caller's choice and does not change results.
pub(super) fn tile(
    transform: Transform,
    xs: DenseRows,
    centres: &Centres,
    points: DenseRows,
    scratch: &mut TileScratch,
    out: Columns,
) {
    if xs.cols() <= DIRECT_COLUMNS {
        let TileScratch { panels, norms, .. } = scratch;
        vectorised(Differences { transform, xs, centres, points, panels, norms, out });
    } else {
        by_products(transform, xs, centres, points, scratch, out);
    }
}

/// Few columns: distances from differences, or what is as good.
struct Differences<'a> {
    transform: Transform,
    xs: DenseRows<'a>,
    centres: &'a Centres,
    points: DenseRows<'a>,
    panels: &'a mut Vec<Lanes>,
    norms: &'a mut Vec<Norms>,
    out: Columns<'a>,
}

impl Vectorised for Differences<'_> {
    const WIDE: bool = true;

    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(mut self, simd: S) {
        let cols = self.xs.cols();
        self.panels.resize(self.xs.len().div_ceil(LANES) * cols, Lanes::ZERO);
        for i in 0..self.xs.len() {
            let panel = &mut self.panels[i / LANES * cols..][..cols];
            panel.iter_mut().zip(self.xs.row(i)).for_each(|(lanes, value)| lanes.0[i % LANES] = *value);
        }
        match self.transform {
            Transform::Gaussian { rate } if FMA && gaussian::fits::<S>() => {
                self.norms.clear();
                for panel in 0..self.xs.len().div_ceil(LANES) {
                    let end = self.xs.len().min((panel + 1) * LANES);
                    let squared = |i: usize| self.xs.row(i).iter().map(|v| v * v).sum();
                    self.norms.push(Norms::new((panel * LANES..end).map(squared)));
                }
                let rows = gaussian::Panels { features: self.panels, norms: self.norms };
                gaussian::columns(simd, rate, rows, self.points, &self.centres.norms, self.out);
            }
            transform => self.columns::<FMA, S>(simd, transform),
        }
    }
}

impl Differences<'_> {
    #[inline(always)]
    fn columns<const FMA: bool, S: Simd>(&mut self, simd: S, transform: Transform) {
        let cols = self.xs.cols();
        for j in 0..self.points.len() {
            let point = self.points.row(j);
            let column = self.out.rb_mut().col_mut(j).as_slice_mut();
            for (p, out) in column.chunks_mut(LANES).enumerate() {
                let panel = &self.panels[p * cols..(p + 1) * cols];
                let mut values = if transform.is_radial() {
                    squared_distances::<FMA, LANES>(panel, point)
                } else {
                    products::<FMA, LANES>(panel, point)
                };
                transform.apply::<FMA, S, LANES>(simd, &mut values);
                store(&values, out);
            }
        }
    }
}

/// Many columns: inner products by matrix multiplication, then norms.
fn by_products(
    transform: Transform,
    xs: DenseRows,
    centres: &Centres,
    points: DenseRows,
    scratch: &mut TileScratch,
    mut out: Columns,
) {
    let cols = xs.cols();
    let height = xs.len().next_multiple_of(LANES);
    // Inner products need the points as they are; distances do not change around the mean.
    let centred = centres.centred.as_ref().filter(|_| transform.is_radial());
    let right = centred.map_or(points.data(), |c| &c.points);
    vectorised(Load {
        xs,
        mean: centred.map(|c| &c.mean[..]),
        height,
        points: &mut scratch.points,
        norms: &mut scratch.norms,
    });
    let left = MatRef::from_column_major_slice(&scratch.points, height, cols);
    scratch.products.resize(height * PRODUCT_WIDTH, 0.0);
    for start in (0..points.len()).step_by(PRODUCT_WIDTH) {
        let width = PRODUCT_WIDTH.min(points.len() - start);
        let right = MatRef::from_column_major_slice(&right[start * cols..(start + width) * cols], cols, width);
        let products = &mut scratch.products[..height * width];
        let target = MatMut::from_column_major_slice_mut(&mut *products, height, width);
        matmul(target, Accum::Replace, left, right, 1.0, Par::Seq);
        vectorised(Finish {
            transform,
            xs,
            points,
            start,
            products,
            norms: &scratch.norms,
            other: centred.map_or(&[], |c| &c.norms[start..start + width]),
            out: out.rb_mut().subcols_mut(start, width),
        });
    }
}

/// Copies rows into a column-major matrix, around `mean`, and takes their norms.
struct Load<'a> {
    xs: DenseRows<'a>,
    mean: Option<&'a [f64]>,
    height: usize,
    points: &'a mut Vec<f64>,
    norms: &'a mut Vec<Norms>,
}

impl Vectorised for Load<'_> {
    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, _simd: S) {
        let Self { xs, mean, height, points, norms } = self;
        let cols = xs.cols();
        points.resize(height * cols, 0.0);
        // Eight rows at a time: they are read from end to end, and whole cache lines are written.
        for start in (0..xs.len()).step_by(ROWS) {
            let used = ROWS.min(xs.len() - start);
            let rows: [&[f64]; ROWS] = std::array::from_fn(|r| &xs.row(start + r.min(used - 1))[..cols]);
            for (k, column) in points.chunks_exact_mut(height).enumerate() {
                let mean = mean.map_or(0.0, |mean| mean[k]);
                // Rows past the end repeat the last one; nothing reads them but the product.
                for (r, value) in column[start..start + ROWS].iter_mut().enumerate() {
                    *value = rows[r][k] - mean;
                }
            }
        }
        norms.resize(height / LANES, Norms::NONE);
        for (p, norms) in norms.iter_mut().enumerate() {
            let used = LANES.min(xs.len() - p * LANES);
            let mut sums = [0.0; LANES];
            for column in points.chunks_exact(height) {
                let lanes = &column[p * LANES..(p + 1) * LANES];
                for i in 0..LANES {
                    sums[i] += lanes[i] * lanes[i];
                }
            }
            *norms = Norms::new(sums[..used].iter().copied());
        }
    }
}

/// Turns a product of tile and centres into kernel values.
struct Finish<'a> {
    transform: Transform,
    xs: DenseRows<'a>,
    points: DenseRows<'a>,
    start: usize,
    products: &'a [f64],
    norms: &'a [Norms],
    other: &'a [f64],
    out: Columns<'a>,
}

impl Vectorised for Finish<'_> {
    const WIDE: bool = true;

    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(mut self, simd: S) {
        match self.transform {
            Transform::Gaussian { rate } => self.columns::<FMA, S>(simd, Transform::Gaussian { rate }),
            transform => self.columns::<FMA, S>(simd, transform),
        }
    }
}

impl Finish<'_> {
    #[inline(always)]
    fn columns<const FMA: bool, S: Simd>(&mut self, simd: S, transform: Transform) {
        let height = self.norms.len() * LANES;
        for (j, products) in self.products.chunks_exact(height).enumerate() {
            let point = Row::Dense(self.points.row(self.start + j));
            let column = self.out.rb_mut().col_mut(j).as_slice_mut();
            let groups = products.as_chunks::<LANES>().0;
            for (p, (out, group)) in column.chunks_mut(LANES).zip(groups).enumerate() {
                let mut values = *group;
                if transform.is_radial() {
                    let xs = self.xs;
                    let again = |i: usize| squared_distance(Row::Dense(xs.row(p * LANES + i)), point);
                    transform.distances::<FMA>(&mut values, &self.norms[p], self.other[j], out.len(), again);
                }
                transform.apply::<FMA, S, LANES>(simd, &mut values);
                store(&values, out);
            }
        }
    }
}
