//! One way to every dictionary of rows in memory: a method, a kernel, the rows, options.
//!
//! Sequential methods see the rows in their order. Where no γ is given they start at a small one
//! ([`starting_leverage_ridge`]) and the budget raises it: so the budget gets filled.

use std::fmt;
use std::str::FromStr;

use super::any_sequential::AnySequential;
use super::batch_exact::batch_exact;
use super::dictionary::Dictionary;
use super::direct_sample::gather;
use super::embedding::captured_and_jitter;
use super::ink::InkOptions;
use super::leverage::Leverage;
use super::matrix::{checked_diagonal, no_energy};
use super::rpcholesky::rpcholesky;
use super::sequential::SequentialDictionary;
use super::squeak::SqueakOptions;
use super::two_pass_scores::{scores_from, two_pass_scores};
use super::uniform::uniform;
use crate::error::{Error, Result, nearest_hint};
use crate::kernel::Kernel;
use crate::random::Generator;
use crate::rows::Rows;

/// Every way to choose atoms, by the name a user writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DictionaryMethod {
    /// Rows at random, without replacement.
    Uniform,
    /// Rows by exact ridge leverage scores; O(n³).
    BatchExact,
    /// Rows by the approximate scores of Alaoui and Mahoney.
    TwoPassScores,
    /// Randomly pivoted Cholesky.
    RpCholesky,
    /// SQUEAK: sequential, constant memory, mergeable.
    Squeak,
    /// INK-ESTIMATE: sequential, holds all rows.
    InkEstimate,
    /// INK-ORACLE with exact scores: sequential, holds the kernel matrix of all rows.
    InkOracle,
}

impl DictionaryMethod {
    /// Every method.
    pub const ALL: [Self; 7] = [
        Self::Uniform,
        Self::BatchExact,
        Self::TwoPassScores,
        Self::RpCholesky,
        Self::Squeak,
        Self::InkEstimate,
        Self::InkOracle,
    ];
    /// Those that look at all rows at once.
    pub const BATCH: [Self; 4] = [Self::Uniform, Self::BatchExact, Self::TwoPassScores, Self::RpCholesky];

    /// Whether it follows a stream, as [`SequentialDictionary`] says.
    pub fn is_sequential(&self) -> bool {
        matches!(self, Self::Squeak | Self::InkEstimate | Self::InkOracle)
    }

    /// The name a user writes.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::BatchExact => "batch-exact",
            Self::TwoPassScores => "two-pass-scores",
            Self::RpCholesky => "rpcholesky",
            Self::Squeak => "squeak",
            Self::InkEstimate => "ink-estimate",
            Self::InkOracle => "ink-oracle",
        }
    }

    /// γ where none is given: 1 for the batch methods that sample by leverage scores, none for the others.
    pub fn default_leverage_ridge(&self) -> Option<f64> {
        matches!(self, Self::BatchExact | Self::TwoPassScores).then_some(1.0)
    }
}

impl fmt::Display for DictionaryMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DictionaryMethod {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|method| method.name() == text).ok_or_else(|| Error::InvalidParam {
            name: "method",
            found: format!("'{text}'{}", nearest_hint(text, Self::ALL.iter().map(Self::name))),
            expected: "uniform, batch-exact, two-pass-scores, rpcholesky, squeak, ink-estimate or ink-oracle",
        })
    }
}

/// What to build.
#[derive(Debug, Clone, PartialEq)]
pub struct DictionaryOptions {
    /// m: the draws of the batch methods that sample with replacement, the most atoms of the others.
    #[doc(alias = "m")]
    pub budget: usize,
    /// γ. `batch-exact` and `two-pass-scores` need it. Sequential methods start at it, none meaning
    /// [`starting_leverage_ridge`], and raise it until the budget is kept. `uniform` takes it as the γ of Eq. 5, none
    /// meaning 0; `rpcholesky` is always plain Nyström (γ = 0). For these two it also asks for the
    /// estimated scores and effective dimension in [`DictionaryInfo`], which none leaves out.
    #[doc(alias = "γ")]
    pub leverage_ridge: Option<f64>,
    /// Of all random choices.
    pub seed: u64,
    /// p, the columns drawn in the first pass of `two-pass-scores`; none means as many as the budget.
    pub first_pass: Option<usize>,
}

