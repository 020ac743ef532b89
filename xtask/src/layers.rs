//! The layer check: data flows one way, and a module of the core knows only what stands to its left.

use crate::sources::{Source, code_only, is_test_file, without_tests};

/// The core's flow, left to right.
const FLOW: [&str; 8] = ["source", "preprocess", "kernel", "sketch", "model", "solver", "fit", "learner"];
/// What every module may use. They use only each other.
const SHARED: [&str; 5] = ["error", "linalg", "persist", "random", "rows"];

/// What the core's module may use besides itself and the shared modules; `None` for an unknown module.
fn allowed(module: &str) -> Option<Vec<&'static str>> {
    if SHARED.contains(&module) {
        return Some(Vec::new());
    }
    FLOW.iter().position(|&m| m == module).map(|place| FLOW[..place].to_vec())
}

/// What is wrong with the core's imports, one line each. `folder` is the core's `src/`.
pub fn violations(folder: &str, sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| !is_test_file(&source.path)) {
        let Some(inside) = source.path.strip_prefix(folder) else { continue };
        let module = inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        let Some(allowed) = allowed(module) else {
            found.push(format!("{}: module '{module}' has no place in xtask/src/layers.rs", source.path));
            continue;
        };
        for (line, used) in uses(&source.text) {
            let fine = used == module || SHARED.contains(&used.as_str()) || allowed.contains(&used.as_str());
            // `crate::Error`, `crate::Result`: the root's re-exports of the shared modules.
            if !fine && used.starts_with(char::is_lowercase) {
                found.push(format!("{}:{line}: '{module}' may not use '{used}'", source.path));
            }
        }
    }
    found
}

/// The first segments of every `crate::…` path in the code, with their lines.
fn uses(text: &str) -> Vec<(usize, String)> {
    let code = code_only(without_tests(text));
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        // `$crate::` and `other_crate::` are not paths of ours.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        let rest = code[at + "crate::".len()..].trim_start();
        match rest.strip_prefix('{') {
            Some(group) => found.extend(group_heads(group).into_iter().map(|name| (line, name))),
            None => found.push((line, head(rest))),
        }
    }
    found
}

/// The first segments inside `{…}`, whose opening brace is already gone.
fn group_heads(group: &str) -> Vec<String> {
    let (mut depth, mut heads, mut start) = (1, Vec::new(), 0);
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            heads.push(head(group[start..i].trim_start()));
            start = i + 1;
        }
        if depth == 0 {
            break;
        }
    }
    heads.retain(|name| !name.is_empty());
    heads
}

fn head(path: &str) -> String {
    path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str) -> Vec<String> {
        violations("src/", &[Source { path: format!("src/{path}"), text: text.to_owned() }])
    }

    #[test]
    fn looking_left_is_fine() {
        assert!(check("kernel/mod.rs", "use crate::rows::Row;\nuse crate::source::Schema;").is_empty());
        assert!(check("sketch/a.rs", "use crate::kernel::Kernel;\nuse crate::{Error, Result};").is_empty());
        assert!(check("solver/a.rs", "fn f() -> crate::model::Model {}").is_empty());
        assert!(check("rows.rs", "use crate::error::Result;\nuse crate::rows::Row;").is_empty());
        assert!(check("lib.rs", "pub use crate::model::Model;").is_empty());
    }

    #[test]
    fn looking_right_is_reported_with_its_line() {
        assert_eq!(
            check("source/csv.rs", "\nuse crate::kernel::Kernel;"),
            ["src/source/csv.rs:2: 'source' may not use 'kernel'"]
        );
        assert_eq!(check("kernel/mod.rs", "fn f(x: crate::sketch::Dictionary) {}").len(), 1);
        assert_eq!(check("persist/a.rs", "use crate::rows::Row; use crate::model::M;").len(), 1);
    }

    #[test]
    fn groups_are_taken_apart() {
        let text = "use crate::{\n    error::{Error, Result},\n    model::Model,\n    solver,\n};";
        assert_eq!(check("kernel/mod.rs", text).len(), 2);
    }

    #[test]
    fn the_model_knows_neither_solver_nor_fit() {
        assert!(check("model/a.rs", "use crate::kernel::Kernel; use crate::preprocess::Scaling;").is_empty());
        assert_eq!(check("model/a.rs", "use crate::solver::Fit;").len(), 1);
        assert_eq!(check("model/a.rs", "use crate::fit::two_pass;").len(), 1);
    }

    #[test]
    fn comments_strings_tests_and_other_crates_do_not_count() {
        assert!(
            check("source/a.rs", "//! [`crate::model`]\n/* crate::model */ let s = \"crate::model::M\";").is_empty()
        );
        assert!(check("source/a.rs", "x;\n#[cfg(test)]\nmod tests {\n use crate::model::M;\n}").is_empty());
        assert!(check("source/tests.rs", "use crate::model::M;").is_empty());
        assert!(check("source/a.rs", "use other_crate::model::M;").is_empty());
    }

    #[test]
    fn a_new_module_must_be_given_a_place() {
        assert_eq!(check("helpers.rs", "").len(), 1);
    }
}
