//! SkeGD on a long stream: time a round and memory must not depend on how many rounds there were.
//!
//! ijcnn1 over and over, its length unknown to the learner: twice the budget of rows is held for the sketch. A row enters
//! it, and the map is computed anew, every 400 rounds, so that the rows held are complete before the first tenth is over.
//! Rounds are timed 400 at a time, in three runs of the same work; the smallest time of each 400 counts.

use nystream::learner::online::Learner;

use crate::Outcome;
use crate::learner_data::Data;
use crate::learners::{BUDGET, settings};
use crate::machine::threads;
use crate::options::Options;
use crate::table::{Table, verdict};
use crate::timing::timed;

const SET: &str = "ijcnn1";
const ROUNDS: usize = 1_000_000;
/// Rounds timed together, with one new map.
const BLOCK: usize = 400;
const PARTS: usize = 10;
const TURNS: usize = 3;
/// Largest slope of log time a round against log rounds.
const SLOPE_TARGET: f64 = 0.02;

/// Times SkeGD in tenths of the stream. `rows` shortens it.
pub fn run(options: &Options) -> Outcome {
    let rounds = options.rows.unwrap_or(ROUNDS).next_multiple_of(PARTS * BLOCK);
    let Some(path) = Data::find(SET) else {
        println!(
            "SkeGD on a long stream: SKIPPED, for NYSTREAM_DATA does not name a folder with {SET}. Its target does not \
             count as met.\n"
        );
        return Ok(());
    };
    let data = Data::read(&path, true, options.seed, usize::MAX, options.bandwidth)?;
    println!(
        "SkeGD, {rounds} rounds of {SET} over and over, budget {BUDGET}, a new map every {BLOCK} rounds, 1 thread\n"
    );
    let mut table = Table::new(&["rounds up to", "µs a round", "rows kept", "bytes held"]);
    let parts = threads(1)?.install(|| measure(&data, rounds))?;
    for part in &parts {
        table.row([
            part.end.to_string(),
            format!("{:.3}", part.time * 1e6),
            part.atoms.to_string(),
            part.bytes.to_string(),
        ]);
    }
    println!("{table}");
    let slope = crate::sketch::slope(&parts.iter().map(|p| (p.end as f64, p.time)).collect::<Vec<_>>());
    let growth = parts[PARTS - 1].bytes as f64 / parts[0].bytes as f64;
    let judged = |met: bool| if rounds < ROUNDS { "not judged: scaled down".to_owned() } else { verdict(met) };
    let mut targets = Table::new(&["", "found", "target", "verdict"]);
    targets.row([
        "slope of log time a round against log rounds".to_owned(),
        format!("{slope:.4}"),
        format!("≤ {SLOPE_TARGET}"),
        judged(slope <= SLOPE_TARGET),
    ]);
    targets.row([
        "bytes held, last tenth / first".to_owned(),
        format!("{growth:.4}"),
        "1".to_owned(),
        judged(growth <= 1.0),
    ]);
    println!("{targets}");
    Ok(())
}

struct Part {
    /// Rounds at its end.
    end: usize,
    /// Seconds a round.
    time: f64,
    atoms: usize,
    bytes: usize,
}

fn measure(data: &Data, rounds: usize) -> Outcome<Vec<Part>> {
    let mut times = vec![f64::INFINITY; rounds / BLOCK];
    let (mut ends, mut out) = (Vec::new(), Vec::with_capacity(BLOCK));
    let a_part = times.len() / PARTS;
    for _ in 0..TURNS {
        let mut learner = Learner::new("skegd", settings(data, None).with("update-cycle", BLOCK))?;
        let mut next = 0;
        ends.clear();
        for (b, least) in times.iter_mut().enumerate() {
            if next + BLOCK > data.rows.len() {
                next = 0;
            }
            out.clear();
            let (rows, targets) = (data.rows().slice(next, next + BLOCK), &data.targets[next..next + BLOCK]);
            let (time, done) = timed(|| learner.learn_all(rows, targets, &mut out));
            done?;
            *least = least.min(time);
            next += BLOCK;
            if (b + 1) % a_part == 0 {
                ends.push((learner.atoms(), learner.size_bytes()));
            }
        }
    }
    let parts = times.chunks_exact(a_part).zip(ends).enumerate();
    Ok(parts
        .map(|(i, (times, (atoms, bytes)))| {
            let part_rounds = a_part * BLOCK;
            Part { end: (i + 1) * part_rounds, time: times.iter().sum::<f64>() / part_rounds as f64, atoms, bytes }
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use nystream::kernel::Kernel;
    use nystream::random::Generator;
    use nystream::rows::{Row, RowBlock};

    use super::*;

    #[test]
    fn a_long_stream_is_cut_into_tenths() {
        let mut rng = Generator::new(1);
        let mut rows = RowBlock::dense(3);
        let mut targets = Vec::new();
        for _ in 0..1500 {
            let row = [rng.normal(), rng.normal(), rng.normal()];
            targets.push(if row[0] * row[1] + 0.3 * rng.normal() > 0.0 { 1.0 } else { -1.0 });
            rows.push(Row::Dense(&row));
        }
        let data = Data { rows, targets, kernel: Kernel::gaussian(1.0).unwrap() };
        let parts = measure(&data, PARTS * BLOCK).unwrap();
        assert_eq!(parts.iter().map(|p| p.end).collect::<Vec<_>>(), (1..=10).map(|i| i * BLOCK).collect::<Vec<_>>());
        assert!(parts.iter().all(|p| p.time > 0.0 && p.time.is_finite() && p.atoms > 0 && p.bytes > 0));
    }
}
