//! Two classes: rows that are told apart with room to spare teach nothing.
//!
//! The loss is then the squared hinge ([`Loss`]). After the head a row is summed if the learner, as it stood at the start of
//! the block, did not have it beyond the margin; earlier rows stay summed or not as they were. (In the limit that is the
//! solution: rows near the margin are misjudged early only.) The rows of the head are at hand, and their sums are brought to
//! the solution itself: those within the margin of the ridge regression on them.

use super::head::Kept;
use super::kept_features::KeptFeatures;
use super::options::{LossChoice, StreamingOptions};
use crate::error::Result;
use crate::solver::{Loss, RecursiveRidge};

/// Rounds towards the solution on the head. Few rows change sides in the last ones.
const ROUNDS: usize = 6;

impl Kept {
    /// What errors cost: if that is left to the rows, the squared hinge if all are of two classes.
    pub fn loss(&self, options: &StreamingOptions) -> Loss {
        match options.loss {
            LossChoice::Auto if self.outputs == 1 && self.codes.iter().all(|code| code.abs() == 1.0) => {
                Loss::SquaredHinge
            }
            LossChoice::Auto => Loss::Squared,
            LossChoice::Fixed(loss) => loss,
        }
    }
}

/// The learner with sums over the kept rows within its own margin; it comes with sums over all of them.
pub(super) fn within_margin(
    mut learner: RecursiveRidge,
    features: &mut KeptFeatures,
    codes: &[f64],
) -> Result<RecursiveRidge> {
    let loss = Loss::SquaredHinge;
    let mut taught = vec![true; codes.len()];
    for _ in 0..ROUNDS {
        let outputs = features.outputs(&learner);
        let now: Vec<bool> = codes.iter().zip(&outputs).map(|(code, output)| !loss.passes(*code, *output)).collect();
        if now == taught || !now.contains(&true) {
            break;
        }
        taught = now;
        learner.restart_from(features.sums(&taught))?;
    }
    Ok(learner.with_loss(loss))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{COLS, bytes, feed, options, stream};
    use super::super::{LossChoice, StreamingRidge};
    use super::*;
    use crate::kernel::Kernel;
    use crate::persist::Container;
    use crate::rows::{Row, RowBlock, Rows};
    use crate::sketch::Dictionary;
    use crate::solver::Whitening;

    /// Rows with the class of a curved boundary, a few of them wrong.
    fn classes(count: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let (data, noise) = stream(count, seed);
        let class = |(x, noise): (&[f64], &[f64])| (x[0] * x[1] + 0.3 + 0.1 * (noise[0] - x[0])).signum();
        let codes = data.chunks_exact(COLS).zip(noise.chunks_exact(2)).map(class).collect();
        (data, codes)
    }

    /// The oracle minimises Σ w max(0, 1 − yf)² + μ‖θ‖² by gradient steps, knowing nothing of sums.
    #[test]
    fn the_head_comes_to_the_solution_of_the_squared_hinge() {
        let (count, atoms, ridge) = (150, 12, 0.5);
        let (data, codes) = classes(count, 2);
        let rows = Rows::dense(&data, count, COLS).unwrap();
        let mut kept = Kept::new(1);
        let weights: Vec<f64> = (0..count).map(|i| 0.5 + (i % 3) as f64).collect();
        kept.extend(rows, &codes, &weights);
        assert_eq!(kept.loss(&options(5)), Loss::SquaredHinge);
        let chosen: Vec<usize> = (0..atoms).collect();
        let numbers = chosen.iter().map(|&i| i as u64).collect();
        let dictionary = Dictionary::new(RowBlock::gather(rows, &chosen), vec![1.0; atoms], numbers, 1e-6).unwrap();
        let kernel = Kernel::gaussian(1.0).unwrap();
        let whitening = Whitening::new(&kernel, &dictionary, None).unwrap();
        let mut features = KeptFeatures::new(&kernel, &dictionary, &whitening, &kept, 1.0);
        let sums = features.sums(&vec![true; count]);
        let all = RecursiveRidge::from_sums(kernel, dictionary, sums, ridge).unwrap();
        let plain = features.outputs(&all);
        let learner = within_margin(all, &mut features, &codes).unwrap();
        let outputs = features.outputs(&learner);
        let passed = (0..count).filter(|&i| codes[i] * outputs[i] >= 1.0).count();
        assert!(passed > 10 && passed < 140, "{passed}");
        assert!((learner.sums().seen() - weights.iter().sum::<f64>()).abs() < 1e-9);

        let values = features.values();
        let mut theta = vec![0.0; atoms + 1];
        let output =
            |theta: &[f64], i: usize| (0..atoms).map(|a| theta[a] * values[(i, a)]).sum::<f64>() + theta[atoms];
        // The curvature is at most 2 Σw (k(x,x) + 1) + 2μ.
        let step = 0.5 / (2.0 * weights.iter().sum::<f64>() + ridge);
        for _ in 0..200_000 {
            let mut gradient: Vec<f64> = theta.iter().map(|t| 2.0 * ridge * t).collect();
            gradient[atoms] = 0.0;
            for i in 0..count {
                let pull = -2.0 * weights[i] * codes[i] * (1.0 - codes[i] * output(&theta, i)).max(0.0);
                (0..atoms).for_each(|a| gradient[a] += pull * values[(i, a)]);
                gradient[atoms] += pull;
            }
            theta.iter_mut().zip(&gradient).for_each(|(t, g)| *t -= step * g);
        }
        let worst = (0..count).map(|i| (output(&theta, i) - outputs[i]).abs()).fold(0.0, f64::max);
        // The constant's own tiny prior moves it by about 1e-4 over Σw.
        assert!(worst < 1e-5, "{worst}");
        assert!((0..count).any(|i| (plain[i] - outputs[i]).abs() > 0.05));
    }

    #[test]
    fn single_rows_blocks_and_saved_learners_agree() {
        let (data, codes) = classes(1500, 4);
        for half_life in [None, Some(120.0)] {
            let options = StreamingOptions { half_life, ..options(25) };
            let make = || StreamingRidge::new(options.clone(), 1).unwrap();
            let mut blocks = make();
            let mut expected = feed(&mut blocks, &data, &codes, (0, 1500), &[77]);
            let mut single = make();
            for i in 0..1500 {
                let mut predicted = [0.0];
                let row = Row::Dense(&data[i * COLS..(i + 1) * COLS]);
                single.learn_row(row, &codes[i..i + 1], 1.0, &mut predicted).unwrap();
                if let Some(expected) = expected.get(i) {
                    assert!((predicted[0] - expected).abs() < 1e-9, "row {i}: {} {expected}", predicted[0]);
                }
                if i == 700 {
                    let file = Container::from_bytes("test", &bytes(&single)).unwrap();
                    single = StreamingRidge::from_container(file).unwrap();
                }
            }
            single.flush(&mut Vec::new()).unwrap();
            blocks.flush(&mut expected).unwrap();
            assert_eq!(bytes(&single), bytes(&blocks));
            let leader = blocks.leader().unwrap();
            assert!(leader.loss() == Loss::SquaredHinge && leader.sums().weight() < 0.8 * leader.sums().seen());
        }
    }

    #[test]
    fn the_loss_can_be_fixed_and_must_fit_the_codes() {
        let (data, codes) = classes(600, 5);
        let rows = Rows::dense(&data, 600, COLS).unwrap();
        let of = |loss| StreamingOptions { loss, ..options(25) };
        let learnt = |loss| {
            let mut learner = StreamingRidge::new(of(loss), 1).unwrap();
            learner.learn(rows, &codes, None, &mut Vec::new()).unwrap();
            learner
        };
        let (auto, squared) = (learnt(LossChoice::Auto), learnt(LossChoice::Fixed(Loss::Squared)));
        let hinge = learnt(LossChoice::Fixed(Loss::SquaredHinge));
        assert_eq!(auto.score(), hinge.score());
        assert!(auto.score().mse() != squared.score().mse());
        assert!(auto.score().mistake_rate() <= squared.score().mistake_rate());
        // Numbers, once classes have been learnt, or several outputs.
        let mut hinge = learnt(LossChoice::Fixed(Loss::SquaredHinge));
        let before = bytes(&hinge);
        let wrong = hinge.learn(rows.slice(0, 1), &[0.5], None, &mut Vec::new()).unwrap_err().to_string();
        assert!(wrong.contains("-1 or 1") && bytes(&hinge) == before, "{wrong}");
        let mut auto = learnt(LossChoice::Auto);
        assert!(auto.learn(rows.slice(0, 1), &[0.5], None, &mut Vec::new()).is_err());
        assert!(StreamingRidge::new(of(LossChoice::Fixed(Loss::SquaredHinge)), 2).is_err());
        assert!("hinge".parse::<LossChoice>().unwrap_err().to_string().contains("squared-hinge"));
        // A number among the first rows: not classes after all.
        let (mut learner, mut numbers) = (StreamingRidge::new(of(LossChoice::Auto), 1).unwrap(), codes.clone());
        numbers[150] = 0.5;
        feed(&mut learner, &data, &numbers, (0, 150), &[50]);
        assert_eq!(learner.leader().unwrap().loss(), Loss::SquaredHinge);
        feed(&mut learner, &data, &numbers, (150, 600), &[50]);
        assert_eq!(learner.leader().unwrap().loss(), Loss::Squared);
    }
}
