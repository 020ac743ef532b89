//! Options of learners on the command line, made from the table of learners.

use std::collections::BTreeMap;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use nystream::learner::online::{Default, LEARNERS, OptionSpec};

/// Every option of every learner, by its own name; those that were given.
#[derive(Debug, Clone)]
pub struct LearnerOptions {
    pub given: BTreeMap<String, String>,
}

/// Options by name, each with the learners that have it.
fn options() -> BTreeMap<&'static str, Vec<(&'static str, &'static OptionSpec)>> {
    let mut all: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for entry in LEARNERS {
        for option in entry.options {
            all.entry(option.name).or_default().push((entry.name, option));
        }
    }
    all
}

/// What an option is, for which learners, and its defaults.
fn help(users: &[(&str, &OptionSpec)]) -> String {
    let mut text = String::new();
    let mut left = users.to_vec();
    while let Some(&(_, first)) = left.first() {
        // Learners for which it means the same.
        let same = |option: &OptionSpec| option.meaning == first.meaning && option.default == first.default;
        let names: Vec<&str> = left.iter().filter(|(_, option)| same(option)).map(|(name, _)| *name).collect();
        left.retain(|(_, option)| !same(option));
        if !text.is_empty() {
            text += "; ";
        }
        let default = match first.default {
            Default::Number(number) => number.to_string(),
            Default::Word(word) | Default::Derived(word) => word.to_owned(),
        };
        text += &format!("{}: {} (default: {default})", names.join(", "), first.meaning);
    }
    text
}

impl Args for LearnerOptions {
    fn augment_args(command: Command) -> Command {
        options().into_iter().fold(command.next_help_heading("Options of learners"), |command, (name, users)| {
            let argument = Arg::new(name).long(name).value_name("X").allow_hyphen_values(true).help(help(&users));
            command.arg(argument)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LearnerOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let value = |name: &str| matches.get_one::<String>(name).cloned();
        let given =
            options().into_keys().filter_map(|name| value(name).map(|value| (name.to_owned(), value))).collect();
        Ok(Self { given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
