//! The self-tuned Forgetron.
//!
//! O. Dekel, S. Shalev-Shwartz, Y. Singer, "The Forgetron: a kernel-based perceptron on a budget", SIAM Journal on
//! Computing 37(5), 2008, pages 1342–1372: the self-tuned Forgetron.
//!
//! On a mistake: the perceptron's step; then, if there are more rows than the budget, all coefficients are multiplied by
//! the largest φ ≤ 1 that keeps the damage done so far below 15/32 of the mistakes, and the oldest row goes. A round costs
//! its kernels, O(B d); a mistake O(B) more.
//!
//! Departures from the paper:
//! - The damage of removing a row is measured with K(x, x) = 1 there; here with the kernel's own K(x, x), which is the same
//!   for kernels of a distance.
//! - The kernels among the rows kept are remembered (B² numbers), so that f′ at the oldest row costs no evaluations.

use super::entry::{LearnerEntry, Make, OnlineLearner, Order};
use super::expansion::Expansion;
use super::oldest::Oldest;
use super::options::Chosen;
use super::settings::{LearnerSettings, Targets};
use super::square::Square;
use super::state::State;
use crate::error::Result;
use crate::linalg::dot;
use crate::persist::Container;
use crate::rows::Row;

pub(super) static ENTRY: LearnerEntry = LearnerEntry {
    name: "forgetron",
    title: "Forgetron, self-tuned",
    citation: "Dekel, Shalev-Shwartz, Singer, \"The Forgetron: a kernel-based perceptron on a budget\", SIAM J. Computing \
               37(5), 2008, the self-tuned Forgetron",
    targets: &[Targets::Classes],
    order: Order::First,
    cost: "O(B d)",
    options: &[],
    make: Make::Rows { build, load },
};

/// Share of the mistakes that the damage may reach.
const SHARE: f64 = 15.0 / 32.0;

#[derive(Debug)]
struct Forgetron {
    budget: usize,
    function: Expansion,
    oldest: Oldest,
    /// In row i: kernels of row i with the rows that came after it.
    later: Square,
    /// M
    mistakes: f64,
    /// Q
    damage: f64,
}

fn new(settings: &LearnerSettings, function: Expansion) -> Forgetron {
    Forgetron {
        budget: settings.budget,
        function,
        oldest: Oldest::default(),
        later: Square::default(),
        mistakes: 0.0,
        damage: 0.0,
    }
}

fn build(settings: &LearnerSettings, _: &Chosen) -> Result<Box<dyn OnlineLearner>> {
    Ok(Box::new(new(settings, Expansion::new(settings))))
}

fn load(settings: &LearnerSettings, _: &Chosen, file: &mut Container) -> Result<Box<dyn OnlineLearner>> {
    let mut learner = new(settings, Expansion::take(file, settings)?);
    learner.oldest = Oldest::take(file, settings)?;
    learner.later = Square::take(file, "later", learner.function.len())?;
    let counts = file.take_numbers("mistakes_damage", 2)?;
    (learner.mistakes, learner.damage) = (counts[0], counts[1]);
    Ok(Box::new(learner))
}

impl Forgetron {
    /// The largest φ of (0, 1] with damage + Ψ(φ) ≤ SHARE · mistakes, where Ψ(φ) = (δφ)² κ + 2δφ(1 − φμ).
    fn shrinking(&self, delta: f64, diagonal: f64, mu: f64) -> f64 {
        let room = SHARE * self.mistakes - self.damage;
        let (a, b) = (delta * delta * diagonal - 2.0 * delta * mu, 2.0 * delta);
        if a + b <= room {
            return 1.0;
        }
        // a φ² + b φ = room with b > 0 and room ≥ 0: the root that grows from 0, in the form that loses no digits.
        let root = (b * b + 4.0 * a * room).max(0.0).sqrt();
        (2.0 * room / (b + root)).clamp(0.0, 1.0)
    }
}

impl OnlineLearner for Forgetron {
    fn predict(&mut self, row: Row) -> f64 {
        self.function.output(row)
    }

    fn learn(&mut self, row: Row, target: f64) -> Result<f64> {
        let output = self.function.output(row);
        if target * output > 0.0 {
            return Ok(output);
        }
        self.mistakes += 1.0;
        let diagonal = self.function.support.kernel().diagonal(row);
        if self.function.len() < self.budget {
            let place = self.function.len();
            self.function.push(row, target);
            self.later.grow();
            self.function.kernels[place] = diagonal;
            self.later.set_column(place, &self.function.kernels);
            return Ok(output);
        }
        let r = self.oldest.place();
        let coefficient = self.function.coefficients[r];
        // f′(x_r), f′ being the function after the perceptron's step; the newest row is not in the sum yet.
        let f = dot(self.later.row(r), &self.function.coefficients) + target * self.function.kernels[r];
        let delta = coefficient.abs();
        let mu = coefficient.signum() * f;
        let oldest_diagonal = self.later.row(r)[r];
        let phi = self.shrinking(delta, oldest_diagonal, mu);
        self.damage += (delta * phi).powi(2) * oldest_diagonal + 2.0 * delta * phi * (1.0 - phi * mu);
        self.function.scale(phi);
        self.function.replace(r, row, phi * target);
        self.function.kernels[r] = diagonal;
        self.later.set_column(r, &self.function.kernels);
        self.oldest.advance(self.budget);
        Ok(output)
    }

    fn atoms(&self) -> usize {
        self.function.len()
    }

    fn size_bytes(&self) -> usize {
        self.function.size_bytes() + self.later.size_bytes()
    }

    fn save(&self, file: &mut Container) -> Result<()> {
        self.function.put(file)?;
        self.oldest.put(file)?;
        self.later.put(file, "later")?;
        file.put_numbers("mistakes_damage", &[self.mistakes, self.damage])
    }
}
