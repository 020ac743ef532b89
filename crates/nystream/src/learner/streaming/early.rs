//! Fits to the head's rows, made side by side before their turn where the rows are at hand.
//!
//! What the head chooses at some number of rows depends on these rows alone, and on the bandwidth chosen before. So when rows
//! come by the thousand, the fits of all choices that they reach are made at once, searches for a bandwidth one after the
//! other among them; and the learners of the bank while the head's last rows are predicted. Nothing that is computed depends on
//! when it is: rows that come one by one lead to the same bits.

use std::collections::VecDeque;

use super::bank::Bank;
use super::classes::head_end;
use super::head::{Chosen, Kept, choose, choose_at, fit_chosen, next_choice, settled_before, varies};
use super::options::StreamingOptions;
use crate::error::{Error, Result};
use crate::linalg::on_a_share;
use crate::sketch::DictionaryMethod;
use crate::solver::RecursiveRidge;

/// A learner, and how its atoms were chosen.
type Fitted = Result<(RecursiveRidge, DictionaryMethod)>;

/// How far a fit is that was begun before its turn.
#[derive(Debug)]
enum Begun {
    Chosen(Chosen),
    Made(Box<Fitted>),
}

/// What was made before its turn.
#[derive(Debug, Default)]
pub(super) struct Ready {
    /// By their numbers of rows, which rise.
    fits: VecDeque<(usize, Begun)>,
    bank: Option<Result<Bank>>,
}

impl Ready {
    /// The fit to so many rows: the one that is ready, or one that is made now.
    pub fn fit(&mut self, options: &StreamingOptions, kept: &Kept, before: Option<Chosen>) -> Fitted {
        while let Some((count, begun)) = self.fits.pop_front() {
            match begun {
                _ if count != kept.len() => {}
                Begun::Made(fitted) => return *fitted,
                Begun::Chosen(chosen) => return fit_chosen(options, kept, chosen),
            }
        }
        fit_chosen(options, kept, choose_at(options, kept, before)?)
    }

    /// The bank of a head that is over, likewise.
    pub fn bank(&mut self, options: &StreamingOptions, kept: &Kept, before: Option<Chosen>) -> Result<Bank> {
        self.bank.take().unwrap_or_else(|| open(options, kept, before))
    }

    pub fn has_bank(&mut self, bank: Result<Bank>) {
        self.bank = Some(bank);
    }
}

/// The bank of a head that is over.
fn open(options: &StreamingOptions, kept: &Kept, before: Option<Chosen>) -> Result<Bank> {
    let settled = settled_before(kept.len(), kept.head_end(options));
    let chosen = choose(options, kept, before, settled)?;
    Bank::open(options, kept, chosen)
}

/// The choices that the rows at hand reach.
#[derive(Debug)]
pub(super) struct Plan {
    /// Rows of the head so far, and those that wait, as far as they matter.
    rows: Kept,
    /// Numbers of rows at which there are fits.
    counts: Vec<usize>,
    /// Rows of the head in the end, if they are at hand.
    end: Option<usize>,
    before: Option<Chosen>,
}

impl Plan {
    /// Follows the head block by block; none if there is nothing that could be made side by side. `before` was chosen last.
    pub fn of(options: &StreamingOptions, kept: &Kept, waiting: &Kept, before: Option<Chosen>) -> Option<Self> {
        if !options.fits_side_by_side() {
            return None;
        }
        let outputs = waiting.outputs;
        let codes: Vec<f64> = kept.codes.iter().chain(&waiting.codes).copied().collect();
        let end_by = |count: usize| head_end(&codes[..count * outputs], outputs, options);
        let (mut have, mut counts, mut end) = (kept.len(), Vec::new(), None);
        loop {
            have += options.block_rows().min(next_choice(have, end_by(have)) - have);
            if have * outputs > codes.len() {
                break;
            }
            let (over, varies) = (end_by(have), varies(&codes[..have * outputs], outputs));
            if have >= over {
                end = varies.then_some(have);
                break;
            }
            if varies && have == next_choice(have - 1, over) {
                counts.push(have);
            }
        }
        if counts.len() + usize::from(end.is_some()) < 2 {
            return None;
        }
        let mut rows = kept.clone();
        let more = end.or(counts.last().copied()).unwrap_or(0) - kept.len();
        rows.extend(waiting.rows.rows().slice(0, more), &waiting.codes[..more * outputs], &waiting.weights[..more]);
        Some(Self { rows, counts, end, before })
    }

    /// Makes all fits, but for the last one before the end of the head: that is left to who predicts with it, while others
    /// make the bank.
    pub fn fits(&mut self, options: &StreamingOptions) -> Ready {
        let mut slots: Vec<Option<Begun>> = self.counts.iter().map(|_| None).collect();
        let left = self.end.and(self.counts.last().copied());
        rayon::scope(|scope| {
            for (&count, slot) in self.counts.iter().zip(&mut slots) {
                let kept = self.rows.first(count);
                match choose_at(options, &kept, self.before) {
                    Err(error) => {
                        // Nothing after it will have its turn.
                        *slot = Some(Begun::Made(Box::new(Err(error))));
                        self.end = None;
                        break;
                    }
                    Ok(chosen) => {
                        self.before = Some(chosen);
                        if Some(count) == left {
                            *slot = Some(Begun::Chosen(chosen));
                        } else {
                            let fit = move || on_a_share(usize::MAX, || fit_chosen(options, &kept, chosen));
                            scope.spawn(move |_| *slot = Some(Begun::Made(Box::new(fit()))));
                        }
                    }
                }
            }
        });
        let fits = self.counts.iter().zip(slots).map_while(|(&count, slot)| Some((count, slot?)));
        Ready { fits: fits.collect(), bank: None }
    }

    /// The number of rows at which the head is over, if they are at hand.
    pub fn end(&self) -> Option<usize> {
        self.end
    }

    /// The bank at the end of the head.
    pub fn bank(&self, options: &StreamingOptions) -> Result<Bank> {
        let Some(end) = self.end else { return Err(Error::Internal("a bank before the head is over")) };
        open(options, &self.rows.first(end), self.before)
    }
}
