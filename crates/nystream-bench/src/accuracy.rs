//! Our defaults beside scikit-learn's Nystroem(1000) + Ridge tuned by cross-validation, on real data.
//!
//! Reads the sets from `NYSTREAM_DATA`; the peer splits them 90/10 with the seed and leaves both parts as CSV, so
//! that both sides see the same rows. The peer takes long, so its results are kept, by set and seed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use nystream::fit::{FitOptions, Silent, two_pass};
use nystream::model::Wanted;
use nystream::source::{OpenOptions, RecordBlock, open};
use serde_json::Value;

use crate::Outcome;
use crate::peers::{number, python, script};
use crate::table::{Table, seconds, verdict};
use crate::timing::timed;

const SETS: [&str; 5] = ["california", "casp", "cpuact", "pol", "bike_hourly"];
/// How many times the peer's error ours may be.
const TARGET: f64 = 1.02;

/// Compares errors on each set. Results of the peer are kept below `kept`.
pub fn run(kept: &Path, seed: u64) -> Outcome {
    let title = format!("our defaults beside tuned `Nystroem(1000)` + `Ridge`, 90/10, seed {seed}");
    let Some(data) = env::var_os("NYSTREAM_DATA").map(PathBuf::from) else {
        println!("Accuracy, {title}: SKIPPED, for NYSTREAM_DATA does not name the folder of the real sets.\n");
        println!("No target of it counts as met.\n");
        return Ok(());
    };
    println!("Accuracy, {title}\n");
    let folder = kept.join(format!("accuracy-seed-{seed}"));
    fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let mut table = Table::new(&[
        "set",
        "training rows",
        "our RMSE",
        "tuned RMSE",
        "ratio",
        "target",
        "verdict",
        "our time",
        "tuned time",
        "tuned result",
    ]);
    for set in SETS {
        let (peer, from_cache) = tuned(&data, &folder, set, seed)?;
        let (time, error) = timed(|| ours(&folder, set, seed));
        let (error, their_error) = (error?, number(&peer, "rmse")?);
        let ratio = error / their_error;
        table.row([
            set.to_owned(),
            number(&peer, "rows")?.to_string(),
            format!("{error:.5}"),
            format!("{their_error:.5}"),
            format!("{ratio:.3}"),
            format!("≤ {TARGET}"),
            verdict(ratio <= TARGET),
            seconds(time),
            seconds(number(&peer, "seconds")?),
            if from_cache { "from the cache" } else { "of this run" }.to_owned(),
        ]);
    }
    println!("{table}");
    println!("\"From the cache\" is an earlier run's result, in {}; delete it to run anew.\n", folder.display());
    Ok(())
}

/// The peer's result, and whether it was there already.
fn tuned(data: &Path, folder: &Path, set: &str, seed: u64) -> Outcome<(Value, bool)> {
    let result = folder.join(format!("{set}.json"));
    let parts_exist = ["train", "test"].iter().all(|part| folder.join(format!("{set}.{part}.csv")).exists());
    if parts_exist && let Ok(text) = fs::read_to_string(&result) {
        return Ok((serde_json::from_str(&text)?, true));
    }
    eprintln!("tuning scikit-learn on {set}: this takes minutes");
    let mut command = Command::new(python()?);
    command.arg(script("tuned_nystroem.py")).arg(data).arg(folder).arg(seed.to_string()).arg(set);
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("tuned_nystroem.py on {set} ended with {}", output.status).into());
    }
    let peer = serde_json::from_slice(&output.stdout)?;
    fs::write(&result, &output.stdout).map_err(|e| format!("cannot write {}: {e}", result.display()))?;
    Ok((peer, false))
}

/// Fits the training part with defaults; its error on the test part.
fn ours(folder: &Path, set: &str, seed: u64) -> nystream::Result<f64> {
    let path = |part: &str| folder.join(format!("{set}.{part}.csv")).display().to_string();
    let mut train = open(&path("train"), &OpenOptions::default())?;
    let model = two_pass(train.as_mut(), &FitOptions { seed, ..FitOptions::default() }, &mut Silent)?;
    let mut test = open(&path("test"), &OpenOptions::default())?;
    let mut block = RecordBlock::default();
    let mut predictor = model.predictor(test.schema(), test.origin())?;
    let (mut squared, mut rows) = (0.0, 0.0);
    while test.read(&mut block, 4096)? {
        predictor.predict(&block, Wanted { targets: true, deviations: false })?;
        let (values, truth) = (&predictor.predictions().values, &predictor.batch().targets);
        squared += values.iter().zip(truth).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        rows += values.len() as f64;
    }
    Ok((squared / rows).sqrt())
}
