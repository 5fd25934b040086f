//! What terminals send for keys. A key that a terminal cannot send, or that it uses itself, is not in its table.
//!
//! Sources: ctlseqs of xterm; terminfo entries xterm-256color, screen, tmux-256color, linux, alacritty, foot, iterm2,
//! konsole-256color, ms-terminal, rxvt-unicode-256color, vte-256color and wezterm; the kitty keyboard protocol; default
//! profiles of iTerm2 and Terminal.app.

use std::collections::HashSet;

use super::*;
use crate::config::keymap::chord::Chord;
use crate::config::keymap::sequence::Sequence;
use crate::config::keymap::{Context, Keymap};
use crate::model::Action;

/// Keys of all terminals without the kitty protocol.
const PLAIN: &[(&str, &[u8])] = &[
    ("enter", b"\r"),
    ("tab", b"\t"),
    ("esc", b"\x1b"),
    ("space", b" "),
    ("backspace", b"\x7f"),
    ("ctrl+h", b"\x08"),
    ("ctrl+j", b"\n"),
    ("up", b"\x1b[A"),
    ("down", b"\x1b[B"),
    ("right", b"\x1b[C"),
    ("left", b"\x1b[D"),
    ("delete", b"\x1b[3~"),
    ("pageup", b"\x1b[5~"),
    ("pagedown", b"\x1b[6~"),
    ("f6", b"\x1b[17~"),
    ("f7", b"\x1b[18~"),
    ("f8", b"\x1b[19~"),
    ("f9", b"\x1b[20~"),
    ("f10", b"\x1b[21~"),
    ("f11", b"\x1b[23~"),
    ("f12", b"\x1b[24~"),
];

/// Home and End as sent by xterm, and as sent by screen, tmux and the Linux console.
const XTERM_HOME: &[(&str, &[u8])] = &[("home", b"\x1b[H"), ("end", b"\x1b[F")];
const VT_HOME: &[(&str, &[u8])] = &[("home", b"\x1b[1~"), ("end", b"\x1b[4~")];

/// Function keys of xterm and its descendants.
const XTERM_F: &[(&str, &[u8])] =
    &[("f1", b"\x1bOP"), ("f2", b"\x1bOQ"), ("f3", b"\x1bOR"), ("f4", b"\x1bOS"), ("f5", b"\x1b[15~")];
const LINUX_F: &[(&str, &[u8])] =
    &[("f1", b"\x1b[[A"), ("f2", b"\x1b[[B"), ("f3", b"\x1b[[C"), ("f4", b"\x1b[[D"), ("f5", b"\x1b[[E")];