impl DictionaryOptions {
    /// This budget, no leverage ridge, seed 0.
    pub fn new(budget: usize) -> Self {
        Self { budget, leverage_ridge: None, seed: 0, first_pass: None }
    }
}

/// What was learnt while building.
#[derive(Debug, Clone, PartialEq)]
pub struct DictionaryInfo {
    /// How it was built.
    pub method: DictionaryMethod,
    /// d_eff at γ: exact for `batch-exact`, else the lower bound that the columns (`two-pass-scores`)
    /// or the dictionary's atoms (given a γ) yield; for sequential methods at the γ in force.
    pub effective_dim: Option<f64>,
    /// Leverage scores of all rows in decreasing order, known as `effective_dim` is.
    pub leverage_profile: Option<Vec<f64>>,
    /// Share of kernel energy captured on the rows: 1 − tr(K − K̃)/tr K.
    pub captured: f64,
    /// Largest addition to a diagonal before it was factored: rounding's size for plain Nyström, else 0
    /// unless a matrix was singular.
    pub jitter: f64,
    /// Whether the rows had nothing more to add before the budget was full.
    pub exhausted: bool,
}

/// γ at which a sequential dictionary of at most `budget` atoms starts where none is given: 10⁻¹⁰ Σk(x, x)/m.
///
/// The γ that m atoms come to is of the order of what they leave of the kernel energy, divided by m, which wide kernels
/// make small: Friedman's function at a bandwidth of 50 (20,000 rows, 300 atoms) came to 2·10⁻⁶, 2.5·10⁻⁸ Σk(x, x)/m,
/// and a start at 10⁻⁶ Σk(x, x)/m left half of the budget empty and half as much error again. This start is below that,
/// and above the rounding of the factorisations, so the budget is what decides.
pub fn starting_leverage_ridge(energy: f64, budget: usize) -> f64 {
    (1e-10 * energy / budget.max(1) as f64).max(f64::MIN_POSITIVE)
}

/// An empty sequential dictionary by `method` with a budget and otherwise usual settings; none for batch methods.
pub fn sequential_with_budget(
    method: DictionaryMethod,
    kernel: &Kernel,
    leverage_ridge: f64,
    budget: usize,
    seed: u64,
) -> Result<Option<AnySequential>> {
    let ink = || InkOptions { seed, ..InkOptions::with_budget(*kernel, leverage_ridge, budget) };
    Ok(match method {
        DictionaryMethod::Squeak => {
            let options = SqueakOptions { budget: Some(budget), seed, ..SqueakOptions::new(*kernel, leverage_ridge) };
            Some(AnySequential::squeak(options)?)
        }
        DictionaryMethod::InkEstimate => Some(AnySequential::ink_estimate(ink())?),
        DictionaryMethod::InkOracle => Some(AnySequential::ink_oracle(ink())?),
        _ => None,
    })
}

/// Builds a dictionary of `rows` by `method`. Of fewer rows than the budget every one is kept, once
/// (`rpcholesky` leaves out those that add nothing, such as duplicates).
pub fn build(
    method: DictionaryMethod,
    kernel: &Kernel,
    rows: Rows,
    options: &DictionaryOptions,
) -> Result<(Dictionary, DictionaryInfo)> {
    let Built { dictionary, leverage, captured } = chosen(method, kernel, rows, options)?;
    let scored_at = match method {
        _ if method.is_sequential() => Some(dictionary.leverage_ridge()),
        _ => options.leverage_ridge,
    };
    let leverage = match (leverage, scored_at) {
        (None, Some(gamma)) => Some(scores_from(kernel, &dictionary, rows, gamma)?),
        (known, _) => known,
    };
    let (captured, jitter) = match captured {
        Some(captured) => (captured, 0.0),
        None => captured_and_jitter(kernel, &dictionary, rows)?,
    };
    let exhausted = match method {
        DictionaryMethod::RpCholesky => dictionary.len() < options.budget,
        _ => rows.len() < options.budget,
    };
    let jitter = leverage.as_ref().map_or(jitter, |leverage| leverage.jitter.max(jitter));
    let effective_dim = leverage.as_ref().map(|leverage| leverage.effective_dim);
    let leverage_profile = leverage.map(decreasing);
    Ok((dictionary, DictionaryInfo { method, effective_dim, leverage_profile, captured, jitter, exhausted }))
}

