//! The options of SkeGD, and what they come to.

use super::super::loss::LOSS;
use super::super::options::{Chosen, Default, OptionKind, OptionSpec, Trial};
use super::super::settings::LearnerSettings;
use super::super::steps::{REGULARIZATION, STEP_SIZE};
use crate::error::{Error, Result};
use crate::sketch::incremental::{IncrementalOptions, PseudoInverse};

/// Numbers that Φ_pp may hold: 4 GiB.
const MOST_NUMBERS: usize = 1 << 29;
/// Rounds between updates where neither the cycle nor the length of the stream is known.
const CYCLE: u64 = 1000;
/// θ of section 6.3.
const CYCLE_SHARE: f64 = 0.3;

pub(super) static SPECS: &[OptionSpec] = &[
    LOSS,
    STEP_SIZE,
    REGULARIZATION,
    OptionSpec {
        name: "update-cycle",
        symbol: "ρ",
        meaning: "rounds from one update of the feature map to the next",
        kind: OptionKind::Count(1),
        default: Default::Derived("by update-cycle-share if the length of the stream is known, else 1000"),
        trial: Trial::of("25"),
    },
    OptionSpec {
        name: "update-cycle-share",
        symbol: "θ",
        meaning: "the same as a share of the rows beyond the budget, whose number must be known",
        kind: OptionKind::Fraction,
        default: Default::Derived("0.3"),
        trial: Trial::of("0.05"),
    },
    OptionSpec {
        name: "transfer",
        symbol: "",
        meaning: "how the hypothesis moves to a new map: its value at the row at hand (anchor), or its values at all \
                  sampled points by least squares (project)",
        kind: OptionKind::Word(&["anchor", "project"]),
        default: Default::Word("anchor"),
        trial: Trial::of("project"),
    },
    OptionSpec {
        name: "sketch-size",
        symbol: "s_p",
        meaning: "columns of the sparse random transform",
        kind: OptionKind::Count(1),
        default: Default::Derived("three quarters of the budget"),
        trial: Trial::of("10"),
    },
    OptionSpec {
        name: "sampled",
        symbol: "s_m",
        meaning: "rows sampled from the buffer, at most all of them",
        kind: OptionKind::Count(1),
        default: Default::Derived("by sampled-share"),
        trial: Trial::of("6"),
    },
    OptionSpec {
        name: "sampled-share",
        symbol: "τ",
        meaning: "the same as a share of the sketch size",
        kind: OptionKind::Fraction,
        default: Default::Derived("0.2"),
        trial: Trial::of("0.5"),
    },
    OptionSpec {
        name: "rank",
        symbol: "k",
        meaning: "features, at most as many as the sketch size",
        kind: OptionKind::Count(1),
        default: Default::Derived("by rank-share"),
        trial: Trial::of("1"),
    },
    OptionSpec {
        name: "rank-share",
        symbol: "",
        meaning: "the same as a share of the budget, rounded down",
        kind: OptionKind::Fraction,
        default: Default::Derived("0.1, or the sketch size if that is less"),
        trial: Trial::of("0.4"),
    },
    OptionSpec {
        name: "blocks",
        symbol: "d",
        meaning: "blocks of the sparse random transform, at most as many as the sketch size",
        kind: OptionKind::Count(1),
        default: Default::Derived("4, or the sketch size if that is less"),
        trial: Trial::of("2"),
    },
    OptionSpec {
        name: "pseudo-inverse",
        symbol: "",
        meaning: "singular values of Φ_pm that are inverted: as many as the rank (leading) or all above rounding (full)",
        kind: OptionKind::Word(&["leading", "full"]),
        default: Default::Word("leading"),
        trial: Trial::of("full"),
    },
    OptionSpec {
        name: "history",
        symbol: "ν",
        meaning: "rows held for updates of the sketch, at least the budget; beyond them the oldest is forgotten",
        kind: OptionKind::Count(1),
        default: Default::Derived(
            "all that enter, up to 16 times the budget, if the length of the stream is known; else twice the budget",
        ),
        trial: Trial { value: "20", with: &[("update-cycle", "10")] },
    },
];

/// How the hypothesis moves to a new feature map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transfer {
    Anchor,
    Project,
}

/// What the options come to.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// B
    pub budget: usize,
    /// ρ
    pub cycle: u64,
    pub transfer: Transfer,
    pub sketch: IncrementalOptions,
}

