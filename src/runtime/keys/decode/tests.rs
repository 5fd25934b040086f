use proptest::prelude::*;

use super::*;

/// What comes of bytes that arrive in these pieces, each followed by silence.
fn told(pieces: &[&[u8]]) -> Vec<Told> {
    let mut decoder = Decoder::default();
    let mut out = Vec::new();
    for piece in pieces {
        decoder.feed(piece, false, &mut out);
    }
    out
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Told {
    Told::Input(Event::Key(KeyEvent::new(code, modifiers)))
}

fn letters(text: &str) -> Vec<Told> {
    text.chars().map(|letter| key(KeyCode::Char(letter), KeyModifiers::NONE)).collect()
}

#[test]
fn keys_are_keys() {
    assert_eq!(told(&["aé日".as_bytes()]), letters("aé日"));
    assert_eq!(told(&[b"\r"]), [key(KeyCode::Enter, KeyModifiers::NONE)]);
    assert_eq!(told(&[b"\x1b[A"]), [key(KeyCode::Up, KeyModifiers::NONE)]);
    assert_eq!(told(&[b"\x1b[1;5C"]), [key(KeyCode::Right, KeyModifiers::CONTROL)]);
    assert_eq!(told(&[b"\x1b[13;2u"]), [key(KeyCode::Enter, KeyModifiers::SHIFT)]);
    assert_eq!(told(&[b"\x1b[Z"]), [key(KeyCode::BackTab, KeyModifiers::SHIFT)]);
    assert_eq!(told(&[b"\x1bx"]), [key(KeyCode::Char('x'), KeyModifiers::ALT)]);
    assert_eq!(told(&[b"\x11"]), [key(KeyCode::Char('q'), KeyModifiers::CONTROL)]);
    assert_eq!(told(&[b"\x1b[I"]), [Told::Input(Event::FocusGained)]);
    assert!(matches!(told(&[b"\x1b[<0;3;4M"])[..], [Told::Input(Event::Mouse(_))]));
}

#[test]
fn an_esc_is_told_at_once_and_each_of_two() {
    let esc = || key(KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(told(&[b"\x1b"]), [esc()]);
    assert_eq!(told(&[b"\x1b\x1b"]), [esc(), esc()]);
    assert_eq!(told(&[b"\x1b\x1b[A"]), [esc(), key(KeyCode::Up, KeyModifiers::NONE)]);
    // More is there to be read, so it may be the beginning of something.
    let (mut decoder, mut out) = (Decoder::default(), Vec::new());
    decoder.feed(b"\x1b", true, &mut out);
    assert_eq!(out, []);
    decoder.feed(b"[B", false, &mut out);
    assert_eq!(out, [key(KeyCode::Down, KeyModifiers::NONE)]);
}

#[test]
fn a_paste_comes_whole_however_it_is_cut() {
    let paste = || Told::Input(Event::Paste("a\nb \u{1b}[A".to_owned()));
    assert_eq!(told(&[b"\x1b[200~a\nb \x1b[A\x1b[201~x"]), [vec![paste()], letters("x")].concat());
    assert_eq!(told(&[b"\x1b[20", b"0~a\nb \x1b", b"[A\x1b[201", b"~"]), [paste()]);
    let (mut decoder, mut out) = (Decoder::default(), Vec::new());
    decoder.feed(b"\x1b[200~half", false, &mut out);
    assert!(!decoder.is_waiting(), "the rest may take its time");
}

#[test]
fn answers_are_understood_and_never_typed() {
    for (value, knows) in [(0, false), (1, true), (2, true), (3, true), (4, false)] {
        let answer = format!("a\x1b[?2026;{value}$yb");
        let expected = [letters("a"), vec![Told::Synchronizes(knows)], letters("b")].concat();
        assert_eq!(told(&[answer.as_bytes()]), expected);
    }
    for answer in ["\x1b]11;rgb:ffff/8080/0000\x1b\\", "\x1b]11;rgb:ff/80/00\x07", "\x1b]11;#ff8000\x07"] {
        assert_eq!(told(&[answer.as_bytes()]), [Told::Background([255, 128, 0])], "{answer:?}");
    }
    for other in [
        "\x1b[>41;354;0c",
        "\x1b[?1u",
        "\x1b[?2027;0$y",
        "\x1bP1$r0m\x1b\\",
        "\x1b]10;rgb:0/0/0\x07",
        "\x1b]11;nonsense\x07",
        "\x1b_Gi=31;ENOTSUPPORTED:no\x1b\\",
        "\x1b[6;0;9t",
    ] {
        assert_eq!(told(&[other.as_bytes(), b"z"]), letters("z"), "{other:?}");
        let (a, b) = other.as_bytes().split_at(other.len() / 2);
        assert_eq!(told(&[a, b, b"z"]), letters("z"), "{other:?}");
    }
}

#[test]
fn what_pictures_it_shows_is_understood_however_it_is_cut() {
    for (answer, expected) in [
        ("\x1b[?62;4;22c", Told::Sixel(true)),
        ("\x1b[?62;22c", Told::Sixel(false)),
        ("\x1b[?4c", Told::Sixel(false)),
        ("\x1b_Gi=31;OK\x1b\\", Told::Kitty(31)),
        ("\x1b_Gi=32;OK\x1b\\", Told::Kitty(32)),
        ("\x1b[6;20;10t", Told::CellSize(10, 20)),
        ("\x1bP>|tuibench 1\x1b\\", Told::Name("tuibench 1".to_owned())),
    ] {
        for cut in 1..answer.len() {
            let (a, b) = answer.as_bytes().split_at(cut);
            let mut decoder = Decoder::default();
            let mut out = Vec::new();
            decoder.feed(a, true, &mut out);
            decoder.feed(b, false, &mut out);
            assert_eq!(out, std::slice::from_ref(&expected), "{answer:?} at {cut}");
        }
    }
    // So begins a key too.
    assert_eq!(told(&[b"\x1b[6;2~"]), [key(KeyCode::PageDown, KeyModifiers::SHIFT)]);
}

#[test]
fn what_does_not_go_on_was_a_key() {
    for (bytes, expected) in [
        (b"\x1b]".as_slice(), vec![key(KeyCode::Char(']'), KeyModifiers::ALT)]),
        (b"\x1bP", vec![key(KeyCode::Char('P'), KeyModifiers::ALT)]),
        (b"\x1b[", vec![key(KeyCode::Char('['), KeyModifiers::ALT)]),
        (b"\x1b]11;rgb:", vec![]),
        (b"\xe6\x97", vec![]),
    ] {
        let (mut decoder, mut out) = (Decoder::default(), Vec::new());
        decoder.feed(bytes, false, &mut out);
        assert!(out.is_empty() && decoder.is_waiting(), "{bytes:?}");
        decoder.give_up(&mut out);
        assert_eq!(out, expected, "{bytes:?}");
        out.clear();
        decoder.feed(b"k", false, &mut out);
        assert_eq!(out, letters("k"), "after {bytes:?}");
    }
}

#[test]
fn an_answer_without_an_end_is_not_kept_for_ever() {
    let (mut decoder, mut out) = (Decoder::default(), Vec::new());
    decoder.feed(b"\x1b]11;", false, &mut out);
    decoder.feed(&[b'x'; 3 * ANSWER_MAX_BYTES], false, &mut out);
    assert!(decoder.bytes.len() <= ANSWER_MAX_BYTES + 8);
}

proptest! {
    #[test]
    fn no_bytes_break_it(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..8)) {
        let (mut decoder, mut out) = (Decoder::default(), Vec::new());
        for piece in &pieces {
            decoder.feed(piece, false, &mut out);
        }
        decoder.give_up(&mut out);
        prop_assert!(!decoder.is_waiting());
    }

    #[test]
    fn letters_survive_whatever_is_answered_between_them(text in "[a-z日é]{1,20}", at in 0_usize..20) {
        let mut bytes = Vec::new();
        for (index, letter) in text.chars().enumerate() {
            if index == at {
                bytes.extend_from_slice(b"\x1b]11;rgb:1111/1111/1111\x1b\\\x1b[?2026;2$y\x1b[?62c");
            }
            bytes.extend_from_slice(letter.to_string().as_bytes());
        }
        let typed: Vec<Told> = told(&[&bytes]).into_iter().filter(|told| matches!(told, Told::Input(_))).collect();
        prop_assert_eq!(typed, letters(&text));
    }
}
