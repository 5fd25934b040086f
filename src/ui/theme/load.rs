//! Loads theme files: TOML to [`Theme`].
//!
//! A file has `variant` (`dark` or `light`), optionally `inherits`, `[palette]` (colours by name) and
//! `[roles]` (styles by role). A role is a colour name for the text, or a table of `fg`, `bg`, `bold`,
//! `italic`, `underline` and `dim`. An inheriting file replaces the colours and roles that it contains;
//! inherited roles use its palette.
//!
//! Loading never fails: each problem is reported with the file and the fix.

use std::collections::BTreeMap;
use std::path::Path;

use ratatui::style::{Color, Modifier, Style};
use toml::{Table, Value};

use super::colour::{self, ColorSupport};
use super::{Role, Theme};
use crate::config::nearest::nearest;

/// Maximum depth of `inherits`; exceeding it indicates a cycle.
const MAX_PARENTS: usize = 8;

const BUILT_IN: &[(&str, &str)] = &[
    ("dark", include_str!("../../../themes/dark.toml")),
    ("light", include_str!("../../../themes/light.toml")),
    ("frost", include_str!("../../../themes/frost.toml")),
    ("dusk", include_str!("../../../themes/dusk.toml")),
    ("ember", include_str!("../../../themes/ember.toml")),
    ("sand", include_str!("../../../themes/sand.toml")),
    ("high-contrast", include_str!("../../../themes/high-contrast.toml")),
    ("high-contrast-light", include_str!("../../../themes/high-contrast-light.toml")),
    ("colour-blind", include_str!("../../../themes/colour-blind.toml")),
    ("colour-blind-light", include_str!("../../../themes/colour-blind-light.toml")),
    ("catppuccin-mocha", include_str!("../../../themes/catppuccin-mocha.toml")),
    ("catppuccin-latte", include_str!("../../../themes/catppuccin-latte.toml")),
    ("gruvbox-dark", include_str!("../../../themes/gruvbox-dark.toml")),
    ("gruvbox-light", include_str!("../../../themes/gruvbox-light.toml")),
    ("tokyo-night", include_str!("../../../themes/tokyo-night.toml")),
    ("tokyo-night-day", include_str!("../../../themes/tokyo-night-day.toml")),
    ("nord", include_str!("../../../themes/nord.toml")),
    ("solarized-dark", include_str!("../../../themes/solarized-dark.toml")),
    ("solarized-light", include_str!("../../../themes/solarized-light.toml")),
    ("ansi", include_str!("../../../themes/ansi.toml")),
];

/// The source texts of the available themes: built-in, and the user's, which override them by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThemeSet {
    /// Name and TOML text, in the order of the picker.
    sources: Vec<(String, String)>,
}

impl Default for ThemeSet {
    fn default() -> Self {
        Self::built_in()
    }
}

impl ThemeSet {
    pub fn built_in() -> Self {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        Self { sources: BUILT_IN.iter().map(own).collect() }
    }

