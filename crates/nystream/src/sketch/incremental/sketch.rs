//! The incremental randomized sketch (IRS) of a growing kernel matrix.
//!
//! SkeGD, section 3. With S_p a sparse Johnson–Lindenstrauss transform and S_m a sample of columns it holds
//! Φ_pp = S_pᵀ K S_p (s_p × s_p) and Φ_pm = S_pᵀ K S_m (s_p × s_m); a new row changes them by rank-one modifications. The
//! feature map φ(x) = Qᵀ κ(x, samples) with Q = Φ_pm† V Σ^½ comes from the leading part V Σ Vᵀ of Φ_pp (Eq. 3 and 4),
//! and ⟨φ(x), φ(x')⟩ approximates K by C_m F_sk C_mᵀ (Eq. 1 and 2).
//!
//! **What a round costs.** The modification of Φ_pp needs ψᵀS_p, ψ being the kernels of the new row with *every* row that
//! entered before: neither sketch can stand in for them. So the rows that entered are held, n of them, and entering costs
//! n kernel values and O(nd + s_p d + s_m d); refreshing the map costs O((s_p² + s_p s_m)(k + 10)). The paper bounds n by
//! ν = B + ⌊(T − B)/ρ⌋ (section 5.3), a constant as long as the update cycle ρ grows with the length T of the stream. Here
//! `most_rows` bounds n whatever T is: beyond it, the oldest row is taken out again by the same modifications with the
//! sign turned, and the sketch is that of the kernel matrix of the last `most_rows` rows. With `most_rows` of at least ν
//! this never happens, and the sketch is the paper's.
//!
//! Departures from the paper:
//! - the window just described;
//! - Σ is cut off at 0 (rounding can make it negative);
//! - Eq. 4 prints φ = κ Qᵀ, which does not fit the sizes; Alg. 1, line 17, has κ Q, taken here;
//! - "we also use the randomized SVD for computing the Moore–Penrose pseudoinverse" (section 4) does not say the rank:
//!   both readings are offered, [`PseudoInverse::Leading`] (k) and [`PseudoInverse::Full`].

use faer::{Mat, MatRef};

use super::{Entry, FeatureMap, IncrementalOptions, PseudoInverse, SparseTransform};
use crate::error::{Result, input_error};
use crate::kernel::{Centres, Kernel, SupportSet};
use crate::linalg::{Svd, SymmetricEigen, TestMatrix};
use crate::random::Generator;
use crate::rows::{Row, RowBlock, Rows};
use crate::sketch::matrix::checked_diagonal;

/// Streams of the generator beside those of the rows' hashes, which count from 0.
const SAMPLE_STREAM: u64 = u64::MAX;
const PROJECTION_STREAM: u64 = u64::MAX - 1;

/// Two small matrices that follow a kernel matrix, and the feature map they give.
#[doc(alias = "IRS")]
#[derive(Debug, Clone)]
pub struct IncrementalSketch {
    pub(super) options: IncrementalOptions,
    pub(super) transform: SparseTransform,
    /// Rows that ever entered; number i stands in place i mod `most_rows`.
    pub(super) entered: u64,
    pub(super) held: SupportSet,
    /// Rows of S_p, in the places of the rows held.
    pub(super) entries: Vec<Entry>,
    pub(super) phi_pp: Mat<f64>,
    pub(super) phi_pm: Mat<f64>,
    pub(super) map: FeatureMap,
    tests: Tests,
    scratch: Scratch,
}

/// Random vectors of the two decompositions: the same every time, so drawn once.
#[derive(Debug, Clone)]
struct Tests {
    eigen: TestMatrix,
    svd: TestMatrix,
}

#[derive(Debug, Clone, Default)]
struct Scratch {
    /// ψ
    kernels: Vec<f64>,
    /// S_pᵀψ
    projected: Vec<f64>,
    /// A row of S_p.
    row: Vec<Entry>,
}

