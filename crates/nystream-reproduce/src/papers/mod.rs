//! Tables and figures of papers, run anew: each is one file in `tables/` of this crate, with data checksums, seeds,
//! parameters and printed values, and one study. Ours stands beside the printed value; what differs stays in.
//!
//! - X. Zhang and S. Liao, "Incremental Randomized Sketching for Online Kernel Learning", ICML 2019: Tables 2, 3 and 4,
//!   Figures 2 and 3.
//! - J. Li and S. Liao, "Nearly optimal algorithms with sublinear computational complexity for online kernel regression",
//!   ICML 2023: the online mean squared errors of NONS-ALD.

mod cell;
mod data;
mod figures;
mod file;
mod kernels;
mod limits;
mod online;
mod store;
#[cfg(test)]
mod tests;

use nystream::Result;

use crate::findings::Findings;
use crate::study::Settings;

const TABLE_2: &str = include_str!("../../tables/skegd-table-2.json");
const TABLE_3: &str = include_str!("../../tables/skegd-table-3.json");
const TABLE_4: &str = include_str!("../../tables/skegd-table-4.json");
const FIGURES: &str = include_str!("../../tables/skegd-figures.json");
const ONLINE_MSE: &str = include_str!("../../tables/online-mse.json");

/// SkeGD, Table 2.
pub(crate) fn skegd_table_2(settings: &Settings, stage: &mut dyn FnMut(&str)) -> Result<Findings> {
    kernels::run("skegd-table-2", &file::parsed(TABLE_2)?, settings, stage)
}

/// SkeGD, Table 3.
pub(crate) fn skegd_table_3(settings: &Settings, stage: &mut dyn FnMut(&str)) -> Result<Findings> {
    online::run("skegd-table-3", &file::parsed(TABLE_3)?, settings, stage)
}

/// SkeGD, Table 4.
pub(crate) fn skegd_table_4(settings: &Settings, stage: &mut dyn FnMut(&str)) -> Result<Findings> {
    online::run("skegd-table-4", &file::parsed(TABLE_4)?, settings, stage)
}

/// SkeGD, Figures 2 and 3.
pub(crate) fn skegd_figures(settings: &Settings, stage: &mut dyn FnMut(&str)) -> Result<Findings> {
    figures::run("skegd-figures", &file::parsed(FIGURES)?, settings, stage)
}

/// Online mean squared errors of NONS-ALD.
pub(crate) fn online_mse(settings: &Settings, stage: &mut dyn FnMut(&str)) -> Result<Findings> {
    online::run("online-mse", &file::parsed(ONLINE_MSE)?, settings, stage)
}
