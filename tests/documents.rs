//! Checks the documentation: links, named files and functions, and the stated Rust version.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "cargo lists the dependencies")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// The documents for users and contributors, with their paths.
fn documents() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let in_docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let at_top = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name));
    let paths = in_docs.chain(at_top).filter(|path| path.extension().is_some_and(|name| name == "md"));
    let relative = |path: &Path| path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
    paths.map(|path| (relative(&path), fs::read_to_string(&path).unwrap())).collect()
}

/// The anchor of a heading on GitHub.
fn anchor(heading: &str) -> String {
    let saved = heading.trim().to_lowercase();
    let saved = saved.chars().filter(|ch| ch.is_alphanumeric() || matches!(ch, ' ' | '-'));
    saved.map(|ch| if ch == ' ' { '-' } else { ch }).collect()
}

#[test]
fn links_in_documents_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut broken = Vec::new();
    for (path, text) in documents() {
        let folder = root.join(&path).parent().unwrap().to_owned();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, section) = target.split_once('#').unwrap_or((target, ""));
            if file.starts_with("https://") {
                continue;
            }
            let file = if file.is_empty() { root.join(&path) } else { folder.join(file) };
            let is_there = match fs::read_to_string(&file) {
                Ok(text) if !section.is_empty() => text
                    .lines()
                    .any(|line| line.starts_with('#') && anchor(line.trim_matches('#')) == section),
                _ => file.exists(),
            };
            if !is_there {
                broken.push(format!("{path}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn files_and_functions_named_in_documents_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut missing = Vec::new();
    for (path, text) in documents() {
        for line in text.lines() {
            let code: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
            let files = code.iter().filter(|word| {
                ["src/", "tests/", "benches/", "fuzz/", "themes/"].iter().any(|top| word.starts_with(top))
            });
            let files: Vec<&&str> = files.filter(|word| !word.contains([' ', '*'])).collect();
            let is_made_by_use = |file: &str| file.starts_with("fuzz/corpus");
            let absent = files.iter().filter(|file| !root.join(file).exists() && !is_made_by_use(file));
            missing.extend(absent.map(|file| format!("{path}: {file}")));
            // Steps of the walkthroughs: `| 1 | file | function | … |`.
            let is_step =
                line.strip_prefix("| ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            let [file, function, ..] = code.as_slice() else { continue };
            let name = function.rsplit("::").next().unwrap_or_default();
            let source = fs::read_to_string(root.join(file)).unwrap_or_default();
            if is_step && !source.contains(&format!("fn {name}(")) && !source.contains(&format!("fn {name}<"))
            {
                missing.push(format!("{path}: {file}: {function}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn dependencies_support_the_stated_rust_version() {
    fn cargo(args: &[&str]) -> String {
        let output = Command::new(env!("CARGO")).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
    fn number(version: &str) -> Vec<u32> {
        version.split('.').chain(["0"; 2]).take(3).map(|part| part.parse().unwrap()).collect()
    }
    let about = cargo(&["-vV"]);
    let host = about.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let metadata = cargo(&[
        "metadata",
        "--format-version=1",
        "--locked",
        "--offline",
        "--filter-platform",
        host,
        "--manifest-path",
        manifest,
    ]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100);
    let stated = env!("CARGO_PKG_RUST_VERSION");
    let newer = packages.iter().filter_map(|package| {
        let needed = package["rust_version"].as_str()?;
        let name = package["name"].as_str()?;
        (number(needed) > number(stated)).then(|| format!("{name} needs Rust {needed}"))
    });
    let newer: Vec<String> = newer.collect();
    assert!(newer.is_empty(), "Cargo.toml states Rust {stated}:\n{}", newer.join("\n"));
    for name in ["README.md", "CONTRIBUTING.md"] {
        let (_, text) = documents().into_iter().find(|(path, _)| path == name).unwrap();
        assert!(text.contains(&format!(" {stated} or newer")), "{name} states another Rust version");
    }
}