    pub fn add(&mut self, name: &str, text: &str) {
        match self.sources.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => text.clone_into(old),
            None => self.sources.push((name.to_owned(), text.to_owned())),
        }
    }

    /// Adds all `*.toml` files of a folder by their file names. A missing folder is ignored; unreadable files
    /// are reported.
    pub fn add_folder(&mut self, folder: &Path) -> Vec<String> {
        let mut problems = Vec::new();
        let Ok(entries) = std::fs::read_dir(folder) else { return problems };
        let mut paths: Vec<_> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        paths.sort();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "toml")) {
            let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            let text = crate::host::os::private::read(path)
                .and_then(|text| String::from_utf8(text).map_err(std::io::Error::other));
            match text {
                Ok(text) => self.add(name, &text),
                Err(error) => problems.push(format!("cannot read theme {}: {error}", path.display())),
            }
        }
        problems
    }

    /// All names, in the order of the picker.
    pub fn names(&self) -> Vec<String> {
        self.sources.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Whether a theme is for a dark background: its own `variant`, otherwise the inherited one.
    pub fn is_dark(&self, name: &str) -> bool {
        self.is_dark_within(name, MAX_PARENTS)
    }

    fn is_dark_within(&self, name: &str, parents: usize) -> bool {
        let source = self.sources.iter().find(|(known, _)| known == name);
        // The keys before the first table suffice, and take a tenth of the time. They may contain a line with a bracket.
        let head = |text: &str| text.split("\n[").next().and_then(|head| head.parse::<Table>().ok());
        let table = source.and_then(|(_, text)| head(text).or_else(|| text.parse::<Table>().ok()));
        let Some(table) = table else { return true };
        let text = |key: &str| table.get(key).and_then(Value::as_str);
        match (text("variant"), text("inherits")) {
            (Some(variant), _) => variant != "light",
            (None, Some(parent)) if parents > 0 => self.is_dark_within(parent, parents - 1),
            _ => true,
        }
    }

    pub fn default_name(support: ColorSupport) -> &'static str {
        match support {
            ColorSupport::None | ColorSupport::Ansi16 => "ansi",
            ColorSupport::Ansi256 | ColorSupport::TrueColor => "dark",
        }
    }

    /// Loads a theme for a terminal, with a list of problems. An unknown name loads `dark`.
    pub fn load(&self, name: &str, support: ColorSupport) -> (Theme, Vec<String>) {
        if support == ColorSupport::None {
            return (Theme::plain(), Vec::new());
        }
        let mut problems = Vec::new();
        let mut chosen = name;
        if !self.sources.iter().any(|(known, _)| known == name) {
            let names = self.names().join(", ");
            problems.push(format!("unknown theme \"{name}\"; use one of {names}"));
            chosen = "dark";
        }
        let mut draft = Draft::default();
        self.gather(chosen, &mut draft, &mut problems, 0);
        (draft.finish(chosen, support, &mut problems), problems)
    }

    /// Reads a file after its parents.
    fn gather(&self, name: &str, draft: &mut Draft, problems: &mut Vec<String>, depth: usize) {
        if depth > MAX_PARENTS {
            problems.push(format!("theme \"{name}\" inherits from itself; remove one `inherits`"));
            return;
        }
        let Some((_, text)) = self.sources.iter().find(|(known, _)| known == name) else {
            problems.push(format!("unknown parent theme \"{name}\""));
            return;
        };
        let table = match text.parse::<Table>() {
            Ok(table) => table,
            Err(error) => {
                let line = error.span().map_or(1, |span| {
                    text.get(..span.start).map_or(1, |before| before.matches('\n').count() + 1)
                });
                problems.push(format!("{name}.toml, line {line}: {}", error.message()));
                return;
            }
        };
        if let Some(parent) = table.get("inherits").and_then(Value::as_str) {
            self.gather(parent, draft, problems, depth + 1);
        }
        draft.read(name, &table, problems);
    }
}

/// A theme while its files are read: later files override earlier ones.
#[derive(Debug, Default)]
struct Draft {
    is_light: bool,
    palette: BTreeMap<String, Color>,
    roles: BTreeMap<&'static str, RoleSource>,
}

/// The source of a role; its colours are resolved at the end, in the final palette.
#[derive(Debug, Clone, Default)]
struct RoleSource {
    file: String,
    fg: Option<String>,
    bg: Option<String>,
    modifiers: Modifier,
}

impl Draft {
    fn read(&mut self, file: &str, table: &Table, problems: &mut Vec<String>) {
        for (key, value) in table {
            match (key.as_str(), value) {
                ("inherits", Value::String(_)) => {}
                ("variant", Value::String(variant)) if variant == "dark" || variant == "light" => {
                    self.is_light = variant == "light";
                }
                ("palette", Value::Table(palette)) => self.read_palette(file, palette, problems),
                ("roles", Value::Table(roles)) => self.read_roles(file, roles, problems),
                _ => problems.push(format!(
                    "{file}.toml: unknown key `{key}`; use `variant` (\"dark\" or \"light\"), \
                        `inherits`, `[palette]` or `[roles]`"
                )),
            }
        }
    }

    fn read_palette(&mut self, file: &str, palette: &Table, problems: &mut Vec<String>) {
        for (name, value) in palette {
            match value.as_str().and_then(colour::parse) {
                Some(color) => {
                    self.palette.insert(name.clone(), color);
                }
                None => problems.push(format!(
                    "{file}.toml: invalid colour `{name}`; use \"#rrggbb\", an ANSI name such as \
                        \"bright-blue\", or \"default\""
                )),
            }
        }
    }

