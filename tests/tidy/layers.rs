//! The layers of the core: no folder uses a higher one, also not through re-exports of `core.rs`.

use super::{Source, first_name, names_after, sources};

/// The layers of the core, from lowest to highest. Each may use those before it; `core.rs` is above all of them.
const CORE_LAYERS: [&str; 4] = ["state", "session", "recording", "lifecycle"];

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
            let names = last.split(|ch: char| !ch.is_alphanumeric() && ch != '_');
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
