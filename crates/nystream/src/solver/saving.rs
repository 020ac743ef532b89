//! Sums in files: all that going on needs, to the last bit.

use std::sync::Arc;

use faer::Mat;

use super::levelling::Levelling;
use super::nystrom::NystromSums;
use super::recursive::{RecursiveRidge, in_tiles};
use super::summed::Implied;
use super::whitening::Whitening;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::linalg::{GramSum, ReflectedFactor};
use crate::persist::Container;
use crate::sketch::Dictionary;

impl RecursiveRidge {
    /// Adds atoms and sums as tensors whose names begin with `name`. Kernel, ridge and whether features are summed
    /// belong in the document.
    pub fn put(&self, file: &mut Container, name: &str) -> Result<()> {
        let (dictionary, sums) = (self.dictionary(), self.sums());
        let (atoms, outputs) = (dictionary.len(), sums.targets());
        file.put_rows(&format!("{name}_atom"), dictionary.atoms().rows())?;
        file.put_f64(&format!("{name}_weights"), &[atoms], dictionary.weights().to_vec())?;
        file.put_u64(&format!("{name}_row_numbers"), &[atoms], dictionary.indices().to_vec())?;
        match sums.gram.implied() {
            Some(Implied { factor, jitter, .. }) => {
                let mut lower = Mat::zeros(atoms + 1, atoms + 1);
                factor.write_lower(lower.as_mut());
                file.put_lower(&format!("{name}_factor"), lower.as_ref())?;
                let values = factor.values();
                let numbers = values.col_iter().flat_map(|column| column.iter().copied()).collect();
                file.put_f64(&format!("{name}_factor_values"), &[outputs, atoms + 1], numbers)?;
                file.put_f64(&format!("{name}_factor_jitter"), &[1], vec![*jitter])?;
            }
            None => {
                let mut gram = Mat::zeros(atoms, atoms);
                sums.gram.write_lower(gram.as_mut());
                file.put_lower(&format!("{name}_gram"), gram.as_ref())?;
            }
        }
        file.put_f64(&format!("{name}_feature_sum"), &[atoms], sums.feature_sum.clone())?;
        file.put_f64(&format!("{name}_cross"), &[atoms, outputs], sums.cross.clone())?;
        file.put_f64(&format!("{name}_target_sum"), &[outputs], sums.target_sum.clone())?;
        file.put_f64(&format!("{name}_target_squares"), &[outputs], sums.target_squares.clone())?;
        file.put_f64(
            &format!("{name}_scalars"),
            &[6],
            vec![
                sums.energy,
                sums.weight,
                self.ridge(),
                dictionary.leverage_ridge(),
                sums.inherited_floor,
                sums.passed,
            ],
        )?;
        if let Some(levelling) = &sums.levelling {
            let (vectors, rank) = (levelling.vectors(), levelling.factors().len());
            let numbers = vectors.col_iter().flat_map(|column| column.iter().copied()).collect();
            file.put_f64(&format!("{name}_level_vectors"), &[rank, atoms], numbers)?;
            file.put_f64(&format!("{name}_level_factors"), &[rank], levelling.factors().to_vec())?;
        }
        file.put_u64(&format!("{name}_rows"), &[1], vec![sums.rows])
    }

