//! Registers of the innermost loops of products: four numbers (a row of a panel) or eight (two panels', or a strip's).
//!
//! With AVX-512 eight numbers are one register, and twelve columns of sums fit beside what they are made of, where
//! otherwise they are two registers or more, and six columns fit. Each sum is added up in the same order either way: the bits
//! are the same.

use pulp::Simd;

/// `N` numbers side by side.
pub(super) trait Lanes<const N: usize>: Copy {
    type Numbers: Copy;
    /// One number, to be multiplied by each of them.
    type Factor: Copy;

    fn splat(self, value: f64) -> Self::Factor;
    fn zero(self) -> Self::Numbers;
    fn read(self, from: &[f64; N]) -> Self::Numbers;
    fn write(self, numbers: Self::Numbers, to: &mut [f64; N]);
    /// a·factor + c.
    fn mul_add(self, a: Self::Numbers, factor: Self::Factor, c: Self::Numbers) -> Self::Numbers;
    /// ab + c.
    fn mul_add_each(self, a: Self::Numbers, b: Self::Numbers, c: Self::Numbers) -> Self::Numbers;
    fn mul(self, a: Self::Numbers, factor: Self::Factor) -> Self::Numbers;
    fn add(self, a: Self::Numbers, b: Self::Numbers) -> Self::Numbers;
    fn sub(self, a: Self::Numbers, b: Self::Numbers) -> Self::Numbers;
}

/// What a processor has.
pub(super) trait Registers: Lanes<4> + Lanes<8> {
    /// Whether eight numbers are one register, and twelve columns of them fit.
    const WIDE: bool;

    /// Two fours side by side.
    fn join(self, first: &[f64; 4], second: &[f64; 4]) -> <Self as Lanes<8>>::Numbers;
}

/// Registers of which `V` hold four numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain<S, const V: usize>(pub S);

impl<S: Simd, const V: usize> Lanes<4> for Plain<S, V> {
    type Numbers = [S::f64s; V];
    type Factor = S::f64s;

    #[inline(always)]
    fn splat(self, value: f64) -> S::f64s {
        self.0.splat_f64s(value)
    }

    #[inline(always)]
    fn zero(self) -> Self::Numbers {
        [self.0.splat_f64s(0.0); V]
    }

    #[inline(always)]
    fn read(self, from: &[f64; 4]) -> Self::Numbers {
        S::as_simd_f64s(from).0.as_chunks::<V>().0[0]
    }

    #[inline(always)]
    fn write(self, numbers: Self::Numbers, to: &mut [f64; 4]) {
        S::as_mut_simd_f64s(to).0.as_chunks_mut::<V>().0[0] = numbers;
    }

    #[inline(always)]
    fn mul_add(self, a: Self::Numbers, factor: S::f64s, mut c: Self::Numbers) -> Self::Numbers {
        for v in 0..V {
            c[v] = self.0.mul_add_e_f64s(a[v], factor, c[v]);
        }
        c
    }

    #[inline(always)]
    fn mul_add_each(self, a: Self::Numbers, b: Self::Numbers, mut c: Self::Numbers) -> Self::Numbers {
        for v in 0..V {
            c[v] = self.0.mul_add_e_f64s(a[v], b[v], c[v]);
        }
        c
    }

    #[inline(always)]
    fn mul(self, mut a: Self::Numbers, factor: S::f64s) -> Self::Numbers {
        for v in 0..V {
            a[v] = self.0.mul_f64s(a[v], factor);
        }
        a
    }

    #[inline(always)]
    fn add(self, mut a: Self::Numbers, b: Self::Numbers) -> Self::Numbers {
        for v in 0..V {
            a[v] = self.0.add_f64s(a[v], b[v]);
        }
        a
    }

    #[inline(always)]
    fn sub(self, mut a: Self::Numbers, b: Self::Numbers) -> Self::Numbers {
        for v in 0..V {
            a[v] = self.0.sub_f64s(a[v], b[v]);
        }
        a
    }
}

// Halves are written out, and loops are loops: closures may be compiled apart, without the registers.
impl<S: Simd, const V: usize> Lanes<8> for Plain<S, V> {
    type Numbers = [[S::f64s; V]; 2];
    type Factor = S::f64s;

    #[inline(always)]
    fn splat(self, value: f64) -> S::f64s {
        self.0.splat_f64s(value)
    }

    #[inline(always)]
    fn zero(self) -> Self::Numbers {
        [Lanes::<4>::zero(self); 2]
    }

    #[inline(always)]
    fn read(self, from: &[f64; 8]) -> Self::Numbers {
        let (fours, _) = from.as_chunks::<4>();
        [self.read(&fours[0]), self.read(&fours[1])]
    }

    #[inline(always)]
    fn write(self, numbers: Self::Numbers, to: &mut [f64; 8]) {
        let (fours, _) = to.as_chunks_mut::<4>();
        self.write(numbers[0], &mut fours[0]);
        self.write(numbers[1], &mut fours[1]);
    }

    #[inline(always)]
    fn mul_add(self, a: Self::Numbers, factor: S::f64s, c: Self::Numbers) -> Self::Numbers {
        [Lanes::<4>::mul_add(self, a[0], factor, c[0]), Lanes::<4>::mul_add(self, a[1], factor, c[1])]
    }

    #[inline(always)]
    fn mul_add_each(self, a: Self::Numbers, b: Self::Numbers, c: Self::Numbers) -> Self::Numbers {
        [Lanes::<4>::mul_add_each(self, a[0], b[0], c[0]), Lanes::<4>::mul_add_each(self, a[1], b[1], c[1])]
    }

