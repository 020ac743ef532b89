//! `inspect` tells of a stream how well it does and how it came about.

use crate::support::{Folder, csv};

#[test]
fn a_checkpoint_tells_its_errors_choices_and_history() {
    let folder = Folder::new();
    folder.put("a.csv", csv(1500, 1));
    folder.put("b.csv", csv(1500, 2));
    let line = "--method stream --budget 30 --model m.nys --seed 4";
    let fitted = folder.json(&format!("fit a.csv {line} --checkpoint a.part"));
    let inside = folder.json("inspect a.part");
    for key in ["bandwidth_by", "ridge_by", "dictionary", "atom_changes"] {
        assert!(!inside[key].is_null() && inside[key] == fitted[key], "{key}: {inside} {fitted}");
    }
    // The last rows wait for a full block in the checkpoint, and are learnt in the model.
    for key in ["mse", "recent_mse"] {
        let (saved, ended) = (inside[key].as_f64().unwrap(), fitted[key].as_f64().unwrap());
        assert!((saved / ended - 1.0).abs() < 0.2, "{key}: {saved} {ended}");
    }
    for (key, value) in [("reopen", "auto"), ("loss", "squared"), ("target", "y")] {
        assert_eq!(inside[key], value, "{key}");
    }
    assert!(inside["half_life"].is_null(), "{inside}");
    assert_eq!((&inside["seed"], &inside["streams"]), (&4.into(), &1.into()));

    folder.works(&format!("fit b.csv {line} --checkpoint b.part --like a.part -q"));
    folder.works("merge a.part b.part --out both.part -q");
    assert_eq!(folder.json("inspect both.part")["streams"], 2);
    assert!(folder.works("inspect both.part").contains("2, merged"));

    let set = "--half-life 500 --reopen off --ridge 0.1 --bandwidth 2";
    folder.works(&format!("fit a.csv {line} --checkpoint c.part {set} -q"));
    let inside = folder.json("inspect c.part");
    for (key, value) in [("reopen", "off"), ("ridge_by", "fixed"), ("bandwidth_by", "fixed")] {
        assert_eq!(inside[key], value, "{key}");
    }
    assert_eq!(inside["half_life"], 500.0);
}
