//! Copies text to the clipboard of the system or, over a remote connection, of the terminal; reads texts and images from it.
//!
//! Text is passed to the first available program, or encoded for the terminal (OSC 52), also through tmux and GNU
//! screen. `runtime` writes the sequence.
//! Invariant: only confirmed results are reported. A program that exited successfully has the text; for OSC 52 the
//! result is unknown.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::model::{CopyOutcome, byte_size};

use super::process;

/// Maximum size of text in an OSC 52 sequence, in bytes: 100,000 characters of base64, which is the limit of several
/// terminals.
const TERMINAL_MAX_BYTES: usize = 74_994;

/// Maximum size of a text that is read.
const TEXT_MAX_BYTES: usize = 16 << 20;

/// Other ways to paste.
const ADVICE: &str =
    "Paste text with the terminal's own key. Copy an image to this machine, and mention the file with @.";

/// Bytes of a sequence in one GNU screen escape; its limit is 768.
const SCREEN_CHUNK_BYTES: usize = 480;

/// The environment, as far as the clipboard is concerned.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// Whether parlor runs over SSH, so that the clipboard of this machine is not the user's.
    pub is_remote: bool,
    pub is_in_tmux: bool,
    pub is_in_screen: bool,
    pub has_wayland: bool,
    pub has_x11: bool,
    pub is_macos: bool,
}

impl Surroundings {
    /// Detects the environment from the usual variables.
    pub fn judge(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        Self {
            is_remote: is_set("SSH_TTY") || is_set("SSH_CONNECTION"),
            is_in_tmux: is_set("TMUX"),
            is_in_screen: is_set("STY"),
            has_wayland: is_set("WAYLAND_DISPLAY"),
            has_x11: is_set("DISPLAY"),
            is_macos: cfg!(target_os = "macos"),
        }
    }

    pub fn has_clipboard(self) -> bool {
        !self.is_remote && (self.has_wayland || self.has_x11 || self.is_macos || cfg!(windows))
    }

    /// The clipboard programs to try, in order.
    fn programs(self) -> Vec<&'static [&'static str]> {
        let mut programs: Vec<&[&str]> = Vec::new();
        if !self.is_remote {
            if self.is_macos {
                programs.push(&["pbcopy"]);
            }
            if self.has_wayland {
                programs.push(&["wl-copy"]);
            }
            if self.has_x11 {
                programs.push(&["xclip", "-selection", "clipboard", "-in"]);
                programs.push(&["xsel", "--clipboard", "--input"]);
            }
        }
        if self.is_in_tmux {
            // tmux stores the text, and passes it on to its terminal if configured.
            programs.push(&["tmux", "load-buffer", "-w", "-"]);
        }
        programs
    }
}

/// Copies a text. Blocks for up to two seconds per program.
pub fn copy(text: &str, around: Surroundings) -> CopyOutcome {
    copy_by(text, around, |command| match command.split_first() {
        Some((program, args)) => process::feed(program, args, text.as_bytes()),
        None => Err(io::ErrorKind::NotFound.into()),
    })
}

/// What the clipboard contains.
#[derive(Debug)]
pub enum Contents {
    /// Width and height, and four bytes per pixel.
    Pixels((u32, u32), Vec<u8>),
    Encoded(Vec<u8>),
    Text(String),
}

