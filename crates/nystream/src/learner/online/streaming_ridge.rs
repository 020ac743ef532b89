//! The streaming ridge's line in the table, and its options by their names there.

use std::collections::BTreeMap;

use super::entry::{LearnerEntry, Make, Order};
use super::options::{Chosen, Default, OptionKind, OptionSpec, Trial};
use super::settings::Targets;
use crate::error::{Error, Result};
use crate::learner::streaming::StreamingOptions;
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
        self.half_life = chosen.given_number("half-life")?;
        self.validated()?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::evaluate_rows;
    use crate::learner::online::tests::stream::stream;

    #[test]
    fn every_option_of_the_table_changes_something() {
        let (rows, targets) = stream(Targets::Classes, false);
        let run = |given: &[(&str, &str)]| {
            let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let base = StreamingOptions { budget: 20, ..StreamingOptions::default() };
            let done = evaluate_rows(base.with_named(&given)?, rows.rows(), &targets, 1, true)?;
            Ok::<_, Error>(done.learner.score().mse())
        };
        let usual = run(&[]).unwrap();
        assert_eq!(usual, run(&[("ridge", "auto")]).unwrap());
        for option in ENTRY.options {
            assert_ne!(usual, run(&[(option.name, option.trial.value)]).unwrap(), "{}", option.name);
            assert!(run(&[(option.name, "-1")]).is_err());
        }
        assert!(run(&[("rigde", "1")]).unwrap_err().to_string().contains("the nearest is 'ridge'"));
    }
}