    fn read_roles(&mut self, file: &str, roles: &Table, problems: &mut Vec<String>) {
        for (name, value) in roles {
            let Some(role) = Role::ALL.iter().find(|role| role.key() == name) else {
                let near = nearest(name, Role::ALL.iter().map(|role| role.key()));
                let near = near.first().unwrap_or(&"text");
                problems.push(format!("{file}.toml: unknown role \"{name}\"; did you mean \"{near}\"?"));
                continue;
            };
            let mut source = RoleSource { file: file.to_owned(), ..RoleSource::default() };
            match value {
                Value::String(color) => source.fg = Some(color.clone()),
                Value::Table(table) => source.read(file, name, table, problems),
                _ => {
                    problems.push(format!(
                        "{file}.toml: \"{name}\" must be a colour or a table; for example {{ fg = \
                            \"#rrggbb\", bold = true }}"
                    ));
                    continue;
                }
            }
            self.roles.insert(role.key(), source);
        }
    }

    fn finish(&self, name: &str, support: ColorSupport, problems: &mut Vec<String>) -> Theme {
        let mut styles: Vec<Style> = Vec::with_capacity(Role::ALL.len());
        for role in Role::ALL {
            let source = self.roles.get(role.key()).cloned().unwrap_or_default();
            let mut find = |color: &Option<String>| {
                let color = color.as_ref()?;
                let found = self.palette.get(color).copied().or_else(|| colour::parse(color));
                if found.is_none() {
                    let file = &source.file;
                    problems.push(format!(
                        "{file}.toml: unknown colour \"{color}\" in \"{}\"; use \"#rrggbb\" or add it to \
                            [palette]",
                        role.key()
                    ));
                }
                found
            };
            let (fg, bg) = (find(&source.fg), find(&source.bg));
            styles.push(Style { fg, bg, ..Style::default() }.add_modifier(source.modifiers));
        }
        let screen = styles.first().and_then(|style| style.bg);
        let mut styles: Vec<Style> =
            styles.into_iter().map(|style| colour::reduce(style, support, screen)).collect();
        let ground = styles.first().and_then(|style| style.bg);
        // With few colours, the selection may have the screen's background and needs a modifier.
        if let Some(marked) = styles.get_mut(Role::Selection as usize)
            && support == ColorSupport::Ansi16
            && marked.bg == ground
        {
            *marked = marked.add_modifier(Modifier::REVERSED);
        }
        if support != ColorSupport::TrueColor {
            tell_changes_apart(&mut styles, ground);
        }
        Theme { name: name.to_owned(), is_dark: !self.is_light, styles }
    }
}

/// With few colours, the backgrounds of added and removed lines may be equal; then their text colours differ.
fn tell_changes_apart(styles: &mut [Style], ground: Option<Color>) {
    let of = |styles: &[Style], role: Role| styles.get(role as usize).copied().unwrap_or_default();
    let (plus, minus) = (of(styles, Role::DiffPlus).bg, of(styles, Role::DiffMinus).bg);
    if plus != minus && plus != ground && minus != ground {
        return;
    }
    let word = Modifier::BOLD | Modifier::UNDERLINED;
    for (role, result, modifier) in [
        (Role::DiffPlus, Role::Success, Modifier::empty()),
        (Role::DiffPlusWord, Role::Success, word),
        (Role::DiffMinus, Role::Error, Modifier::empty()),
        (Role::DiffMinusWord, Role::Error, word),
    ] {
        let fg = of(styles, result).fg;
        if let Some(style) = styles.get_mut(role as usize) {
            *style = Style { fg, ..Style::default() }.add_modifier(modifier);
        }
    }
}

impl RoleSource {
    fn read(&mut self, file: &str, role: &str, table: &Table, problems: &mut Vec<String>) {
        for (key, value) in table {
            let modifier = match key.as_str() {
                "bold" => Modifier::BOLD,
                "italic" => Modifier::ITALIC,
                "underline" => Modifier::UNDERLINED,
                "dim" => Modifier::DIM,
                "reversed" => Modifier::REVERSED,
                _ => Modifier::empty(),
            };
            match (key.as_str(), value) {
                ("fg", Value::String(color)) => self.fg = Some(color.clone()),
                ("bg", Value::String(color)) => self.bg = Some(color.clone()),
                (_, Value::Boolean(is_on)) if !modifier.is_empty() => self.modifiers.set(modifier, *is_on),
                _ => problems.push(format!(
                    "{file}.toml: unknown key `{key}` in \"{role}\"; use fg and bg (colours), bold, \
                        italic, underline, dim or reversed (true or false)"
                )),
            }
        }
    }
}
