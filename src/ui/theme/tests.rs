use super::*;
use crate::ui::theme::colour::{contrast, rgb};

fn load(name: &str, support: ColorSupport) -> Theme {
    let (theme, problems) = ThemeSet::built_in().load(name, support);
    assert_eq!(problems, Vec::<String>::new(), "{name}");
    theme
}

/// Roles of text, with the roles that may be its background.
fn grounds(role: Role) -> &'static [Role] {
    match role {
        Role::Rule | Role::TableBorder | Role::DialogBorder | Role::ScrollTrack | Role::ScrollThumb => &[],
        Role::SyntaxComment
        | Role::SyntaxKeyword
        | Role::SyntaxString
        | Role::SyntaxConstant
        | Role::SyntaxType
        | Role::SyntaxFunction
        | Role::SyntaxVariable
        | Role::SyntaxPunctuation
        | Role::SyntaxAttribute => {
            &[Role::Text, Role::Dialog, Role::CodeBlock, Role::DiffPlus, Role::DiffMinus]
        }
        Role::DiffGutter => &[Role::Text, Role::Dialog, Role::DiffPlus, Role::DiffMinus],
        Role::TextDim | Role::Accent | Role::Match | Role::Success | Role::Error | Role::Warning => {
            &[Role::Text, Role::Dialog, Role::CodeBlock, Role::User, Role::ComposerSurface]
        }
        Role::Composer | Role::Placeholder => &[Role::ComposerSurface],
        Role::TextStrong | Role::Link | Role::UserBar | Role::RawItem => {
            &[Role::Text, Role::Dialog, Role::User]
        }
        _ => &[Role::Text, Role::Dialog],
    }
}

#[test]
fn theme_files_define_every_role() {
    for name in ThemeSet::built_in().names() {
        let theme = load(&name, ColorSupport::TrueColor);
        for role in Role::ALL {
            assert_ne!(theme.style(*role), Style::default(), "{name} does not define {}", role.key());
        }
    }
}

#[test]
fn every_file_in_the_themes_folder_is_built_in() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("themes");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    let mut names = ThemeSet::built_in().names();
    names.sort();
    assert_eq!(files, names);
}

#[test]
fn text_has_enough_contrast_on_every_background() {
    for name in ThemeSet::built_in().names() {
        for support in [ColorSupport::TrueColor, ColorSupport::Ansi256] {
            let theme = load(&name, support);
            let min = match (name.as_str(), support) {
                ("high-contrast" | "high-contrast-light", _) => 7.0,
                (_, ColorSupport::Ansi256) => 4.0,
                _ => 4.5,
            };
            for role in Role::ALL {
                let style = theme.style(*role);
                let Some(fg) = style.fg.and_then(rgb) else { continue };
                let own = style.bg.map(|bg| vec![(*role, bg)]);
                let under = own.unwrap_or_else(|| {
                    grounds(*role)
                        .iter()
                        .filter_map(|ground| Some((*ground, theme.style(*ground).bg?)))
                        .collect()
                });
                for (ground, bg) in under {
                    let Some(bg) = rgb(bg) else { continue };
                    let ratio = contrast(fg, bg);
                    assert!(
                        ratio >= min,
                        "{name} {support:?}: {} on {} is {ratio:.2}",
                        role.key(),
                        ground.key()
                    );
                }
            }
        }
    }
}

/// A colour as seen with a colour vision deficiency. Source: Machado, Oliveira and Fernandes 2009, severity
/// 1.
fn seen_without(matrix: [[f64; 3]; 3], tone: [u8; 3]) -> [f64; 3] {
    let linear = tone.map(|part| (f64::from(part) / 255.0).powf(2.2));
    matrix.map(|row| {
        let light: f64 = row.iter().zip(linear).map(|(weight, part)| weight * part).sum();
        255.0 * light.clamp(0.0, 1.0).powf(1.0 / 2.2)
    })
}

