//! One row against all centres: no allocation, no scratch memory, vectorised over the centres.

use super::centres::{Centres, Layout};
use super::sparse;
use super::spec::Kernel;
use super::transform::Transform;
use super::vector::{LANES, Lanes, Vectorised, products, squared_distances, store, vectorised};
use crate::rows::Row;
use pulp::Simd;

impl Kernel {
    /// `out[j]` = k(x, z_j) for every centre.
    ///
    /// # Panics
    /// If `out` is not one number per centre, or a dense row has another width than the centres.
    pub fn row(&self, x: Row, centres: &Centres, out: &mut [f64]) {
        assert_eq!(out.len(), centres.len(), "one kernel value per centre");
        if let Row::Dense(values) = x {
            assert_eq!(values.len(), centres.dim(), "columns of the row and of the centres");
        }
        vectorised(RowTask { transform: Transform::new(self), x, centres, out });
    }
}

struct RowTask<'a> {
    transform: Transform,
    x: Row<'a>,
    centres: &'a Centres,
    out: &'a mut [f64],
}

impl Vectorised for RowTask<'_> {
    const WIDE: bool = true;

    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, simd: S) {
        // A copy of the loop for the kernel used most, without a choice inside.
        match self.transform {
            Transform::Gaussian { rate } => {
                evaluate::<FMA, S>(simd, &Transform::Gaussian { rate }, self.x, self.centres, self.out);
            }
            transform => evaluate::<FMA, S>(simd, &transform, self.x, self.centres, self.out),
        }
    }
}

/// The kernels of `x` with all centres.
#[inline(always)]
pub(super) fn evaluate<const FMA: bool, S: Simd>(
    simd: S,
    transform: &Transform,
    x: Row,
    centres: &Centres,
    out: &mut [f64],
) {
    match (&centres.layout, x) {
        (Layout::Panels(panels), Row::Dense(point)) => {
            let cols = centres.dim();
            for (p, out) in out.chunks_mut(LANES).enumerate() {
                let panel = &panels[p * cols..(p + 1) * cols];
                // Most often the last panel is not full.
                if out.len() > HALF {
                    against::<FMA, S, LANES>(simd, transform, panel, point, out);
                } else {
                    against::<FMA, S, HALF>(simd, transform, panel, point, out);
                }
            }
        }
        (Layout::Panels(panels), Row::Sparse { indices, values }) => {
            sparse::against_panels::<FMA, S>(simd, transform, indices, values, centres, panels, out);
        }
        (Layout::Index(index), x) => sparse::against_index::<FMA, S>(simd, transform, x, centres, index, out),
    }
}

const HALF: usize = LANES / 2;

/// The kernels of `point` with the first of a panel's points, of which N are evaluated.
#[inline(always)]
fn against<const FMA: bool, S: Simd, const N: usize>(
    simd: S,
    transform: &Transform,
    panel: &[Lanes],
    point: &[f64],
    out: &mut [f64],
) {
    let mut values: [f64; N] = match transform.is_radial() {
        true => squared_distances::<FMA, N>(panel, point),
        false => products::<FMA, N>(panel, point),
    };
    transform.apply::<FMA, S, N>(simd, &mut values);
    store(&values, out);
}
