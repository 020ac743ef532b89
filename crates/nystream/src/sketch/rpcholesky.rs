//! Randomly pivoted Cholesky, accelerated by rejection.
//!
//! Y. Chen, E. N. Epperly, J. A. Tropp, R. J. Webber, "Randomly pivoted Cholesky: practical
//! approximation of a kernel matrix with few entry evaluations", CPAM 2025 (arXiv 2207.06503):
//! each pivot is drawn with probability ∝ the diagonal of the residual K − K̃.
//! E. N. Epperly, J. A. Tropp, R. J. Webber, "Embrace rejection: kernel matrix approximation by
//! accelerated randomly pivoted Cholesky", 2024 (arXiv 2410.03969), here: b pivots are proposed from
//! the diagonal as it stands, each is accepted with probability (its residual after the pivots
//! accepted so far) / (its residual when proposed), and the accepted ones are eliminated together by
//! matrix products. The pivots have the law of the one-at-a-time method. O(nm) kernel values,
//! O(nm²) time, O(nm) memory; the kernel matrix is never formed.
//!
//! Departures from the papers: a residual below `RESIDUAL_FLOOR` of k(x, x) counts as 0, so that
//! rounding is never chosen as a pivot and the chosen atoms have a well-defined factor; rows are kept
//! in tiles that threads work on alone, which gives the same pivots on any number of threads.

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Accum, Mat, Par};
use rayon::prelude::*;

use super::direct_sample::Sampler;
use super::matrix::{KERNEL_ACCURACY, checked_diagonal, kernel_matrix, no_energy};
use crate::error::{Error, Result};
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::random::Generator;
use crate::rows::{RowBlock, Rows};

/// What is left of k(x, x) below ten times the accuracy of kernel values is rounding.
const RESIDUAL_FLOOR: f64 = 10.0 * KERNEL_ACCURACY;
/// Rows that one thread works on at a time.
const TILE: usize = 512;
/// Bytes that the factor of n × m numbers may take.
const FACTOR_BYTES: u64 = 4 << 30;

/// The rows chosen, in the order in which they were: every beginning of the list is a sample too.
#[derive(Debug, Clone, PartialEq)]
pub struct PivotSelection {
    /// Row numbers, from 0.
    pub pivots: Vec<usize>,
    /// The diagonal of K − K̃ for the plain Nyström approximation on the pivots.
    pub residual: Vec<f64>,
    /// 1 − tr(K − K̃)/tr K.
    pub captured: f64,
    /// Whether nothing was left to choose before the budget was full (duplicate rows, n < m, low rank).
    pub exhausted: bool,
}

/// A range of rows with its part of the factor F, K̃ = FFᵀ.
struct Tile<'a> {
    rows: Rows<'a>,
    factor: Mat<f64>,
    workspace: KernelWorkspace,
}

/// Chooses up to `budget` rows.
pub fn rpcholesky(kernel: &Kernel, rows: Rows, budget: usize, rng: &mut Generator) -> Result<PivotSelection> {
    // Enough proposals for matrix products to pay, few enough that rejected ones cost little.
    select(kernel, rows, budget, (budget / 8).clamp(16, 256), rng)
}

fn select(kernel: &Kernel, rows: Rows, budget: usize, proposals: usize, rng: &mut Generator) -> Result<PivotSelection> {
    let diagonal = checked_diagonal(kernel, rows)?;
    let trace: f64 = diagonal.iter().sum();
    if trace <= 0.0 {
        return Err(no_energy());
    }
    let limit = budget.min(rows.len());
    let mut tiles = make_tiles(rows, limit)?;
    let mut residual = diagonal.clone();
    let mut pivots: Vec<usize> = Vec::with_capacity(limit);
    while pivots.len() < limit {
        let Some(sampler) = Sampler::new(&residual) else { break };
        let proposed: Vec<usize> = (0..proposals).map(|_| sampler.draw(rng)).collect();
        let rank = pivots.len();
        let features = gather_features(&tiles, &proposed, rank);
        let mut schur = kernel_matrix(kernel, RowBlock::gather(rows, &proposed).rows());
        matmul(schur.as_mut(), Accum::Add, features.transpose(), features.as_ref(), -1.0, Par::Seq);
        let kept = accept(&mut schur, &proposed, &residual, &diagonal, limit - rank, rng);

        let chosen: Vec<usize> = kept.iter().map(|&j| proposed[j]).collect();
        let lower = Mat::from_fn(kept.len(), kept.len(), |i, j| if i >= j { schur[(kept[i], kept[j])] } else { 0.0 });
        let chosen_features = Mat::from_fn(rank, kept.len(), |i, j| features[(i, kept[j])]);
        let centres = Centres::new(RowBlock::gather(rows, &chosen).rows());
        tiles.par_iter_mut().zip(residual.par_chunks_mut(TILE)).for_each(|(tile, residual)| {
            tile.eliminate(kernel, &centres, &chosen_features, &lower, residual);
        });
        for (left, energy) in residual.iter_mut().zip(&diagonal) {
            if *left <= RESIDUAL_FLOOR * energy {
                *left = 0.0;
            }
        }
        chosen.iter().for_each(|&i| residual[i] = 0.0);
        pivots.extend(chosen);
    }
    let captured = 1.0 - residual.iter().sum::<f64>() / trace;
    Ok(PivotSelection { exhausted: pivots.len() < budget, pivots, residual, captured })
}

