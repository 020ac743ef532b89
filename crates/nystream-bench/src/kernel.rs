//! Gaussian kernel blocks beside scikit-learn's `rbf_kernel`: f64, 1024 rows with 1000 centres, one thread each.
//!
//! Ours is `Kernel::block` into a buffer that is there, with centres packed beforehand: in use thousands of blocks meet
//! the same centres. Since the peer's call starts from the plain array, the ratio with the packing timed is shown too.

use std::hint::black_box;
use std::path::Path;

use faer::Mat;
use nystream::kernel::{Centres, Kernel, KernelWorkspace};
use nystream::random::Generator;
use nystream::rows::Rows;
use serde_json::json;

use crate::Outcome;
use crate::machine::threads;
use crate::peers::{Peer, number, read_back, share};
use crate::table::{Table, seconds, verdict};
use crate::timing::fastest_within;

const ROWS: usize = 1024;
const CENTRES: usize = 1000;
/// Columns, and how many times faster than the peer ours is to be.
const TARGETS: [(usize, f64); 4] = [(8, 4.0), (20, 3.5), (54, 2.2), (300, 1.2)];
/// Ours and the peer's take turns this often, so that both meet the machine's good moments.
const ROUNDS: usize = 6;
/// Time of a turn.
const TURN: f64 = 0.4;

/// Compares speeds and values at each width.
pub fn run(folder: &Path) -> Outcome {
    println!("Gaussian block, f64, {ROWS} x {CENTRES}, 1 thread each, against `rbf_kernel`\n");
    let mut table = Table::new(&[
        "columns",
        "ours",
        "scikit-learn",
        "ours M/s",
        "ratio",
        "target",
        "verdict",
        "ratio with packing",
        "largest relative difference",
    ]);
    let mut peer = Peer::start(1)?;
    for (cols, target) in TARGETS {
        let measured = threads(1)?.install(|| compare(&mut peer, folder, cols))?;
        let ratio = measured.peer / measured.ours;
        table.row([
            cols.to_string(),
            seconds(measured.ours),
            seconds(measured.peer),
            format!("{:.0}", (ROWS * CENTRES) as f64 / measured.ours / 1e6),
            format!("{ratio:.2}"),
            format!("≥ {target}"),
            verdict(ratio >= target),
            format!("{:.2}", measured.peer / measured.with_packing),
            format!("{:.1e}", measured.difference),
        ]);
    }
    println!("{table}");
    Ok(())
}

struct Measured {
    ours: f64,
    with_packing: f64,
    peer: f64,
    difference: f64,
}

fn compare(peer: &mut Peer, folder: &Path, cols: usize) -> Outcome<Measured> {
    let mut rng = Generator::new(cols as u64);
    let mut normal = |count: usize| -> Vec<f64> { (0..count).map(|_| rng.normal()).collect() };
    let (xs, zs) = (normal(ROWS * cols), normal(CENTRES * cols));
    let out_path = folder.join(format!("values-{cols}.f64"));
    let mut task = json!({
        "task": "rbf",
        "x": share(folder, &format!("rows-{cols}"), &xs, &[ROWS, cols])?,
        "z": share(folder, &format!("centres-{cols}"), &zs, &[CENTRES, cols])?,
        "gamma": 1.0 / (2.0 * cols as f64),
        "seconds": TURN,
        "out": out_path,
    });
    let kernel = Kernel::gaussian((cols as f64).sqrt())?;
    let (xs, zs) = (Rows::dense(&xs, ROWS, cols)?, Rows::dense(&zs, CENTRES, cols)?);
    let centres = Centres::new(zs);
    let mut out = Mat::zeros(ROWS, CENTRES);
    let mut workspace = KernelWorkspace::default();
    let mut best = Measured { ours: f64::INFINITY, with_packing: f64::INFINITY, peer: f64::INFINITY, difference: 0.0 };
    for round in 0..ROUNDS {
        best.ours = best.ours.min(fastest_within(TURN, || {
            kernel.block(black_box(xs), &centres, &mut workspace, out.as_mut());
            black_box(&out);
        }));
        best.with_packing = best.with_packing.min(fastest_within(TURN / 2.0, || {
            kernel.block(xs, &Centres::new(black_box(zs)), &mut workspace, out.as_mut());
            black_box(&out);
        }));
        best.peer = best.peer.min(number(&peer.ask(&task)?, "seconds")?);
        if round == 0 {
            best.difference = largest_difference(&out, &read_back(&out_path)?)?;
            task.as_object_mut().and_then(|task| task.remove("out"));
        }
    }
    Ok(best)
}

/// The largest of |ours − theirs| / theirs; theirs are row by row.
fn largest_difference(ours: &Mat<f64>, theirs: &[f64]) -> Outcome<f64> {
    if theirs.len() != ROWS * CENTRES {
        return Err(format!("the peer's block has {} values, not {}", theirs.len(), ROWS * CENTRES).into());
    }
    let relative = |(k, &theirs): (usize, &f64)| (ours[(k / CENTRES, k % CENTRES)] - theirs).abs() / theirs;
    // NaN would vanish in a maximum.
    theirs.iter().enumerate().map(relative).try_fold(0.0, |largest: f64, difference| {
        if difference.is_finite() { Ok(largest.max(difference)) } else { Err("a kernel value is no number".into()) }
    })
}