/// Modified keys of xterm.
const XTERM_SHIFT: &[(&str, &[u8])] = &[
    ("shift+tab", b"\x1b[Z"),
    ("shift+left", b"\x1b[1;2D"),
    ("shift+right", b"\x1b[1;2C"),
    ("shift+f6", b"\x1b[17;2~"),
];
const XTERM_CTRL: &[(&str, &[u8])] = &[
    ("ctrl+up", b"\x1b[1;5A"),
    ("ctrl+down", b"\x1b[1;5B"),
    ("ctrl+right", b"\x1b[1;5C"),
    ("ctrl+left", b"\x1b[1;5D"),
    ("ctrl+home", b"\x1b[1;5H"),
    ("ctrl+end", b"\x1b[1;5F"),
    ("ctrl+pageup", b"\x1b[5;5~"),
    ("ctrl+pagedown", b"\x1b[6;5~"),
    ("ctrl+delete", b"\x1b[3;5~"),
];
const XTERM_ALT: &[(&str, &[u8])] = &[
    ("alt+up", b"\x1b[1;3A"),
    ("alt+down", b"\x1b[1;3B"),
    ("alt+right", b"\x1b[1;3C"),
    ("alt+left", b"\x1b[1;3D"),
    ("alt+pageup", b"\x1b[5;3~"),
    ("alt+pagedown", b"\x1b[6;3~"),
    ("alt+delete", b"\x1b[3;3~"),
];
/// Arrows with Alt in iTerm2 and rxvt.
const ESC_ARROWS: &[(&str, &[u8])] = &[
    ("alt+up", b"\x1b\x1b[A"),
    ("alt+down", b"\x1b\x1b[B"),
    ("alt+right", b"\x1b\x1b[C"),
    ("alt+left", b"\x1b\x1b[D"),
];
/// Keys of rxvt that xterm sends differently.
const RXVT: &[(&str, &[u8])] = &[
    ("home", b"\x1b[7~"),
    ("end", b"\x1b[8~"),
    ("f1", b"\x1b[11~"),
    ("f2", b"\x1b[12~"),
    ("f3", b"\x1b[13~"),
    ("f4", b"\x1b[14~"),
    ("f5", b"\x1b[15~"),
    ("shift+tab", b"\x1b[Z"),
    ("shift+left", b"\x1b[d"),
    ("shift+right", b"\x1b[c"),
    ("shift+home", b"\x1b[7$"),
    ("ctrl+up", b"\x1bOa"),
    ("ctrl+down", b"\x1bOb"),
    ("ctrl+right", b"\x1bOc"),
    ("ctrl+left", b"\x1bOd"),
    ("ctrl+home", b"\x1b[7^"),
    ("ctrl+end", b"\x1b[8^"),
    ("ctrl+pageup", b"\x1b[5^"),
    ("ctrl+pagedown", b"\x1b[6^"),
    ("ctrl+delete", b"\x1b[3^"),
    ("ctrl+shift+delete", b"\x1b[3@"),
    ("alt+pageup", b"\x1b\x1b[5~"),
    ("alt+pagedown", b"\x1b\x1b[6~"),
    ("alt+delete", b"\x1b\x1b[3~"),
];
const KONSOLE_SHIFT: &[(&str, &[u8])] = &[("shift+f1", b"\x1bO2P"), ("shift+f4", b"\x1bO2S")];
/// Keys that are reported on request (XTMODKEYS), as by xterm, mintty and tmux 3.5, and as by tmux before.
const REPORTED: &[(&str, &[u8])] = &[
    ("shift+enter", b"\x1b[27;2;13~"),
    ("ctrl+enter", b"\x1b[27;5;13~"),
    ("ctrl+shift+c", b"\x1b[27;6;67~"),
    ("ctrl+backspace", b"\x1b[27;5;127~"),
];
const REPORTED_SHORT: &[(&str, &[u8])] =
    &[("shift+enter", b"\x1b[13;2u"), ("ctrl+enter", b"\x1b[13;5u"), ("shift+tab", b"\x1b[9;2u")];
const ALT_ENTER: &[(&str, &[u8])] = &[("alt+enter", b"\x1b\r")];
const ALT_BACKSPACE: &[(&str, &[u8])] = &[("alt+backspace", b"\x1b\x7f")];

/// The kitty protocol with the flags that parlor sets: disambiguate, report alternate keys.
const KITTY: &[(&str, &[u8])] = &[
    ("enter", b"\r"),
    ("shift+enter", b"\x1b[13;2u"),
    ("ctrl+enter", b"\x1b[13;5u"),
    ("alt+enter", b"\x1b[13;3u"),
    ("tab", b"\t"),
    ("shift+tab", b"\x1b[9;2u"),
    ("esc", b"\x1b[27u"),
    ("space", b" "),
    ("backspace", b"\x7f"),
    ("ctrl+backspace", b"\x1b[127;5u"),
    ("alt+backspace", b"\x1b[127;3u"),
    ("up", b"\x1b[A"),
    ("down", b"\x1b[B"),
    ("right", b"\x1b[C"),
    ("left", b"\x1b[D"),
    ("home", b"\x1b[H"),
    ("end", b"\x1b[F"),
    ("delete", b"\x1b[3~"),
    ("pageup", b"\x1b[5~"),
    ("pagedown", b"\x1b[6~"),
    ("f1", b"\x1b[P"),
    ("f2", b"\x1b[Q"),
    ("f3", b"\x1b[13~"),
    ("f4", b"\x1b[S"),
    ("f5", b"\x1b[15~"),
    ("f6", b"\x1b[17~"),
    ("f7", b"\x1b[18~"),
    ("f8", b"\x1b[19~"),
    ("f9", b"\x1b[20~"),
    ("f12", b"\x1b[24~"),
    ("ctrl+_", b"\x1b[45:95;6u"),
    ("ctrl+/", b"\x1b[47;5u"),
    ("alt+<", b"\x1b[44:60;4u"),
    ("alt+>", b"\x1b[46:62;4u"),
    ("alt+{", b"\x1b[91:123;4u"),
    ("alt+}", b"\x1b[93:125;4u"),
    ("alt+_", b"\x1b[45:95;4u"),
    ("ctrl+shift+c", b"\x1b[99:67;6u"),
    ("alt+shift+n", b"\x1b[110:78;4u"),
];

