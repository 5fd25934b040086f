//! Selects the graphics protocol: the user's setting, otherwise by the responses of the terminal.
//!
//! Sources: kitty graphics protocol (query, Unicode placeholders); xterm's control sequences (primary device
//! attributes, XTVERSION, window reports); iTerm2's inline images.

use crate::ui::picture::Grid;
use crate::ui::theme::ColorSupport;

/// The cell size if it is unknown. Terminals that are sent pixels have reported theirs.
const USUAL_CELL: (u16, u16) = (10, 20);

/// The graphics setting of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GraphicsSetting {
    /// Whatever the terminal supports.
    #[default]
    Auto,
    Kitty,
    Iterm2,
    Sixel,
    Blocks,
    /// Text descriptions only.
    Off,
}

impl GraphicsSetting {
    /// Parses the value of the configuration; unknown values mean `auto`.
    pub fn of(word: &str) -> Self {
        match word {
            "kitty" => Self::Kitty,
            "iterm2" => Self::Iterm2,
            "sixel" => Self::Sixel,
            "blocks" => Self::Blocks,
            "off" => Self::Off,
            _ => Self::Auto,
        }
    }
}

/// What is known before the terminal responds.
#[derive(Debug, Clone)]
pub struct Environment {
    pub setting: GraphicsSetting,
    /// Inside of tmux, which responds itself.
    pub is_in_tmux: bool,
    /// Inside of screen, which supports none.
    pub is_in_screen: bool,
    /// The terminal according to its environment variables; may be empty.
    pub program: String,
    pub colors: ColorSupport,
    /// Whether it shows characters beyond ASCII, and therefore half blocks.
    pub has_rich_glyphs: bool,
}

impl Default for Environment {
    fn default() -> Self {
        let (is_in_tmux, is_in_screen, colors) = (false, false, ColorSupport::TrueColor);
        Self {
            setting: GraphicsSetting::Off,
            is_in_tmux,
            is_in_screen,
            program: String::new(),
            colors,
            has_rich_glyphs: true,
        }
    }
}

/// The responses of the terminal so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// It supports the kitty graphics protocol.
    pub kitty: bool,
    pub compressed: bool,
    pub sixel: bool,
    pub name: String,
    /// The size of a cell in pixels, width and height.
    pub cell: Option<(u16, u16)>,
}

/// How pictures are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Graphics {
    Off,
    Blocks,
    /// Stored by the terminal and positioned by placeholders.
    Kitty {
        is_in_tmux: bool,
        compressed: bool,
    },
    /// Sent row by row.
    Iterm2,
    /// Sent row by row.
    Sixel,
}

impl Environment {
    /// The queries: kitty graphics (plain, compressed), cell size, terminal name, device attributes.
    pub(super) fn questions(&self) -> String {
        if self.is_off() || self.setting == GraphicsSetting::Blocks {
            return String::new();
        }
        // One black pixel; the second time compressed by zlib.
        let ask = |number: u32, how: &str, data: &str| {
            let question = format!("\x1b_Gi={number},s=1,v=1,a=q,t=d,f=24{how};{data}\x1b\\");
            if self.is_in_tmux { through_tmux(&question) } else { question }
        };
        let kitty = [
            ask(Answers::PLAIN_QUESTION, "", "AAAA"),
            ask(Answers::COMPRESSED_QUESTION, ",o=z", "eJxjYGAAAAADAAE="),
        ];
        format!("{}\x1b[16t\x1b[>0q\x1b[c", kitty.concat())
    }

    /// Whether pictures are only described: also if colors are disabled.
    fn is_off(&self) -> bool {
        self.setting == GraphicsSetting::Off || self.colors == ColorSupport::None
    }

