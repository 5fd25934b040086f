//! Images and texts of the terminal's clipboard (OSC 5522). The test responds as a terminal would.

use std::io::Cursor;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::screen::Screen;

const CTRL_V: &str = "\u{16}";
const REQUEST: &str = "\u{1b}]5522;type=read:id=";

/// The demo agent on a terminal that supports the protocol.
fn supported(folder: &Path, variables: &[(&str, &str)]) -> Screen {
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, Path::new(*value))).collect();
    let mut screen = Screen::start_with(folder, &["demo"], (24, 100), &variables);
    screen.wait_until("the question", |screen| raw(screen).contains("\u{1b}[?5522$p"));
    screen.send("\u{1b}[?5522;2$y");
    screen.wait_for("ready");
    screen
}

fn raw(screen: &Screen) -> String {
    String::from_utf8_lossy(&screen.raw).into_owned()
}

/// Waits for a request and returns its id and the requested type.
fn request(screen: &mut Screen) -> (String, String) {
    let find = |screen: &Screen| {
        let raw = raw(screen);
        let (metadata, rest) = raw.split_once(REQUEST)?.1.split_once(';')?;
        let payload = rest.split_once("\u{1b}\\")?.0;
        let mime = String::from_utf8(BASE64_STANDARD.decode(payload).unwrap()).unwrap();
        Some((metadata.split(':').next()?.to_owned(), mime))
    };
    screen.wait_until("a request", |screen| find(screen).is_some());
    let found = find(screen).unwrap();
    screen.raw.clear();
    found
}

/// Sends data of a type, in parts as large as those of kitty.
fn respond(screen: &mut Screen, id: &str, mime: &str, data: &[u8]) {
    let encoded = BASE64_STANDARD.encode(mime);
    let packet = |rest: &str| format!("\u{1b}]5522;type=read:id={id}:status={rest}\u{1b}\\");
    let part = |part: &[u8]| packet(&format!("DATA:mime={encoded};{}", BASE64_STANDARD.encode(part)));
    let all: String = data.chunks(4096).map(part).collect();
    screen.send(&[packet("OK"), all, packet("DONE")].concat());
}

/// A PNG that does not fit into one part.
fn png() -> Vec<u8> {
    let pixels = image::RgbImage::from_fn(120, 80, |x, y| {
        let noise = (x * 31 + y * 17) ^ (x * y * 7);
        image::Rgb([noise, noise >> 1, noise >> 2].map(|value| (value & 0xff) as u8))
    });
    let mut encoded = Cursor::new(Vec::new());
    pixels.write_to(&mut encoded, image::ImageFormat::Png).unwrap();
    encoded.into_inner()
}

#[test]
fn an_image_of_the_terminals_clipboard_is_attached_without_a_display() {
    let folder = tempfile::tempdir().unwrap();
    let none = ["DISPLAY", "WAYLAND_DISPLAY", "SSH_TTY", "SSH_CONNECTION"].map(|name| (name, ""));
    let mut screen = supported(folder.path(), &none);
    // Without a request.
    respond(&mut screen, "", "text/plain", b"unsolicited");
    screen.send("see ");
    screen.send(CTRL_V);
    let (id, mime) = request(&mut screen);
    assert_eq!(mime, ".");
    respond(&mut screen, &id, ".", b"text/html image/png text/plain\n");
    let (id, mime) = request(&mut screen);
    assert_eq!(mime, "image/png");
    let png = png();
    assert!(png.len() > 2 * 4096, "{}", png.len());
    respond(&mut screen, &id, "image/png", &png);
    screen.wait_for("› see [Image #");
    screen.wait_for(": 120×80, ");
    respond(&mut screen, &id, "image/png", &png);
    screen.send("end");
    screen.wait_for("end");
    let text = screen.text();
    assert!(text.matches("[Image #").count() == 1 && !text.contains("unsolicited"), "{text}");
    screen.send("\u{11}");
    assert!(screen.wait_exit().success());
}

#[test]
fn a_text_is_pasted_over_ssh_and_a_refusal_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = supported(folder.path(), &[("SSH_TTY", "/dev/pts/0"), ("DISPLAY", "localhost:10")]);
    screen.send(CTRL_V);
    let (id, _) = request(&mut screen);
    respond(&mut screen, &id, ".", b"text/plain\n");
    let (id, mime) = request(&mut screen);
    assert_eq!(mime, "text/plain");
    screen.wait_for("The terminal may ask for your permission");
    screen.send(&format!("\u{1b}]5522;type=read:status=EPERM:id={id}\u{1b}\\"));
    screen.wait_for("The terminal denied access to its clipboard.");
    respond(&mut screen, &id, "text/plain", b"late");

    screen.send(CTRL_V);
    let (id, _) = request(&mut screen);
    respond(&mut screen, &id, ".", b"text/plain\n");
    let (id, _) = request(&mut screen);
    respond(&mut screen, &id, "text/plain", b"one two");
    screen.wait_for("› one two");
    assert!(!screen.text().contains("late"));
    screen.send("\u{11}");
    assert!(screen.wait_exit().success());
}

#[test]
fn a_terminal_without_the_protocol_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let variables = [("SSH_TTY", Path::new("/dev/pts/0")), ("TMUX", Path::new("/tmp/none"))];
    let mut screen = Screen::start_with(folder.path(), &["demo"], (24, 100), &variables);
    screen.wait_for("ready");
    screen.send("\u{1b}[?5522;0$y");
    screen.send(CTRL_V);
    screen.wait_for("tmux does not give programs the terminal's clipboard.");
    assert!(!raw(&screen).contains(REQUEST));
}