impl Plan {
    pub fn new(settings: &LearnerSettings, chosen: &Chosen) -> Result<Self> {
        let budget = settings.budget;
        let cycle = cycle(settings, chosen)?;
        let projection_size = chosen.count("sketch-size")?.unwrap_or((3 * budget / 4).max(1));
        if projection_size.checked_mul(projection_size).is_none_or(|numbers| numbers > MOST_NUMBERS) {
            return Err(Error::TooLarge {
                what: "the sketch of skegd",
                needed_bytes: (projection_size as u64).saturating_mul(projection_size as u64).saturating_mul(8),
                allowed_bytes: MOST_NUMBERS as u64 * 8,
                advice: "give a smaller sketch-size or budget",
            });
        }
        let at_most = |name: &'static str, default: usize, most: usize, what: &str| match chosen.count(name)? {
            None => Ok(default.clamp(1, most)),
            Some(found) if found <= most => Ok(found),
            Some(found) => Err(chosen.refused(name, found.to_string(), format!("at most {what}, {most}"))),
        };
        let share = chosen.given_number("sampled-share")?;
        if let (Some(share), Some(_)) = (share, chosen.count("sampled")?) {
            return Err(chosen.refused("sampled-share", share.to_string(), "only one of sampled and sampled-share"));
        }
        let by_share = (share.unwrap_or(0.2) * projection_size as f64).round() as usize;
        let default_rank = rank_by_share(chosen, budget, projection_size)?;
        let most_rows = match chosen.count("history")? {
            Some(rows) if rows >= budget => rows,
            Some(rows) => {
                return Err(chosen.refused("history", rows.to_string(), format!("at least the budget, {budget}")));
            }
            None => history(settings, cycle),
        };
        let sketch = IncrementalOptions {
            projection_size,
            sample_size: at_most("sampled", by_share, budget, "the budget")?,
            rank: at_most("rank", default_rank, projection_size, "the sketch size")?,
            blocks: at_most("blocks", 4, projection_size, "the sketch size")?,
            pseudo_inverse: match chosen.word("pseudo-inverse")? {
                Some("full") => PseudoInverse::Full,
                _ => PseudoInverse::Leading,
            },
            most_rows,
            seed: settings.seed,
        };
        let transfer = match chosen.word("transfer")? {
            Some("project") => Transfer::Project,
            _ => Transfer::Anchor,
        };
        Ok(Self { budget, cycle, transfer, sketch })
    }
}

/// k as a share of B.
fn rank_by_share(chosen: &Chosen, budget: usize, most: usize) -> Result<usize> {
    let Some(share) = chosen.given_number("rank-share")? else { return Ok(budget / 10) };
    if chosen.count("rank")?.is_some() {
        return Err(chosen.refused("rank-share", share.to_string(), "only one of rank and rank-share"));
    }
    // 0.29 · 100 is a little below 29.
    let rank = ((share * budget as f64 + 1e-9) as usize).max(1);
    if rank > most {
        let found = format!("{share}, which is {rank} of the budget");
        return Err(chosen.refused("rank-share", found, format!("at most the sketch size, {most}")));
    }
    Ok(rank)
}

/// ρ, or ⌊θ(T − B)⌋.
fn cycle(settings: &LearnerSettings, chosen: &Chosen) -> Result<u64> {
    let share = chosen.given_number("update-cycle-share")?;
    let by_share = |share: f64, rows: u64| {
        let cycle = share * rows.saturating_sub(settings.budget as u64) as f64;
        (cycle as u64).max(1)
    };
    match (chosen.count("update-cycle")?, share, settings.expected_rows) {
        (Some(_), Some(share), _) => {
            let expected = "only one of update-cycle and update-cycle-share";
            Err(chosen.refused("update-cycle-share", share.to_string(), expected))
        }
        (Some(cycle), None, _) => Ok(cycle as u64),
        (None, Some(share), None) => {
            let expected = "a stream whose length is known (or update-cycle)";
            Err(chosen.refused("update-cycle-share", share.to_string(), expected))
        }
        (None, share, Some(rows)) => Ok(by_share(share.unwrap_or(CYCLE_SHARE), rows)),
        (None, None, None) => Ok(CYCLE),
    }
}

/// ν = B + ⌈(T − B)/ρ⌉ within its bound.
fn history(settings: &LearnerSettings, cycle: u64) -> usize {
    let budget = settings.budget as u64;
    let rows = match settings.expected_rows {
        Some(rows) => (budget + rows.saturating_sub(budget).div_ceil(cycle)).min(budget.saturating_mul(16)),
        None => budget.saturating_mul(2),
    };
    usize::try_from(rows).unwrap_or(usize::MAX)
}