#[test]
fn colour_blind_themes_distinguish_success_and_error() {
    let protan = [
        [0.152_286, 1.052_583, -0.204_868],
        [0.114_503, 0.786_281, 0.099_216],
        [-0.003_882, -0.048_116, 1.051_998],
    ];
    let deutan = [
        [0.367_322, 0.860_646, -0.227_968],
        [0.280_085, 0.672_501, 0.047_413],
        [-0.011_820, 0.042_940, 0.968_881],
    ];
    let tritan = [
        [1.255_528, -0.076_749, -0.178_779],
        [-0.078_411, 0.930_809, 0.147_602],
        [0.004_733, 0.691_367, 0.303_900],
    ];
    let apart = |one: Option<Color>, other: Option<Color>| {
        let (one, other) = (one.and_then(rgb).unwrap(), other.and_then(rgb).unwrap());
        [protan, deutan, tritan].into_iter().fold(f64::MAX, |min, matrix| {
            let (a, b) = (seen_without(matrix, one), seen_without(matrix, other));
            min.min(a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt())
        })
    };
    for name in ["colour-blind", "colour-blind-light"] {
        let theme = load(name, ColorSupport::TrueColor);
        let style = |role| theme.style(role);
        let results = apart(style(Role::Success).fg, style(Role::Error).fg);
        let words = apart(style(Role::DiffPlusWord).bg, style(Role::DiffMinusWord).bg);
        let lines = apart(style(Role::DiffPlus).bg, style(Role::DiffMinus).bg);
        assert!(results > 60.0 && words > 45.0 && lines > 20.0, "{name}: {results} {words} {lines}");
    }
}

#[test]
fn text_never_has_its_background_colour() {
    for name in ThemeSet::built_in().names() {
        for support in [ColorSupport::TrueColor, ColorSupport::Ansi256, ColorSupport::Ansi16] {
            let theme = load(&name, support);
            for role in Role::ALL {
                let style = theme.style(*role);
                let ground = style.bg.unwrap_or(theme.screen_bg());
                let fg = style.fg.unwrap_or(theme.style(Role::Text).fg.unwrap_or(Color::Reset));
                let is_default = fg == Color::Reset && ground == Color::Reset;
                assert!(is_default || fg != ground, "{name} {support:?}: {}", role.key());
            }
        }
    }
}

#[test]
fn selection_is_visible_in_every_theme_and_terminal() {
    for name in ThemeSet::built_in().names() {
        for support in [ColorSupport::TrueColor, ColorSupport::Ansi256, ColorSupport::Ansi16] {
            let theme = load(&name, support);
            let marked = theme.style(Role::Selection);
            let is_other = marked.bg.is_some_and(|bg| bg != theme.screen_bg() && bg != theme.modal_bg());
            assert!(is_other || marked.add_modifier.contains(Modifier::REVERSED), "{name} {support:?}");
        }
    }
}

#[test]
fn prompts_have_a_background_of_their_own() {
    for name in ThemeSet::built_in().names() {
        let theme = load(&name, ColorSupport::TrueColor);
        let user = theme.style(Role::User);
        let is_other = user.bg.is_some_and(|bg| bg != theme.screen_bg());
        // The palette of such a terminal has no faint colour that is safe.
        assert!(is_other || name == "ansi", "{name}");
        assert!(is_other || user.add_modifier.contains(Modifier::BOLD), "{name}");
    }
}

#[test]
fn added_and_removed_lines_differ_with_few_colours() {
    for name in ThemeSet::built_in().names() {
        for support in [ColorSupport::TrueColor, ColorSupport::Ansi256, ColorSupport::Ansi16] {
            let theme = load(&name, support);
            let screen = theme.screen_bg();
            let looks = |role: Role| {
                let style = theme.style(role);
                (style.fg, style.bg.filter(|bg| *bg != screen), style.add_modifier)
            };
            let (plus, minus) = (looks(Role::DiffPlus), looks(Role::DiffMinus));
            let by_ground = plus.1.is_some() && minus.1.is_some() && plus.1 != minus.1;
            assert!(by_ground || plus.0 != minus.0, "{name} {support:?}: {plus:?} {minus:?}");
            assert_ne!(plus, looks(Role::DiffPlusWord), "{name} {support:?}");
            assert_ne!(minus, looks(Role::DiffMinusWord), "{name} {support:?}");
        }
    }
}