/// Reads the text in the clipboard or, if `takes_images`, preferably an image. Blocks for up to some seconds.
pub fn read(around: Surroundings, takes_images: bool) -> Result<Contents, String> {
    if !around.has_clipboard() {
        let why = match around {
            Surroundings { is_in_tmux: true, .. } => "tmux does not give programs the terminal's clipboard.",
            Surroundings { is_in_screen: true, .. } => {
                "GNU screen does not give programs the terminal's clipboard."
            }
            Surroundings { is_remote: true, .. } => "This terminal does not share its clipboard over SSH.",
            _ => "There is no display, and this terminal does not share its clipboard.",
        };
        return Err(format!("{why} {ADVICE}"));
    }
    let mut clipboard =
        arboard::Clipboard::new().map_err(|error| format!("Could not open the clipboard: {error}."))?;
    let mut why = None;
    if takes_images {
        match clipboard.get_image() {
            Ok(image) => {
                let size = u32::try_from(image.width).ok().zip(u32::try_from(image.height).ok());
                let size = size.ok_or("The image in the clipboard is too large.")?;
                return Ok(Contents::Pixels(size, image.bytes.into_owned()));
            }
            // Some programs offer a text in place of an image.
            Err(error) => why = Some(error),
        }
    }
    let text = clipboard.get_text();
    match text.map_err(|error| why.filter(|why| !is_empty(why)).unwrap_or(error)) {
        Err(error) if !is_empty(&error) => Err(format!("Could not read the clipboard: {error}.")),
        text => text_of(text.unwrap_or_default(), takes_images),
    }
}

/// The text in a clipboard, which may be empty or too long. `takes_images`: the clipboard contains no image.
pub fn text_of(text: String, takes_images: bool) -> Result<Contents, String> {
    if text.len() > TEXT_MAX_BYTES {
        return Err(format!("The text in the clipboard is larger than {} MiB.", TEXT_MAX_BYTES >> 20));
    }
    if !text.is_empty() {
        return Ok(Contents::Text(text));
    }
    let missing = if takes_images { "no image and no text" } else { "no text" };
    Err(format!("The clipboard contains {missing}."))
}

fn is_empty(error: &arboard::Error) -> bool {
    matches!(error, arboard::Error::ContentNotAvailable)
}

fn copy_by(text: &str, around: Surroundings, feed: impl Fn(&[&str]) -> io::Result<()>) -> CopyOutcome {
    if text.is_empty() {
        return CopyOutcome::Nothing;
    }
    for command in around.programs() {
        if feed(command).is_ok() {
            return match command.first() {
                Some(&"tmux") => CopyOutcome::TmuxBuffer,
                program => CopyOutcome::Program(program.copied().unwrap_or_default()),
            };
        }
    }
    if text.len() > TERMINAL_MAX_BYTES {
        let (size, max) = (byte_size(text.len() as u64), byte_size(TERMINAL_MAX_BYTES as u64));
        let advice = match (around.is_remote, around.has_wayland, around.has_x11) {
            (false, true, _) => "Install wl-clipboard, or copy less.",
            (false, false, true) => "Install xclip or xsel, or copy less.",
            _ => "Copy less.",
        };
        return CopyOutcome::Failed(format!("Cannot copy {size}: the terminal's limit is {max}. {advice}"));
    }
    CopyOutcome::Terminal { sequence: sequence(text, around) }
}

