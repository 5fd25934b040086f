mod terminals;

use proptest::prelude::*;

use super::*;
use crate::runtime::clipboard::terminal::Status;

/// The events of bytes that arrive in these reads, followed by a timeout.
fn decoded(pieces: &[&[u8]]) -> Vec<TtyEvent> {
    let mut decoder = Decoder::default();
    let mut out = Vec::new();
    for piece in pieces {
        decoder.feed(piece, Instant::now(), &mut out);
    }
    decoder.give_up(&mut out);
    out
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> TtyEvent {
    TtyEvent::Input(Event::Key(KeyEvent::new(code, modifiers)))
}

/// Input of terminals: keys of several protocols, mouse, focus, pastes, responses, and truncated sequences.
const CORPUS: [&[u8]; 43] = [
    b"a",
    "é日🙂".as_bytes(),
    b"\r",
    b"\x1b",
    b"\x1b\x1b",
    b"\x1bx",
    b"\x1b[A",
    b"\x1b[1;5C",
    b"\x1bOP",
    b"\x1b[15~",
    b"\x1b[6;2~",
    b"\x1b[13;2u",
    b"\x1b[27u",
    b"\x1b[Z",
    b"\x1b[I",
    b"\x1b[<0;3;4M",
    b"\x1b[<35;300;40m",
    b"\x1b[M abc",
    b"\x1b[200~two\nlines \x1b[A\x1b[201~",
    b"\x1b[200~\x1b[201~",
    b"\x1b]11;rgb:1111/2222/3333\x1b\\",
    b"\x1b]11;rgb:11/22/33\x07",
    b"\x1b[?2026;2$y",
    b"\x1b[?997;1n",
    b"\x1b[?997;2n",
    b"\x1b[?62;4;22c",
    b"\x1b_Gi=31;OK\x1b\\",
    b"\x1bP>|term 1\x1b\\",
    b"\x1b[6;20;10t",
    b"\x1b[2;2R",
    b"\x1b[?5522;2$y",
    b"\x1b]5522;type=read:status=DATA:id=a:mime=Lg==;dGV4dA==\x1b\\",
    b"\x1b]5522;type=read:status=DATA:id=a:mime=Lg==;dG\x03",
    b"\x1b]11;lost\x03",
    b"\x1b[1;\x1b[B",
    b"\x1b\x1b[A",
    b"\x1b[a",
    b"\x1bOd",
    b"\x1b[3$",
    b"\x1b[27;2;13~",
    b"\x1bO2P",
    b"\x1b\x1b[",
    b"\xff\x80",
];

fn letters(text: &str) -> Vec<TtyEvent> {
    text.chars().map(|ch| key(KeyCode::Char(ch), KeyModifiers::NONE)).collect()
}

#[test]
fn a_switch_between_dark_and_light_colors_is_reported() {
    for (bytes, is_dark) in [(&b"\x1b[?997;1n"[..], true), (b"\x1b[?997;2n", false)] {
        for cut in 0..bytes.len() {
            let (first, rest) = bytes.split_at(cut);
            assert_eq!(decoded(&[first, rest]), [TtyEvent::IsDark(is_dark)], "cut at {cut}");
        }
    }
    assert_eq!(decoded(&[b"\x1b[?997;3n\x1b[?996;1n"]), []);
}

#[test]
fn the_width_of_an_ambiguous_character_is_not_a_key() {
    for (bytes, cols) in [(&b"\x1b[2;2R"[..], 1), (b"\x1b[2;3R", 2)] {
        for cut in 0..bytes.len() {
            let (first, rest) = bytes.split_at(cut);
            assert_eq!(decoded(&[first, rest]), [TtyEvent::AmbiguousWidth(cols)], "cut at {cut}");
        }
    }
    assert_eq!(decoded(&[b"\x1b[1;2R"]), [key(KeyCode::F(3), KeyModifiers::SHIFT)]);
    assert_eq!(decoded(&[b"\x1b[2;5~"]), [key(KeyCode::Insert, KeyModifiers::CONTROL)]);
}

#[test]
fn keys_are_decoded() {
    assert_eq!(decoded(&["aé日".as_bytes()]), letters("aé日"));
    assert_eq!(decoded(&[b"\r"]), [key(KeyCode::Enter, KeyModifiers::NONE)]);
    assert_eq!(decoded(&[b"\x1b[A"]), [key(KeyCode::Up, KeyModifiers::NONE)]);
    assert_eq!(decoded(&[b"\x1b[1;5C"]), [key(KeyCode::Right, KeyModifiers::CONTROL)]);
    assert_eq!(decoded(&[b"\x1b[13;2u"]), [key(KeyCode::Enter, KeyModifiers::SHIFT)]);
    assert_eq!(
        decoded(&[b"\x1b[99:67;6u"]),
        [key(KeyCode::Char('c'), KeyModifiers::CONTROL | KeyModifiers::SHIFT)],
        "not Ctrl+C"
    );
    assert_eq!(decoded(&[b"\x1b[44:60;4u"]), [key(KeyCode::Char('<'), KeyModifiers::ALT)]);
    assert_eq!(decoded(&[b"\x1b[Z"]), [key(KeyCode::BackTab, KeyModifiers::SHIFT)]);
    assert_eq!(decoded(&[b"\x1bx"]), [key(KeyCode::Char('x'), KeyModifiers::ALT)]);
    assert_eq!(decoded(&[b"\x11"]), [key(KeyCode::Char('q'), KeyModifiers::CONTROL)]);
    assert_eq!(decoded(&[b"\x1b[I"]), [TtyEvent::Input(Event::FocusGained)]);
    assert!(matches!(decoded(&[b"\x1b[<0;3;4M"])[..], [TtyEvent::Input(Event::Mouse(_))]));
}

#[test]
fn esc_waits_for_the_rest_of_a_sequence() {
    let esc = || key(KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(decoded(&[b"\x1b"]), [esc()]);
    assert_eq!(decoded(&[b"\x1b\x1b"]), [esc(), esc()]);
    let (mut decoder, mut out) = (Decoder::default(), Vec::new());
    let now = Instant::now();
    decoder.feed(b"\x1b", now, &mut out);
    assert_eq!((out.len(), decoder.deadline()), (0, Some(now + KEY_WAIT)));
    decoder.feed(b"[A", now + Duration::from_millis(3), &mut out);
    assert_eq!((&out[..], decoder.deadline()), (&[key(KeyCode::Up, KeyModifiers::NONE)][..], None));
}

/// Alt with an arrow, as sent by iTerm2 and rxvt, must not stop a turn. Anything else after Esc is separate.
#[test]
fn esc_directly_before_a_key_is_alt() {
    let esc = || key(KeyCode::Esc, KeyModifiers::NONE);
    let up = |modifiers| key(KeyCode::Up, modifiers);
    for pieces in
        [&[&b"\x1b\x1b[A"[..]][..], &[b"\x1b", b"\x1b[A"], &[b"\x1b\x1b", b"OA"], &[b"\x1b\x1b[", b"A"]]
    {
        assert_eq!(decoded(pieces), [up(KeyModifiers::ALT)], "{pieces:?}");
    }
    let (mut decoder, mut out) = (Decoder::default(), Vec::new());
    decoder.feed(b"\x1b", Instant::now(), &mut out);
    decoder.give_up(&mut out);
    decoder.feed(b"\x1b[A", Instant::now(), &mut out);
    assert_eq!(out, [esc(), up(KeyModifiers::NONE)], "a pause");
    let paste = TtyEvent::Input(Event::Paste("a".to_owned()));
    assert_eq!(decoded(&[b"\x1b\x1b[200~a\x1b[201~"]), [esc(), paste]);
    assert_eq!(decoded(&[b"\x1b\x1b[?2026;2$y"]), [esc(), TtyEvent::Synchronizes(true)]);
    assert_eq!(decoded(&[b"\x1b\x1b]11;rgb:ff/ff/ff\x07"]), [esc(), TtyEvent::Background([255; 3])]);
    assert_eq!(decoded(&[b"\x1b\x1b[I"]), [esc(), TtyEvent::Input(Event::FocusGained)]);
    assert_eq!(decoded(&[b"\x1b\x1bx"]), [esc(), key(KeyCode::Char('x'), KeyModifiers::ALT)]);
    assert_eq!(decoded(&[b"\x1b\x1b\x1b"]), [esc(), esc(), esc()]);
    assert_eq!(decoded(&[b"\x1b\x1b["]), [esc(), key(KeyCode::Char('['), KeyModifiers::ALT)]);
}

#[test]
fn text_that_an_input_method_sends_right_after_an_escape_is_not_an_escape_key() {
    for text in ["あ", "中文", "é", "a"] {
        let events = decoded(&[format!("\x1b{text}").as_bytes()]);
        assert!(!events.contains(&key(KeyCode::Esc, KeyModifiers::NONE)), "{text}: {events:?}");
        let events = decoded(&[b"\x1b", text.as_bytes()]);
        assert!(!events.contains(&key(KeyCode::Esc, KeyModifiers::NONE)), "{text} in two reads: {events:?}");
    }
}

#[test]
fn pastes_do_not_depend_on_the_reads() {
    let paste = || TtyEvent::Input(Event::Paste("a\nb \u{1b}[A".to_owned()));
    assert_eq!(decoded(&[b"\x1b[200~a\nb \x1b[A\x1b[201~x"]), [vec![paste()], letters("x")].concat());
    assert_eq!(decoded(&[b"\x1b[20", b"0~a\nb \x1b", b"[A\x1b[201", b"~"]), [paste()]);
    let empty = TtyEvent::Input(Event::Paste(String::new()));
    assert_eq!(decoded(&[b"\x1b[200~\x1b[201~"]), [empty], "as sent for an image in the clipboard");
}

#[test]
fn an_endless_paste_is_split_and_times_out() {
    let (mut decoder, mut out) = (Decoder::default(), Vec::new());
    let now = Instant::now();
    decoder.feed(b"\x1b[200~", now, &mut out);
    for _ in 0..2048 {
        decoder.feed("日".repeat(1024).as_bytes(), now, &mut out);
        assert!(decoder.bytes.len() <= PASTE_MAX_BYTES + PASTE_END.len());
    }
    assert_eq!(decoder.deadline(), Some(now + PASTE_WAIT));
    decoder.give_up(&mut out);
    let texts: String = out
        .iter()
        .map(|decoded| match decoded {
            TtyEvent::Input(Event::Paste(text)) => text.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(texts.chars().all(|ch| ch == '日') && texts.len() > PASTE_MAX_BYTES && out.len() > 1);
    out.clear();
    decoder.feed(b"k", now, &mut out);
    assert_eq!(out, letters("k"));
}

#[test]
fn responses_are_decoded_and_never_typed() {
    for (value, knows) in [(0, false), (1, true), (2, true), (3, false), (4, false)] {
        let answer = format!("a\x1b[?2026;{value}$yb");
        let expected = [letters("a"), vec![TtyEvent::Synchronizes(knows)], letters("b")].concat();
        assert_eq!(decoded(&[answer.as_bytes()]), expected);
    }
    for answer in ["\x1b]11;rgb:ffff/8080/0000\x1b\\", "\x1b]11;rgb:ff/80/00\x07", "\x1b]11;#ff8000\x07"] {
        assert_eq!(decoded(&[answer.as_bytes()]), [TtyEvent::Background([255, 128, 0])], "{answer:?}");
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
        assert_eq!(decoded(&[other.as_bytes(), b"z"]), letters("z"), "{other:?}");
        let (a, b) = other.as_bytes().split_at(other.len() / 2);
        assert_eq!(decoded(&[a, b, b"z"]), letters("z"), "{other:?}");
    }
}

#[test]
fn responses_about_images_do_not_depend_on_the_reads() {
    for (answer, expected) in [
        ("\x1b[?62;4;22c", TtyEvent::Sixel(true)),
        ("\x1b[?62;22c", TtyEvent::Sixel(false)),
        ("\x1b[?4c", TtyEvent::Sixel(false)),
        ("\x1b_Gi=31;OK\x1b\\", TtyEvent::Kitty(31)),
        ("\x1b_Gi=32;OK\x1b\\", TtyEvent::Kitty(32)),
        ("\x1b[6;20;10t", TtyEvent::CellSize(10, 20)),
        ("\x1bP>|tuibench 1\x1b\\", TtyEvent::Name("tuibench 1".to_owned())),
    ] {
        for cut in 1..answer.len() {
            let (a, b) = answer.as_bytes().split_at(cut);
            let mut decoder = Decoder::default();
            let mut out = Vec::new();
            decoder.feed(a, Instant::now(), &mut out);
            decoder.feed(b, Instant::now(), &mut out);
            assert_eq!(out, std::slice::from_ref(&expected), "{answer:?} at {cut}");
        }
    }
    // A key has the same start.
    assert_eq!(decoded(&[b"\x1b[6;2~"]), [key(KeyCode::PageDown, KeyModifiers::SHIFT)]);
}

#[test]
fn incomplete_sequences_become_keys() {
    for (bytes, expected) in [
        (b"\x1b]".as_slice(), vec![key(KeyCode::Char(']'), KeyModifiers::ALT)]),
        (b"\x1bP", vec![key(KeyCode::Char('P'), KeyModifiers::ALT)]),
        (b"\x1b[", vec![key(KeyCode::Char('['), KeyModifiers::ALT)]),
        (b"\x1b]11;rgb:", vec![]),
        (b"\xe6\x97", vec![]),
    ] {
        let (mut decoder, mut out) = (Decoder::default(), Vec::new());
        decoder.feed(bytes, Instant::now(), &mut out);
        assert!(out.is_empty() && decoder.deadline().is_some(), "{bytes:?}");
        decoder.give_up(&mut out);
        assert_eq!(out, expected, "{bytes:?}");
        out.clear();
        decoder.feed(b"k", Instant::now(), &mut out);
        assert_eq!(out, letters("k"), "after {bytes:?}");
    }
}

#[test]
fn parts_of_the_clipboard_are_decoded() {
    let part = ClipboardPacket {
        id: "a-1".into(),
        status: Status::Data,
        mime: "image/png".into(),
        data: b"data".into(),
    };
    let part = TtyEvent::Clipboard(part);
    for end in ["\x1b\\", "\x07"] {
        let bytes = format!("\x1b]5522;type=read:status=DATA:id=a-1:mime=aW1hZ2UvcG5n;ZGF0YQ=={end}x");
        for cut in 0..bytes.len() {
            let (first, rest) = bytes.as_bytes().split_at(cut);
            let found = decoded(&[first, rest]);
            assert_eq!(found, [&[part.clone()][..], &letters("x")].concat(), "cut at {cut}");
        }
    }
    for (report, is_supported) in [("0", false), ("1", true), ("2", true), ("3", true), ("4", false)] {
        let report = format!("\x1b[?5522;{report}$y");
        assert_eq!(decoded(&[report.as_bytes()]), [TtyEvent::HasClipboard(is_supported)]);
    }
}

#[test]
fn an_incomplete_part_of_the_clipboard_is_reported_and_not_typed() {
    let start = "\x1b]5522;type=read:status=DATA:id=a:mime=Lg==;";
    let broken = TtyEvent::Clipboard(ClipboardPacket::BROKEN);
    let control_c = key(KeyCode::Char('c'), KeyModifiers::CONTROL);
    for (bytes, expected) in [
        (format!("{start}ZG\x03"), vec![broken.clone(), control_c]),
        (format!("{start}Z!==\x1b\\x"), [vec![broken.clone()], letters("x")].concat()),
        (format!("{start}Z\x1b]11;x\x07"), vec![broken.clone()]),
        (format!("{start}ZG"), vec![broken.clone()]),
        (
            format!("{start}{}\x1b\\x", "A".repeat(3 * CLIPBOARD_MAX_BYTES)),
            [vec![broken], letters("x")].concat(),
        ),
    ] {
        assert_eq!(decoded(&[bytes.as_bytes()]), expected, "{}", &bytes[..60]);
    }
}

#[test]
fn other_responses_about_the_clipboard_are_ignored() {
    for body in [
        "",
        "type=read",
        "type=read:status=OK",
        "type=write:status=DONE:id=a",
        "status=OK:id=a",
        ":;:=",
        "id=a;type=read:status=OK",
    ] {
        assert_eq!(decoded(&[format!("\x1b]5522;{body}\x07").as_bytes()]), [], "{body}");
    }
}

#[test]
fn the_rest_of_a_response_that_is_too_long_is_skipped() {
    let long = format!("\x1b]11;{}\x1b\\x", "y".repeat(3 * ANSWER_MAX_BYTES));
    assert_eq!(decoded(&[long.as_bytes()]), letters("x"));
}

#[test]
fn an_endless_response_is_bounded() {
    let (mut decoder, mut out) = (Decoder::default(), Vec::new());
    decoder.feed(b"\x1b]11;", Instant::now(), &mut out);
    decoder.feed(&[b'x'; 3 * ANSWER_MAX_BYTES], Instant::now(), &mut out);
    assert!(decoder.bytes.len() <= ANSWER_MAX_BYTES + 8);
    decoder.feed(b"\x1b\\\x1b]5522;", Instant::now(), &mut out);
    decoder.feed(&vec![b'x'; 3 * CLIPBOARD_MAX_BYTES], Instant::now(), &mut out);
    assert!(decoder.bytes.capacity() <= 4 * CLIPBOARD_MAX_BYTES);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..8)) {
        let (mut decoder, mut out) = (Decoder::default(), Vec::new());
        for piece in &pieces {
            decoder.feed(piece, Instant::now(), &mut out);
        }
        decoder.give_up(&mut out);
        prop_assert!(decoder.deadline().is_none());
    }

    #[test]
    fn letters_between_responses_are_typed(text in "[a-z日é]{1,20}", at in 0_usize..20) {
        let mut bytes = Vec::new();
        for (index, ch) in text.chars().enumerate() {
            if index == at {
                bytes.extend_from_slice(b"\x1b]11;rgb:1111/1111/1111\x1b\\\x1b[?2026;2$y\x1b[?62c");
            }
            bytes.extend_from_slice(ch.to_string().as_bytes());
        }
        let typed: Vec<TtyEvent> = decoded(&[&bytes]).into_iter().filter(|decoded| matches!(decoded, TtyEvent::Input(_))).collect();
        prop_assert_eq!(typed, letters(&text));
    }

    #[test]
    fn the_result_does_not_depend_on_reads_and_short_pauses(
        corpus in proptest::collection::vec(proptest::sample::select(CORPUS.to_vec()), 1..12),
        cuts in proptest::collection::vec((0_usize..400, 1_u64..50), 0..12),
    ) {
        let bytes = corpus.concat();
        let whole = decoded(&[&bytes]);
        let mut pauses: std::collections::BTreeMap<usize, u64> = cuts.into_iter().collect();
        let mut now = Instant::now();
        let (mut decoder, mut out, mut from) = (Decoder::default(), Vec::new(), 0);
        pauses.insert(bytes.len(), 1);
        for (cut, pause) in pauses {
            let to = cut.min(bytes.len()).max(from);
            decoder.feed(&bytes[from..to], now, &mut out);
            now += Duration::from_millis(pause);
            prop_assert!(decoder.deadline().is_none_or(|deadline| deadline > now));
            from = to;
        }
        decoder.give_up(&mut out);
        prop_assert_eq!(out, whole);
    }

    #[test]
    fn a_response_with_long_pauses_types_nothing(
        cuts in proptest::collection::vec(0_usize..60, 1..6),
        answer in proptest::sample::select(vec![
            b"\x1b]11;rgb:1111/1111/1111\x1b\\".as_slice(), b"\x1b[?2026;2$y", b"\x1b[?62;4;22c", b"\x1bP>|term 1\x1b\\",
            b"\x1b_Gi=31;OK\x1b\\", b"\x1b[6;20;10t", b"\x1b[?5522;2$y",
            b"\x1b]5522;type=read:status=DATA:id=a:mime=Lg==;dGV4dA==\x1b\\",
        ]),
    ) {
        // The first two bytes could still be a key.
        let cuts: std::collections::BTreeSet<usize> = cuts.into_iter().map(|cut| 3 + cut % (answer.len() - 3)).collect();
        let mut now = Instant::now();
        let (mut decoder, mut out, mut from) = (Decoder::default(), Vec::new(), 0);
        for cut in cuts.into_iter().chain([answer.len()]) {
            decoder.feed(&answer[from..cut], now, &mut out);
            now += Duration::from_millis(900);
            prop_assert!(decoder.deadline().is_none_or(|deadline| deadline > now));
            from = cut;
        }
        prop_assert!(out.len() == 1 && !matches!(out[0], TtyEvent::Input(_)), "{:?}", out);
    }
}
