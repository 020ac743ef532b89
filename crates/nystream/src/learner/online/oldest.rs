//! Which place is the oldest, where the newest row takes the oldest's place.

use super::settings::LearnerSettings;
use super::state::State;
use crate::error::Result;
use crate::persist::Container;

/// Places 0..budget in turn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Oldest(usize);

impl Oldest {
    /// The place of the oldest row, once the budget is full.
    pub fn place(self) -> usize {
        self.0
    }

    /// The oldest has been replaced.
    pub fn advance(&mut self, budget: usize) {
        self.0 = (self.0 + 1) % budget;
    }

    pub fn put(self, file: &mut Container) -> Result<()> {
        file.put_counts("oldest", &[self.0 as u64])
    }

    pub fn take(file: &mut Container, settings: &LearnerSettings) -> Result<Self> {
        let [oldest] = file.take_counts("oldest")?;
        if oldest >= settings.budget as u64 {
            return Err(file.malformed("the oldest row is in a place beyond the budget"));
        }
        Ok(Self(oldest as usize))
    }
}
