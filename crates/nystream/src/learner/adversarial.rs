//! The adversarial streams of the SkeGD paper, from any data set of two classes.
//!
//! X. Zhang and S. Liao, "Incremental Randomized Sketching for Online Kernel Learning", ICML 2019, section 6.4: the game
//! goes in blocks of rounds; in all rounds of a block the same instance is received, sampled from the data set, and in
//! every even block its label is flipped. `german-1` is 500 blocks of 10 rounds of the set `german`, `german-2` 500 blocks
//! of 20. The generator `synth:adversarial` makes such streams without a data set.
//!
//! The paper does not say how instances are sampled: here uniformly, each block for itself (with replacement).

use crate::error::{Error, Result};
use crate::random::Generator;
use crate::rows::{RowBlock, Rows};

/// `blocks` times one row in `rounds` rounds, its target multiplied by −1 in the second, fourth, … block.
#[doc(alias = "k_b")]
#[doc(alias = "k_r")]
pub fn adversarial_stream(
    rows: Rows,
    targets: &[f64],
    blocks: usize,
    rounds: usize,
    seed: u64,
) -> Result<(RowBlock, Vec<f64>)> {
    if targets.len() != rows.len() {
        return Err(Error::Shape { what: "targets", found: targets.len(), expected: rows.len() });
    }
    if rows.is_empty() {
        return Err(Error::Shape { what: "rows to sample from", found: 0, expected: 1 });
    }
    let mut rng = Generator::new(seed);
    let mut places = Vec::new();
    let mut labels = Vec::new();
    for block in 1..=blocks {
        let place = rng.below(rows.len() as u64) as usize;
        let label = if block % 2 == 0 { -targets[place] } else { targets[place] };
        places.extend(std::iter::repeat_n(place, rounds));
        labels.extend(std::iter::repeat_n(label, rounds));
    }
    Ok((RowBlock::gather(rows, &places), labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_repeat_a_row_and_even_ones_flip_its_label() {
        let data: Vec<f64> = (0..40).map(f64::from).collect();
        let rows = Rows::dense(&data, 20, 2).unwrap();
        let targets: Vec<f64> = (0..20).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let (stream, labels) = adversarial_stream(rows, &targets, 200, 7, 4).unwrap();
        assert_eq!((stream.len(), labels.len()), (1400, 1400));
        let mut seen = [false; 20];
        for t in 0..1400 {
            let crate::rows::Row::Dense(x) = stream.rows().row(t) else { panic!("dense rows") };
            let place = x[0] as usize / 2;
            assert_eq!(x, &data[2 * place..2 * place + 2]);
            let crate::rows::Row::Dense(first) = stream.rows().row(t / 7 * 7) else { panic!("dense rows") };
            assert_eq!(x, first);
            let sign = if t / 7 % 2 == 0 { 1.0 } else { -1.0 };
            assert_eq!(labels[t], sign * targets[place]);
            seen[place] = true;
        }
        // A row is missed by all 200 blocks with probability 0.95²⁰⁰ < 4e-5.
        assert!(seen.iter().all(|seen| *seen));
        assert_ne!(adversarial_stream(rows, &targets, 200, 7, 5).unwrap().0, stream);
    }

    #[test]
    fn nothing_to_sample_from_is_refused() {
        let rows = Rows::dense(&[], 0, 2).unwrap();
        assert!(adversarial_stream(rows, &[], 1, 1, 0).is_err());
        let rows = Rows::dense(&[1.0, 2.0], 1, 2).unwrap();
        assert!(adversarial_stream(rows, &[], 1, 1, 0).is_err());
        assert!(adversarial_stream(rows, &[1.0], 0, 1, 0).unwrap().1.is_empty());
    }
}