    #[inline(always)]
    fn mul(self, a: Self::Numbers, factor: S::f64s) -> Self::Numbers {
        [Lanes::<4>::mul(self, a[0], factor), Lanes::<4>::mul(self, a[1], factor)]
    }

    #[inline(always)]
    fn add(self, a: Self::Numbers, b: Self::Numbers) -> Self::Numbers {
        [Lanes::<4>::add(self, a[0], b[0]), Lanes::<4>::add(self, a[1], b[1])]
    }

    #[inline(always)]
    fn sub(self, a: Self::Numbers, b: Self::Numbers) -> Self::Numbers {
        [Lanes::<4>::sub(self, a[0], b[0]), Lanes::<4>::sub(self, a[1], b[1])]
    }
}

impl<S: Simd, const V: usize> Registers for Plain<S, V> {
    const WIDE: bool = false;

    #[inline(always)]
    fn join(self, first: &[f64; 4], second: &[f64; 4]) -> <Self as Lanes<8>>::Numbers {
        [self.read(first), self.read(second)]
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(super) use self::wide::Wide;

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod wide {
    use pulp::x86::{V3, V4};
    use pulp::{Simd, cast, f64x4, f64x8};

    use super::{Lanes, Plain, Registers};

    /// AVX-512.
    #[derive(Debug, Clone, Copy)]
    pub(in super::super) struct Wide(pub V4);

    impl Wide {
        #[inline(always)]
        fn four(self) -> Plain<V3, 1> {
            Plain(*self.0)
        }
    }

    impl Lanes<4> for Wide {
        type Numbers = [f64x4; 1];
        type Factor = f64x4;

        #[inline(always)]
        fn splat(self, value: f64) -> f64x4 {
            Lanes::<4>::splat(self.four(), value)
        }

        #[inline(always)]
        fn zero(self) -> Self::Numbers {
            Lanes::<4>::zero(self.four())
        }

        #[inline(always)]
        fn read(self, from: &[f64; 4]) -> Self::Numbers {
            self.four().read(from)
        }

        #[inline(always)]
        fn write(self, numbers: Self::Numbers, to: &mut [f64; 4]) {
            self.four().write(numbers, to);
        }

        #[inline(always)]
        fn mul_add(self, a: Self::Numbers, factor: f64x4, c: Self::Numbers) -> Self::Numbers {
            Lanes::<4>::mul_add(self.four(), a, factor, c)
        }

        #[inline(always)]
        fn mul_add_each(self, a: Self::Numbers, b: Self::Numbers, c: Self::Numbers) -> Self::Numbers {
            Lanes::<4>::mul_add_each(self.four(), a, b, c)
        }

        #[inline(always)]
        fn mul(self, a: Self::Numbers, factor: f64x4) -> Self::Numbers {
            Lanes::<4>::mul(self.four(), a, factor)
        }

        #[inline(always)]
        fn add(self, a: Self::Numbers, b: Self::Numbers) -> Self::Numbers {
            Lanes::<4>::add(self.four(), a, b)
        }

        #[inline(always)]
        fn sub(self, a: Self::Numbers, b: Self::Numbers) -> Self::Numbers {
            Lanes::<4>::sub(self.four(), a, b)
        }
    }

    impl Lanes<8> for Wide {
        type Numbers = f64x8;
        type Factor = f64x8;

        #[inline(always)]
        fn splat(self, value: f64) -> f64x8 {
            self.0.splat_f64s(value)
        }

        #[inline(always)]
        fn zero(self) -> f64x8 {
            self.0.splat_f64s(0.0)
        }

        #[inline(always)]
        fn read(self, from: &[f64; 8]) -> f64x8 {
            cast(*from)
        }

        #[inline(always)]
        fn write(self, numbers: f64x8, to: &mut [f64; 8]) {
            *to = cast(numbers);
        }

        #[inline(always)]
        fn mul_add(self, a: f64x8, factor: f64x8, c: f64x8) -> f64x8 {
            self.0.mul_add_e_f64s(a, factor, c)
        }

        #[inline(always)]
        fn mul_add_each(self, a: f64x8, b: f64x8, c: f64x8) -> f64x8 {
            self.0.mul_add_e_f64s(a, b, c)
        }

        #[inline(always)]
        fn mul(self, a: f64x8, factor: f64x8) -> f64x8 {
            self.0.mul_f64s(a, factor)
        }

        #[inline(always)]
        fn add(self, a: f64x8, b: f64x8) -> f64x8 {
            self.0.add_f64s(a, b)
        }

        #[inline(always)]
        fn sub(self, a: f64x8, b: f64x8) -> f64x8 {
            self.0.sub_f64s(a, b)
        }
    }

    impl Registers for Wide {
        const WIDE: bool = true;

        #[inline(always)]
        fn join(self, first: &[f64; 4], second: &[f64; 4]) -> f64x8 {
            let fours: [f64x4; 2] = [cast(*first), cast(*second)];
            cast(fours)
        }
    }
}

/// AVX2, for tests that compare it with what this processor takes by itself; none where there is none.
#[cfg(all(test, any(target_arch = "x86", target_arch = "x86_64")))]
pub(super) fn narrow() -> Option<Plain<pulp::x86::V3, 1>> {
    pulp::x86::V3::try_new().map(Plain)
}

/// Elsewhere there is nothing to compare.
#[cfg(all(test, not(any(target_arch = "x86", target_arch = "x86_64"))))]
pub(super) fn narrow() -> Option<Plain<pulp::Scalar, 4>> {
    None
}
