//! Notifications for a user in another window: desktop notification, bell, and the terminal's progress display.
//!
//! Detects what the terminal supports from the environment and from its name (XTVERSION), and returns the bytes to send.
//! Sources: iTerm2 (OSC 9), rxvt-unicode (OSC 777), kitty (OSC 99), `ConEmu` (OSC 9;4).
//! Invariants: a text can neither end its sequence nor start another one; a terminal that shows progress as a
//! notification gets none.

use std::time::{Duration, Instant};

use super::pictures::through_tmux;
use crate::core::TabMark;
use crate::ui::text;

/// Minimum time between two notifications: an agent may send any number of requests.
const APART: Duration = Duration::from_secs(1);

/// Some terminals remove a progress display that was not updated for 15 seconds.
const REFRESH: Duration = Duration::from_secs(10);

/// Maximum width of the title and the text of a notification.
const MAX_TITLE: usize = 60;
const MAX_TEXT: usize = 160;

/// The user's settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    pub bell: bool,
    pub notify: Notify,
    pub title: bool,
    /// Whether progress is shown; `None`: if the terminal is known to support it.
    pub progress: Option<bool>,
}

/// When desktop notifications are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notify {
    /// If the terminal is known to support them.
    #[default]
    Auto,
    /// Always, as OSC 9 unless the terminal is known to use another sequence.
    Terminal,
    /// By the system that parlor runs on, not by the terminal.
    System,
    Off,
}

impl Notify {
    /// Parses the value of the configuration; unknown values mean `auto`.
    pub fn of(word: &str) -> Self {
        match word {
            "terminal" => Self::Terminal,
            "system" => Self::System,
            "off" => Self::Off,
            _ => Self::Auto,
        }
    }
}

/// The sequence for notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Osc9,
    Osc777,
    Osc99,
}

/// Terminals that need special treatment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Other,
    Tmux,
    Screen,
    St,
}

/// The known properties of the terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terminal {
    protocol: Option<Protocol>,
    has_progress: bool,
    kind: Kind,
}

impl Terminal {
    /// Whether it reports Delete like other terminals only with the application keypad.
    pub fn needs_keypad(&self) -> bool {
        self.kind == Kind::St
    }

    /// Whether italic text is readable: GNU screen shows it in reverse video.
    pub fn shows_italics(&self) -> bool {
        self.kind != Kind::Screen
    }

    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let is_in_tmux = set("TMUX").is_some();
        if set("STY").is_some() {
            return Self { kind: Kind::Screen, ..Self::default() };
        }
        // A terminal may inherit variables of the one that started it, so those that each terminal sets come first. tmux
        // replaces them, and inherits the others from the terminal that it was started in.
        let program = || set("TERM_PROGRAM").map(|name| (name, set("TERM_PROGRAM_VERSION")));
        let term = || {
            let term = set("TERM")?;
            let names = ["xterm-kitty", "xterm-ghostty", "foot", "rxvt", "wezterm", "contour"];
            names.into_iter().find(|name| term.starts_with(name)).map(|name| (name.to_owned(), None))
        };
        let own = if is_in_tmux { None } else { program().or_else(term) };
        let inherited = || {
            [
                ("KITTY_WINDOW_ID", "kitty", None),
                ("GHOSTTY_RESOURCES_DIR", "ghostty", None),
                ("WEZTERM_PANE", "wezterm", None),
                ("ITERM_SESSION_ID", "iterm2", set("LC_TERMINAL_VERSION")),
                ("LC_TERMINAL", "iterm2", set("LC_TERMINAL_VERSION")),
                ("ConEmuPID", "conemu", None),
                ("WT_SESSION", "windows terminal", None),
                ("KONSOLE_VERSION", "konsole", None),
                ("VTE_VERSION", "vte", None),
            ]
            .into_iter()
            .find(|(name, _, _)| set(name).is_some())
            .map(|(_, name, version)| (name.to_owned(), version))
        };
        let (name, version) = own.or_else(inherited).unwrap_or_default();
        let is_st = set("TERM").is_some_and(|term| term == "st" || term.starts_with("st-"));
        let kind = match (is_in_tmux, is_st) {
            (true, _) => Kind::Tmux,
            (false, true) => Kind::St,
            (false, false) => Kind::Other,
        };
        Self { kind, ..Self::of(&name, &version.unwrap_or_default()) }
    }

    fn of(name: &str, version: &str) -> Self {
        let name = name.to_lowercase();
        let protocol = match name.trim_start_matches("xterm-") {
            "kitty" => Some(Protocol::Osc99),
            "iterm.app" | "iterm2" | "wezterm" | "ghostty" | "warpterminal" => Some(Protocol::Osc9),
            "foot" | "rxvt" | "contour" => Some(Protocol::Osc777),
            _ => None,
        };
        // Older versions of iTerm2 and WezTerm show progress as a notification.
        let has_progress = match name.trim_start_matches("xterm-") {
            "ghostty" | "conemu" | "windows terminal" | "konsole" | "vte" | "vscode" | "mintty" => true,
            "iterm.app" | "iterm2" => numbers(version) >= vec![3, 6, 6],
            "wezterm" => numbers(version) >= vec![2025],
            _ => false,
        };
        Self { protocol, has_progress, ..Self::default() }
    }
}

