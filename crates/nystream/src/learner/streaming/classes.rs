//! Atoms for classes of unequal size: as many from each, as far as there are rows.
//!
//! Where one class is rare, most atoms of the usual choice lie among rows of the others, and the border between the classes
//! is drawn with few. Measured with 200 atoms and the ridge that fits best: on w7a (3 % in one class) 100 atoms from each
//! class make 1.50 % mistakes where rows at random make 1.94 %, on ijcnn1 (10 %) 4.5 where they make 5.0; on a9a (24 %) and
//! cod-rna (33 %) it makes no difference. A rare class has too few rows in a usual head, so the head is then longer.

use super::head::Kept;
use super::options::StreamingOptions;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::rows::RowBlock;
use crate::sketch::{Dictionary, DictionaryMethod, DictionaryOptions, build_dictionary};

/// The rows of every class, the rarest first; a single list if codes are not those of classes.
fn classes(codes: &[f64], outputs: usize) -> Vec<Vec<usize>> {
    if !codes.iter().all(|code| code.abs() == 1.0) {
        return vec![(0..codes.len() / outputs).collect()];
    }
    let mut classes = vec![Vec::new(); outputs + 1];
    for (i, codes) in codes.chunks_exact(outputs).enumerate() {
        classes[codes.iter().position(|&code| code > 0.0).unwrap_or(outputs)].push(i);
    }
    classes.retain(|rows| !rows.is_empty());
    classes.sort_by_key(Vec::len);
    classes
}

/// Rows that the head has in the end, by the codes of its rows so far (row-major): more than usual if the rarest class would
/// have less than half its share of the atoms.
pub(super) fn head_end(codes: &[f64], outputs: usize, options: &StreamingOptions) -> usize {
    let usual = options.head_rows();
    if codes.is_empty() {
        return usual;
    }
    let classes = classes(codes, outputs);
    // Budgets may be so large that products of whole numbers overflow.
    let expected = classes[0].len() as f64 / (codes.len() / outputs) as f64 * usual as f64;
    let rare = classes.len() > 1 && 2.0 * expected < (options.budget / classes.len()) as f64;
    if rare { options.longest_head() } else { usual }
}

impl Kept {
    /// Rows that the head has in the end, by what is known now.
    pub fn head_end(&self, options: &StreamingOptions) -> usize {
        head_end(&self.codes, self.outputs, options)
    }
}

/// Atoms from every class alike.
pub(super) fn balanced_dictionary(
    method: DictionaryMethod,
    kernel: &Kernel,
    kept: &Kept,
    settings: &DictionaryOptions,
) -> Result<Dictionary> {
    let classes = classes(&kept.codes, kept.outputs);
    let whole = || build_dictionary(method, kernel, kept.rows.rows(), settings);
    if classes.len() == 1 {
        return whole();
    }
    // A class alone may have nothing to choose by, such as rows of zeros under a linear kernel.
    from_each(&classes, method, kernel, kept, settings).or_else(|_| whole())
}

fn from_each(
    classes: &[Vec<usize>],
    method: DictionaryMethod,
    kernel: &Kernel,
    kept: &Kept,
    settings: &DictionaryOptions,
) -> Result<Dictionary> {
    let mut atoms = RowBlock::like(kept.rows.rows());
    let (mut weights, mut indices, mut leverage_ridge) = (Vec::new(), Vec::new(), 0.0);
    for (rows, share) in classes.iter().zip(shares(classes, settings.budget)) {
        if share == 0 {
            continue;
        }
        let own = RowBlock::gather(kept.rows.rows(), rows);
        let settings = DictionaryOptions { budget: share, ..settings.clone() };
        let chosen = build_dictionary(method, kernel, own.rows(), &settings)?;
        atoms.extend(chosen.atoms().rows());
        weights.extend_from_slice(chosen.weights());
        indices.extend(chosen.indices().iter().map(|&i| rows[i as usize] as u64));
        leverage_ridge = chosen.leverage_ridge();
    }
    Dictionary::new(atoms, weights, indices, leverage_ridge)
}