impl IncrementalSketch {
    /// The sketch of the starting rows, of which a sample is drawn uniformly and without replacement; the sample stays.
    pub fn start(kernel: &Kernel, options: IncrementalOptions, rows: Rows) -> Result<Self> {
        checked_diagonal(kernel, rows)?;
        let sampled = Generator::with_stream(options.seed, SAMPLE_STREAM).choose(rows.len(), options.sample_size);
        let samples = RowBlock::gather(rows, &sampled);
        let held = SupportSet::new(kernel, rows.cols(), options.most_rows);
        let mut sketch = Self::empty(options, rows.len(), held, samples.rows())?;
        let mut among = vec![0.0; sampled.len()];
        for i in 0..rows.len() {
            let x = rows.row(i);
            let diagonal = kernel.diagonal(x);
            sketch.project(x, usize::MAX);
            // ψᵀS_m: the kernels with the samples that are already there.
            for (value, &sample) in among.iter_mut().zip(&sampled) {
                *value = if sample < i { sketch.scratch.kernels[sample] } else { 0.0 };
            }
            sketch.transform.push_row(sketch.entered, &mut sketch.scratch.row);
            sketch.modify(1.0, diagonal, &among);
            if let Ok(j) = sampled.binary_search(&i) {
                sketch.add_sample(j, diagonal);
            }
            sketch.keep(i, x);
        }
        sketch.refresh()?;
        Ok(sketch)
    }

    /// Nothing yet, with these samples.
    pub(super) fn empty(options: IncrementalOptions, starting: usize, held: SupportSet, samples: Rows) -> Result<Self> {
        let transform = options.transform(starting)?;
        let (p, m) = (options.projection_size, options.sample_size);
        let map = FeatureMap::new(*held.kernel(), Centres::new(samples), Mat::zeros(m, options.rank))?;
        let entries = Vec::new();
        let (phi_pp, phi_pm) = (Mat::zeros(p, p), Mat::zeros(p, m));
        let scratch = Scratch { projected: vec![0.0; p], ..Scratch::default() };
        let mut rng = Generator::with_stream(options.seed, PROJECTION_STREAM);
        let eigen = TestMatrix::draw(p, p, options.rank, &mut rng);
        let tests = Tests { eigen, svd: TestMatrix::draw(p, m, options.rank, &mut rng) };
        Ok(Self { options, transform, entered: 0, held, entries, phi_pp, phi_pm, map, tests, scratch })
    }

    /// Takes in a row after the start, given its kernels with the samples ([`FeatureMap::kernels`]). The feature map stays
    /// as it is until [`refresh`](Self::refresh). An error, and no change, if the row's kernel value is not finite.
    ///
    /// # Panics
    /// If `kernels` is not one number a sample, or a dense row has another width than the starting rows.
    pub fn enter(&mut self, x: Row, kernels: &[f64]) -> Result<()> {
        assert_eq!(kernels.len(), self.options.sample_size, "one kernel value a sample");
        let kernel = self.held.kernel();
        let diagonal = kernel.diagonal(x);
        if !diagonal.is_finite() {
            let found = format!("{} kernel value {diagonal}", kernel.name());
            let expected = "values small enough for a finite kernel (scale the data)";
            return Err(input_error("rows of a sketch", self.entered + 1, None, found, expected));
        }
        let place = (self.entered % self.options.most_rows as u64) as usize;
        if place < self.held.len() {
            self.forget(place);
        }
        self.project(x, place);
        self.transform.push_row(self.entered, &mut self.scratch.row);
        // The sample is fixed, so s_m = 0 and of Δ_pm only R_pm is left.
        self.modify(1.0, diagonal, kernels);
        self.keep(place, x);
        Ok(())
    }

    /// Takes the row in a place out of both sketches; it stays in its place.
    fn forget(&mut self, place: usize) {
        let oldest = self.held.row(place);
        let oldest = oldest.rows().row(0);
        self.project(oldest, place);
        let d = self.options.blocks;
        self.scratch.row.extend_from_slice(&self.entries[place * d..(place + 1) * d]);
        let mut kernels = vec![0.0; self.options.sample_size];
        self.map.kernels(oldest, &mut kernels);
        self.modify(-1.0, self.held.kernel().diagonal(oldest), &kernels);
        self.scratch.row.clear();
    }

    /// ψ of a row, and S_pᵀψ, over the rows held but the one in place `except`.
    fn project(&mut self, x: Row, except: usize) {
        let Scratch { kernels, projected, .. } = &mut self.scratch;
        kernels.resize(self.held.len(), 0.0);
        self.held.kernels(x, kernels);
        projected.fill(0.0);
        for (i, (value, row)) in kernels.iter().zip(self.entries.chunks_exact(self.options.blocks)).enumerate() {
            if i != except {
                row.iter().for_each(|entry| projected[entry.column] += entry.value * value);
            }
        }
    }

