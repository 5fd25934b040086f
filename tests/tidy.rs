//! Checks the invariants of the code base: layers, allowed names by folder, file length.
//!
//! `src/lib.rs` describes the layers; they are checked in the source text, without tests.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "tidy/circles.rs"]
mod circles;

#[path = "tidy/glyphs.rs"]
mod glyphs;

#[path = "tidy/layers.rs"]
mod layers;

#[path = "tidy/messages.rs"]
mod messages;

use std::fs;
use std::path::{Path, PathBuf};

#[path = "tidy/words.rs"]
mod words;

const MAX_LINES: usize = 600;

struct Source {
    path: String,
    text: String,
}

impl Source {
    /// The code without test items, comments and doc comments.
    fn code(&self) -> String {
        without_tests(&self.text)
            .into_iter()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("tests.rs") || self.path.ends_with("testkit.rs")
    }

    fn is_in(&self, positions: &[&str]) -> bool {
        positions.iter().any(|position| {
            let file = format!("src/{position}.rs");
            let folder = format!("src/{position}/");
            self.path == file || self.path.starts_with(&folder)
        })
    }
}

/// The lines of a file without the items after `#[cfg(test)]`. Relies on the layout of rustfmt: an item ends with the
/// first line at its indentation that closes it.
fn without_tests(text: &str) -> Vec<&str> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut lines = text.lines();
    let mut saved = Vec::new();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            saved.push(line);
            continue;
        }
        let ends = |next: &str| {
            indent(next) == indent(line)
                && !next.trim_start().starts_with("#[")
                && (next.trim_start().starts_with('}') || next.ends_with([';', ',', '}']))
        };
        let _ = lines.find(|next| ends(next));
    }
    saved
}

/// The top-level modules of this crate that code uses, in paths and in `use crate::{…}`. `host::os` is a layer of its own.
fn modules_named(code: &str) -> Vec<String> {
    names_after(&code.replace("crate::host::os::", "crate::os::"), "crate::")
}

