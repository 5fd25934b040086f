//! Colours: parses `#rrggbb`, ANSI names and palette numbers to [`Color`], measures contrast, and reduces
//! colours to 256 or 16. The theme files assign colours to roles.

use ratatui::style::{Color, Style};

/// The number of colours that the terminal supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorSupport {
    /// No colours: modifiers only.
    None,
    /// The 16 ANSI colours, as configured by the user.
    Ansi16,
    /// The 256 colours of xterm.
    Ansi256,
    /// 24 bit.
    #[default]
    TrueColor,
}

impl ColorSupport {
    /// Detects the support from environment variables. `no_color` is whether `NO_COLOR` is set and not empty;
    /// `is_in_screen`, whether the terminal is GNU screen, which inherits `COLORTERM` but misreads 24-bit colours; the
    /// others are `COLORTERM` and `TERM`.
    pub fn detect(no_color: bool, is_in_screen: bool, colorterm: Option<&str>, term: Option<&str>) -> Self {
        let term = term.unwrap_or_default();
        if no_color || term == "dumb" {
            return Self::None;
        }
        if is_in_screen {
            return if term.contains("256color") || colorterm.is_some() {
                Self::Ansi256
            } else {
                Self::Ansi16
            };
        }
        if matches!(colorterm, Some("truecolor" | "24bit")) || term.ends_with("-direct") {
            return Self::TrueColor;
        }
        let is_rich = ["256color", "kitty", "alacritty", "ghostty", "wezterm", "foot"];
        if is_rich.iter().any(|part| term.contains(part)) {
            return Self::Ansi256;
        }
        Self::Ansi16
    }
}

/// Colours with more saturation than this keep a hue if few colours are available.
const TINTED: u8 = 40;

/// Minimum distance of different hues: half of the distance from red to yellow.
const HUE_DISTANCE: u32 = 130 * 130 * 6;

/// Colour names in theme files besides `#rrggbb`, with xterm's default values.
const ANSI: [(&str, Color, [u8; 3]); 16] = [
    ("black", Color::Black, [0, 0, 0]),
    ("red", Color::Red, [205, 0, 0]),
    ("green", Color::Green, [0, 205, 0]),
    ("yellow", Color::Yellow, [205, 205, 0]),
    ("blue", Color::Blue, [0, 0, 238]),
    ("magenta", Color::Magenta, [205, 0, 205]),
    ("cyan", Color::Cyan, [0, 205, 205]),
    ("white", Color::Gray, [229, 229, 229]),
    ("bright-black", Color::DarkGray, [127, 127, 127]),
    ("bright-red", Color::LightRed, [255, 0, 0]),
    ("bright-green", Color::LightGreen, [0, 255, 0]),
    ("bright-yellow", Color::LightYellow, [255, 255, 0]),
    ("bright-blue", Color::LightBlue, [92, 92, 255]),
    ("bright-magenta", Color::LightMagenta, [255, 0, 255]),
    ("bright-cyan", Color::LightCyan, [0, 255, 255]),
    ("bright-white", Color::White, [255, 255, 255]),
];

/// Parses `#rrggbb`, an ANSI name, `default` (the terminal's own) or a palette number from 0 to 255.
pub fn parse(text: &str) -> Option<Color> {
    if let Some(hex) = text.strip_prefix('#') {
        if hex.len() != 6 || !hex.is_ascii() {
            return None;
        }
        let number = u32::from_str_radix(hex, 16).ok()?;
        let [_, r, g, b] = number.to_be_bytes();
        return Some(Color::Rgb(r, g, b));
    }
    if text == "default" {
        return Some(Color::Reset);
    }
    if let Some((_, color, _)) = ANSI.iter().find(|(name, _, _)| *name == text) {
        return Some(*color);
    }
    text.parse::<u8>().ok().map(Color::Indexed)
}

/// The RGB value of a colour, if known: ANSI colours have the default ones, `default` has none.
pub fn rgb(color: Color) -> Option<[u8; 3]> {
    match color {
        Color::Rgb(r, g, b) => Some([r, g, b]),
        Color::Indexed(index @ 16..) => Some(palette_rgb(index)),
        Color::Indexed(index) => ANSI.get(usize::from(index)).map(|entry| entry.2),
        Color::Reset => None,
        named => ANSI.iter().find(|(_, color, _)| *color == named).map(|entry| entry.2),
    }
}

/// The nearest of the 16 ANSI colours with their default values.
pub fn nearest_ansi(tone @ [red, green, blue]: [u8; 3]) -> [u8; 3] {
    rgb(to_16(Color::Rgb(red, green, blue), None)).unwrap_or(tone)
}