/// The numbers of a version such as `3.6.6beta1` or `20240203-110809-5046fc22`; of a date only the year.
fn numbers(version: &str) -> Vec<u32> {
    let parts = version.split(|ch: char| !ch.is_ascii_digit()).filter(|part| !part.is_empty());
    parts.map(|part| part.get(..4).unwrap_or(part).parse().unwrap_or(0)).collect()
}

/// How to announce an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    pub sequences: String,
    /// Title and text of a notification of the system.
    pub notification: Option<(String, String)>,
}

/// Selects the sequences to send to the terminal.
#[derive(Debug)]
pub struct Attention {
    settings: Settings,
    terminal: Terminal,
    last: Option<Instant>,
    /// The progress that the terminal shows, and since when.
    shown: Option<(&'static str, Instant)>,
}

impl Attention {
    /// Nothing was sent yet.
    pub fn new(settings: Settings, terminal: Terminal) -> Self {
        Self { settings, terminal, last: None, shown: None }
    }

    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    pub fn sets_title(&self) -> bool {
        self.settings.title
    }

    /// Uses the name that the terminal reports if the environment does not identify it, as over ssh.
    pub fn note_name(&mut self, name: &str) {
        if self.terminal == Terminal::default() {
            let (name, version) = name.split_once([' ', '(']).unwrap_or((name, ""));
            self.terminal = Terminal::of(name, version);
        }
    }

    /// Announces an event: the bell, and a notification unless the terminal has the focus. Nothing soon after the last
    /// one.
    pub fn announce(&mut self, title: &str, text: &str, has_focus: bool, now: Instant) -> Announcement {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < APART) {
            return Announcement::default();
        }
        self.last = Some(now);
        let (title, text) = (shortened(title, MAX_TITLE), shortened(text, MAX_TEXT));
        let protocol = match self.settings.notify {
            _ if has_focus => None,
            Notify::Auto => self.terminal.protocol,
            Notify::Terminal => Some(self.terminal.protocol.unwrap_or(Protocol::Osc9)),
            Notify::System | Notify::Off => None,
        };
        let mut sequences =
            protocol.map(|protocol| self.wrap(notification(protocol, &title, &text))).unwrap_or_default();
        if self.settings.bell {
            sequences.push('\x07');
        }
        let is_by_system = self.settings.notify == Notify::System && !has_focus;
        Announcement { sequences, notification: is_by_system.then_some((title, text)) }
    }

    /// The sequence that shows the status of all tabs as progress; empty if it is shown already.
    pub fn progress(&mut self, status: TabMark, now: Instant) -> String {
        // A tab of tmux may be hidden, and would change the progress of the whole window.
        let is_known = self.terminal.has_progress && self.terminal.kind != Kind::Tmux;
        if !self.settings.progress.unwrap_or(is_known) {
            return String::new();
        }
        // 2: error, 3: indeterminate, 4: paused.
        let state = match status {
            TabMark::Nothing | TabMark::News | TabMark::Done => None,
            TabMark::Failed => Some("2;100"),
            TabMark::Working => Some("3;0"),
            TabMark::Waits => Some("4;100"),
        };
        let is_recent = |since: Instant| now.saturating_duration_since(since) < REFRESH;
        match (self.shown, state) {
            (None, None) => String::new(),
            (Some((shown, since)), Some(state)) if shown == state && is_recent(since) => String::new(),
            (Some(_), None) => {
                self.shown = None;
                self.progress_end()
            }
            (_, Some(state)) => {
                self.shown = Some((state, now));
                self.wrap(format!("\x1b]9;4;{state}\x1b\\"))
            }
        }
    }

    /// Notes that the terminal shows no progress any more.
    pub fn forget_progress(&mut self) {
        self.shown = None;
    }

    pub fn progress_end(&self) -> String {
        self.wrap("\x1b]9;4;0;0\x1b\\".to_owned())
    }

    fn wrap(&self, sequence: String) -> String {
        if self.terminal.kind == Kind::Tmux { through_tmux(&sequence) } else { sequence }
    }
}

fn shortened(text: &str, cols: usize) -> String {
    text::truncate(&text::one_line(text), cols)
}

