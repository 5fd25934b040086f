//! Files that use each other in a circle have to be read together, so circles stay small and within one feature.
//!
//! A file uses the one that defines a name, however the name was imported.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, first_name, sources};

/// Largest circle that includes the file of its folder, and largest one of other files in a folder.
const LIMITS: (usize, usize) = (12, 6);

/// Circles that are larger, by the folder that contains them. These numbers only go down.
const LARGER: [(&str, usize); 1] = [("core/lifecycle", 15)];

type Path = Vec<String>;

/// A file by its module path, such as `core/state`.
#[derive(Default)]
struct File {
    defined: BTreeSet<String>,
    /// What it makes available under a name of its own; `*` for all names of a module.
    exported: Vec<(String, Path)>,
    used: Vec<Path>,
}

fn read(code: &str) -> File {
    let mut file = File::default();
    let mut rest = String::new();
    // The path of a visibility is no use of it.
    let code = code.split("pub(in ").enumerate().map(|(index, part)| match part.split_once(')') {
        Some((_, after)) if index > 0 => format!("pub{after}"),
        _ => part.to_owned(),
    });
    let code = code.collect::<String>();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let is_public = line.trim_start().starts_with("pub");
        let after = line.trim_start().split_once("use ").filter(|(before, _)| {
            before.is_empty() || before.starts_with("pub") && !before.contains([';', '{', '='])
        });
        let Some((_, tree)) = after else {
            let names = ["struct", "enum", "fn", "trait", "type", "const", "static"];
            let words: Vec<&str> = line.split_whitespace().collect();
            let defined = words.windows(2).filter(|pair| names.contains(&pair[0]));
            file.defined.extend(defined.map(|pair| first_name(pair[1])));
            rest.push_str(line);
            rest.push('\n');
            continue;
        };
        let mut tree = tree.to_owned();
        while !tree.contains(';') {
            tree.push_str(lines.next().unwrap_or(";"));
        }
        for (path, name) in leaves(tree.trim_end_matches(';')) {
            if is_public {
                file.exported.push((name, path.clone()));
            }
            file.used.push(path);
        }
    }
    let is_path = |ch: char| ch.is_alphanumeric() || ch == '_' || ch == ':';
    let words = rest.split(|ch: char| !is_path(ch)).filter(|word| word.contains("::"));
    let lower = words.filter(|word| word.starts_with(|ch: char| ch.is_lowercase()));
    file.used.extend(lower.map(|word| word.split("::").map(str::to_owned).collect::<Path>()));
    file
}

/// The paths of a use tree, each with the name under which it is imported.
fn leaves(tree: &str) -> Vec<(Path, String)> {
    let tree = tree.trim();
    let Some((prefix, group)) = tree.split_once('{') else {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, tree));
        let path: Path = path.trim().split("::").map(str::to_owned).collect();
        let name = name.trim().rsplit("::").next().unwrap_or_default().to_owned();
        return if tree.is_empty() { Vec::new() } else { vec![(path, name)] };
    };
    let group = group.rsplit_once('}').map_or(group, |(inner, _)| inner);
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, ch) in group.char_indices() {
        match ch {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[start..]);
    let with_prefix = parts.into_iter().flat_map(|part| leaves(part.trim())).map(|(path, name)| {
        let prefix = prefix.trim().trim_end_matches("::");
        let path =
            prefix.split("::").filter(|part| !part.is_empty()).map(str::to_owned).chain(path).collect();
        (path, name)
    });
    with_prefix.collect()
}

struct Files(BTreeMap<String, File>);

impl Files {
    fn new(sources: impl IntoIterator<Item = (String, String)>) -> Self {
        let module = |path: String| if path == "lib" || path == "main" { String::new() } else { path };
        Self(sources.into_iter().map(|(path, code)| (module(path), read(&code))).collect())
    }

