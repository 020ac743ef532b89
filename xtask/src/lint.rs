//! `cargo xtask lint`: everything that can be judged without running the code.

use std::process::{Command, Stdio};

use crate::layers;
use crate::run::{Outcome, cargo, check, root};
use crate::sources::{Source, code_only, is_test_file, read_all, without_tests};

const CORE: &str = "crates/nystream/src/";
/// Files longer than this without their tests are worth a second look.
const LONG_FILE: usize = 500;
/// Files that may use `unsafe`, each with its reason. Vector instructions go through `pulp`, so none does.
const UNSAFE_ALLOWED: [(&str, &str); 0] = [];

/// Runs every check and reports all failures at the end.
pub fn run() -> Outcome {
    let mut failures = Vec::new();
    let mut step = |outcome: Outcome| failures.extend(outcome.err());
    step(sources());
    step(check(&mut cargo(["fmt", "--all", "--check"])));
    step(check(&mut cargo(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])));
    // The core alone, as a program that embeds it would build it.
    let bare = ["clippy", "-p", "nystream", "--no-default-features", "--locked", "--", "-D", "warnings"];
    step(check(&mut cargo(bare)));
    let mut doc = cargo(["doc", "--workspace", "--all-features", "--no-deps", "--locked"]);
    step(check(doc.env("RUSTDOCFLAGS", "-D warnings")));
    step(licences());
    if failures.is_empty() {
        println!("lint: all is well");
        return Ok(());
    }
    Err(format!("lint found:\n  {}", failures.join("\n  ")))
}

/// The checks of our own: layers, file lengths, unsafe code.
fn sources() -> Outcome {
    let root = root();
    let mut sources = read_all(&root, "crates")?;
    sources.extend(read_all(&root, "xtask")?);
    let mut wrong = layers::violations(CORE, &sources);
    wrong.extend(unsafe_code(&sources));
    for (path, lines) in long_files(&sources) {
        println!("note: {path} has {lines} lines without its tests, more than {LONG_FILE}");
    }
    println!("layers and unsafe code: {} files, {} complaints", sources.len(), wrong.len());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n  ")) }
}

fn long_files(sources: &[Source]) -> impl Iterator<Item = (&str, usize)> {
    let own = sources.iter().filter(|source| !is_test_file(&source.path));
    own.map(|source| (source.path.as_str(), without_tests(&source.text).lines().count()))
        .filter(|&(_, lines)| lines > LONG_FILE)
}

fn unsafe_code(sources: &[Source]) -> Vec<String> {
    let allowed = |path: &str| UNSAFE_ALLOWED.iter().any(|&(file, _)| file == path);
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| !allowed(&source.path)) {
        let code = code_only(&source.text);
        for (i, line) in code.lines().enumerate() {
            if line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe") {
                found.push(format!("{}:{}: unsafe code in a file not allowed to have it", source.path, i + 1));
            }
        }
    }
    found
}

/// Licences, duplicate versions and origins of the dependencies, where cargo-deny is at hand.
fn licences() -> Outcome {
    let mut probe = Command::new("cargo-deny");
    let present = probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !present.is_ok_and(|status| status.success()) {
        println!("skipped: cargo-deny is not installed; get it with `cargo install cargo-deny --locked`");
        return Ok(());
    }
    // It wants the crates of every system, not only those built here. Without a network this fails
    // harmlessly: they may be there already, and if not, cargo-deny says so.
    cargo(["fetch", "--locked", "--quiet"]).stderr(Stdio::null()).status().ok();
    let mut deny = Command::new("cargo-deny");
    deny.current_dir(root()).args(["--offline", "check", "licenses", "bans", "sources"]);
    check(&mut deny)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: String) -> Source {
        Source { path: path.to_owned(), text }
    }

    #[test]
    fn unsafe_is_found_in_code_only() {
        let text = "// unsafe\nlet unsafe_code = \"unsafe\";\nunsafe { f() }\n";
        let found = unsafe_code(&[source("a.rs", text.to_owned())]);
        assert_eq!(found, ["a.rs:3: unsafe code in a file not allowed to have it"]);
    }

    #[test]
    fn length_is_counted_without_tests() {
        let long = "x\n".repeat(501);
        let tested = format!("{}#[cfg(test)]\nmod tests {{\n{long}}}", "x\n".repeat(500));
        let all = [source("a.rs", long.clone()), source("b.rs", tested), source("c/tests.rs", long)];
        assert_eq!(long_files(&all).collect::<Vec<_>>(), [("a.rs", 501)]);
    }
}
