//! The layers of the core: no folder uses a higher one, also not through re-exports of `core.rs`. Within a layer,
//! circles between modules do not grow.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, first_name, names_after, sources};

/// The layers of the core, from lowest to highest. Each may use those before it; `core.rs` is above all of them.
const CORE_LAYERS: [&str; 4] = ["state", "session", "recording", "lifecycle"];

/// The largest circle of modules that import each other by path, in each folder. A module is a file with its folder. These
/// numbers only go down.
const LARGEST_CIRCLES: [(&str, usize); 6] = [
    ("core/state", 1),
    ("core/session", 5),
    ("core/recording", 1),
    ("core/lifecycle", 12),
    ("ui/dialogs", 1),
    ("ui", 7),
];

/// The re-exports of `core.rs`: the layer of each name, from `pub use layer::path::{names};` and globs over the files.
fn reexports(root: &str, names_in: impl Fn(&str) -> Vec<String>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for statement in root.split(';').filter_map(|text| text.rsplit_once("pub use ")) {
        let Some((path, last)) = statement.1.rsplit_once("::") else { continue };
        let layer = first_name(path);
        if !CORE_LAYERS.contains(&layer.as_str()) {
            continue;
        }
        let names = if last == "*" {
            names_in(path)
        } else {
            let names = last.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        found.extend(names.into_iter().map(|name| (name, layer.clone())));
    }
    found
}

/// The higher layers that a file of the core uses. `path` is relative to `src/core/`.
fn layers_above(path: &str, code: &str, reexported: &[(String, String)]) -> Vec<String> {
    let own = first_name(path);
    let Some(position) = CORE_LAYERS.iter().position(|layer| *layer == own) else { return Vec::new() };
    // `super`, once in the file of a layer and once more for each folder below it, is the core.
    let depth = path.matches('/').count() + 1;
    let mut named = names_after(code, "crate::core::");
    named.extend(names_after(code, &"super::".repeat(depth)));
    let layer_of = |name: &String| {
        let through = reexported.iter().find(|(reexported, _)| reexported == name);
        through.map_or(name, |(_, layer)| layer).clone()
    };
    let mut above: Vec<String> = named.iter().map(layer_of).collect();
    above.retain(|layer| {
        CORE_LAYERS.iter().position(|known| known == layer).is_some_and(|other| other > position)
    });
    above.sort();
    above.dedup();
    above
}

#[test]
fn layers_of_the_core_use_only_lower_layers() {
    let sources = sources();
    let text_of = |path: &str| sources.iter().find(|source| source.path == path).map(Source::code);
    let public_names = |path: &str| {
        let code = text_of(&format!("src/core/{}.rs", path.replace("::", "/"))).unwrap_or_default();
        let items = code.lines().filter_map(|line| line.strip_prefix("pub "));
        let names = items.filter_map(|item| item.split_once(' ')).map(|(_, name)| first_name(name));
        names.collect::<Vec<_>>()
    };
    let reexported = reexports(&text_of("src/core.rs").unwrap(), public_names);
    assert!(reexported.len() > 50, "{reexported:?}");
    let mut strays = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let Some(path) = source.path.strip_prefix("src/core/") else { continue };
        let layer = first_name(path);
        if !CORE_LAYERS.contains(&layer.as_str()) {
            strays.push(format!("{}: belongs to no layer", source.path));
        }
        let above = layers_above(path, &source.code(), &reexported);
        strays.extend(above.into_iter().map(|other| format!("{}: names {other}", source.path)));
    }
    assert!(strays.is_empty(), "these use higher layers:\n{}", strays.join("\n"));
}

#[test]
fn uses_of_higher_layers_are_found() {
    let root = "pub use lifecycle::policy::{Listed, granted};\npub use state::parts::*;\nlifecycle::start(state::Part);";
    let reexported = reexports(root, |_| vec!["Part".to_owned()]);
    let above = |path: &str, code: &str| layers_above(path, code, &reexported);
    assert_eq!(above("state/session.rs", "use crate::core::{Part, lifecycle::call};"), ["lifecycle"]);
    assert_eq!(above("session/tools.rs", "use super::super::lifecycle::turn;"), ["lifecycle"]);
    assert_eq!(above("recording/trim.rs", "let all = crate::core::granted(state);"), ["lifecycle"]);
    assert_eq!(above("session/tools.rs", "use super::lifecycle; // a sibling"), Vec::<String>::new());
}

/// The modules of a layer that each of its modules names by path. `files` are paths below the folder of the layer, with
/// their code.
fn imports(folder: &str, files: &[(String, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let modules: BTreeSet<String> = files.iter().map(|(path, _)| first_name(path)).collect();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, code) in files {
        let own = first_name(path);
        let mut named = names_after(code, &format!("crate::{}::", folder.replace('/', "::")));
        named.extend(names_after(code, &"super::".repeat(path.matches('/').count() + 1)));
        let others = named.into_iter().filter(|name| *name != own && modules.contains(name));
        found.entry(own.clone()).or_default().extend(others);
    }
    found
}

/// The largest set of modules each of which leads to all others.
fn largest_circle(imports: &BTreeMap<String, BTreeSet<String>>) -> Vec<&String> {
    let reached = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&String> = imports[from].iter().collect();
        while let Some(name) = next.pop() {
            if seen.insert(name) {
                next.extend(&imports[name]);
            }
        }
        seen
    };
    let reach: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|name| (name, reached(name))).collect();
    let circle_of = |name: &&String| {
        reach[name].iter().copied().filter(|other| reach[other].contains(name)).collect::<Vec<_>>()
    };
    reach.keys().map(circle_of).max_by_key(Vec::len).unwrap_or_default()
}

#[test]
fn circles_of_modules_do_not_grow() {
    let sources = sources();
    for (folder, max) in LARGEST_CIRCLES {
        let prefix = format!("src/{folder}/");
        let in_layer = sources.iter().filter(|source| !source.is_test()).filter_map(|source| {
            let path = source.path.strip_prefix(&prefix)?;
            Some((path.to_owned(), source.code()))
        });
        let imports = imports(folder, &in_layer.collect::<Vec<_>>());
        let circle = largest_circle(&imports);
        assert!(circle.len() <= max, "{folder}: {} modules import each other: {circle:?}", circle.len());
    }
}

#[test]
fn circles_are_found() {
    let file = |path: &str, code: &str| (path.to_owned(), code.to_owned());
    let files = [
        file("open.rs", "use super::{call, turn};"),
        file("turn.rs", "use super::late;"),
        file("turn/late.rs", "use super::super::conn;"),
        file("conn.rs", "crate::core::lifecycle::open::open(state);"),
        file("call.rs", "use super::LIMIT;"),
        file("close.rs", "use super::conn;"),
    ];
    assert_eq!(largest_circle(&imports("core/lifecycle", &files)), ["conn", "open", "turn"]);
}