fn make_tiles(rows: Rows<'_>, limit: usize) -> Result<Vec<Tile<'_>>> {
    let needed_bytes = 8 * (rows.len() as u64).saturating_mul(limit as u64);
    if needed_bytes > FACTOR_BYTES {
        let (what, advice) = ("the factor of randomly pivoted Cholesky", "give fewer rows or a smaller budget");
        return Err(Error::TooLarge { what, needed_bytes, allowed_bytes: FACTOR_BYTES, advice });
    }
    let tiles = (0..rows.len()).step_by(TILE).map(|start| {
        let part = rows.slice(start, rows.len().min(start + TILE));
        Tile { rows: part, factor: Mat::zeros(part.len(), limit), workspace: KernelWorkspace::default() }
    });
    Ok(tiles.collect())
}

/// The first `rank` columns of F at the given rows, transposed: rank × rows.
fn gather_features(tiles: &[Tile], rows: &[usize], rank: usize) -> Mat<f64> {
    Mat::from_fn(rank, rows.len(), |i, j| tiles[rows[j] / TILE].factor[(rows[j] % TILE, i)])
}

/// The rejection step ("Embrace rejection", RejectionCholesky): positions of the accepted proposals,
/// at most `room`; `schur` then holds their Cholesky factor in the lower triangle of those positions.
fn accept(
    schur: &mut Mat<f64>,
    proposed: &[usize],
    residual: &[f64],
    diagonal: &[f64],
    room: usize,
    rng: &mut Generator,
) -> Vec<usize> {
    let count = proposed.len();
    let mut kept = Vec::new();
    // The diagonal as the tiles keep it: the first proposal is then accepted whatever the rounding.
    proposed.iter().enumerate().for_each(|(j, &row)| schur[(j, j)] = residual[row]);
    for j in 0..count {
        if kept.len() == room {
            break;
        }
        let (left, row) = (schur[(j, j)], proposed[j]);
        let level = rng.uniform() * residual[row];
        if left <= RESIDUAL_FLOOR * diagonal[row] || level >= left {
            continue;
        }
        let root = left.sqrt();
        schur[(j, j)] = root;
        for i in j + 1..count {
            schur[(i, j)] /= root;
        }
        for l in j + 1..count {
            let factor = schur[(l, j)];
            for i in l..count {
                let product = schur[(i, j)] * factor;
                schur[(i, l)] -= product;
            }
        }
        kept.push(j);
    }
    kept
}

impl Tile<'_> {
    /// Appends the columns of the new pivots to F and takes their part off the residual.
    fn eliminate(
        &mut self,
        kernel: &Kernel,
        centres: &Centres,
        pivot_features: &Mat<f64>,
        lower: &Mat<f64>,
        residual: &mut [f64],
    ) {
        let (rank, added) = (pivot_features.nrows(), centres.len());
        let (old, rest) = self.factor.as_mut().split_at_col_mut(rank);
        let mut new = rest.subcols_mut(0, added);
        kernel.block(self.rows, centres, &mut self.workspace, new.as_mut());
        matmul(new.as_mut(), Accum::Add, old.as_ref(), pivot_features.as_ref(), -1.0, Par::Seq);
        solve_lower_triangular_in_place(lower.as_ref(), new.as_mut().transpose_mut(), Par::Seq);
        for column in new.as_ref().col_iter() {
            residual.iter_mut().zip(column.iter()).for_each(|(left, v)| *left -= v * v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::direct_sample::gather;
    use super::super::oracle;
    use super::super::uniform::uniform;
    use super::*;

    /// Residual diagonal of plain Nyström on the pivots, by pseudo-inverse.
    fn naive_residual(kernel: &Kernel, rows: Rows, pivots: &[usize]) -> Vec<f64> {
        let dictionary = gather(rows, pivots, vec![1.0; pivots.len()], 0.0).unwrap();
        let approximation = oracle::approximation(kernel, rows, &dictionary);
        (0..rows.len()).map(|i| kernel.diagonal(rows.row(i)) - approximation[(i, i)]).collect()
    }

    #[test]
    fn the_residual_is_that_of_the_nystrom_approximation() {
        let block = oracle::normal_rows(TILE + 88, 5, 1);
        for kernel in oracle::kernels() {
            let selection = rpcholesky(&kernel, block.rows(), 20, &mut Generator::new(2)).unwrap();
            assert_eq!(selection.pivots.len(), 20);
            let expected = naive_residual(&kernel, block.rows(), &selection.pivots);
            let scale = (0..block.len()).map(|i| kernel.diagonal(block.rows().row(i))).fold(0.0, f64::max);
            for (found, expected) in selection.residual.iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-9 * scale, "{found} {expected}");
            }
            let dictionary = gather(block.rows(), &selection.pivots, vec![1.0; 20], 0.0).unwrap();
            assert!((dictionary.captured(&kernel, block.rows()).unwrap() - selection.captured).abs() < 1e-9);
        }
    }

    #[test]
    fn ordered_pivots_have_the_probabilities_of_the_one_at_a_time_method() {
        let data = [2.0, 0.0, 1.5, 0.5, 0.2, 1.0, 1.0, -1.0];
        let rows = Rows::dense(&data, 4, 2).unwrap();
        let kernel = Kernel::polynomial(2, 1.0, 0.3).unwrap();
        let diagonal: Vec<f64> = (0..4).map(|i| kernel.diagonal(rows.row(i))).collect();
        let trace: f64 = diagonal.iter().sum();
        let trials = 4_000;
        // One proposal a round is the plain method; several exercise acceptance, and both must agree
        // with P(i) P(j | i) computed from the residuals.
        for proposals in [1, 6] {
            let mut first = [0.0; 4];
            let mut pairs = [[0.0; 4]; 4];
            for seed in 0..trials {
                let found = select(&kernel, rows, 2, proposals, &mut Generator::with_stream(seed, 9)).unwrap();
                first[found.pivots[0]] += 1.0 / trials as f64;
                pairs[found.pivots[0]][found.pivots[1]] += 1.0 / trials as f64;
            }
            for i in 0..4 {
                let p = diagonal[i] / trace;
                // Five standard errors of a binomial share, here and below.
                let close = |found: f64, p: f64| (found - p).abs() <= 5.0 * (p * (1.0 - p) / trials as f64).sqrt();
                assert!(close(first[i], p), "{proposals}: {i} {} {p}", first[i]);
                let left = naive_residual(&kernel, rows, &[i]);
                let total: f64 = (0..4).filter(|&j| j != i).map(|j| left[j]).sum();
                for j in (0..4).filter(|&j| j != i) {
                    let joint = p * left[j] / total;
                    assert!(close(pairs[i][j], joint), "{proposals}: {i},{j} {} {joint}", pairs[i][j]);
                }
                assert_eq!(pairs[i][i], 0.0);
            }
        }
    }

    #[test]
    fn it_stops_when_nothing_is_left() {
        // 12 different rows, four copies of each, more budget than rows.
        let mut block = oracle::normal_rows(12, 2, 3);
        let copy = block.clone();
        (0..3).for_each(|_| block.extend(copy.rows()));
        let kernel = Kernel::laplacian(1.0).unwrap();
        let found = rpcholesky(&kernel, block.rows(), 100, &mut Generator::new(1)).unwrap();
        let mut originals: Vec<usize> = found.pivots.iter().map(|i| i % 12).collect();
        originals.sort_unstable();
        assert_eq!(originals, (0..12).collect::<Vec<_>>());
        assert!(found.exhausted && found.captured > 1.0 - 12.0 * RESIDUAL_FLOOR);
        // The linear kernel on three columns has rank three, and rows of zeros are never chosen.
        let mut block = oracle::normal_rows(50, 3, 4);
        block.push(crate::rows::Row::Dense(&[0.0; 3]));
        let found = rpcholesky(&Kernel::Linear, block.rows(), 10, &mut Generator::new(1)).unwrap();
        assert!(found.pivots.len() == 3 && found.exhausted && !found.pivots.contains(&50));
    }

    #[test]
    fn it_captures_more_than_uniform_sampling_on_clustered_rows() {
        let block = oracle::clustered_rows(600, 5);
        let kernel = Kernel::gaussian(1.0).unwrap();
        let (mut ours, mut theirs) = (0.0, 0.0);
        for seed in 0..10 {
            ours += rpcholesky(&kernel, block.rows(), 20, &mut Generator::new(seed)).unwrap().captured / 10.0;
            let plain = uniform(block.rows(), 20, 0.0, &mut Generator::new(seed)).unwrap();
            theirs += plain.captured(&kernel, block.rows()).unwrap() / 10.0;
        }
        // Less than a fifth of the energy that uniform sampling leaves.
        assert!(1.0 - ours < 0.2 * (1.0 - theirs), "{ours} {theirs}");
    }

    #[test]
    fn the_same_seed_gives_the_same_pivots_on_any_number_of_threads() {
        let block = oracle::normal_rows(3 * TILE + 5, 4, 6);
        let kernel = Kernel::gaussian(1.0).unwrap();
        let on = |threads: usize, seed| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| rpcholesky(&kernel, block.rows(), 150, &mut Generator::new(seed)).unwrap())
        };
        assert_eq!(on(1, 7), on(3, 7));
        assert_ne!(on(1, 7).pivots, on(1, 8).pivots);
    }

    #[test]
    fn a_factor_beyond_the_limit_is_refused_before_it_is_allocated() {
        let data = vec![0.0; 3_000_000];
        let rows = Rows::dense(&data, 3_000_000, 1).unwrap();
        assert!(matches!(make_tiles(rows, 1000), Err(Error::TooLarge { .. })));
    }
}
