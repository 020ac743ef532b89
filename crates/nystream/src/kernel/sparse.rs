//! Rows and centres of which at least one side is sparse: inner products over the non-zero values, then norms.

use faer::reborrow::ReborrowMut;
use faer::{ContiguousFwd, MatMut};
use pulp::Simd;

use super::centres::{Centres, InvertedIndex};
use super::row;
use super::spec::squared_distance;
use super::transform::Transform;
use super::vector::{LANES, Lanes, Vectorised, multiply_add, store};
use crate::rows::{Row, Rows};

/// Rows evaluated before their values are written out: one cache line of every column.
const GROUP: usize = 8;

/// A sparse row against panels of centres.
#[inline(always)]
pub(super) fn against_panels<const FMA: bool, S: Simd>(
    simd: S,
    transform: &Transform,
    indices: &[u32],
    values: &[f64],
    centres: &Centres,
    panels: &[Lanes],
    out: &mut [f64],
) {
    let x = Row::Sparse { indices, values };
    let norm = x.squared_norm();
    let cols = centres.dim();
    for (p, out) in out.chunks_mut(LANES).enumerate() {
        let panel = &panels[p * cols..(p + 1) * cols];
        let mut sums = [0.0; LANES];
        for (&k, &value) in indices.iter().zip(values) {
            // Columns that no centre has add nothing to the products.
            if let Some(feature) = panel.get(k as usize) {
                for i in 0..LANES {
                    sums[i] = multiply_add::<FMA>(feature.0[i], value, sums[i]);
                }
            }
        }
        distances::<FMA>(transform, x, norm, centres, p, &mut sums, out.len());
        transform.apply::<FMA, S, LANES>(simd, &mut sums);
        store(&sums, out);
    }
}

/// Any row against an inverted index of centres.
#[inline(always)]
pub(super) fn against_index<const FMA: bool, S: Simd>(
    simd: S,
    transform: &Transform,
    x: Row,
    centres: &Centres,
    index: &InvertedIndex,
    out: &mut [f64],
) {
    let norm = x.squared_norm();
    out.fill(0.0);
    index.add_products(x, out);
    for (p, out) in out.chunks_mut(LANES).enumerate() {
        let mut sums = [0.0; LANES];
        sums[..out.len()].copy_from_slice(out);
        distances::<FMA>(transform, x, norm, centres, p, &mut sums, out.len());
        transform.apply::<FMA, S, LANES>(simd, &mut sums);
        store(&sums, out);
    }
}

/// Inner products of `x` with panel `p` become squared distances, if the kernel is one of distances.
#[inline(always)]
fn distances<const FMA: bool>(
    transform: &Transform,
    x: Row,
    norm: f64,
    centres: &Centres,
    p: usize,
    sums: &mut [f64; LANES],
    used: usize,
) {
    if transform.is_radial() {
        let again = |i: usize| squared_distance(x, centres.rows().row(p * LANES + i));
        transform.distances::<FMA>(sums, &centres.norms[p], norm, used, again);
    }
}

/// Rows against centres one row after the other, for every mix but dense with dense.
pub(super) struct RowWise<'a> {
    pub(super) transform: Transform,
    pub(super) xs: Rows<'a>,
    pub(super) centres: &'a Centres,
    pub(super) scratch: &'a mut Vec<f64>,
    pub(super) out: MatMut<'a, f64, usize, usize, ContiguousFwd>,
}

impl Vectorised for RowWise<'_> {
    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(mut self, simd: S) {
        let count = self.centres.len();
        self.scratch.resize(GROUP * count, 0.0);
        for start in (0..self.xs.len()).step_by(GROUP) {
            let end = self.xs.len().min(start + GROUP);
            for (i, values) in (start..end).zip(self.scratch.chunks_exact_mut(count)) {
                row::evaluate::<FMA, S>(simd, &self.transform, self.xs.row(i), self.centres, values);
            }
            for j in 0..count {
                let column = &mut self.out.rb_mut().col_mut(j).as_slice_mut()[start..end];
                for (i, value) in column.iter_mut().enumerate() {
                    *value = self.scratch[i * count + j];
                }
            }
        }
    }
}
