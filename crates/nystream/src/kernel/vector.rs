//! Vector loops in plain Rust: lanes of 32 numbers, and the choice of instruction set at run time.
//!
//! The loops are ordinary ones over fixed arrays; inside [`vectorised`] they are compiled a second time
//! with AVX2 and FMA, and that version runs where the processor has them. The two versions round
//! differently (fused multiply-add), so results are the same for one machine, not across machines.

use pulp::{Arch, Simd, WithSimd};

/// Numbers handled together: eight AVX2 registers, enough to hide the latency of an addition.
pub(super) const LANES: usize = 32;

/// One cache-aligned group of lanes.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Lanes(pub(super) [f64; LANES]);

impl Lanes {
    pub(super) const ZERO: Self = Self([0.0; LANES]);
}

/// A computation compiled once for every instruction set.
pub(super) trait Vectorised {
    /// `FMA` says that `mul_add` is one instruction here. Must be `#[inline(always)]`, as everything it calls.
    fn run<const FMA: bool, S: Simd>(self, simd: S);
}

struct Dispatched<T>(T);

impl<T: Vectorised> WithSimd for Dispatched<T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Elsewhere (WebAssembly) `mul_add` is a library call even when there are vectors.
        let fused = cfg!(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64"));
        if fused && !S::IS_SCALAR { self.0.run::<true, S>(simd) } else { self.0.run::<false, S>(simd) }
    }
}

/// Runs `task` in its best version for this processor.
#[inline]
pub(super) fn vectorised<T: Vectorised>(task: T) {
    Arch::new().dispatch(Dispatched(task));
}

/// a·b + c, in one rounding where that is one instruction.
#[inline(always)]
pub(super) fn multiply_add<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Squared distances of `point` to 32 points stored feature by feature.
#[inline(always)]
pub(super) fn squared_distances<const FMA: bool>(panel: &[Lanes], point: &[f64]) -> [f64; LANES] {
    let mut sums = [0.0; LANES];
    for (feature, &value) in panel.iter().zip(point) {
        for i in 0..LANES {
            // This way round the feature is read by the subtraction itself; the other way the loads take
            // registers away from the sums.
            let difference = value - feature.0[i];
            sums[i] = multiply_add::<FMA>(difference, difference, sums[i]);
        }
    }
    sums
}

/// Inner products of `point` with 32 points stored feature by feature.
#[inline(always)]
pub(super) fn products<const FMA: bool>(panel: &[Lanes], point: &[f64]) -> [f64; LANES] {
    let mut sums = [0.0; LANES];
    for (feature, &value) in panel.iter().zip(point) {
        for i in 0..LANES {
            sums[i] = multiply_add::<FMA>(feature.0[i], value, sums[i]);
        }
    }
    sums
}

/// Writes the lanes that are used. Whole groups, nearly all, are written by vector stores: a call to
/// the library's copy would cost as much as several exponentials.
#[expect(clippy::manual_memcpy, reason = "a loop of known length becomes vector stores")]
#[inline(always)]
pub(super) fn store(values: &[f64; LANES], out: &mut [f64]) {
    if out.len() == LANES {
        for i in 0..LANES {
            out[i] = values[i];
        }
    } else {
        out.copy_from_slice(&values[..out.len()]);
    }
}
