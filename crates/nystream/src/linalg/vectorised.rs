//! Loops compiled once for every instruction set.
//!
//! They are ordinary ones; inside [`vectorised`] they are compiled a second time with AVX2 and FMA, and that version runs
//! where the processor has them.

use pulp::{Arch, Simd, WithSimd};

/// A computation compiled once for every instruction set.
pub(crate) trait Vectorised {
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
    Arch::new().dispatch(Dispatched(task));
}

/// a·b + c, in one rounding where that is one instruction.
#[inline(always)]
pub(crate) fn multiply_add<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}
