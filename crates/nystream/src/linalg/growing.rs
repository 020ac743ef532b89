//! Triangular and symmetric matrices that gain a row at a time, packed so that appending moves nothing.
//!
//! A learner whose dictionary grows atom by atom never factors anything anew: the factor gains a row (O(n²) with the
//! solve that makes it), and the inverse of a sum Σggᵀ is updated in rank one. Row i of either matrix is the slice
//! i(i+1)/2 .. (i+1)(i+2)/2.

use super::packed::{self, start};

/// L of A = LLᵀ, by rows; rows of A that depend on earlier ones may be kept as dead rows.
///
/// In a dead row the reciprocal of the pivot is stored as 0, so that solving gives 0 there: with dead rows, L⁻ᵀL⁻¹
/// is a generalised inverse of A instead of its inverse.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GrowingFactor {
    dim: usize,
    /// Row `i`: the numbers left of the diagonal, then the reciprocal of the pivot.
    rows: Vec<f64>,
}

impl GrowingFactor {
    /// No rows yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes packed rows that [`packed`](Self::packed) gave; none if their number is not that of a triangle of `dim` rows.
    pub fn from_packed(dim: usize, rows: Vec<f64>) -> Option<Self> {
        is_triangle(dim, rows.len()).then_some(Self { dim, rows })
    }

    /// The rows, one after the other.
    pub fn packed(&self) -> &[f64] {
        &self.rows
    }

    /// Number of rows.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// x ← L⁻¹x.
    pub fn forward(&self, x: &mut [f64]) {
        debug_assert_eq!(x.len(), self.dim);
        packed::forward(&self.rows, x);
    }

    /// x ← L⁻ᵀx.
    pub fn backward(&self, x: &mut [f64]) {
        debug_assert_eq!(x.len(), self.dim);
        packed::backward(&self.rows, x);
    }

    /// Appends a row and column of A: `solved` is L⁻¹ of the new column, and `pivot_squared` what is left of the new
    /// diagonal entry, A_nn − |solved|². A pivot of 0 or less makes the row a dead one.
    pub fn append(&mut self, solved: &[f64], pivot_squared: f64) {
        debug_assert_eq!(solved.len(), self.dim);
        self.rows.extend_from_slice(solved);
        self.rows.push(if pivot_squared > 0.0 { 1.0 / pivot_squared.sqrt() } else { 0.0 });
        self.dim += 1;
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.rows.capacity() * 8
    }
}

/// A symmetric matrix of which the lower triangle is held.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GrowingSymmetric {
    dim: usize,
    rows: Vec<f64>,
}

impl GrowingSymmetric {
    /// No rows yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes packed rows that [`packed`](Self::packed) gave; none if their number is not that of a triangle of `dim` rows.
    pub fn from_packed(dim: usize, rows: Vec<f64>) -> Option<Self> {
        is_triangle(dim, rows.len()).then_some(Self { dim, rows })
    }

    /// The rows up to the diagonal, one after the other.
    pub fn packed(&self) -> &[f64] {
        &self.rows
    }

    /// Number of rows.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Makes it `value` times the identity, of `dim` rows.
    pub fn reset(&mut self, dim: usize, value: f64) {
        self.rows.clear();
        self.dim = 0;
        (0..dim).for_each(|_| self.append_diagonal(value));
    }

    /// Appends a row and column that are zero but for `value` on the diagonal.
    pub fn append_diagonal(&mut self, value: f64) {
        self.rows.resize(start(self.dim + 1) - 1, 0.0);
        self.rows.push(value);
        self.dim += 1;
    }

    /// `out` = Px, in one reading of the triangle.
    pub fn times(&self, x: &[f64], out: &mut [f64]) {
        debug_assert_eq!((x.len(), out.len()), (self.dim, self.dim));
        packed::symmetric_times(&self.rows, x, out);
    }

    /// P ← P − factor·uuᵀ.
    pub fn subtract_outer(&mut self, factor: f64, u: &[f64]) {
        debug_assert_eq!(u.len(), self.dim);
        packed::subtract_outer(&mut self.rows, factor, u);
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.rows.capacity() * 8
    }
}