    /// The module that a path leads to from another one, and the rest of the path.
    fn resolve<'p>(&self, path: &'p [String], from: &str) -> Option<(String, &'p [String])> {
        let mut module: Vec<&str> = from.split('/').filter(|part| !part.is_empty()).collect();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                module.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    module.pop();
                    rest = &rest[1..];
                }
            }
            child => {
                let child = module.iter().chain([&child]).copied().collect::<Vec<_>>().join("/");
                self.0.get(&child)?;
            }
        }
        while let Some((next, after)) = rest.split_first() {
            let longer = module.iter().copied().chain([next.as_str()]).collect::<Vec<_>>().join("/");
            if !self.0.contains_key(&longer) {
                break;
            }
            module.push(next);
            rest = after;
        }
        Some((module.join("/"), rest))
    }

    /// The file that defines a name of a module.
    fn definer(&self, module: &str, name: &str, depth: usize) -> Option<String> {
        let file = self.0.get(module)?;
        if depth > 8 || file.defined.contains(name) {
            return file.defined.contains(name).then(|| module.to_owned());
        }
        let sources = file.exported.iter().filter(|(exported, _)| exported == name || exported == "*");
        let mut found = sources.filter_map(|(exported, path)| {
            let (target, rest) = self.resolve(path, module)?;
            let wanted = if exported == "*" { Some(name) } else { rest.first().map(String::as_str) };
            wanted.map_or(Some(target.clone()), |wanted| self.definer(&target, wanted, depth + 1))
        });
        found.next()
    }

    fn uses(&self) -> BTreeMap<&str, BTreeSet<String>> {
        let used_by = |module: &str, file: &File| {
            let targets = file.used.iter().filter_map(|path| {
                let (target, rest) = self.resolve(path, module)?;
                let name = rest.first().filter(|name| *name != "*");
                let definer = name.and_then(|name| self.definer(&target, name, 0));
                Some(definer.unwrap_or(target)).filter(|target| target != module)
            });
            targets.filter(|target| self.0.contains_key(target)).collect()
        };
        self.0.iter().map(|(module, file)| (module.as_str(), used_by(module, file))).collect()
    }

    /// The sets of files each of which leads to all others.
    fn circles(&self) -> Vec<BTreeSet<String>> {
        let uses = self.uses();
        let reached = |from: &str| {
            let mut seen = BTreeSet::new();
            let mut next = vec![from];
            while let Some(name) = next.pop() {
                next.extend(
                    uses[name].iter().filter(|other| seen.insert((*other).clone())).map(String::as_str),
                );
            }
            seen
        };
        let reach: BTreeMap<&str, BTreeSet<String>> =
            uses.keys().map(|name| (*name, reached(name))).collect();
        let circle_of = |name: &&str| {
            let others = reach[name].iter().filter(|other| reach[other.as_str()].contains(*name));
            others.cloned().collect::<BTreeSet<String>>()
        };
        let circles: BTreeSet<_> = reach.keys().map(circle_of).filter(|circle| circle.len() > 1).collect();
        circles.into_iter().collect()
    }
}

/// The innermost folder that contains all files, or is the folder of one of them.
fn folder(circle: &BTreeSet<String>) -> String {
    let mut common = circle.first().unwrap().clone();
    while !circle.iter().all(|file| *file == common || file.starts_with(&format!("{common}/"))) {
        common = common.rsplit_once('/').map_or(String::new(), |(parent, _)| parent.to_owned());
        assert!(!common.is_empty(), "these use each other across features: {circle:?}");
    }
    common
}

#[test]
fn circles_of_files_are_small() {
    let sources = sources();
    let code = sources.iter().filter(|source| !source.is_test()).filter_map(|source: &Source| {
        let path = source.path.strip_prefix("src/")?.strip_suffix(".rs")?;
        Some((path.to_owned(), source.code()))
    });
    let circles = Files::new(code).circles();
    assert!(circles.len() > 10, "some files belong together: {circles:?}");
    for circle in circles {
        let folder = folder(&circle);
        let max = if circle.contains(&folder) { LIMITS.0 } else { LIMITS.1 };
        let larger = LARGER.iter().find(|(place, _)| *place == folder).map(|(_, max)| *max);
        assert!(circle.len() <= larger.unwrap_or(max), "{folder}: {} files: {circle:?}", circle.len());
    }
}

#[test]
fn circles_are_found_through_reexports() {
    let file = |path: &str, code: &str| (path.to_owned(), code.to_owned());
    let files = Files::new([
        file("lib", "mod a;\nmod b;"),
        file("a", "mod part;\nmod other;\npub use part::{Part, part_of};"),
        file("a/part", "use crate::b::{self, Text as Line};\npub struct Part;\npub fn part_of() {}"),
        file("a/other", "use super::Part;"),
        file("b", "pub struct Text;\nfn f() { crate::a::part_of(); }"),
    ]);
    let names = |circle: &[&str]| circle.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    assert_eq!(files.circles(), [names(&["a/part", "b"])]);
}