    /// Selects the protocol. Protocols that send pixels row by row need the cell size.
    pub(super) fn choose(&self, answers: &Answers, cell: Option<(u16, u16)>) -> Graphics {
        let knows_symbols = positions_by_symbols(&answers.name);
        let kitty = Graphics::Kitty { is_in_tmux: self.is_in_tmux, compressed: answers.compressed };
        let blocks = if self.has_rich_glyphs { Graphics::Blocks } else { Graphics::Off };
        let is = |names: &[&str]| {
            names.iter().any(|name| answers.name.starts_with(name) || self.program.starts_with(name))
        };
        let of_pixels = |graphics: Graphics| if cell.is_some() { graphics } else { blocks };
        match self.setting {
            _ if self.is_off() => Graphics::Off,
            GraphicsSetting::Off => Graphics::Off,
            GraphicsSetting::Kitty => kitty,
            GraphicsSetting::Iterm2 => of_pixels(Graphics::Iterm2),
            GraphicsSetting::Sixel => of_pixels(Graphics::Sixel),
            // Half blocks are a last resort; in a multiplexer, the picture is only described.
            GraphicsSetting::Auto if self.is_in_screen => Graphics::Off,
            // tmux responds with its own features; only responses passed through it are the terminal's.
            GraphicsSetting::Auto if self.is_in_tmux => {
                if answers.kitty && knows_symbols {
                    kitty
                } else {
                    Graphics::Off
                }
            }
            // Neither supports placeholders, and Konsole's sixel leaves artifacts.
            GraphicsSetting::Auto if is(&["Konsole"]) => blocks,
            GraphicsSetting::Auto if is(&["WezTerm"]) => of_pixels(Graphics::Iterm2),
            GraphicsSetting::Auto if answers.kitty && knows_symbols => kitty,
            GraphicsSetting::Auto if is(&["iTerm", "mintty", "rio", "WarpTerminal"]) => {
                of_pixels(Graphics::Iterm2)
            }
            GraphicsSetting::Auto if answers.sixel => of_pixels(Graphics::Sixel),
            GraphicsSetting::Auto | GraphicsSetting::Blocks => blocks,
        }
    }
}

/// Whether a terminal with kitty graphics also supports Unicode placeholders. An older kitty shows them as unknown
/// characters; it reports its version as `kitty(0.26.5)`. Source: kitty graphics protocol, Unicode placeholders (since
/// 0.28.0).
fn positions_by_symbols(name: &str) -> bool {
    let version = name.strip_prefix("kitty(").and_then(|rest| rest.split(')').next());
    let Some(version) = version else { return true };
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (0, 28)
}

impl Answers {
    /// The id of the query for kitty graphics.
    pub const PLAIN_QUESTION: u32 = 31;
    /// The id of the query for compressed data.
    pub const COMPRESSED_QUESTION: u32 = 32;
}

impl Graphics {
    pub(super) fn grid(self, cell: Option<(u16, u16)>) -> Option<Grid> {
        let cell = cell.unwrap_or(USUAL_CELL);
        match self {
            Self::Off => None,
            Self::Blocks => Some(Grid { cell: (1, 2), max_pixels: u32::MAX }),
            Self::Kitty { .. } => Some(Grid { cell, max_pixels: u32::MAX }),
            Self::Iterm2 | Self::Sixel => Some(Grid { cell, max_pixels: 1_000_000 }),
        }
    }

    /// The sequence that deletes a picture stored by the terminal.
    pub(super) fn take_back(self, number: u32) -> String {
        let sequence = format!("\x1b_Ga=d,d=I,i={number},q=2\x1b\\");
        match self {
            Self::Kitty { is_in_tmux: true, .. } => through_tmux(&sequence),
            _ => sequence,
        }
    }
}

