use proptest::prelude::*;

use super::*;

const KEY: SessionKey = SessionKey(1);
const DENIED: &str = "The terminal denied access to its clipboard. Allow it when the terminal asks, or in the terminal's \
                      settings.";

fn packet(id: &str, status: Status, mime: &str, data: &[u8]) -> ClipboardPacket {
    ClipboardPacket { id: id.to_owned(), status, mime: mime.to_owned(), data: data.to_vec() }
}

fn encoded(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

/// A clipboard with a request of a draft, and the time.
struct Rig {
    clipboard: TerminalClipboard,
    now: Instant,
    /// The id of the last request.
    id: String,
}

impl Rig {
    fn new(takes_images: bool) -> Self {
        let now = Instant::now();
        let mut clipboard = TerminalClipboard::default();
        let sequence = clipboard.start(KEY, takes_images.then(|| "see".to_owned()), now).unwrap();
        let mut rig = Self { clipboard, now, id: String::new() };
        assert_eq!(rig.asked(&sequence), LIST);
        rig
    }

    /// Notes the id of a request and returns its type.
    fn asked(&mut self, sequence: &str) -> String {
        let body = sequence.strip_prefix("\u{1b}]5522;type=read:id=").unwrap();
        let (metadata, payload) = body.strip_suffix("\u{1b}\\").unwrap().split_once(';').unwrap();
        self.id = metadata.split(':').next().unwrap().to_owned();
        let mime = String::from_utf8(decode_base64(payload).unwrap()).unwrap();
        let name = format!(":name={}:pw=", encoded("parlor"));
        assert_eq!(metadata.contains(&name), mime != LIST, "{metadata}");
        mime
    }

    fn send(&mut self, status: Status, mime: &str, data: &[u8]) -> Option<Step> {
        self.clipboard.take(packet(&self.id, status, mime, data), self.now)
    }

    /// Grants the request, sends data of a type in two parts, and returns the next step.
    fn answer(&mut self, mime: &str, data: &[u8]) -> Option<Step> {
        assert!(self.send(Status::Ok, "", b"").is_none());
        let (first, rest) = data.split_at(data.len() / 2);
        assert!(self.send(Status::Data, mime, first).is_none());
        assert!(self.send(Status::Data, mime, rest).is_none());
        self.send(Status::Done, "", b"")
    }

    /// Sends a list of types and returns the type that is requested then.
    fn list(&mut self, types: &str) -> String {
        match self.answer(LIST, types.as_bytes()) {
            Some(Step::Send(sequence)) => self.asked(&sequence),
            other => panic!("{other:?}"),
        }
    }
}

fn delivered(step: Option<Step>) -> Result<Contents, String> {
    match step {
        Some(Step::Done { session: KEY, contents, .. }) => contents,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_image_is_preferred_to_a_text_and_a_png_to_others() {
    for (types, takes_images, expected) in [
        ("text/plain image/jpeg image/png\n", true, "image/png"),
        ("text/html image/tiff image/webp", true, "image/webp"),
        ("text/plain image/png", false, TEXT),
        ("UTF8_STRING image/tiff", true, TEXT),
    ] {
        let mut rig = Rig::new(takes_images);
        assert_eq!(rig.list(types), expected);
        match (delivered(rig.answer(expected, b"one two")), expected) {
            (Ok(Contents::Text(text)), TEXT) => assert_eq!(text, "one two"),
            (Ok(Contents::Encoded(bytes)), _) => assert_eq!(bytes, b"one two"),
            other => panic!("{other:?}"),
        }
        assert_eq!(rig.clipboard.deadline(), None);
    }
}

#[test]
fn a_list_may_have_a_packet_for_each_type() {
    let mut rig = Rig::new(true);
    rig.send(Status::Ok, "", b"");
    rig.send(Status::Data, "text/plain", b"");
    rig.send(Status::Data, "image/png", b"");
    let Some(Step::Send(sequence)) = rig.send(Status::Done, "", b"") else { panic!() };
    assert_eq!(rig.asked(&sequence), "image/png");
}

#[test]
fn nothing_is_requested_if_the_list_has_no_image_and_no_text() {
    for (takes_images, why) in
        [(true, "The clipboard contains no image and no text."), (false, "The clipboard contains no text.")]
    {
        let mut rig = Rig::new(takes_images);
        assert_eq!(delivered(rig.answer(LIST, b"image/tiff x/y")).unwrap_err(), why);
        let mut rig = Rig::new(takes_images);
        rig.list(TEXT);
        assert_eq!(delivered(rig.answer(TEXT, b"")).unwrap_err(), why);
    }
}

#[test]
fn errors_of_the_terminal_end_the_request() {
    for (code, why) in [
        ("EPERM", DENIED),
        ("EBUSY", "The terminal's clipboard is in use. Try again."),
        ("ENOSYS", "The terminal has no clipboard that can be read."),
        ("EIO", "The terminal could not read its clipboard."),
        ("\u{1b}[31m", "The terminal could not read its clipboard."),
    ] {
        let mut rig = Rig::new(true);
        assert_eq!(delivered(rig.send(Status::of(code), "", b"")).unwrap_err(), why, "for the list");
        let mut rig = Rig::new(true);
        rig.list(TEXT);
        assert_eq!(delivered(rig.send(Status::of(code), "", b"")).unwrap_err(), why);
        assert!(rig.answer(TEXT, b"late").is_none());
        assert!(rig.clipboard.start(KEY, None, rig.now).is_ok());
    }
}

#[test]
fn incomplete_data_is_not_used() {
    let mut rig = Rig::new(true);
    rig.list(TEXT);
    rig.send(Status::Ok, "", b"");
    rig.send(Status::Data, TEXT, b"one");
    let why = delivered(rig.clipboard.take(ClipboardPacket::BROKEN, rig.now)).unwrap_err();
    assert_eq!(why, "The terminal's clipboard was received incompletely. Try again.");
    assert!(rig.send(Status::Done, "", b"").is_none());
}

#[test]
fn only_responses_to_the_open_request_are_used() {
    let mut unasked = TerminalClipboard::default();
    for status in [Status::Ok, Status::Data, Status::Done, Status::Broken] {
        assert!(unasked.take(packet("", status, TEXT, b"evil"), Instant::now()).is_none());
    }
    let mut rig = Rig::new(true);
    let of_list = rig.id.clone();
    rig.send(Status::Data, LIST, b"image/png");
    assert!(rig.send(Status::Done, "", b"").is_none(), "it was not granted");
    rig.list(TEXT);
    for id in ["", "other", &of_list] {
        for status in [Status::Ok, Status::Data, Status::Done, Status::of("EPERM")] {
            assert!(rig.clipboard.take(packet(id, status, TEXT, b"evil"), rig.now).is_none());
        }
    }
    rig.send(Status::Data, TEXT, b"evil");
    rig.send(Status::Ok, "", b"");
    rig.send(Status::Data, "image/png", b"evil");
    assert!(matches!(delivered(rig.answer(TEXT, b"text")), Ok(Contents::Text(text)) if text == "text"));
    assert!(rig.answer(TEXT, b"again").is_none());
}

#[test]
fn there_is_only_one_request_at_a_time() {
    let mut rig = Rig::new(true);
    assert!(rig.clipboard.start(KEY, None, rig.now).is_err());
    assert_eq!(rig.list(TEXT), TEXT, "the first request is still open");
}

#[test]
fn a_request_ends_without_a_response_and_a_late_one_changes_nothing() {
    let mut rig = Rig::new(true);
    assert!(rig.clipboard.on_deadline(rig.now).is_none());
    rig.now = rig.clipboard.deadline().unwrap();
    delivered(rig.clipboard.on_deadline(rig.now)).unwrap_err();
    assert!(rig.answer(LIST, b"image/png").is_none());
    assert_eq!(rig.clipboard.deadline(), None);

    let mut rig = Rig::new(true);
    rig.list("image/png");
    rig.now = rig.clipboard.deadline().unwrap();
    assert!(matches!(rig.clipboard.on_deadline(rig.now), Some(Step::Notice)));
    assert!(rig.clipboard.on_deadline(rig.now).is_none(), "once");
    rig.now = rig.clipboard.deadline().unwrap();
    delivered(rig.clipboard.on_deadline(rig.now)).unwrap_err();
    assert!(rig.answer("image/png", b"late").is_none());
}

#[test]
fn data_moves_the_deadline() {
    let mut rig = Rig::new(true);
    rig.list("image/png");
    rig.send(Status::Ok, "", b"");
    for _ in 0..10 {
        rig.now += DATA_WAIT / 2;
        assert!(rig.clipboard.on_deadline(rig.now).is_none(), "the notice is not needed");
        rig.send(Status::Data, "image/png", b"x");
    }
    rig.now += DATA_WAIT;
    delivered(rig.clipboard.on_deadline(rig.now)).unwrap_err();
}

#[test]
fn received_data_is_bounded() {
    for (types, mime, max) in [("", LIST, LIST_MAX_BYTES), ("image/png", "image/png", DATA_MAX_BYTES)] {
        let mut rig = Rig::new(true);
        if mime != LIST {
            rig.list(types);
        }
        rig.send(Status::Ok, "", b"");
        let part = vec![b'x'; max / 4];
        for _ in 0..4 {
            assert!(rig.send(Status::Data, mime, &part).is_none());
        }
        let why = delivered(rig.send(Status::Data, mime, b"x")).unwrap_err();
        assert_eq!(why, "The clipboard contains more than 32 MiB.");
        assert!(rig.send(Status::Data, mime, b"x").is_none());
    }
}

proptest! {
    #[test]
    fn parts_are_parsed_or_refused(body in proptest::collection::vec(any::<u8>(), 0..80), data: Vec<u8>) {
        ClipboardPacket::parse(&body);
        let body = format!("type=read:status=DATA:x=y:mime={}:id=a;{}", encoded(TEXT), BASE64_STANDARD.encode(&data));
        prop_assert_eq!(ClipboardPacket::parse(body.as_bytes()), Some(packet("a", Status::Data, TEXT, &data)));
    }
}