/// How a terminal sends Ctrl or Alt with a character.
#[derive(Clone, Copy)]
enum Characters {
    /// As control codes, and with Esc before the character.
    Legacy,
    /// As control codes; Alt types other characters.
    WithoutAlt,
    /// In the kitty protocol.
    Kitty,
}

/// A terminal: its name and keys.
struct Terminal {
    name: &'static str,
    keys: Vec<(String, Vec<u8>)>,
    /// Whether it sends modified arrows and function keys.
    is_complete: bool,
}

impl Terminal {
    fn new(name: &'static str, characters: Characters, tables: &[&[(&str, &[u8])]]) -> Self {
        let mut keys: Vec<(String, Vec<u8>)> =
            tables.concat().into_iter().map(|(key, bytes)| (key.to_owned(), bytes.to_owned())).collect();
        keys.extend(('!'..='~').map(|ch| (name_of(ch), vec![ch as u8])));
        for ch in ('a'..='z').filter(|ch| !"hijm".contains(*ch)) {
            let bytes = match characters {
                Characters::Kitty => format!("\x1b[{};5u", ch as u32).into_bytes(),
                Characters::Legacy | Characters::WithoutAlt => vec![ch as u8 & 0x1f],
            };
            keys.push((format!("ctrl+{ch}"), bytes));
        }
        // In the legacy encoding, `[`, `]`, `O`, `P`, `X`, `^` and `_` after Esc start other sequences.
        for ch in ('!'..='~').filter(|ch| !"[]OPX^_".contains(*ch)) {
            let name = if ch.is_ascii_uppercase() {
                format!("alt+shift+{}", ch.to_ascii_lowercase())
            } else {
                format!("alt+{}", name_of(ch))
            };
            match characters {
                Characters::Legacy => keys.push((name, vec![0x1b, ch as u8])),
                Characters::Kitty if ch.is_ascii_lowercase() || ch.is_ascii_digit() || ch == ',' => {
                    keys.push((name, format!("\x1b[{};3u", ch as u32).into_bytes()));
                }
                Characters::Kitty | Characters::WithoutAlt => {}
            }
        }
        Self { name, keys, is_complete: tables.contains(&XTERM_ALT) }
    }

    /// The keys that it can send.
    fn chords(&self) -> HashSet<Chord> {
        self.keys.iter().map(|(key, _)| Chord::parse(key).unwrap()).collect()
    }
}

fn name_of(ch: char) -> String {
    match ch {
        '+' => "plus".to_owned(),
        '-' => "minus".to_owned(),
        other => other.to_string(),
    }
}

fn terminals() -> Vec<Terminal> {
    use Characters::{Kitty, Legacy, WithoutAlt};
    let modified: &[&[_]] = &[XTERM_SHIFT, XTERM_CTRL, XTERM_ALT, ALT_BACKSPACE];
    let xterm = [&[PLAIN, XTERM_HOME, XTERM_F, ALT_ENTER], modified].concat();
    let screen = [&[PLAIN, VT_HOME, XTERM_F, ALT_ENTER], modified].concat();
    let iterm: &[&[_]] =
        &[PLAIN, XTERM_HOME, XTERM_F, XTERM_SHIFT, XTERM_CTRL, ESC_ARROWS, ALT_ENTER, ALT_BACKSPACE];
    // Alt+Enter toggles full screen in WezTerm and Windows Terminal, and Option types special characters on macOS.
    let wezterm = [&[PLAIN, XTERM_HOME, XTERM_F], modified].concat();
    let mac: &[&[_]] = &[PLAIN, XTERM_HOME, XTERM_F, XTERM_SHIFT];
    let rxvt: &[&[_]] = &[PLAIN, RXVT, ESC_ARROWS, ALT_ENTER, ALT_BACKSPACE];
    let kitty: &[&[_]] = &[KITTY, XTERM_CTRL, XTERM_ALT, XTERM_SHIFT];
    vec![
        Terminal::new("xterm without reports", Legacy, &xterm),
        Terminal::new("xterm, mintty", Legacy, &[&xterm[..], &[REPORTED]].concat()),
        Terminal::new("gnome-terminal and others with VTE", Legacy, &xterm),
        Terminal::new("Alacritty without kitty protocol", Legacy, &xterm),
        Terminal::new("Konsole", Legacy, &[&xterm[..], &[KONSOLE_SHIFT]].concat()),
        Terminal::new("iTerm2, Option as Esc+", Legacy, iterm),
        Terminal::new("iTerm2 and Terminal.app, Option as it is", WithoutAlt, mac),
        Terminal::new("tmux", Legacy, &screen),
        Terminal::new("tmux, extended-keys on", Legacy, &[&screen[..], &[REPORTED]].concat()),
        Terminal::new(
            "tmux before 3.5, extended-keys on",
            Legacy,
            &[&screen[..], &[REPORTED_SHORT]].concat(),
        ),
        Terminal::new("screen", Legacy, &screen),
        Terminal::new("WezTerm", Legacy, &[&wezterm[..], &[REPORTED]].concat()),
        Terminal::new("Windows Terminal", Legacy, &wezterm),
        Terminal::new("rxvt", Legacy, rxvt),
        Terminal::new("Linux console", Legacy, &[PLAIN, VT_HOME, LINUX_F, ALT_ENTER, ALT_BACKSPACE]),
        Terminal::new("kitty, foot, Ghostty, Alacritty", Kitty, kitty),
    ]
}