/// The dictionary of [`build`] alone, without the passes over the rows that its report needs.
pub fn build_dictionary(
    method: DictionaryMethod,
    kernel: &Kernel,
    rows: Rows,
    options: &DictionaryOptions,
) -> Result<Dictionary> {
    chosen(method, kernel, rows, options).map(|built| built.dictionary)
}

/// A dictionary, and what its method knows of it anyway.
struct Built {
    dictionary: Dictionary,
    leverage: Option<Leverage>,
    captured: Option<f64>,
}

fn chosen(method: DictionaryMethod, kernel: &Kernel, rows: Rows, options: &DictionaryOptions) -> Result<Built> {
    let budget = positive_count("budget", options.budget)?;
    let first_pass = positive_count("first-pass", options.first_pass.unwrap_or(budget))?;
    let gamma = options.leverage_ridge.map(|ridge| Error::require_positive("leverage-ridge", ridge)).transpose()?;
    let needed_gamma = gamma.ok_or(Error::InvalidParam {
        name: "leverage-ridge",
        found: "none".to_owned(),
        expected: "a finite number above 0 for methods that sample by leverage scores",
    });
    let energy = checked_diagonal(kernel, rows)?.iter().sum::<f64>();
    if energy <= 0.0 {
        return Err(no_energy());
    }
    // A stream a method, so that one seed does not make their choices depend on each other.
    let mut rng = Generator::with_stream(options.seed, 1 + method as u64);
    let start = gamma.unwrap_or_else(|| starting_leverage_ridge(energy, budget));
    let sequential = sequential_with_budget(method, kernel, start, budget, options.seed)?;
    let known = |dictionary, leverage| Built { dictionary, leverage, captured: None };
    Ok(match method {
        DictionaryMethod::Squeak | DictionaryMethod::InkEstimate | DictionaryMethod::InkOracle => {
            let Some(mut following) = sequential else { return Err(Error::Internal("a sequential method of no kind")) };
            following.insert(rows)?;
            known(following.dictionary()?, None)
        }
        DictionaryMethod::Uniform => known(uniform(rows, budget, gamma.unwrap_or(0.0), &mut rng)?, None),
        DictionaryMethod::BatchExact => {
            let (dictionary, leverage) = batch_exact(kernel, rows, budget, needed_gamma?, &mut rng)?;
            known(dictionary, Some(leverage))
        }
        DictionaryMethod::TwoPassScores => {
            let (dictionary, leverage) = two_pass_scores(kernel, rows, budget, first_pass, needed_gamma?, &mut rng)?;
            known(dictionary, Some(leverage))
        }
        DictionaryMethod::RpCholesky => {
            let selection = rpcholesky(kernel, rows, budget, &mut rng)?;
            let dictionary = gather(rows, &selection.pivots, vec![1.0; selection.pivots.len()], 0.0)?;
            Built { dictionary, leverage: None, captured: Some(selection.captured) }
        }
    })
}

fn positive_count(name: &'static str, value: usize) -> Result<usize> {
    if value == 0 {
        return Err(Error::InvalidParam { name, found: "0".to_owned(), expected: "at least 1" });
    }
    Ok(value)
}

