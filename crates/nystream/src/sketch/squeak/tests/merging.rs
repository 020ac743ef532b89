//! Merging: neutral, refused where it makes no sense, and right in any tree.

use super::*;

fn parts(block: &RowBlock, sizes: &[usize], options: &SqueakOptions) -> Vec<Squeak> {
    let mut from = 0;
    let part = |(seed, size): (usize, &usize)| {
        let rows = block.rows().slice(from, from + size);
        from += size;
        squeak_of(&SqueakOptions { seed: seed as u64, ..options.clone() }, rows)
    };
    sizes.iter().enumerate().map(part).collect()
}

#[test]
fn an_empty_dictionary_is_neutral_to_the_last_bit() {
    let block = oracle::normal_rows(41, 2, 1);
    for schedule in schedules() {
        let full = squeak_of(&options(schedule), block.rows());
        let empty = || Squeak::new(SqueakOptions { seed: 9, ..options(schedule) }).unwrap();
        assert!(bytes(&full.clone().merge(empty()).unwrap()) == bytes(&full));
        assert!(bytes(&empty().merge(full.clone()).unwrap()) == bytes(&full));
        assert_eq!(empty().merge(empty()).unwrap().rows_seen(), 0);
    }
}

#[test]
fn incompatible_ones_are_refused_by_name() {
    let block = oracle::normal_rows(20, 2, 2);
    let base = options(Schedule::PerPoint);
    let refused = |change: fn(&mut SqueakOptions), rows: &RowBlock| {
        let mut other = base.clone();
        change(&mut other);
        match squeak_of(&base, block.rows()).merge(squeak_of(&other, rows.rows())) {
            Err(Error::Incompatible { field, .. }) => field,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(|o| o.kernel = Kernel::Linear, &block), "kernel");
    assert_eq!(refused(|o| o.kernel = Kernel::gaussian(1.0).unwrap(), &block), "bandwidth");
    assert_eq!(refused(|o| o.leverage_ridge = 0.6, &block), "leverage-ridge");
    assert_eq!(refused(|o| o.accuracy = 0.4, &block), "accuracy");
    assert_eq!(refused(|o| o.failure_prob = 0.4, &block), "failure-prob");
    assert_eq!(refused(|_| (), &sparse_copy(&block)), "kind of rows");
    assert_eq!(refused(|_| (), &oracle::normal_rows(5, 3, 1)), "number of features");
    let polynomial = |degree, scale, offset| {
        let options = SqueakOptions { kernel: Kernel::polynomial(degree, scale, offset).unwrap(), ..base.clone() };
        squeak_of(&options, block.rows())
    };
    for (other, name) in [((3, 1.0, 1.0), "degree"), ((2, 2.0, 1.0), "scale"), ((2, 1.0, 0.5), "offset")] {
        let found = polynomial(2, 1.0, 1.0).merge(polynomial(other.0, other.1, other.2)).unwrap_err();
        assert!(matches!(&found, Error::Incompatible { field, .. } if field == name), "{found}");
    }
    // Empty ones too.
    let other = SqueakOptions { accuracy: 0.2, ..base.clone() };
    assert!(squeak_of(&base, block.rows()).merge(Squeak::new(other).unwrap()).is_err());
}

#[test]
fn every_tree_of_unequal_parts_keeps_the_bound() {
    let mut block = oracle::clustered_rows(230, 3);
    // Some rows come again in other parts.
    let copy = block.clone();
    block.extend(copy.rows().slice(0, 40));
    for schedule in schedules() {
        let mut options = options(schedule);
        options.oversampling = Oversampling::Fixed(60);
        let sizes = [100, 1, 30, 60, 9, 70];
        let chain = parts(&block, &sizes, &options).into_iter().reduce(|a, b| a.merge(b).unwrap()).unwrap();
        let mut level = parts(&block, &sizes, &options);
        while level.len() > 1 {
            let mut next = Vec::new();
            let mut pairs = level.into_iter();
            while let Some(left) = pairs.next() {
                next.push(match pairs.next() {
                    Some(right) => left.merge(right).unwrap(),
                    None => left,
                });
            }
            level = next;
        }
        let tree = level.pop().unwrap();
        let right = parts(&block, &sizes, &options).into_iter().rev().reduce(|b, a| a.merge(b).unwrap()).unwrap();
        for merged in [chain, tree, right] {
            assert_eq!(merged.rows_seen(), 270);
            let dictionary = merged.dictionary().unwrap();
            let check = crate::sketch::check_guarantee(&options.kernel, block.rows(), &dictionary, None, 0.5).unwrap();
            assert!(check.bound_holds, "{schedule:?} {check:?}");
            for (i, &number) in dictionary.indices().iter().enumerate() {
                let (atom, row) = (dictionary.atoms().rows().row(i), block.rows().row(number as usize));
                assert_eq!(crate::kernel::squared_distance(atom, row), 0.0);
            }
            let report = merged.report().unwrap();
            // α = (1+2ε)/(1−ε), and 1+ε times the atoms that a single run is allowed.
            assert!((report.theorem.score_factor - 4.0).abs() < 1e-12 && report.atoms < 200);
            let allowed = 3.0 * 1.5 * 60.0 * report.effective_dim;
            assert!((report.theorem.atoms / allowed - 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn either_order_gives_the_same_on_average() {
    let block = oracle::normal_rows(60, 2, 4);
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for seed in 0..150 {
        let part = |add: u64, from, to| {
            let options = SqueakOptions { seed: 2 * seed + add, ..options(Schedule::Blocks { rows: 16 }) };
            squeak_of(&options, block.rows().slice(from, to))
        };
        one.push(part(0, 0, 20).merge(part(1, 20, 60)).unwrap().atoms() as f64);
        other.push(part(1001, 20, 60).merge(part(1000, 0, 20)).unwrap().atoms() as f64);
    }
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let variance = |v: &[f64]| v.iter().map(|x| (x - mean(v)).powi(2)).sum::<f64>() / (v.len() - 1) as f64;
    let error = ((variance(&one) + variance(&other)) / 150.0).sqrt();
    assert!((mean(&one) - mean(&other)).abs() < 4.0 * error, "{} {} {error}", mean(&one), mean(&other));
}

#[test]
fn a_budget_and_a_raised_ridge_survive_merging() {
    let block = oracle::normal_rows(300, 3, 5);
    for schedule in schedules() {
        let mut options = options(schedule);
        (options.leverage_ridge, options.budget) = (0.05, Some(30));
        let mut parts = parts(&block, &[200, 100], &options);
        let (right, left) = (parts.pop().unwrap(), parts.pop().unwrap());
        let ridge = left.leverage_ridge().max(right.leverage_ridge());
        let mut merged = left.merge(right).unwrap();
        assert!(merged.atoms() <= 30 && merged.leverage_ridge() >= ridge && ridge > 0.05);
        // The stream goes on after row 300.
        merged.insert(block.rows().slice(0, 20)).unwrap();
        merged.flush().unwrap();
        assert!(merged.atoms() <= 30 && merged.rows_seen() == 320);
    }
}

#[test]
fn sparse_parts_of_different_width_merge() {
    let narrow = sparse_copy(&oracle::normal_rows(30, 2, 6));
    let wide = sparse_copy(&oracle::normal_rows(30, 3, 7));
    for schedule in schedules() {
        let (a, b) = (squeak_of(&options(schedule), narrow.rows()), squeak_of(&options(schedule), wide.rows()));
        for merged in [a.clone().merge(b.clone()).unwrap(), b.merge(a).unwrap()] {
            let dictionary = merged.dictionary().unwrap();
            assert!(dictionary.atoms().cols() == 3 && dictionary.len() > 10);
        }
        // And within one stream.
        let mut squeak = squeak_of(&options(schedule), narrow.rows());
        squeak.insert(wide.rows()).unwrap();
        assert_eq!(squeak.dictionary().unwrap().atoms().cols(), 3);
    }
}