/// The names after a prefix of a path; `prefix{a, b::c}` yields `a` and `b`.
fn names_after(code: &str, prefix: &str) -> Vec<String> {
    let mut named = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        if code[..at].ends_with("::") {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            named.push(first_name(rest));
            continue;
        };
        let mut depth = 0;
        let mut begins = true;
        for (at, ch) in group.char_indices() {
            match ch {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                ch if begins && !ch.is_whitespace() => {
                    named.push(first_name(&group[at..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    named
}

fn first_name(text: &str) -> String {
    text.chars().take_while(|ch| ch.is_alphanumeric() || *ch == '_').collect()
}

fn sources() -> Vec<Source> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for folder in ["src", "tests", "benches"] {
        walk(&root.join(folder), &mut paths);
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| Source {
            text: fs::read_to_string(&path).unwrap(),
            path: path.strip_prefix(root).unwrap().to_string_lossy().into_owned(),
        })
        .collect()
}

/// Fails for each source outside of `homes` whose code contains one of `words`.
fn assert_only_in(code_parts: &[&str], homes: &[&str]) {
    let mut strays = Vec::new();
    for source in sources() {
        if !source.path.starts_with("src/") || source.is_test() || source.is_in(homes) {
            continue;
        }
        let code = source.code();
        strays.extend(
            code_parts
                .iter()
                .filter(|word| code.contains(**word))
                .map(|word| format!("{}: {word}", source.path)),
        );
    }
    assert!(strays.is_empty(), "these belong in {homes:?} only:\n{}", strays.join("\n"));
}

/// Fails for each source of `layer` whose code uses one of the layers in `forbidden`. Tests may use all layers, except
/// those of the core: they show that it needs no other.
fn assert_does_not_use(layer: &str, forbidden: &[&str]) {
    let mut strays = Vec::new();
    for source in sources() {
        let includes_tests = layer == "core";
        if source.is_test() && !includes_tests || !source.is_in(&[layer]) {
            continue;
        }
        let named = modules_named(&if includes_tests { source.text.clone() } else { source.code() });
        strays.extend(
            forbidden
                .iter()
                .filter(|other| named.iter().any(|name| name == *other))
                .map(|other| format!("{}: crate::{other}", source.path)),
        );
    }
    assert!(strays.is_empty(), "{layer} must not use these:\n{}", strays.join("\n"));
}

#[test]
fn the_protocol_is_used_in_acp_only() {
    assert_only_in(
        &["serde_json", "agent_client_protocol_schema"],
        &[
            "acp",
            "host/grants",
            "host/registry",
            "host/snapshots",
            "store",
            "cli/sessions",
            "demo",
            "config/import",
            "config/mcp_file",
        ],
    );
}

#[test]
fn command_lines_are_parsed_in_one_place() {
    assert_only_in(&["tree_sitter"], &["model/policy/rules/shell"]);
}

#[test]
fn toml_is_used_in_config_and_themes_only() {
    assert_only_in(&["toml::", "toml_edit::"], &["config", "ui/theme"]);
}

#[test]
fn the_terminal_is_used_in_ui_and_runtime_only() {
    assert_only_in(&["ratatui::", "crossterm::"], &["ui", "runtime", "config/keymap"]);
}

#[test]
fn tasks_are_used_in_some_layers_only() {
    assert_only_in(
        &["tokio::", ".await", "thread::spawn"],
        &["runtime", "acp", "host", "store", "program", "cli", "main", "demo", "ui/highlight"],
    );
}

#[test]
fn layers_use_only_lower_layers() {
    let above_host = ["config", "core", "acp", "ui", "runtime", "cli", "demo"];
    let assert_below = |layer, others: &[&str]| assert_does_not_use(layer, &[&above_host, others].concat());
    assert_does_not_use("model", &[&above_host, &["program", "os", "host", "store"][..]].concat());
    assert_below("host/os", &["program", "host", "store"]);
    assert_below("program", &["host", "store"]);
    assert_below("host", &["store"]);
    assert_below("store", &[]);
    assert_does_not_use("config", &["core", "acp", "host", "store", "ui", "runtime", "cli", "demo"]);
    assert_does_not_use("acp", &["config", "core", "host", "store", "ui", "runtime", "cli", "demo"]);
    assert_does_not_use("core", &["program", "os", "acp", "host", "store", "ui", "runtime", "cli", "demo"]);
    assert_does_not_use("ui", &["program", "acp", "host", "store", "runtime", "cli", "demo"]);
    assert_does_not_use("demo", &["config", "core", "acp", "host", "store", "ui", "runtime", "cli"]);
    assert_does_not_use("runtime", &["cli", "demo"]);
}

#[test]
fn a_replay_has_no_means_to_carry_out_effects() {
    assert_does_not_use("runtime/replay", &["program", "os", "host", "store", "cli"]);
    for source in sources().iter().filter(|source| source.is_in(&["runtime/replay", "acp/replay"])) {
        let code = source.code();
        for means in ["EffectRunner", "effects::", "agents::", "fs::", "net::", "process::"] {
            assert!(!code.contains(means), "{}: {means}", source.path);
        }
    }
}

#[test]
fn what_differs_by_system_is_in_one_folder() {
    let names = ["os::unix", "os::fd", "signal::unix", "net::unix", "rustix", "libc", "nix::", "cfg(unix)"];
    let strays: Vec<String> = sources()
        .iter()
        .filter(|source| source.path.starts_with("src/") && !source.is_in(&["host/os"]))
        .flat_map(|source| {
            let found = names.iter().filter(|name| source.text.contains(**name));
            found.map(|name| format!("{}: {name}", source.path))
        })
        .collect();
    assert!(strays.is_empty(), "these belong in src/host/os only:\n{}", strays.join("\n"));
}

#[test]
fn the_app_reads_no_clock_and_does_no_io() {
    let code_parts = ["Instant::now", "SystemTime", "std::fs", "std::env", "std::io", "std::process", "mpsc"];
    for source in sources().iter().filter(|source| source.is_in(&["core"]) && !source.is_test()) {
        let code = source.code();
        for word in code_parts {
            assert!(!code.contains(word), "{} uses {word}: the reducer is pure", source.path);
        }
    }
}

#[test]
fn the_environment_is_read_in_few_places() {
    // The variables of a child process are read where it is started; the demo agent is a separate program.
    let homes = [
        "config",
        "program",
        "host/terminals/start",
        "host/login",
        "host/sandbox",
        "acp/transport/stdio",
        "acp/transport/secret",
        "acp/codec/trace",
        "demo",
    ];
    assert_only_in(&["env::var", "env::vars"], &homes);
}

#[test]
fn programs_are_found_and_started_in_one_place() {
    // The URL opener of the system is started there too; the library only lists the candidates.
    let code_parts = ["Command::new(", "CommandBuilder::new(", "which::", "open::that", "open::with"];
    assert_only_in(&code_parts, &["program"]);
}

#[test]
fn files_of_the_opened_folder_are_read_in_one_way() {
    // Only regular files, up to a size, without waiting for a pipe.
    let readers = ["host/regular", "host/fs", "host/os", "host/snapshots/place", "host/snapshots/capture"];
    // These read files of parlor or of the user, named by the user or below the user's own folders.
    let own = [
        "cli",
        "config",
        "demo",
        "host/attachments",
        "host/editor",
        "host/grants",
        "host/registry",
        "store",
        "host/trust",
        "ui/theme/load",
        // Certificates, tokens and the id of one agent's session, whose folder it opens without links.
        "acp/transport/secret",
        "acp/dialects/openoxide/workspace",
        // The output of a program.
        "host/process",
        "host/snapshots/git",
    ];
    assert_only_in(
        &[
            "fs::read(",
            "fs::read_to_string(",
            "File::open(",
            "open_at_once",
            "read_to_end(",
            "read_to_string(",
        ],
        &[&readers[..], &own[..]].concat(),
    );
}

#[test]
fn roots_are_created_only_from_user_input() {
    // The store contains sessions of the user; a session of an agent's list was confirmed.
    assert_only_in(
        &["UserRoot::given"],
        &["cli/start", "store/rows", "core/lifecycle/from_list", "model/root"],
    );
}

#[test]
fn printing_uses_the_printer_only() {
    // The screen has a separate writer; the demo agent writes its protocol to standard output; a sign-in command has the
    // terminal while it runs.
    let homes = ["runtime/print", "runtime/tty", "demo", "host/login/relay"];
    assert_only_in(
        &[
            "io::stdout().lock",
            "io::stdout().write",
            "stdout().flush",
            "print!(",
            "println!(",
            "io::stderr()",
        ],
        &homes,
    );
    let code_parts = ["&mut dyn Write", "impl Write", "writeln!(out,", "write!(out,"];
    for source in sources().iter().filter(|source| source.is_in(&["cli", "main"]) && !source.is_test()) {
        let code = source.code();
        for word in code_parts {
            assert!(!code.contains(word), "{} names {word}: print through `runtime::print`", source.path);
        }
    }
}

#[test]
fn files_of_parlor_are_created_in_one_module() {
    // These write files of the user's project: `host::fs` for an agent, `snapshots` for a restore, and the folder of
    // one agent that requires it. `unpack` writes the programs of agents, below a folder that `os::private` has created.
    let homes = [
        "host/os",
        "host/fs",
        "host/registry/unpack",
        "host/snapshots/place",
        "acp/dialects/openoxide/workspace",
    ];
    assert_only_in(
        &["OpenOptions::new", "File::create", "fs::write(", "create_dir", "NamedTempFile::new", "DirBuilder"],
        &homes,
    );
}

#[test]
fn clocks_are_read_in_some_layers_only() {
    // The app gets the time as a parameter; `ui/terminal` measures the parsing speed.
    let homes = ["runtime", "acp", "host", "store", "demo", "ui/terminal", "cli/sessions"];
    assert_only_in(&["Instant::now", "SystemTime::now"], &homes);
}

#[test]
fn keys_are_used_in_the_keymap_only() {
    // The editing keys of the prompt are those of its text area; terminal input is decoded in one module.
    assert_only_in(&["KeyCode::"], &["config/keymap", "ui/composer", "runtime/keys"]);
}

#[test]
fn colours_are_used_in_the_theme_only() {
    let code_parts =
        ["Color::Rgb", "Color::Red", "Color::Green", "Color::Blue", "Color::Yellow", "Color::Cyan"];
    // Command output has colours from vt100, and the painter encodes all colours. Link and image row numbers are
    // encoded as colours that are not visible.
    assert_only_in(
        &code_parts,
        &["ui/theme", "ui/terminal", "runtime/paint", "ui/text/link", "ui/picture/strip"],
    );
}

#[test]
fn files_are_bounded_and_modules_are_documented() {
    let mut strays = Vec::new();
    for source in sources() {
        let lines = source.text.lines().count();
        if lines > MAX_LINES {
            strays.push(format!("{}: {lines} lines, at most {MAX_LINES}", source.path));
        }
        if !source.text.starts_with("//!") && !source.is_test() {
            strays.push(format!("{}: no module doc", source.path));
        }
        if source.path.ends_with("/mod.rs") {
            strays.push(format!("{}: use foo.rs beside foo/", source.path));
        }
    }
    assert!(strays.is_empty(), "{}", strays.join("\n"));
}

#[test]
fn code_after_test_items_is_checked() {
    let text = "a\n#[cfg(test)]\nmod tests;\nb\nimpl X {\n    #[cfg(test)]\n    #[must_use]\n    fn new(\n        x: u8,\n    ) -> Self {\n        {}\n    }\n    c\n}\n";
    assert_eq!(without_tests(text), ["a", "b", "impl X {", "    c", "}"]);
}

#[test]
fn modules_are_found_in_import_groups() {
    let code = "use crate::{escape, model::{a, b},\n    ui};\nlet x = crate::core::run();";
    assert_eq!(modules_named(code), ["escape", "model", "ui", "core"]);
}

#[test]
fn there_are_no_todo_marks() {
    let marks =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("unimpl", "emented!"), concat!("#[ign", "ore")];
    for source in sources() {
        for mark in marks {
            assert!(!source.text.contains(mark), "{} holds {mark}", source.path);
        }
    }
}

#[test]
fn tests_named_in_the_threat_model_exist() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/security.md")).unwrap();
    let sources = sources();
    // In the tables, code with several underscores is the name of a test.
    let named =
        page.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('`').skip(1).step_by(2));
    let tests: Vec<&str> = named.filter(|name| name.matches('_').count() > 1).collect();
    assert!(tests.len() > 50, "{tests:?}");
    for test in tests {
        let head = format!("fn {test}(");
        assert!(sources.iter().any(|source| source.text.contains(&head)), "test {test} not found");
    }
}
