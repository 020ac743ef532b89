//! `when-it-pays`.
use crate::findings::Findings;
use crate::study::Settings;
use nystream::Result;
pub(crate) const MINUTES: u32 = 10;
pub(crate) fn run(settings: &Settings, _stage: &mut dyn FnMut(&str)) -> Result<Findings> {
    settings.rows_or(1000)?;
    Ok(Findings::new("when-it-pays", "x"))
}