/// Wraps a sequence so that tmux passes it through, if it is allowed to.
pub(in crate::runtime) fn through_tmux(sequence: &str) -> String {
    format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(environment: &Environment, answers: &Answers) -> Graphics {
        environment.choose(answers, answers.cell)
    }

    fn answers(kitty: bool, sixel: bool, name: &str) -> Answers {
        Answers { kitty, sixel, name: name.to_owned(), cell: Some((9, 18)), ..Answers::default() }
    }

    #[test]
    fn the_responses_of_the_terminal_decide() {
        let environment = Environment { setting: GraphicsSetting::Auto, ..Environment::default() };
        let blocks = Graphics::Blocks;
        let kitty = Graphics::Kitty { is_in_tmux: false, compressed: false };
        for (known, graphics) in [
            (answers(true, false, "kitty(0.42.1)"), kitty),
            (answers(true, false, "kitty(0.28.0)"), kitty),
            (answers(true, false, "kitty(1.0.0)"), kitty),
            (answers(true, false, "kitty(0.26.5)"), blocks),
            (answers(true, true, "ghostty 1.2"), kitty),
            (answers(true, true, "WezTerm 20250101"), Graphics::Iterm2),
            (answers(true, true, "Konsole 25.08"), blocks),
            (answers(false, true, "iTerm2 3.5"), Graphics::Iterm2),
            (answers(false, true, "foot(1.20)"), Graphics::Sixel),
            (answers(false, true, "XTerm(390)"), Graphics::Sixel),
            (answers(false, false, "VTE(7800)"), blocks),
            (Answers::default(), blocks),
            (Answers { sixel: true, ..Answers::default() }, blocks),
        ] {
            assert_eq!(chosen(&environment, &known), graphics, "{known:?}");
        }
        let named = Environment { program: "iTerm.app".to_owned(), ..environment };
        assert_eq!(
            chosen(&named, &answers(false, false, "")),
            Graphics::Iterm2,
            "older ones do not report their name"
        );
    }

    #[test]
    fn inside_of_tmux_only_passed_through_responses_count() {
        let environment =
            Environment { setting: GraphicsSetting::Auto, is_in_tmux: true, ..Environment::default() };
        assert_eq!(chosen(&environment, &answers(false, true, "tmux 3.5a")), Graphics::Off);
        let through = Graphics::Kitty { is_in_tmux: true, compressed: false };
        assert_eq!(chosen(&environment, &answers(true, true, "tmux 3.5a")), through);
        assert_eq!(through.take_back(7), "\x1bPtmux;\x1b\x1b_Ga=d,d=I,i=7,q=2\x1b\x1b\\\x1b\\");
        let questions = environment.questions();
        assert!(questions.starts_with("\x1bPtmux;\x1b\x1b_Gi=31,"), "{questions:?}");
        assert!(questions.ends_with("\x1b[c"), "the response that every terminal sends is the last");
        let screen = Environment { is_in_tmux: false, is_in_screen: true, ..environment };
        assert_eq!(chosen(&screen, &answers(true, true, "")), Graphics::Off);
    }

    #[test]
    fn pictures_are_disabled_without_colors() {
        let bare = Environment {
            setting: GraphicsSetting::Kitty,
            colors: ColorSupport::None,
            ..Environment::default()
        };
        assert_eq!(
            (chosen(&bare, &answers(true, true, "kitty")), bare.questions()),
            (Graphics::Off, String::new())
        );
    }

    #[test]
    fn half_blocks_need_more_than_ascii() {
        let ascii =
            Environment { setting: GraphicsSetting::Auto, has_rich_glyphs: false, ..Environment::default() };
        assert_eq!(chosen(&ascii, &answers(false, false, "")), Graphics::Off);
        assert_eq!(chosen(&ascii, &answers(false, true, "")), Graphics::Sixel);
    }

    #[test]
    fn the_users_setting_takes_precedence() {
        let graphics = |word: &str, known: &Answers| {
            chosen(&Environment { setting: GraphicsSetting::of(word), ..Environment::default() }, known)
        };
        let none = Answers::default();
        assert_eq!(graphics("off", &answers(true, true, "kitty")), Graphics::Off);
        assert!(matches!(graphics("blocks", &answers(true, true, "kitty")), Graphics::Blocks));
        assert!(matches!(graphics("kitty", &none), Graphics::Kitty { .. }));
        assert_eq!(graphics("sixel", &answers(true, false, "kitty")), Graphics::Sixel);
        assert!(matches!(graphics("iterm2", &none), Graphics::Blocks), "the cell size is unknown");
        let off = Environment { setting: GraphicsSetting::Off, ..Environment::default() };
        assert_eq!(off.questions(), "");
    }
}
