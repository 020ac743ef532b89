//! Atoms of equal number, by ours and by BLESS (DPPy), judged alike ([`nystream_reproduce::contest`]).

use std::path::Path;

use nystream::rows::Rows;
use nystream_reproduce::contest::{Contestant, Scores, Set, sets};
use serde_json::json;

use crate::Outcome;
use crate::peers::{Peer, number, share};
use crate::table::{Table, seconds};

const SIZE: usize = 100;
const THREADS: usize = 2;
const SEEDS: u64 = 3;

/// Means over the seeds: atoms, scores, seconds.
#[derive(Default)]
struct Line {
    atoms: f64,
    spectral: f64,
    trace: f64,
    rmse: f64,
    seconds: f64,
}

impl Line {
    fn add(&mut self, atoms: usize, scores: Scores, seconds: f64, seeds: f64) {
        self.atoms += atoms as f64 / seeds;
        self.spectral += scores.spectral / seeds;
        self.trace += scores.trace / seeds;
        self.rmse += scores.rmse / seeds;
        self.seconds += seconds / seeds;
    }
}

/// Compares on the sets of `nystream reproduce when-it-pays`; smaller ones if `small`.
pub fn run(folder: &Path, small: bool) -> Outcome {
    let (train, test, seeds) = if small { (300, 100, 1) } else { (1500, 1000, SEEDS) };
    println!("Dictionaries of about {SIZE} atoms of {train} rows, means over {seeds} seeds, {THREADS} threads each\n");
    let mut peer = Peer::start(THREADS)?;
    let mut table =
        Table::new(&["set", "method", "atoms", "‖K − K̃‖₂", "tr(K − K̃)/tr K", "test RMSE", "time of choosing"]);
    for set in sets(train, test)? {
        for (method, line) in lines(&set, folder, &mut peer, seeds)? {
            table.row([
                set.name.to_owned(),
                method.to_owned(),
                format!("{:.1}", line.atoms),
                format!("{:.4}", line.spectral),
                format!("{:.5}", line.trace),
                format!("{:.4}", line.rmse),
                seconds(line.seconds),
            ]);
        }
    }
    println!("{table}");
    println!(
        "Uniform, rpcholesky and batch-exact have as many atoms as SQUEAK ended with, INK-ESTIMATE at most as many, BLESS (its \
         size follows from λ, whose search is not timed) as near as 20 seeds came.\n"
    );
    Ok(())
}

fn lines(set: &Set, folder: &Path, peer: &mut Peer, seeds: u64) -> Outcome<Vec<(&'static str, Line)>> {
    let Rows::Dense(rows) = set.rows() else { return Err("the rows are not dense".into()) };
    let file = set.name.replace(' ', "-");
    let x = share(folder, &file, rows.data(), &[rows.len(), rows.cols()])?;
    let gamma = set.leverage_ridge_for(SIZE, 1 << 32)?;
    let mut lines: Vec<(&'static str, Line)> = Contestant::ALL.iter().map(|c| (c.name(), Line::default())).collect();
    let mut bless = Line::default();
    for seed in 0..seeds {
        let mut count = SIZE;
        for (contestant, (_, line)) in Contestant::ALL.into_iter().zip(&mut lines) {
            let choice = set.choose(contestant, count, gamma, seed)?;
            if contestant == Contestant::Squeak {
                count = choice.atoms.len();
            }
            line.add(choice.atoms.len(), set.judge(&choice.atoms)?, choice.seconds, seeds as f64);
        }
        let bandwidth = set.kernel.bandwidth();
        let task = json!({ "task": "bless", "x": x, "bandwidth": bandwidth, "atoms": count, "seed": seed });
        let answer = peer.ask(&task)?;
        let list = answer["atoms"].as_array().ok_or("BLESS gave no atoms")?;
        let atoms: Vec<usize> = list.iter().filter_map(|i| i.as_u64()).map(|i| i as usize).collect();
        bless.add(atoms.len(), set.judge(&atoms)?, number(&answer, "seconds")?, seeds as f64);
    }
    lines.push(("BLESS (DPPy)", bless));
    Ok(lines)
}