#[test]
fn keys_of_all_terminals_are_decoded() {
    for terminal in terminals() {
        for (key, bytes) in &terminal.keys {
            let events = decoded(&[bytes]);
            let [TtyEvent::Input(Event::Key(event))] = &events[..] else {
                panic!("{key} of {}: {events:?}", terminal.name)
            };
            assert_eq!(Chord::of(event), Chord::parse(key).ok(), "{key} of {}: {bytes:?}", terminal.name);
        }
    }
}

/// The keys of all rows of a keymap without a key that the terminal can send.
fn unreachable(keymap: &Keymap, terminal: &Terminal) -> Vec<String> {
    let chords = terminal.chords();
    let palette = keymap.palette();
    let is_reachable =
        |keys: &str| Sequence::parse(keys).unwrap().chords().iter().all(|chord| chords.contains(chord));
    assert!(
        keymap.keys_for(Context::Main, Action::OpenPalette).iter().any(|keys| is_reachable(keys)),
        "the palette in {}",
        terminal.name
    );
    let rows = keymap.entries();
    let mut missing = HashSet::new();
    for (context, _, name, _) in
        rows.iter().filter(|(context, _, name, _)| *context != "edit" && *name != "none")
    {
        let same = rows.iter().filter(|(_, _, other, _)| other == name);
        let mut same = same.filter(|(position, ..)| position == context || !terminal.is_complete);
        let action = crate::config::keymap::actions::by_name(name).unwrap();
        let has_other_way = palette.iter().any(|command| command.action == action);
        if !has_other_way && !same.any(|(_, keys, ..)| is_reachable(keys)) {
            missing.insert(format!("{name} in [keys.{context}]: {}", terminal.name));
        }
    }
    missing.into_iter().collect()
}

/// In terminals that do not send modified keys, a key in any context is enough.
#[test]
fn every_action_has_a_key_in_every_terminal() {
    let paths = crate::config::Paths::find(Some("/c.toml".into()), Some("/tmp".into())).unwrap();
    for preset in ["default", "emacs", "vim"] {
        let text = format!("[keys]\npreset = \"{preset}\"\n");
        let keymap = crate::config::read(&paths, &text, &crate::config::Surroundings::default()).0.keymap;
        assert_eq!(keymap.preset(), preset);
        for terminal in terminals() {
            assert_eq!(unreachable(&keymap, &terminal), [""; 0], "{preset}");
        }
    }
}

#[test]
fn shift_enter_needs_the_kitty_protocol_or_reports() {
    let all = terminals();
    let with =
        all.iter().filter(|terminal| terminal.chords().contains(&Chord::parse("shift+enter").unwrap()));
    let with: Vec<&str> = with.map(|terminal| terminal.name).collect();
    let names = [
        "xterm, mintty",
        "tmux, extended-keys on",
        "tmux before 3.5, extended-keys on",
        "WezTerm",
        "kitty, foot, Ghostty, Alacritty",
    ];
    assert_eq!(with, names);
}
