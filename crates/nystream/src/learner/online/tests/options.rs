//! Options: each does something, is checked, and says what it wants.

use super::stream::{cases, outputs, settings};
use crate::learner::online::{Default, LEARNERS, Learner, OptionKind, Targets, find};

#[test]
fn every_option_of_every_learner_changes_something() {
    for (entry, targets) in cases() {
        for option in entry.options {
            // Losses of classes are not for numbers.
            if option.name == "loss" && targets == Targets::Numbers {
                continue;
            }
            let mut before = settings(targets);
            for (name, value) in option.trial.with {
                before = before.with(name, value);
            }
            let after = before.clone().with(option.name, option.trial.value);
            assert_ne!(before, after, "{} {}: the trial is what the run has anyway", entry.name, option.name);
            let (before, after) = (outputs(entry.name, before, false), outputs(entry.name, after, false));
            assert_ne!(before, after, "{} {targets}: {} changes nothing", entry.name, option.name);
        }
    }
}

#[test]
fn kernel_and_budget_change_something() {
    for (entry, targets) in cases() {
        let before = outputs(entry.name, settings(targets), false);
        let mut smaller = settings(targets);
        smaller.budget /= 4;
        assert_ne!(before, outputs(entry.name, smaller, false), "{}", entry.name);
        let mut wider = settings(targets);
        wider.kernel = wider.kernel.with_bandwidth(2.5).unwrap();
        assert_ne!(before, outputs(entry.name, wider, false), "{}", entry.name);
    }
}

#[test]
fn defaults_and_trials_are_within_their_ranges() {
    for entry in LEARNERS {
        assert!(std::ptr::eq(find(entry.name).unwrap(), *entry), "two learners called {}", entry.name);
        assert!(!entry.citation.is_empty() && !entry.cost.is_empty() && !entry.targets.is_empty());
        for option in entry.options {
            assert!(entry.options.iter().filter(|other| other.name == option.name).count() == 1);
            let word = option.name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            assert!(word, "{}: options are words: {}", entry.name, option.name);
            if let (OptionKind::Word(words), Default::Word(word)) = (option.kind, option.default) {
                assert!(words.contains(&word), "{} {}", entry.name, option.name);
            }
        }
    }
    for (entry, targets) in cases() {
        for option in entry.options {
            if let Default::Number(number) = option.default {
                // The default, written out, is the same as nothing.
                let given = settings(targets).with(option.name, number);
                assert_eq!(outputs(entry.name, given, true), outputs(entry.name, settings(targets), true));
            }
        }
    }
}

#[test]
fn values_out_of_range_are_refused_with_the_range() {
    for (entry, targets) in cases() {
        for option in entry.options {
            let bad: &[&str] = match option.kind {
                OptionKind::Positive => &["0", "-1", "NaN", "inf", "much"],
                OptionKind::NonNegative => &["-1", "NaN", "inf", "much"],
                OptionKind::Fraction => &["0", "1", "NaN", "-0.5"],
                OptionKind::Share => &["-0.1", "1.1", "NaN"],
                OptionKind::PositiveOr(_) => &["0", "-1", "NaN", "much"],
                OptionKind::NumberOr(_) => &["NaN", "inf", "much"],
                OptionKind::Count(_) => &["-1", "1.5", "many", ""],
                OptionKind::Word(_) => &["neither", ""],
            };
            for value in bad {
                let message =
                    Learner::new(entry.name, settings(targets).with(option.name, value)).unwrap_err().to_string();
                let all = [entry.name, option.name, *value, &option.kind.to_string()];
                assert!(all.iter().all(|part| message.contains(part)), "{message}");
            }
            if let OptionKind::Count(least @ 1..) = option.kind {
                assert!(Learner::new(entry.name, settings(targets).with(option.name, least - 1)).is_err());
            }
        }
    }
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    let message = |name: &str, option: &str| {
        Learner::new(name, settings(Targets::Classes).with(option, 1)).unwrap_err().to_string()
    };
    assert!(message("kogd", "stepsize").contains("'stepsize'; the nearest is 'step-size'"));
    assert!(message("kodg", "stepsize").contains("'kodg'; the nearest is 'kogd'"));
    for (entry, targets) in cases() {
        let refused = Learner::new(entry.name, settings(targets).with("temperature", 1)).unwrap_err().to_string();
        assert!(refused.contains("'temperature'"), "{refused}");
    }
}

#[test]
fn bad_settings_are_refused() {
    let mut none = settings(Targets::Classes);
    none.budget = 0;
    assert!(Learner::new("kogd", none).unwrap_err().to_string().contains("budget"));
    let refused = Learner::new("streaming-ridge", settings(Targets::Classes)).unwrap_err().to_string();
    assert!(refused.contains("by blocks"), "{refused}");
    let hinge = Learner::new("kogd", settings(Targets::Numbers).with("loss", "hinge")).unwrap_err().to_string();
    assert!(hinge.contains("loss") && hinge.contains("squared"), "{hinge}");
}
