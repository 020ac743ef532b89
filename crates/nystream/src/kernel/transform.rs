//! From squared distances or inner products to kernel values, 32 at a time.
//!
//! A squared distance that comes from |x|² + |z|² − 2⟨x, z⟩ has an absolute error near ε(|x|² + |z|²).
//! Where that would show in the kernel value, [`Transform::distances`] takes the distance again from the
//! differences themselves: everywhere but in the far tail if the points are far from the origin of
//! the norms, and close to r = 0 (where kernels of r, not r², magnify it, and where equal points must
//! give exactly 1). Whether any lane needs this is known from one comparison per lane, done together.

use super::exp::{SMALLEST, exp_lanes};
use super::spec::Kernel;
use super::vector::{LANES, Lanes};
use pulp::Simd;

/// Largest error of the exponent that is accepted from the norms.
pub(super) const ACCEPTED: f64 = 2e-13;
/// Exponents above minus this are taken from differences, so that equal points give 1.
pub(super) const NEAR_ZERO: f64 = 1e-11;
/// Squares above this may have overflowed on the way.
const OVERFLOW: f64 = 1e300;
/// Squared norm given to lanes that hold no point: far enough never to ask for a second look.
pub(super) const NO_POINT: f64 = 1e299;

/// Squared norms of 32 points, and the largest of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Norms {
    pub(super) lanes: Lanes,
    pub(super) largest: f64,
}

impl Norms {
    pub(super) const NONE: Self = Self { lanes: Lanes([NO_POINT; LANES]), largest: 0.0 };

    /// Of up to 32 points.
    pub(super) fn new(norms: impl Iterator<Item = f64>) -> Self {
        let mut out = Self::NONE;
        for (lane, norm) in out.lanes.0.iter_mut().zip(norms) {
            *lane = norm;
            // Infinite norms must stay the largest; there are no NaN ones.
            out.largest = out.largest.max(norm);
        }
        out
    }
}

/// A kernel with the constants of its vector loops worked out.
#[derive(Debug, Clone, Copy)]
pub(super) enum Transform {
    /// exp(−rate r²)
    Gaussian { rate: f64 },
    /// exp(−rate r)
    Laplacian { rate: f64 },
    /// (1 + s) exp(−s), s = rate r
    Matern32 { rate: f64 },
    /// (1 + s + s²/3) exp(−s), s = rate r
    Matern52 { rate: f64 },
    /// (scale p + offset)^degree
    Polynomial { degree: u32, scale: f64, offset: f64 },
    /// p
    Linear,
}

impl Transform {
    pub(super) fn new(kernel: &Kernel) -> Self {
        // A rate of 0 or ∞ (bandwidths beyond 1e±154) would give NaN at the far end or at equal points.
        let finite = |rate: f64| rate.clamp(f64::MIN_POSITIVE, f64::MAX);
        match *kernel {
            Kernel::Gaussian { bandwidth } => Self::Gaussian { rate: finite(0.5 / (bandwidth * bandwidth)) },
            Kernel::Laplacian { bandwidth } => Self::Laplacian { rate: finite(1.0 / bandwidth) },
            Kernel::Matern32 { bandwidth } => Self::Matern32 { rate: finite(3f64.sqrt() / bandwidth) },
            Kernel::Matern52 { bandwidth } => Self::Matern52 { rate: finite(5f64.sqrt() / bandwidth) },
            Kernel::Polynomial { degree, scale, offset } => Self::Polynomial { degree, scale, offset },
            Kernel::Linear => Self::Linear,
        }
    }

    /// Whether the kernel is a function of the distance.
    #[inline(always)]
    pub(super) fn is_radial(&self) -> bool {
        !matches!(self, Self::Polynomial { .. } | Self::Linear)
    }

    /// Kernel values, in place, of squared distances (radial kernels) or of inner products (the others).
    #[inline(always)]
    pub(super) fn apply<const FMA: bool, S: Simd, const N: usize>(&self, simd: S, values: &mut [f64; N]) {
        match *self {
            Self::Gaussian { rate } => {
                each(values, |squared| -squared * rate);
                exp_lanes::<FMA, S, N>(simd, values);
            }
            Self::Laplacian { rate } => {
                each(values, |squared| -(squared.sqrt() * rate));
                exp_lanes::<FMA, S, N>(simd, values);
            }
            Self::Matern32 { rate } => matern::<FMA, S, N>(simd, values, rate, |s| 1.0 + s),
            Self::Matern52 { rate } => matern::<FMA, S, N>(simd, values, rate, |s| 1.0 + s + s * s * (1.0 / 3.0)),
            Self::Polynomial { degree, scale, offset } => {
                each(values, |product| scale * product + offset);
                power(values, degree);
            }
            Self::Linear => {}
        }
    }