fn decreasing(leverage: Leverage) -> Vec<f64> {
    let mut scores = leverage.scores;
    scores.sort_unstable_by(|a, b| b.total_cmp(a));
    scores
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;
    use crate::rows::RowBlock;

    fn options(budget: usize) -> DictionaryOptions {
        DictionaryOptions { leverage_ridge: Some(0.1), ..DictionaryOptions::new(budget) }
    }

    #[test]
    fn names_are_read_back_and_unknown_ones_listed() {
        for method in DictionaryMethod::ALL {
            assert_eq!(method.to_string().parse::<DictionaryMethod>().unwrap(), method);
        }
        let text = "leverage".parse::<DictionaryMethod>().unwrap_err().to_string();
        assert!(DictionaryMethod::ALL.iter().all(|m| text.contains(m.name())) && text.contains("'leverage'"));
    }

    #[test]
    fn every_method_builds_the_same_from_the_same_seed_and_reports_what_it_knows() {
        let block = oracle::clustered_rows(200, 1);
        let kernel = Kernel::gaussian(1.0).unwrap();
        let exact = Leverage::exact(&kernel, block.rows(), 0.1).unwrap();
        for method in DictionaryMethod::BATCH {
            let (dictionary, info) = build(method, &kernel, block.rows(), &options(25)).unwrap();
            let (again, same_info) = build(method, &kernel, block.rows(), &options(25)).unwrap();
            assert_eq!((&dictionary, &info), (&again, &same_info));
            let other = DictionaryOptions { seed: 1, ..options(25) };
            assert_ne!(dictionary, build(method, &kernel, block.rows(), &other).unwrap().0, "{method}");
            assert!((1..=25).contains(&dictionary.len()) && info.method == method && !info.exhausted);
            assert!((dictionary.captured(&kernel, block.rows()).unwrap() - info.captured).abs() < 1e-9, "{method}");
            let profile = info.leverage_profile.unwrap();
            assert!(profile.len() == 200 && profile.windows(2).all(|w| w[0] >= w[1]));
            let effective_dim = info.effective_dim.unwrap();
            assert!((effective_dim - profile.iter().sum::<f64>()).abs() < 1e-8);
            assert!(effective_dim <= exact.effective_dim + 1e-8, "{method}");
            let atoms = dictionary.indices().iter().map(|&i| i as usize).collect::<Vec<_>>();
            assert_eq!(*dictionary.atoms(), RowBlock::gather(block.rows(), &atoms));
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        // Large enough for every factorisation, solve and product to go parallel.
        let block = oracle::normal_rows(700, 4, 7);
        let kernel = Kernel::gaussian(1.0).unwrap();
        for method in DictionaryMethod::ALL {
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| build(method, &kernel, block.rows(), &options(200)).unwrap())
            };
            assert!(on(1) == on(3), "{method}");
        }
    }

    #[test]
    fn the_ridge_and_the_first_pass_change_the_result() {
        let block = oracle::clustered_rows(200, 2);
        let kernel = Kernel::gaussian(1.0).unwrap();
        for method in DictionaryMethod::BATCH {
            let (dictionary, info) = build(method, &kernel, block.rows(), &options(25)).unwrap();
            let more = DictionaryOptions { leverage_ridge: Some(10.0), ..options(25) };
            assert!(build(method, &kernel, block.rows(), &more).unwrap().1.effective_dim < info.effective_dim);
            let expected = if method == DictionaryMethod::RpCholesky { 0.0 } else { 0.1 };
            assert_eq!(dictionary.leverage_ridge(), expected);
        }
        let short = DictionaryOptions { first_pass: Some(2), ..options(25) };
        let at = |options| build(DictionaryMethod::TwoPassScores, &kernel, block.rows(), options).unwrap().1;
        assert!(at(&short).effective_dim < at(&options(25)).effective_dim);
    }

    #[test]
    fn without_a_ridge_only_the_methods_that_need_none_work() {
        let block = oracle::normal_rows(30, 2, 3);
        let kernel = Kernel::gaussian(1.0).unwrap();
        for method in DictionaryMethod::BATCH {
            let found = build(method, &kernel, block.rows(), &DictionaryOptions::new(5));
            match method {
                DictionaryMethod::Uniform | DictionaryMethod::RpCholesky => {
                    let (dictionary, info) = found.unwrap();
                    assert_eq!((dictionary.leverage_ridge(), info.effective_dim), (0.0, None));
                }
                _ => assert!(matches!(found, Err(Error::InvalidParam { name: "leverage-ridge", .. }))),
            }
        }
    }

    #[test]
    fn fewer_rows_than_budget_are_all_kept_once() {
        let block = oracle::normal_rows(9, 2, 4);
        let kernel = Kernel::laplacian(1.0).unwrap();
        for method in DictionaryMethod::BATCH {
            let (dictionary, info) = build(method, &kernel, block.rows(), &options(50)).unwrap();
            let mut indices = dictionary.indices().to_vec();
            indices.sort_unstable();
            assert_eq!(indices, (0..9).collect::<Vec<u64>>(), "{method}");
            assert!(info.exhausted && dictionary.weights().iter().all(|&w| w == 1.0));
        }
    }

    #[test]
    fn sparse_rows_give_what_dense_rows_give() {
        let dense = oracle::normal_rows(60, 3, 5);
        let mut sparse = RowBlock::sparse(3);
        sparse.extend(dense.rows());
        let kernel = Kernel::gaussian(1.0).unwrap();
        for method in DictionaryMethod::BATCH {
            let (a, _) = build(method, &kernel, dense.rows(), &options(10)).unwrap();
            let (b, _) = build(method, &kernel, sparse.rows(), &options(10)).unwrap();
            assert_eq!(a.indices(), b.indices(), "{method}");
            assert!(b.atoms().is_sparse());
        }
    }

    #[test]
    fn bad_input_is_refused_by_every_method() {
        let kernel = Kernel::gaussian(1.0).unwrap();
        let block = oracle::normal_rows(5, 1, 6);
        let zeros = [0.0; 5];
        for method in DictionaryMethod::ALL {
            let failed = |kernel: &Kernel, rows: Rows<'_>, options: &DictionaryOptions| {
                build(method, kernel, rows, options).unwrap_err().to_string()
            };
            assert!(failed(&kernel, block.rows(), &options(0)).contains("budget"));
            assert!(failed(&kernel, RowBlock::dense(1).rows(), &options(3)).contains("no rows"));
            assert!(failed(&kernel, Rows::dense(&[f64::NAN], 1, 1).unwrap(), &options(3)).contains("NaN"));
            assert!(failed(&Kernel::Linear, Rows::dense(&zeros, 5, 1).unwrap(), &options(3)).contains("zeros"));
            let bad = DictionaryOptions { leverage_ridge: Some(-1.0), ..options(3) };
            assert!(failed(&kernel, block.rows(), &bad).contains("leverage-ridge"));
            let none = DictionaryOptions { first_pass: Some(0), ..options(3) };
            assert!(failed(&kernel, block.rows(), &none).contains("first-pass"));
        }
    }

    #[test]
    fn sequential_methods_keep_the_budget_and_fill_it_where_no_ridge_is_given() {
        let block = oracle::normal_rows(400, 3, 8);
        let kernel = Kernel::gaussian(1.0).unwrap();
        for method in DictionaryMethod::ALL.into_iter().filter(DictionaryMethod::is_sequential) {
            let (dictionary, info) = build(method, &kernel, block.rows(), &DictionaryOptions::new(40)).unwrap();
            assert!((20..=40).contains(&dictionary.len()), "{method}: {} atoms", dictionary.len());
            let ridge = dictionary.leverage_ridge();
            assert!(ridge > starting_leverage_ridge(400.0, 40), "{method}: {ridge:e}");
            // As plain Nyström: γ itself, where it came out large, is no part of how well the atoms stand for the rows.
            let ones = vec![1.0; dictionary.len()];
            let plain = Dictionary::new(dictionary.atoms().clone(), ones, dictionary.indices().to_vec(), 0.0).unwrap();
            let captured = plain.captured(&kernel, block.rows()).unwrap();
            assert!(captured > 0.6, "{method}: {captured}, {} at {ridge:e}", info.captured);
            let wide = DictionaryOptions { leverage_ridge: Some(200.0), ..DictionaryOptions::new(40) };
            let (small, _) = build(method, &kernel, block.rows(), &wide).unwrap();
            assert!(small.leverage_ridge() >= 200.0, "{method}");
            // INK's probabilities are shares of the effective dimension: they do not ask for fewer atoms.
            let fewer = method != DictionaryMethod::Squeak || small.len() < dictionary.len() / 2;
            assert!(fewer, "{method}: {}", small.len());
            let other = DictionaryOptions { seed: 1, ..DictionaryOptions::new(40) };
            assert_ne!(dictionary, build(method, &kernel, block.rows(), &other).unwrap().0, "{method}");
        }
    }
}
