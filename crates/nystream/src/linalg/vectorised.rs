//! Loops compiled once for every instruction set.
//!
//! They are ordinary ones; inside [`vectorised`] they are compiled a second time with AVX2 and FMA, and that version runs
//! where the processor has them. A third version, with AVX-512, is for those that were found to be faster with it: single rows
//! of the streaming learner took 2.3 times as long, whose loops over a few numbers became loops over parts of registers.

use pulp::{Arch, Simd, WithSimd};

/// A computation compiled once for every instruction set.
pub(crate) trait Vectorised {
    /// Whether it is faster with AVX-512 than with AVX2.
    const WIDE: bool = false;

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
pub(crate) fn vectorised<T: Vectorised>(task: T) {
    if T::WIDE {
        Arch::new().dispatch(Dispatched(task));
    } else {
        on_narrow(Dispatched(task));
    }
}

/// Runs `task` in its best version for this processor but for AVX-512: over short rows that begin anywhere it was 1.4 times as
/// slow (KRLS) and 1.6 times (SkeGD).
#[inline]
pub(crate) fn on_narrow<T: WithSimd>(task: T) -> T::Output {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    if let Some(narrow) = pulp::x86::V3::try_new() {
        return Simd::vectorize(narrow, task);
    }
    Arch::new().dispatch(task)
}

/// a·b + c, in one rounding where that is one instruction.
#[inline(always)]
pub(crate) fn multiply_add<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}