fn is_triangle(dim: usize, numbers: usize) -> bool {
    dim.checked_add(1).and_then(|next| next.checked_mul(dim)).map(|twice| twice / 2) == Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{Cholesky, dot};
    use crate::random::Generator;
    use faer::Mat;

    /// GGᵀ + I, and its factor grown a row at a time.
    fn grown(n: usize) -> (Mat<f64>, GrowingFactor) {
        let mut rng = Generator::new(4);
        let g = Mat::from_fn(n, n, |_, _| rng.normal());
        let a = &g * g.transpose() + Mat::<f64>::identity(n, n);
        let mut factor = GrowingFactor::new();
        for i in 0..n {
            let mut column: Vec<f64> = (0..i).map(|j| a[(i, j)]).collect();
            factor.forward(&mut column);
            factor.append(&column, a[(i, i)] - dot(&column, &column));
        }
        (a, factor)
    }

    #[test]
    fn a_factor_grown_by_rows_solves_as_the_factor_of_the_whole_matrix() {
        let (a, factor) = grown(37);
        let whole = Cholesky::new(a.as_ref(), "test").unwrap();
        let mut rng = Generator::new(5);
        let rhs: Vec<f64> = (0..37).map(|_| rng.normal()).collect();
        let (mut ours, mut theirs) = (rhs.clone(), Mat::from_fn(37, 1, |i, _| rhs[i]));
        factor.forward(&mut ours);
        whole.forward_in_place(theirs.as_mut());
        (0..37).for_each(|i| assert!((ours[i] - theirs[(i, 0)]).abs() < 1e-11));
        factor.backward(&mut ours);
        whole.backward_in_place(theirs.as_mut());
        (0..37).for_each(|i| assert!((ours[i] - theirs[(i, 0)]).abs() < 1e-11));
    }

    #[test]
    fn a_dead_row_solves_to_zero_and_changes_nothing_else() {
        let (_, mut factor) = grown(6);
        let mut plain = [1.0, -2.0, 3.0, 0.5, 0.25, -1.0];
        let with_dead = [plain.as_slice(), &[7.0]].concat();
        // A copy of row 2: its solved column is row 2 of L itself.
        let copy: Vec<f64> = (0..6).map(|j| if j < 2 { factor.packed()[start(2) + j] } else { 0.0 }).collect();
        let mut with_dead = with_dead;
        factor.clone().forward(&mut plain);
        factor.append(&copy, 0.0);
        factor.forward(&mut with_dead);
        assert_eq!(&with_dead[..6], &plain);
        assert_eq!(with_dead[6], 0.0);
    }

    #[test]
    fn rank_one_updates_of_an_inverse_equal_the_inverse_of_the_sum() {
        let mut rng = Generator::new(6);
        let (mut inverse, mut sum) = (GrowingSymmetric::new(), Mat::<f64>::zeros(9, 9));
        for i in 0..9 {
            inverse.append_diagonal(1.0 / 0.3);
            sum[(i, i)] = 0.3;
            for _ in 0..2000 {
                let g: Vec<f64> = (0..=i).map(|_| rng.normal()).collect();
                let mut u = vec![0.0; i + 1];
                inverse.times(&g, &mut u);
                inverse.subtract_outer(1.0 / (1.0 + dot(&g, &u)), &u);
                (0..=i).for_each(|r| (0..=i).for_each(|c| sum[(r, c)] += g[r] * g[c]));
            }
        }
        let mut direct = Mat::<f64>::identity(9, 9);
        Cholesky::new(sum.as_ref(), "test").unwrap().solve_in_place(direct.as_mut());
        for i in 0..9 {
            let unit: Vec<f64> = (0..9).map(|j| f64::from(u8::from(i == j))).collect();
            let mut column = vec![0.0; 9];
            inverse.times(&unit, &mut column);
            (0..9).for_each(|j| assert!((column[j] - direct[(j, i)]).abs() < 1e-11 * direct[(i, i)]));
        }
        inverse.reset(3, 2.0);
        assert_eq!(inverse.packed(), &[2.0, 0.0, 2.0, 0.0, 0.0, 2.0]);
    }

    #[test]
    fn packed_rows_come_back_and_wrong_numbers_are_refused() {
        let (_, factor) = grown(5);
        assert_eq!(GrowingFactor::from_packed(5, factor.packed().to_vec()), Some(factor));
        assert_eq!(GrowingFactor::from_packed(3, vec![0.0; 5]), None);
        assert_eq!(GrowingSymmetric::from_packed(usize::MAX, vec![]), None);
    }
}