    /// Takes out what [`put`](Self::put) added, and checks that it is consistent.
    pub fn take(
        file: &mut Container,
        name: &str,
        kernel: Kernel,
        features: usize,
        outputs: usize,
        precise: bool,
    ) -> Result<Self> {
        let rows = file.take_rows(&format!("{name}_atom"), features)?;
        let atoms = rows.len();
        let mut numbers = |part: &str, expected: usize, rank: usize| -> Result<Vec<f64>> {
            let tensor = format!("{name}_{part}");
            let (_, values) = file.take_finite(&tensor, rank)?;
            if values.len() != expected {
                let found = values.len();
                return Err(file.malformed(format!("{tensor}: {found} numbers, expected {expected}")));
            }
            Ok(values)
        };
        let weights = numbers("weights", atoms, 1)?;
        let feature_sum = numbers("feature_sum", atoms, 1)?;
        let cross = numbers("cross", atoms * outputs, 2)?;
        let target_sum = numbers("target_sum", outputs, 1)?;
        let target_squares = numbers("target_squares", outputs, 1)?;
        let scalars = numbers("scalars", 6, 1)?;
        let levelling = if file.has(&format!("{name}_level_factors")) {
            let (_, factors) = file.take_finite(&format!("{name}_level_factors"), 1)?;
            let (shape, values) = file.take_finite(&format!("{name}_level_vectors"), 2)?;
            let levelling = (shape == [factors.len(), atoms] && !precise)
                .then(|| Mat::from_fn(atoms, factors.len(), |i, j| values[j * atoms + i]))
                .and_then(|vectors| Levelling::from_parts(vectors, factors));
            Some(levelling.ok_or_else(|| file.malformed(format!("{name}: directions that level nothing")))?)
        } else {
            None
        };
        let (_, indices) = file.take_u64(&format!("{name}_row_numbers"), 1)?;
        let (_, count) = file.take_u64(&format!("{name}_rows"), 1)?;
        let factor =
            file.has(&format!("{name}_factor")).then(|| take_factor(file, name, atoms, outputs)).transpose()?;
        let gram = match factor {
            Some(_) => GramSum::default(),
            None => GramSum::from_matrix(file.take_lower(&format!("{name}_gram"), atoms)?.as_ref()),
        };
        let [energy, weight, ridge, leverage_ridge] = [scalars[0], scalars[1], scalars[2], scalars[3]];
        let [inherited_floor, passed] = [scalars[4], scalars[5]];
        let wrong = inherited_floor < 0.0
            || passed < 0.0
            || atoms == 0
            || count.len() != 1
            || energy < 0.0
            || weight < 0.0
            || ridge <= 0.0;
        if wrong || leverage_ridge <= 0.0 {
            return Err(file.malformed(format!("{name}: sums that no rows can have")));
        }
        let dictionary =
            Dictionary::new(rows, weights, indices, leverage_ridge).map_err(|e| file.malformed(e.to_string()))?;
        let whitening = if precise { Some(Whitening::new(&kernel, &dictionary, None)?) } else { None };
        let rows = count[0];
        let mut sums = NystromSums {
            whitening: whitening.map(Arc::new),
            levelling: levelling.map(Arc::new),
            gram: gram.into(),
            feature_sum,
            cross,
            target_sum,
            target_squares,
            energy,
            weight,
            rows,
            passed,
            inherited_floor,
        };
        if let Some((factor, jitter)) = factor {
            let regulariser = in_tiles(&sums, &kernel, &dictionary);
            sums.gram.imply(Implied { factor: Arc::new(factor), ridge, regulariser, jitter });
        }
        Self::from_sums(kernel, dictionary, sums, ridge)
    }
}

/// The factor that rows went to, and what its first factorisation had added to the diagonal.
fn take_factor(file: &mut Container, name: &str, atoms: usize, outputs: usize) -> Result<(ReflectedFactor, f64)> {
    let lower = file.take_lower(&format!("{name}_factor"), atoms + 1)?;
    let (shape, values) = file.take_finite(&format!("{name}_factor_values"), 2)?;
    let (_, jitter) = file.take_finite(&format!("{name}_factor_jitter"), 1)?;
    let fits = shape == [outputs, atoms + 1] && jitter.len() == 1;
    let sound = fits && jitter[0] >= 0.0 && (0..=atoms).all(|i| lower[(i, i)] > 0.0);
    if !sound {
        return Err(file.malformed(format!("{name}: a factor that no sums can have")));
    }
    let values = Mat::from_fn(atoms + 1, outputs, |j, t| values[t * (atoms + 1) + j]);
    Ok((ReflectedFactor::new(lower.as_ref(), values.as_ref()), jitter[0]))
}