    /// Squared distances, in place, of inner products, given the squared norms on one side (lanes) and on
    /// the other. `again(i)` must give the squared distance of lane `i` from differences; it is asked
    /// for lanes below `used` only.
    #[inline(always)]
    pub(super) fn distances<const FMA: bool>(
        &self,
        products: &mut [f64; LANES],
        norms: &Norms,
        other: f64,
        used: usize,
        again: impl Fn(usize) -> f64,
    ) {
        let limit = self.trusted_from(norms.largest + other);
        let mut doubtful = u64::from(limit == f64::INFINITY);
        for i in 0..LANES {
            let squared = (norms.lanes.0[i] + other) - 2.0 * products[i];
            // Written so that NaN (overflowed squares) becomes 0 and is then looked at again.
            let squared = if squared > 0.0 { squared } else { 0.0 };
            products[i] = squared;
            doubtful |= u64::from(squared < limit);
        }
        if doubtful != 0 {
            self.look_again(&mut products[..used], norms, other, again);
        }
    }

    #[cold]
    #[inline(never)]
    fn look_again(&self, squared: &mut [f64], norms: &Norms, other: f64, again: impl Fn(usize) -> f64) {
        for (i, squared) in squared.iter_mut().enumerate() {
            let limit = self.trusted_from(norms.lanes.0[i] + other);
            if *squared < limit || limit == f64::INFINITY {
                *squared = again(i);
            }
        }
    }

    /// Squared distances at least this large are accurate enough when the two squared norms add up to `sum`;
    /// infinite if none is.
    #[inline(always)]
    pub(super) fn trusted_from(&self, sum: f64) -> f64 {
        if sum >= OVERFLOW {
            return f64::INFINITY;
        }
        // Far generous for sums of a million products, and still small beside any distance that matters.
        let error = 1e-12 * sum;
        match *self {
            Self::Gaussian { rate } => {
                if sum * rate * f64::EPSILON <= ACCEPTED {
                    NEAR_ZERO / rate
                } else {
                    -SMALLEST / rate + error
                }
            }
            Self::Laplacian { rate } | Self::Matern32 { rate } | Self::Matern52 { rate } => {
                // An error e of r² is an error e/2r of r.
                let from_error = sum * rate * (f64::EPSILON / ACCEPTED);
                let vanished = -SMALLEST / rate;
                f64::min(f64::max(1e-4 * sum, from_error * from_error), vanished * vanished + error)
            }
            Self::Polynomial { .. } | Self::Linear => 0.0,
        }
    }
}

/// Keeps the polynomial factor of a Matérn kernel finite; the exponential is 0 there already.
#[inline(always)]
fn within(s: f64) -> f64 {
    if s < 1e4 { s } else { 1e4 }
}

/// factor(s) exp(−s), s = rate r, in place of r².
#[inline(always)]
fn matern<const FMA: bool, S: Simd, const N: usize>(
    simd: S,
    values: &mut [f64; N],
    rate: f64,
    factor: impl Fn(f64) -> f64,
) {
    let mut factors = *values;
    each(&mut factors, |squared| within(squared.sqrt() * rate));
    each(values, |squared| -within(squared.sqrt() * rate));
    exp_lanes::<FMA, S, N>(simd, values);
    each(&mut factors, factor);
    for i in 0..N {
        values[i] *= factors[i];
    }
}

#[inline(always)]
fn each<const N: usize>(values: &mut [f64; N], function: impl Fn(f64) -> f64) {
    // Into a second array: lanes written in place would have to wait for each other.
    let mut out = [0.0; N];
    for i in 0..N {
        out[i] = function(values[i]);
    }
    *values = out;
}

/// values^exponent by repeated squaring, all lanes at once.
#[inline(always)]
fn power<const N: usize>(values: &mut [f64; N], exponent: u32) {
    let mut base = *values;
    *values = [1.0; N];
    let mut left = exponent;
    while left > 0 {
        if left & 1 == 1 {
            for i in 0..N {
                values[i] *= base[i];
            }
        }
        left >>= 1;
        if left > 0 {
            for i in 0..N {
                base[i] *= base[i];
            }
        }
    }
}