/// The sequence of a notification with sanitised texts.
fn notification(protocol: Protocol, title: &str, text: &str) -> String {
    // A semicolon ends a field, and after a number the rest is a command of `ConEmu`.
    let field = |text: &str| text.replace(';', ",");
    match protocol {
        Protocol::Osc9 => format!("\x1b]9;{}: {}\x1b\\", field(title), field(text)),
        Protocol::Osc777 => format!("\x1b]777;notify;{};{}\x1b\\", field(title), field(text)),
        // A later notification replaces the one with the same id; `o` checks the focus again.
        Protocol::Osc99 => {
            let id = std::process::id();
            format!(
                "\x1b]99;i=parlor{id}:d=0:o=unfocused;{title}\x1b\\\x1b]99;i=parlor{id}:p=body;{text}\x1b\\"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings { bell: true, notify: Notify::Auto, title: true, progress: None };

    fn terminal(variables: &[(&str, &str)]) -> Terminal {
        Terminal::detect(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn attention(variables: &[(&str, &str)]) -> Attention {
        Attention::new(SETTINGS, terminal(variables))
    }

    fn said(variables: &[(&str, &str)], title: &str, text: &str) -> String {
        let said = attention(variables).announce(title, text, false, Instant::now()).sequences;
        said.replace(&format!("parlor{}", std::process::id()), "parlor0")
    }

    #[test]
    fn each_terminal_gets_the_sequence_that_it_supports() {
        let osc9 = "\x1b]9;Clock skew: Turn finished.\x1b\\\x07";
        let osc777 = "\x1b]777;notify;Clock skew;Turn finished.\x1b\\\x07";
        let osc99 = "\x1b]99;i=parlor0:d=0:o=unfocused;Clock skew\x1b\\\
                     \x1b]99;i=parlor0:p=body;Turn finished.\x1b\\\x07";
        for (variables, expected) in [
            (vec![("TERM", "xterm-kitty")], osc99),
            (vec![("TERM_PROGRAM", "iTerm.app")], osc9),
            (vec![("TERM_PROGRAM", "WezTerm")], osc9),
            (vec![("TERM", "xterm-ghostty")], osc9),
            (vec![("TERM", "foot")], osc777),
            (vec![("TERM", "rxvt-unicode-256color")], osc777),
            // Unknown terminals, and one that inherits a variable of another one.
            (vec![("TERM", "xterm-256color")], "\x07"),
            (vec![("TERM_PROGRAM", "vscode"), ("KITTY_WINDOW_ID", "1")], "\x07"),
            (vec![("TERM", "xterm-kitty"), ("STY", "1.pts")], "\x07"),
        ] {
            assert_eq!(said(&variables, "Clock skew", "Turn finished."), expected, "{variables:?}");
        }
    }

    #[test]
    fn tmux_passes_a_notification_through_with_doubled_escapes() {
        let inside = [("TMUX", "/tmp/tmux"), ("TERM_PROGRAM", "tmux"), ("TERM", "tmux-256color")];
        assert_eq!(said(&inside, "a", "b"), "\x07", "the outer terminal is unknown");
        let mut in_foot = inside.to_vec();
        in_foot.push(("WEZTERM_PANE", "0"));
        assert_eq!(said(&in_foot, "a", "b"), "\x1bPtmux;\x1b\x1b]9;a: b\x1b\x1b\\\x1b\\\x07");
    }

    #[test]
    fn hostile_texts_cannot_end_a_sequence_or_start_a_command() {
        let hostile = format!("6;\"calc\"\x1b\\\x1b]0;x\x07\u{9c}\n\u{202e}{}", "long ".repeat(500));
        for variables in [("TERM", "xterm-kitty"), ("TERM_PROGRAM", "WezTerm"), ("TERM", "foot")] {
            let said = said(&[variables], &hostile, &hostile);
            let body = said.replace("\x1b]99;", "").replace("\x1b]9;", "").replace("\x1b]777;notify;", "");
            let body = body.replace("\x1b\\", "").replace('\x07', "");
            assert!(!body.chars().any(|ch| ch.is_control() || ch == '\u{202e}'), "{said:?}");
            assert!(!said.contains("]9;6;") && said.len() < 1_000, "{said:?}");
        }
        let said = said(&[("TERM", "foot")], "a;b", "c;d");
        assert_eq!(said, "\x1b]777;notify;a,b;c,d\x1b\\\x07");
    }

    #[test]
    fn a_focused_terminal_only_rings() {
        let mut attention = attention(&[("TERM", "xterm-kitty")]);
        assert_eq!(attention.announce("a", "b", true, Instant::now()).sequences, "\x07");
    }

    #[test]
    fn the_system_shows_the_notification_instead_of_the_terminal_if_configured() {
        let settings = Settings { notify: Notify::System, ..SETTINGS };
        let announce = |has_focus| {
            let mut attention = Attention::new(settings, terminal(&[("TERM", "xterm-kitty")]));
            attention.announce("Clock\nskew", "Turn \x1b[1mfinished.", has_focus, Instant::now())
        };
        let Announcement { sequences, notification } = announce(false);
        assert_eq!(sequences, "\x07");
        assert_eq!(notification, Some(("Clock skew".to_owned(), "Turn finished.".to_owned())));
        assert_eq!(announce(true).notification, None);
    }

    #[test]
    fn many_requests_at_once_are_one_notification() {
        let mut attention = attention(&[("TERM", "foot")]);
        let now = Instant::now();
        assert_ne!(attention.announce("a", "b", false, now), Announcement::default());
        assert_eq!(attention.announce("a", "b", false, now + APART / 2), Announcement::default());
        assert_ne!(attention.announce("a", "b", false, now + APART), Announcement::default());
    }

    #[test]
    fn settings_override_the_detection() {
        let now = Instant::now();
        let say = |settings, term| {
            Attention::new(settings, terminal(&[("TERM", term)])).announce("a", "b", false, now).sequences
        };
        let forced = Settings { notify: Notify::Terminal, bell: false, ..SETTINGS };
        assert_eq!(say(forced, "xterm"), "\x1b]9;a: b\x1b\\");
        assert_eq!(say(forced, "foot"), "\x1b]777;notify;a;b\x1b\\");
        assert_eq!(say(Settings { notify: Notify::Off, bell: false, ..SETTINGS }, "foot"), "");
        let show = |progress, term| {
            let settings = Settings { progress, ..SETTINGS };
            Attention::new(settings, terminal(&[("TERM", term)])).progress(TabMark::Working, now)
        };
        assert_eq!(show(Some(true), "xterm"), "\x1b]9;4;3;0\x1b\\");
        assert_eq!(show(Some(false), "xterm-ghostty"), "");
    }

    #[test]
    fn the_reported_name_identifies_a_terminal_over_ssh() {
        for (name, expected) in [
            ("kitty(0.42.1)", Terminal { protocol: Some(Protocol::Osc99), ..Terminal::default() }),
            ("foot(1.20.2)", Terminal { protocol: Some(Protocol::Osc777), ..Terminal::default() }),
            ("VTE(8000)", Terminal { has_progress: true, ..Terminal::default() }),
            ("ghostty 1.2.0", terminal(&[("TERM", "xterm-ghostty")])),
            ("tmux 3.5a", Terminal::default()),
        ] {
            let mut attention = attention(&[("TERM", "xterm-256color")]);
            attention.note_name(name);
            assert_eq!(attention.terminal, expected, "{name}");
        }
        let mut known = attention(&[("TERM", "foot")]);
        known.note_name("kitty(0.42.1)");
        assert_eq!(known.terminal.protocol, Some(Protocol::Osc777));
    }

    #[test]
    fn progress_is_sent_only_to_terminals_that_show_it() {
        for (program, version, shows) in [
            ("iTerm.app", "3.6.6", true),
            ("iTerm.app", "3.10.1", true),
            ("iTerm.app", "3.6.5", false),
            ("WezTerm", "20240203-110809-5046fc22", false),
            ("WezTerm", "20250209-182623-44866cc1", true),
            ("vscode", "1.100.0", true),
            ("Apple_Terminal", "455", false),
        ] {
            let variables = [("TERM_PROGRAM", program), ("TERM_PROGRAM_VERSION", version)];
            assert_eq!(terminal(&variables).has_progress, shows, "{program} {version}");
        }
        let mut inside = attention(&[("TMUX", "/tmp/tmux"), ("GHOSTTY_RESOURCES_DIR", "/usr/share/ghostty")]);
        assert_eq!(inside.progress(TabMark::Working, Instant::now()), "", "the tab of tmux may be hidden");
    }

    #[test]
    fn progress_follows_the_status_and_is_refreshed() {
        let mut attention = attention(&[("TERM", "xterm-ghostty")]);
        let now = Instant::now();
        let steps = [
            (TabMark::Nothing, 0, ""),
            (TabMark::Working, 0, "\x1b]9;4;3;0\x1b\\"),
            (TabMark::Working, 9, ""),
            (TabMark::Working, 10, "\x1b]9;4;3;0\x1b\\"),
            (TabMark::Waits, 11, "\x1b]9;4;4;100\x1b\\"),
            (TabMark::Failed, 12, "\x1b]9;4;2;100\x1b\\"),
            (TabMark::Done, 13, "\x1b]9;4;0;0\x1b\\"),
            (TabMark::Nothing, 14, ""),
        ];
        for (status, seconds, expected) in steps {
            assert_eq!(
                attention.progress(status, now + Duration::from_secs(seconds)),
                expected,
                "{status:?}"
            );
        }
    }
}