    /// SkeGD, section 3, with s_p in `scratch.row` and S_pᵀψ in `scratch.projected`:
    /// Φ_pp ± (R_pp + R_ppᵀ + T_pp), R_pp = s_p ψᵀS_p and T_pp = ξ s_p s_pᵀ; Φ_pm ± R_pm, R_pm = s_p ψᵀS_m.
    fn modify(&mut self, sign: f64, diagonal: f64, kernels: &[f64]) {
        let Scratch { projected, row, .. } = &self.scratch;
        for &Entry { column, value } in row {
            let value = sign * value;
            for (j, projected) in projected.iter().enumerate() {
                self.phi_pp[(j, column)] += value * projected;
                self.phi_pp[(column, j)] += value * projected;
            }
            for other in row {
                self.phi_pp[(column, other.column)] += diagonal * value * other.value;
            }
            for (j, kernel) in kernels.iter().enumerate() {
                self.phi_pm[(column, j)] += value * kernel;
            }
        }
    }

    /// For a row that is sample `j`, s_m = e_j: Φ_pm + R_mpᵀ + T_pm, R_mp = s_m ψᵀS_p and T_pm = ξ s_p s_mᵀ.
    fn add_sample(&mut self, j: usize, diagonal: f64) {
        for (i, projected) in self.scratch.projected.iter().enumerate() {
            self.phi_pm[(i, j)] += projected;
        }
        for entry in &self.scratch.row {
            self.phi_pm[(entry.column, j)] += diagonal * entry.value;
        }
    }

    /// S_p gains the row s_p, and the rows held gain x.
    fn keep(&mut self, place: usize, x: Row) {
        let d = self.options.blocks;
        if place < self.held.len() {
            self.held.replace(place, x);
            self.entries[place * d..(place + 1) * d].copy_from_slice(&self.scratch.row);
        } else {
            self.held.push(x);
            self.entries.extend_from_slice(&self.scratch.row);
        }
        self.scratch.row.clear();
        self.entered += 1;
    }

    /// Computes Q anew from both sketches (SkeGD, Eq. 3 and the line before Eq. 4).
    pub fn refresh(&mut self) -> Result<()> {
        let rank = self.options.rank;
        let eigen = SymmetricEigen::leading_by(self.phi_pp.as_ref(), rank, &self.tests.eigen)?;
        let mut half = Mat::zeros(self.options.projection_size, rank);
        for ((half, vector), value) in half.col_iter_mut().zip(eigen.vectors.col_iter()).zip(&eigen.values) {
            let root = value.max(0.0).sqrt();
            half.iter_mut().zip(vector.iter()).for_each(|(half, number)| *half = number * root);
        }
        let svd = match self.options.pseudo_inverse {
            PseudoInverse::Leading => Svd::leading_by(self.phi_pm.as_ref(), rank, &self.tests.svd)?,
            PseudoInverse::Full => Svd::new(self.phi_pm.as_ref())?,
        };
        self.map.weights = svd.solve(half.as_ref());
        Ok(())
    }

    /// The feature map of the last [`refresh`](Self::refresh).
    #[doc(alias = "phi_t")]
    pub fn map(&self) -> &FeatureMap {
        &self.map
    }

    /// The settings.
    pub fn options(&self) -> &IncrementalOptions {
        &self.options
    }

    /// Φ_pp = S_pᵀ K S_p.
    #[doc(alias = "Φ_pp")]
    pub fn projected_kernels(&self) -> MatRef<'_, f64> {
        self.phi_pp.as_ref()
    }

    /// Φ_pm = S_pᵀ K S_m.
    #[doc(alias = "Φ_pm")]
    pub fn projected_samples(&self) -> MatRef<'_, f64> {
        self.phi_pm.as_ref()
    }

    /// Rows that ever entered, the starting ones included.
    pub fn rows_entered(&self) -> u64 {
        self.entered
    }

    /// Rows held.
    #[doc(alias = "ν")]
    pub fn rows_held(&self) -> usize {
        self.held.len()
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        let Scratch { kernels, projected, row } = &self.scratch;
        let (p, m) = (self.options.projection_size, self.options.sample_size);
        self.held.size_bytes()
            + self.map.size_bytes()
            + self.tests.eigen.size_bytes()
            + self.tests.svd.size_bytes()
            + (self.entries.capacity() + row.capacity()) * size_of::<Entry>()
            + (p * (p + m) + kernels.capacity() + projected.capacity()) * 8
    }
}