/// The OSC 52 sequence that copies a text, escaped for tmux or screen.
fn sequence(text: &str, around: Surroundings) -> String {
    // Terminated with BEL, because the alternative, ESC \, would also end the outer sequence.
    let bare = format!("\x1b]52;c;{}\x07", BASE64_STANDARD.encode(text));
    if around.is_in_tmux {
        return format!("\x1bPtmux;{}\x1b\\", bare.replace('\x1b', "\x1b\x1b"));
    }
    if !around.is_in_screen {
        return bare;
    }
    let mut wrapped = String::with_capacity(bare.len() + bare.len() / 100);
    let mut rest = bare.as_str();
    while !rest.is_empty() {
        let (chunk, more) = rest.split_at(rest.len().min(SCREEN_CHUNK_BYTES));
        let _ = write!(wrapped, "\x1bP{chunk}\x1b\\");
        rest = more;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(_: &[&str]) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn judged(variables: &[(&str, &str)]) -> Surroundings {
        let mut around = Surroundings::judge(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        });
        around.is_macos = false;
        around
    }

    fn programs(around: Surroundings) -> Vec<&'static str> {
        around.programs().iter().filter_map(|command| command.first().copied()).collect()
    }

    #[test]
    fn the_clipboard_of_the_machine_is_not_used_over_ssh() {
        let local = [("WAYLAND_DISPLAY", "wayland-0"), ("DISPLAY", ":0"), ("TMUX", "x")];
        assert_eq!(programs(judged(&local)), ["wl-copy", "xclip", "xsel", "tmux"]);
        let remote = [("SSH_TTY", "/dev/pts/1"), ("DISPLAY", "localhost:10"), ("TMUX", "x")];
        assert_eq!(programs(judged(&remote)), ["tmux"]);
        assert_eq!(programs(judged(&[("TMUX", "")])), [""; 0]);
    }

    #[test]
    fn the_clipboard_of_the_machine_is_not_read_over_ssh() {
        let remote = [("SSH_TTY", "/dev/pts/1"), ("DISPLAY", "localhost:10")];
        for (variables, why) in [
            (&remote[..], "This terminal does not share its clipboard over SSH. "),
            (&[("SSH_CONNECTION", "x"), ("TMUX", "x")], "tmux does not "),
            (&[("STY", "x")], "GNU screen does not "),
            (&[], "There is no display, "),
        ] {
            for takes_images in [true, false] {
                let read = read(judged(variables), takes_images).unwrap_err();
                assert!(read.starts_with(why) && read.ends_with(ADVICE), "{read}");
            }
        }
        assert!(judged(&[("DISPLAY", ":0"), ("TMUX", "x")]).has_clipboard());
    }

    #[test]
    fn the_first_program_that_succeeds_is_reported() {
        let around = judged(&[("DISPLAY", ":0"), ("TMUX", "x")]);
        let by_xsel = |command: &[&str]| if command[0] == "xsel" { Ok(()) } else { refuse(command) };
        assert_eq!(copy_by("text", around, by_xsel), CopyOutcome::Program("xsel"));
        let by_tmux = |command: &[&str]| if command[0] == "tmux" { Ok(()) } else { refuse(command) };
        assert_eq!(copy_by("text", around, by_tmux), CopyOutcome::TmuxBuffer);
    }

    #[test]
    fn osc_52_is_the_last_resort_and_is_escaped_for_multiplexers() {
        let sequence = |around| match copy_by("text", around, refuse) {
            CopyOutcome::Terminal { sequence } => sequence,
            other => panic!("{other:?}"),
        };
        assert_eq!(sequence(judged(&[])), "\x1b]52;c;dGV4dA==\x07");
        assert_eq!(sequence(judged(&[("TMUX", "x")])), "\x1bPtmux;\x1b\x1b]52;c;dGV4dA==\x07\x1b\\");
        assert_eq!(sequence(judged(&[("STY", "x")])), "\x1bP\x1b]52;c;dGV4dA==\x07\x1b\\");
    }

    #[test]
    fn sequences_for_screen_are_split() {
        let CopyOutcome::Terminal { sequence } = copy_by(&"x".repeat(3000), judged(&[("STY", "x")]), refuse)
        else {
            panic!("no sequence");
        };
        let pieces: Vec<&str> = sequence.split("\x1b\\").filter(|piece| !piece.is_empty()).collect();
        assert!(pieces.iter().all(|piece| piece.len() <= 768 && piece.starts_with("\x1bP")));
        let inner: String = pieces.iter().map(|piece| &piece[2..]).collect();
        assert_eq!(inner, format!("\x1b]52;c;{}\x07", BASE64_STANDARD.encode("x".repeat(3000))));
    }

    #[test]
    fn text_over_the_terminal_limit_is_rejected_with_advice() {
        let long = "x".repeat(TERMINAL_MAX_BYTES + 1);
        let CopyOutcome::Failed(why) = copy_by(&long, judged(&[("DISPLAY", ":0")]), refuse) else {
            panic!("copied");
        };
        assert_eq!(
            why,
            "Cannot copy 74 KiB: the terminal's limit is 74 KiB. Install xclip or xsel, or copy less."
        );
        assert_eq!(copy_by("", judged(&[]), refuse), CopyOutcome::Nothing);
    }
}