/// The colour halfway between two. `None` if one of them is unknown, because the terminal configures it.
pub fn halfway(color: Color, ground: Color) -> Option<Color> {
    let fixed = |color| match color {
        Color::Rgb(..) | Color::Indexed(16..) => rgb(color),
        _ => None,
    };
    let ([r, g, b], [red, green, blue]) = (fixed(color)?, fixed(ground)?);
    let mixed = Color::Rgb(r.midpoint(red), g.midpoint(green), b.midpoint(blue));
    Some(if matches!(color, Color::Rgb(..)) { mixed } else { to_256(mixed) })
}

/// Contrast of two colours, from 1 to 21. Source: WCAG 2.2, relative luminance and contrast ratio.
pub fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
    let (one, two) = (luminance(a), luminance(b));
    (one.max(two) + 0.05) / (one.min(two) + 0.05)
}

/// Reduces the colours of a style to those that the terminal supports. `screen` is the theme's background, on
/// which all text must remain readable with 16 colours.
pub fn reduce(style: Style, support: ColorSupport, screen: Option<Color>) -> Style {
    match support {
        ColorSupport::TrueColor => style,
        ColorSupport::Ansi256 => Style { fg: style.fg.map(to_256), bg: style.bg.map(to_256), ..style },
        ColorSupport::Ansi16 => {
            let floor = screen.map(|color| to_16(color, None));
            // Backgrounds that become the screen's colour are removed; text must be readable on the others.
            let bg = style.bg.map(|color| to_16(color, None));
            let under = bg.or(floor);
            Style { fg: style.fg.map(|color| to_16(color, under)), bg, ..style }
        }
        ColorSupport::None => Style { fg: None, bg: None, ..style },
    }
}

fn luminance(tone: [u8; 3]) -> f64 {
    let [r, g, b] = tone.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

/// Squared distance, weighted by perception.
fn distance(a: [u8; 3], b: [u8; 3]) -> u32 {
    let part = |i: usize, weight: u32| {
        let gap = u32::from(a.get(i).copied().unwrap_or(0).abs_diff(b.get(i).copied().unwrap_or(0)));
        gap * gap * weight
    };
    part(0, 3) + part(1, 6) + part(2, 2)
}

/// The RGB value of an entry of xterm's palette from 16: a cube of 6 levels, then 24 greys.
fn palette_rgb(index: u8) -> [u8; 3] {
    if index >= 232 {
        let grey = 8 + (index - 232) * 10;
        return [grey, grey, grey];
    }
    let position = index.saturating_sub(16);
    [position / 36, position / 6 % 6, position % 6].map(|level| if level == 0 { 0 } else { 55 + level * 40 })
}

fn to_256(color: Color) -> Color {
    let Color::Rgb(r, g, b) = color else { return color };
    let best = (16..=255_u8).min_by_key(|index| distance([r, g, b], palette_rgb(*index)));
    best.map_or(color, Color::Indexed)
}

/// The saturation: distance from grey.
fn tint([r, g, b]: [u8; 3]) -> u8 {
    r.max(g).max(b) - r.min(g).min(b)
}

/// The fully saturated colour of the same hue.
fn pure(tone: [u8; 3]) -> [u8; 3] {
    let min = tone.into_iter().min().unwrap_or(0);
    let span = u16::from(tint(tone)).max(1);
    tone.map(|part| u8::try_from(u16::from(part - min) * 255 / span).unwrap_or(u8::MAX))
}

/// The closest of the 16 colours; with a background, the closest readable one. Text with a hue keeps it: a
/// soft red is closer to grey than to red, but must not become the same grey as a soft green.
fn to_16(color: Color, ground: Option<Color>) -> Color {
    let Some(tone) = (match color {
        Color::Rgb(..) | Color::Indexed(16..) => rgb(color),
        _ => None,
    }) else {
        return color;
    };
    let ground = ground.and_then(rgb);
    let is_readable = |other: [u8; 3]| ground.is_none_or(|ground| contrast(other, ground) >= 3.0);
    let readable = || ANSI.iter().filter(|entry| is_readable(entry.2));
    let of_its_hue = || {
        let apart = |entry: &&(&str, Color, [u8; 3])| distance(pure(tone), pure(entry.2));
        let akin = readable().filter(|entry| tint(entry.2) > 0 && apart(entry) <= HUE_DISTANCE);
        akin.min_by_key(|entry| (apart(entry), distance(tone, entry.2)))
    };
    let is_tinted_text = ground.is_some() && tint(tone) >= TINTED;
    let tinted = if is_tinted_text { of_its_hue() } else { None };
    tinted.or_else(|| readable().min_by_key(|entry| distance(tone, entry.2))).map_or(color, |entry| entry.1)
}
