//! Vector loops in plain Rust: lanes of 32 numbers, and the choice of instruction set at run time.
//!
//! The loops are ordinary ones over fixed arrays; inside [`vectorised`] they are compiled a second time
//! with AVX2 and FMA, and that version runs where the processor has them. The two versions round
//! differently (fused multiply-add), so results are the same for one machine, not across machines.

pub(super) use crate::linalg::{Vectorised, multiply_add, vectorised};

/// Numbers handled together: eight AVX2 registers, enough to hide the latency of an addition.
pub(super) const LANES: usize = 32;

/// One cache-aligned group of lanes.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Lanes(pub(super) [f64; LANES]);

impl Lanes {
    pub(super) const ZERO: Self = Self([0.0; LANES]);
}

/// Squared distances of `point` to the first N of 32 points stored feature by feature.
#[inline(always)]
pub(super) fn squared_distances<const FMA: bool, const N: usize>(panel: &[Lanes], point: &[f64]) -> [f64; N] {
    let mut sums = [0.0; N];
    for (feature, &value) in panel.iter().zip(point) {
        for i in 0..N {
            // This way round the feature is read by the subtraction itself; the other way the loads take
            // registers away from the sums.
            let difference = value - feature.0[i];
            sums[i] = multiply_add::<FMA>(difference, difference, sums[i]);
        }
    }
    sums
}

/// Inner products of `point` with the first N of 32 points stored feature by feature.
#[inline(always)]
pub(super) fn products<const FMA: bool, const N: usize>(panel: &[Lanes], point: &[f64]) -> [f64; N] {
    let mut sums = [0.0; N];
    for (feature, &value) in panel.iter().zip(point) {
        for i in 0..N {
            sums[i] = multiply_add::<FMA>(feature.0[i], value, sums[i]);
        }
    }
    sums
}

/// Writes the lanes that are used. Whole groups, nearly all, are written by vector stores: a call to
/// the library's copy would cost as much as several exponentials.
#[expect(clippy::manual_memcpy, reason = "a loop of known length becomes vector stores")]
#[inline(always)]
pub(super) fn store<const N: usize>(values: &[f64; N], out: &mut [f64]) {
    if out.len() == N {
        for i in 0..N {
            out[i] = values[i];
        }
    } else {
        out.copy_from_slice(&values[..out.len()]);
    }
}
