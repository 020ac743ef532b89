//! The streaming ridge's line in the table, and its options by their names there.

use std::collections::BTreeMap;

use super::entry::{LearnerEntry, Make, Order};
use super::options::{Chosen, Default, OptionKind, OptionSpec, Trial};
use super::settings::Targets;
use crate::error::{Error, Result};
use crate::learner::streaming::{LossChoice, Reopen, StreamingOptions};
use crate::solver::Ridge;

pub(super) static ENTRY: LearnerEntry = LearnerEntry {
    name: "streaming-ridge",
    title: "streaming kernel ridge regression",
    citation: "this library; after Calandriello, Lazaric, Valko, \"Pack only the essentials: adaptive dictionary learning \
               for kernel ridge regression\", 2016, Eq. 6, with atoms by randomly pivoted Cholesky",
    targets: &[Targets::Classes, Targets::Numbers],
    order: Order::Second,
    cost: "O(B d + B²), by blocks",
    options: &[
        OptionSpec {
            name: "ridge",
            symbol: "μ",
            meaning: "ridge of the regression; auto by generalised cross-validation",
            kind: OptionKind::PositiveOr("auto"),
            default: Default::Word("auto"),
            trial: Trial::of("10"),
        },
        OptionSpec {
            name: "half-life",
            symbol: "",
            meaning: "rows after which a row counts half",
            kind: OptionKind::Positive,
            default: Default::Derived("every row counts the same"),
            trial: Trial::of("100"),
        },
        OptionSpec {
            name: "reopen",
            symbol: "",
            meaning: "whether atoms may change when rows come from where they do not reach",
            kind: OptionKind::Word(&["auto", "off"]),
            default: Default::Word("auto"),
            trial: Trial::of("off"),
        },
        OptionSpec {
            name: "loss",
            symbol: "",
            meaning: "what errors cost; auto: the squared hinge for two classes, else squared errors",
            kind: OptionKind::Word(&["auto", "squared", "squared-hinge"]),
            default: Default::Word("auto"),
            trial: Trial::of("squared"),
        },
        OptionSpec {
            name: "threshold",
            symbol: "",
            meaning: "output above which a row counts as of the second class; auto: where past outputs made fewest mistakes",
            kind: OptionKind::NumberOr("auto"),
            default: Default::Word("auto"),
            trial: Trial::of("0.5"),
        },
    ],
    make: Make::Blocks,
};

impl StreamingOptions {
    /// With options of the table, by their names there, set.
    pub fn with_named(mut self, given: &BTreeMap<String, String>) -> Result<Self> {
        let chosen = Chosen::new(ENTRY.name, ENTRY.options, given)?;
        self.ridge = match chosen.word("ridge")? {
            None | Some("auto") => Ridge::Auto,
            Some(text) => Ridge::Fixed(text.parse().map_err(|_| Error::Internal("a ridge that is not a number"))?),
        };
        self.threshold = match chosen.word("threshold")? {
            None | Some("auto") => None,
            Some(text) => Some(text.parse().map_err(|_| Error::Internal("a threshold that is not a number"))?),
        };
        self.half_life = chosen.given_number("half-life")?;
        self.reopen = chosen.word("reopen")?.map_or(Ok(Reopen::Auto), str::parse)?;
        self.loss = chosen.word("loss")?.map_or(Ok(LossChoice::Auto), str::parse)?;
        self.validated()?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::evaluate_rows;

    #[test]
    fn every_option_of_the_table_changes_something() {
        // Half-way the rows move away from all atoms.
        let mut rng = crate::random::Generator::new(6);
        let away = |i: usize| if i < 2000 { 0.0 } else { 9.0 };
        let data: Vec<f64> = (0..8000).map(|i| rng.normal() + away(i / 2)).collect();
        let rows = crate::rows::Rows::dense(&data, 4000, 2).unwrap();
        let sign = |x: &[f64]| if x[0] * x[1] > 0.5 { 1.0 } else { -1.0 };
        let targets: Vec<f64> =
            data.chunks_exact(2).map(|x| sign(&[x[0] - 9.0 * (x[0] / 9.0).round(), x[1]])).collect();
        let run = |given: &[(&str, &str)]| {
            let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let base = StreamingOptions { budget: 20, ..StreamingOptions::default() };
            let done = evaluate_rows(base.with_named(&given)?, rows, &targets, 1, true)?;
            let score = done.learner.score();
            Ok::<_, Error>((score.mse(), score.mistake_rate()))
        };
        let usual = run(&[]).unwrap();
        assert_eq!(usual, run(&[("ridge", "auto")]).unwrap());
        for option in ENTRY.options {
            assert_ne!(usual, run(&[(option.name, option.trial.value)]).unwrap(), "{}", option.name);
            let bad = if option.name == "threshold" { "wide" } else { "-1" };
            assert!(run(&[(option.name, bad)]).is_err());
        }
        assert!(run(&[("rigde", "1")]).unwrap_err().to_string().contains("the nearest is 'ridge'"));
    }
}