/// Atoms of each class: equal shares, and what small ones cannot fill goes to the larger ones after them.
fn shares(classes: &[Vec<usize>], budget: usize) -> Vec<usize> {
    let mut left = budget;
    let share = |(i, rows): (usize, &Vec<usize>)| {
        let share = (left / (classes.len() - i)).min(rows.len());
        left -= share;
        share
    };
    classes.iter().enumerate().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{StreamingOptions, StreamingRidge};
    use super::*;
    use crate::random::Generator;
    use crate::rows::Rows;

    /// Rows in the plane, a share of them of the second class, which lies in a ring around the first.
    fn rings(rows: usize, share: f64, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut rng = Generator::new(seed);
        let (mut data, mut codes) = (Vec::new(), Vec::new());
        for _ in 0..rows {
            let rare = rng.uniform() < share;
            let radius = if rare { 1.2 } else { 0.5 } + 0.3 * rng.normal();
            let angle = std::f64::consts::TAU * rng.uniform();
            data.extend([radius * angle.cos(), radius * angle.sin()]);
            codes.push(if rare { 1.0 } else { -1.0 });
        }
        (data, codes)
    }

    fn kept(data: &[f64], codes: &[f64], outputs: usize) -> Kept {
        let mut kept = Kept::new(outputs);
        let rows = data.len() / 2;
        kept.extend(Rows::dense(data, rows, 2).unwrap(), codes, &vec![1.0; rows]);
        kept
    }

    #[test]
    fn every_class_has_its_share_of_the_atoms_or_all_its_rows() {
        let (data, codes) = rings(300, 0.2, 1);
        let rare = codes.iter().filter(|&&code| code > 0.0).count();
        // So narrow that every row adds something.
        let kernel = Kernel::gaussian(0.02).unwrap();
        for (budget, expected) in [(40, 20), (200, rare), (1000, rare)] {
            for method in [DictionaryMethod::RpCholesky, DictionaryMethod::Uniform] {
                let rows = kept(&data, &codes, 1);
                let chosen = balanced_dictionary(method, &kernel, &rows, &DictionaryOptions::new(budget)).unwrap();
                let found = chosen.indices().iter().filter(|&&i| codes[i as usize] > 0.0).count();
                assert_eq!((found, chosen.len()), (expected, budget.min(300)), "{method} {budget}");
                // Row numbers are those of the rows kept.
                for (atom, &i) in chosen.indices().iter().enumerate() {
                    let mut point = [0.0; 2];
                    chosen.atoms().rows().row(atom).copy_to(&mut point);
                    assert_eq!(point, data[2 * i as usize..2 * i as usize + 2]);
                }
            }
        }
        let largest = StreamingOptions { budget: usize::MAX, ..StreamingOptions::default() };
        assert_eq!(kept(&data, &codes, 1).head_end(&largest), usize::MAX);
        // Numbers have no classes.
        let numbers: Vec<f64> = codes.iter().map(|code| 0.5 * code).collect();
        let (rows, settings) = (kept(&data, &numbers, 1), DictionaryOptions::new(40));
        let whole = build_dictionary(DictionaryMethod::Uniform, &kernel, rows.rows.rows(), &settings).unwrap();
        let found = balanced_dictionary(DictionaryMethod::Uniform, &kernel, &rows, &settings).unwrap();
        assert_eq!(found.indices(), whole.indices());
    }

    #[test]
    fn shares_of_many_classes_go_to_those_that_can_fill_them() {
        let classes = |sizes: &[usize]| sizes.iter().map(|&n| vec![0; n]).collect::<Vec<_>>();
        assert_eq!(shares(&classes(&[2, 50, 50]), 32), [2, 15, 15]);
        assert_eq!(shares(&classes(&[1, 3, 9]), 100), [1, 3, 9]);
        assert_eq!(shares(&classes(&[1, 1, 1]), 2).iter().sum::<usize>(), 2);
        // One code a class: the class is that of its code.
        let codes = [-1.0, 1.0, -1.0, 1.0, -1.0, -1.0, -1.0, 1.0, -1.0, -1.0, 1.0, -1.0];
        assert_eq!(super::classes(&codes, 3), [vec![1], vec![0, 2, 3]]);
    }

    #[test]
    fn a_rare_class_lengthens_the_head_and_gets_half_the_atoms() {
        let options = StreamingOptions { budget: 60, ..StreamingOptions::default() };
        for (share, long) in [(0.02, true), (0.3, false)] {
            let (data, codes) = rings(4000, share, 2);
            let mut learner = StreamingRidge::new(options.clone(), 1).unwrap();
            let mut unused = Vec::new();
            let usual = options.head_rows();
            let feed = |learner: &mut StreamingRidge, from: usize, to: usize, out: &mut Vec<f64>| {
                let rows = Rows::dense(&data[2 * from..2 * to], to - from, 2).unwrap();
                learner.learn(rows, &codes[from..to], None, out).unwrap();
            };
            feed(&mut learner, 0, 2 * usual, &mut unused);
            let competing = learner.status().unwrap().competing;
            assert_eq!(competing == 1, long, "{share}: {competing}");
            // In the middle of a longer head it can be saved, and goes on to the same bits.
            let mut again = StreamingRidge::from_container(learner.to_container().unwrap()).unwrap();
            for learner in [&mut learner, &mut again] {
                feed(learner, 2 * usual, 4000, &mut unused);
            }
            let solved = |learner: &StreamingRidge| learner.solve().unwrap().unwrap().model.coefficients().to_owned();
            assert_eq!(solved(&learner), solved(&again));
            let rare = learner.dictionary().unwrap().indices().iter().filter(|&&i| codes[i as usize] > 0.0).count();
            let there = codes[..options.longest_head()].iter().filter(|&&code| code > 0.0).count();
            assert_eq!(rare, if long { there.min(30) } else { 30 }, "{share}");
        }
    }
}