#[test]
fn sixteen_colour_terminals_get_only_those_colours() {
    for name in ThemeSet::built_in().names() {
        let theme = load(&name, ColorSupport::Ansi16);
        for role in Role::ALL {
            let style = theme.style(*role);
            for color in [style.fg, style.bg].into_iter().flatten() {
                assert!(
                    !matches!(color, Color::Rgb(..) | Color::Indexed(_)),
                    "{name}: {} {color}",
                    role.key()
                );
            }
        }
    }
}

#[test]
fn colourless_themes_use_only_modifiers() {
    let (theme, problems) = ThemeSet::built_in().load("light", ColorSupport::None);
    assert!(problems.is_empty());
    assert!(Role::ALL.iter().all(|role| {
        let style = theme.style(*role);
        style.fg.is_none() && style.bg.is_none()
    }));
    assert_eq!(theme.style(Role::Selection).add_modifier, Modifier::REVERSED);
    assert_eq!(theme.style(Role::Error).add_modifier, Modifier::BOLD);
}

#[test]
fn unknown_roles_are_reported_with_a_suggestion() {
    let mut set = ThemeSet::built_in();
    set.add("mine", "inherits = \"dark\"\n[roles]\n\"diff.pluss\" = \"#ffffff\"\n\"accent\" = \"ink\"");
    let (theme, problems) = set.load("mine", ColorSupport::TrueColor);
    assert_eq!(problems, ["mine.toml: unknown role \"diff.pluss\"; did you mean \"diff.plus\"?"]);
    assert_eq!(theme.style(Role::Accent).fg, load("dark", ColorSupport::TrueColor).style(Role::Text).fg);
}

#[test]
fn inherited_roles_use_the_palette_of_the_child() {
    let mut set = ThemeSet::built_in();
    set.add("mine", "inherits = \"dark\"\nvariant = \"light\"\n[palette]\nink = \"#010203\"");
    let (theme, problems) = set.load("mine", ColorSupport::TrueColor);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(theme.style(Role::Text).fg, Some(Color::Rgb(1, 2, 3)));
    assert!(!theme.is_dark);
    set.add("child", "inherits = \"mine\"");
    set.add("late", "names = [\n[\"a\"],\n]\nvariant = \"light\"");
    for name in set.names() {
        assert_eq!(set.is_dark(&name), set.load(&name, ColorSupport::TrueColor).0.is_dark, "{name}");
    }
}

#[test]
fn theme_problems_are_reported_in_one_sentence_each() {
    let mut set = ThemeSet::built_in();
    set.add("ring", "inherits = \"ring\"");
    set.add("broken", "[roles]\n\"text\" = {");
    set.add("odd", "shade = 1\n[palette]\nink = \"#12\"\n[roles]\n\"text\" = 3\n\"accent\" = { blink = true }\n\"error\" = \"nowhere\"");
    let problems = |name: &str| set.load(name, ColorSupport::TrueColor).1;
    assert!(problems("ring").iter().any(|text| text.contains("inherits from itself")));
    assert!(problems("broken")[0].starts_with("broken.toml, line 2: "), "{:?}", problems("broken"));
    assert_eq!(problems("odd").len(), 5, "{:?}", problems("odd"));
    assert!(problems("none")[0].starts_with("unknown theme \"none\"; use one of dark, light"));
    assert_eq!(set.load("none", ColorSupport::TrueColor).0.name, "dark");
}

#[test]
fn colour_support_is_detected_by_variables() {
    use ColorSupport as C;
    assert_eq!(C::detect(true, false, Some("truecolor"), Some("xterm")), C::None);
    assert_eq!(C::detect(false, false, Some("truecolor"), Some("xterm")), C::TrueColor);
    assert_eq!(C::detect(false, false, None, Some("xterm-256color")), C::Ansi256);
    assert_eq!(C::detect(false, false, None, Some("linux")), C::Ansi16);
    assert_eq!(C::detect(false, false, None, Some("dumb")), C::None);
    assert_eq!(C::detect(false, false, None, None), C::Ansi16);
    assert_eq!(C::detect(false, true, Some("truecolor"), Some("screen")), C::Ansi256);
    assert_eq!(C::detect(false, true, None, Some("screen")), C::Ansi16);
}
