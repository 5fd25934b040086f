//! Tests of prompts with files and attachments.

use image::RgbImage;

use super::*;
use crate::host::os::fixtures;
use crate::model::{PromptTakes, SessionKey};

const ALL: PromptTakes = PromptTakes { images: true, audio: true, embedded: true };
const NONE: PromptTakes = PromptTakes { images: false, audio: false, embedded: false };

struct Rig {
    folder: tempfile::TempDir,
    attachments: Attachments,
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let attachments = Attachments::new(Some(&folder.path().join("data")));
        Self { folder, attachments }
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.folder.path().join("w").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn job(&self, text: &str, takes: PromptTakes) -> PromptJob {
        let folder = self.folder.path().canonicalize().unwrap().join("w");
        PromptJob {
            session: SessionKey(1),
            prompt: crate::model::PromptId(1),
            text: text.to_owned(),
            roots: vec![folder.clone()],
            folder: Some(folder),
            takes,
            template: None,
            outputs: Vec::new(),
            listed: Vec::new(),
        }
    }

    fn prepare(&self, text: &str, takes: PromptTakes) -> PreparedPrompt {
        prepare(&self.job(text, takes), Some(self.folder.path()), &self.attachments)
    }

    /// Pastes a text and returns its label.
    fn paste(&self, text: &str) -> String {
        let attachment = Attachment::new(AttachmentContent::Text(text.into()));
        self.attachments.save(&attachment).unwrap();
        attachment.label()
    }

    /// Drops a text with paths onto a session in the folder `w`.
    fn drop_text(&self, text: &str) -> Option<Result<String, String>> {
        let folder = self.folder.path().join("w");
        let job = DropJob {
            session: SessionKey(1),
            text: text.to_owned(),
            at: 0,
            readings: crate::model::dropped_paths(text),
            folder: Some(folder.clone()),
            roots: vec![folder],
        };
        read_dropped(&job, &self.attachments)
    }
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    RgbImage::new(width, height).write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

#[test]
fn files_in_the_folder_are_embedded_or_linked() {
    let rig = Rig::new();
    rig.write("src/my file.rs", "one\ntwo\nthree\n");
    let prepared = rig.prepare("see @\"src/my file.rs\":2-3 and @alice", ALL);
    assert_eq!(prepared.text, "see @\"src/my file.rs\":2-3 and @alice");
    assert_eq!(prepared.problems, Vec::<String>::new());
    let [ContentBlock::Resource { uri, body: ResourceBody::Text(text), .. }] = prepared.blocks.as_slice()
    else {
        panic!("{prepared:?}");
    };
    assert!(uri.starts_with("file:///") && uri.ends_with("/w/src/my%20file.rs#L2-L3"), "{uri}");
    assert_eq!(text.as_str(), "two\nthree\n");
    let linked = rig.prepare("@\"src/my file.rs\" @src", NONE);
    let [ContentBlock::ResourceLink(file), ContentBlock::ResourceLink(folder)] = linked.blocks.as_slice()
    else {
        panic!("{linked:?}");
    };
    assert_eq!((file.name.as_str(), file.size_bytes), ("my file.rs", Some(14)));
    assert_eq!((folder.name.as_str(), folder.size_bytes), ("src", None));
}

#[test]
fn files_outside_of_the_folder_are_never_embedded() {
    let rig = Rig::new();
    rig.write("a", "");
    std::fs::write(rig.folder.path().join("secret"), "key").unwrap();
    let absolute = rig.folder.path().join("secret");
    std::fs::write(rig.folder.path().join("photo.png"), png(4, 4)).unwrap();
    for text in
        ["@../secret", "@~/secret", "@src/../../secret", "@../photo.png", &format!("@{}", absolute.display())]
    {
        let prepared = rig.prepare(text, ALL);
        assert!(
            matches!(prepared.blocks.as_slice(), [ContentBlock::ResourceLink(_)]),
            "{text}: {prepared:?}"
        );
    }
}

#[test]
fn links_out_of_the_folder_are_refused() {
    let rig = Rig::new();
    rig.write("sub/a", "");
    std::fs::write(rig.folder.path().join("secret"), "key").unwrap();
    fixtures::link("../secret", rig.folder.path().join("w/link"));
    fixtures::link("../..", rig.folder.path().join("w/sub/up"));
    let target = rig.folder.path().canonicalize().unwrap().join("secret");
    for path in ["link", "./sub/../link", "sub/up/secret"] {
        let prepared = rig.prepare(&format!("@{path}"), ALL);
        let [problem] = prepared.problems.as_slice() else { panic!("{prepared:?}") };
        let expected = format!("{path} is a link out of the session's folders. ");
        assert!(problem.starts_with(&expected) && problem.contains(&*target.to_string_lossy()), "{problem}");
        assert_eq!(prepared.blocks, []);
    }
    rig.write("inside", "x");
    fixtures::link("inside", rig.folder.path().join("w/ok"));
    assert_eq!(rig.prepare("@ok", ALL).blocks.len(), 1, "a link inside of the folder");
}

#[test]
fn lines_after_the_end_of_a_file_are_a_problem() {
    let rig = Rig::new();
    rig.write("a", "one\ntwo\n");
    assert_eq!(rig.prepare("@a:3-9", ALL).problems, ["a has 2 lines, not 3."]);
    assert_eq!(rig.prepare("@a:2-9", ALL).problems, Vec::<String>::new());
}

#[test]
fn a_listed_file_that_is_missing_is_reported_and_other_words_are_text() {
    let rig = Rig::new();
    rig.write("a", "x");
    let listed = ["a", "gone.rs", "my gone.rs"].map(str::to_owned).to_vec();
    let job = PromptJob { listed, ..rig.job("@a @gone.rs @\"my gone.rs\" @alice @src/mian.rs", ALL) };
    let prepared = prepare(&job, None, &rig.attachments);
    assert_eq!(prepared.missing, ["gone.rs", "my gone.rs"]);
    assert_eq!(prepared.unread, ["src/mian.rs"]);
    assert_eq!((prepared.blocks.len(), prepared.problems.len()), (1, 0));
}

#[test]
fn the_transcript_of_a_session_is_embedded_or_sent_as_text() {
    let rig = Rig::new();
    rig.write("secret.md", "x");
    let transcript = "# Fix\n\n- Agent: fake\n\n## Prompt\n\n> go ```\n";
    let label = attach_session("Fix [it] @secret.md", transcript.into(), &rig.attachments).unwrap();
    assert!(label.starts_with("[Session #") && label.ends_with(": Fix it secret.md, 1 KiB]"), "{label}");
    let prepared = rig.prepare(&format!("see {label} and {label}"), ALL);
    assert_eq!(prepared.text, format!("see {label} and {label}"));
    let [ContentBlock::Resource { uri, mime_type, body: ResourceBody::Text(text) }] =
        prepared.blocks.as_slice()
    else {
        panic!("{prepared:?}");
    };
    assert!(uri.starts_with("parlor:session/"), "{uri}");
    assert_eq!((mime_type.as_deref(), text.as_str()), (Some("text/markdown"), transcript));
    let prepared = rig.prepare(&label, NONE);
    let [ContentBlock::Text(text)] = prepared.blocks.as_slice() else { panic!("{prepared:?}") };
    assert!(text.contains("Transcript of the session “Fix it secret.md”:\n\n````markdown\n# Fix"), "{text}");
    let other = Attachments::new(Some(&rig.folder.path().join("other")));
    let missing = prepare(&rig.job(&label, ALL), None, &other);
    assert_eq!((missing.blocks.len(), missing.problems.len()), (0, 1), "its content was removed");
}

#[test]
fn the_end_of_a_long_transcript_is_sent_and_the_label_says_so() {
    let rig = Rig::new();
    let turns = (0..9_000).map(|n| format!("\n## Prompt\n\n> é prompt {n}\n\nanswer {n}\n"));
    let transcript = format!("# Fix\n\n- Agent: fake\n{}", turns.collect::<String>());
    let whole = transcript.len();
    let label = attach_session("Fix", transcript, &rig.attachments).unwrap();
    assert!(label.ends_with(&format!(": Fix, last 128 of {} KiB]", whole.div_ceil(1024))), "{label}");
    let prepared = rig.prepare(&label, ALL);
    let [ContentBlock::Resource { body: ResourceBody::Text(text), .. }] = prepared.blocks.as_slice() else {
        panic!("{prepared:?}");
    };
    let head =
        "# Fix\n\n- Agent: fake\n\n*The start of this transcript is omitted.*\n\n## Prompt\n\n> é prompt ";
    assert!(text.starts_with(head), "{}", &text[..200]);
    assert!(text.ends_with("answer 8999\n") && text.len() <= SESSION_MAX_BYTES, "{}", text.len());
    // A line that is longer than the limit.
    let label = attach_session("Fix", "é".repeat(whole), &rig.attachments).unwrap();
    assert!(label.contains(": Fix, last 1"), "{label}");
}

#[test]
fn images_are_recognized_by_content_and_made_smaller() {
    let rig = Rig::new();
    rig.write("small.txt", png(8, 4));
    rig.write("large.png", png(6000, 10));
    rig.write("fake.png", "text");
    let prepared = rig.prepare("@small.txt @large.png @fake.png", ALL);
    let kinds: Vec<&str> = prepared
        .blocks
        .iter()
        .map(|block| match block {
            ContentBlock::Image { mime_type, .. } => mime_type.as_str(),
            ContentBlock::Resource { .. } => "text",
            _ => "other",
        })
        .collect();
    assert_eq!(kinds, ["image/png", "image/jpeg", "text"]);
    let Some(ContentBlock::Image { data, .. }) = prepared.blocks.get(1) else { panic!() };
    let small = picture::read(data).unwrap().image;
    assert_eq!(small.width(), SMALL_EDGE);
    let refused = rig.prepare("@small.txt", NONE);
    assert_eq!(refused.problems, ["The agent does not accept images: small.txt"]);
    assert_eq!(refused.blocks, []);
}

#[test]
fn the_number_of_mentions_is_bounded() {
    let rig = Rig::new();
    rig.write("a", "x\n".repeat(MENTIONS_MAX + 20));
    let text = (1..=MENTIONS_MAX + 20).map(|line| format!("@a:{line}")).collect::<Vec<_>>().join(" ");
    assert_eq!(rig.prepare(&text, ALL).blocks.len(), MENTIONS_MAX);
}

fn texts(prepared: &PreparedPrompt) -> String {
    let texts = prepared.blocks.iter().map(|block| match block {
        ContentBlock::Text(text) => text.as_str(),
        other => panic!("{other:?}"),
    });
    texts.collect()
}

#[test]
fn outputs_are_sent_as_plain_text_and_bounded() {
    let rig = Rig::new();
    rig.write("last", "a file");
    let output = |name: &str, output: &[u8], exit| CommandOutput {
        name: name.into(),
        command: "make".into(),
        cwd: Some("/code".into()),
        exit,
        output: output.to_vec(),
        is_cut: false,
    };
    let failed = Some(ExitInfo { code: Some(2), signal: None });
    let long = [b"start\n".as_slice(), &b"line\n".repeat(OUTPUT_MAX_BYTES), b"```\n"].concat();
    let mut job = rig.job("@!1 and @last, again @!1", NONE);
    job.folder = None;
    job.outputs =
        vec![output("!1", b"\x1b[31mred\x1b[0m\r\n50%\r99%\r\n", failed), output("last", &long, None)];
    let prepared = prepare(&job, None, &rig.attachments);
    let text = texts(&prepared);
    assert!(
        text.contains("Output of the command `make` in /code (exit status 2):\n\n```\nred\n99%\n```\n"),
        "{text}"
    );
    assert!(text.contains("(it is still running, its start is omitted):\n\n````\n"), "a longer fence");
    assert!(!text.contains("start\n") && text.len() < OUTPUT_MAX_BYTES + 1000);
    assert_eq!(prepared.blocks.len(), 2);
    let missing = rig.prepare("@!7", NONE);
    assert_eq!(missing.problems, ["The output of command 7 is not available."]);
    assert_eq!(texts(&rig.prepare("a @diff", NONE)), "", "not a repository");
}

#[test]
fn changes_are_sent_as_a_patch() {
    let rig = Rig::new();
    rig.write("a", "one\n");
    let folder = rig.folder.path().join("w");
    crate::host::git::tests::git(&folder, &["init", "-q"]);
    crate::host::git::tests::git(&folder, &["add", "a"]);
    let text = texts(&rig.prepare("review @diff", ALL));
    assert!(text.contains("```diff\n") && text.contains("+one\n```"), "{text}");
    let mut job = rig.job("@diff", ALL);
    job.folder = None;
    assert_eq!(prepare(&job, None, &rig.attachments).blocks, [], "on another machine");
}

#[test]
fn pipes_and_devices_are_not_read() {
    let rig = Rig::new();
    rig.write("a", "");
    let pipe = rig.folder.path().join("w/pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(rig.prepare("@pipe @/dev/zero", ALL).blocks, []);
}

#[test]
fn pasted_texts_replace_their_labels() {
    let rig = Rig::new();
    rig.write("secret.rs", "key");
    let other = rig.paste("other\ntext");
    let label = rig.paste(&format!("one\ntwo @secret.rs {other}"));
    let prepared = rig.prepare(&format!("see {label}, twice: {label}"), NONE);
    let pasted = format!("one\ntwo @secret.rs {other}");
    assert_eq!(prepared.text, format!("see {pasted}, twice: {pasted}"));
    let parts: Vec<&str> = prepared.pasted.iter().map(|range| &prepared.text[range.clone()]).collect();
    assert_eq!(parts, [&pasted, &pasted]);
    assert_eq!((prepared.blocks, prepared.problems), (Vec::new(), Vec::new()), "a paste mentions no files");
}

#[test]
fn a_label_without_content_is_a_problem() {
    let rig = Rig::new();
    let text = "see [Pasted text #0123456789: 3 lines] and [Image #0123456789: 1×1, 1 KiB]";
    let prepared = rig.prepare(text, ALL);
    assert_eq!(
        prepared.problems,
        [
            "The content of [Pasted text #0123456789: 3 lines] is missing. Paste it again.",
            "The content of [Image #0123456789: 1×1, 1 KiB] is missing. Paste it again.",
        ]
    );
    let label = rig.paste("a\nb");
    let as_image = label.replace("Pasted text", "Image");
    assert_eq!(rig.prepare(&as_image, ALL).problems.len(), 1, "a text is not an image");
}

#[test]
fn the_size_of_a_prompt_with_pastes_is_bounded() {
    let rig = Rig::new();
    let label = rig.paste(&"x\n".repeat(1 << 20));
    assert_eq!(rig.prepare(&label.repeat(7), ALL).problems, Vec::<String>::new());
    let prepared = rig.prepare(&label.repeat(1000), ALL);
    assert_eq!(prepared.problems, ["The prompt is larger than 16 MiB."]);
    assert!(prepared.text.len() < TEXT_MAX_BYTES + (4 << 20));
}

#[test]
fn pasted_images_are_sent_once_if_the_agent_accepts_them() {
    let rig = Rig::new();
    let label = attach_pixels((8, 4), vec![200; 8 * 4 * 4], &rig.attachments).unwrap();
    assert!(label.contains(": 8×4, 1 KiB]"), "{label}");
    let prepared = rig.prepare(&format!("{label} {label}"), ALL);
    assert_eq!(prepared.text, format!("{label} {label}"));
    let [ContentBlock::Image { data, mime_type, .. }] = prepared.blocks.as_slice() else {
        panic!("{prepared:?}");
    };
    assert_eq!((mime_type.as_str(), picture::read(data).unwrap().image.width()), ("image/png", 8));
    let refused = rig.prepare(&label, NONE);
    assert_eq!(refused.problems, [format!("The agent does not accept images: {label}")]);
    let large = attach_pixels((6000, 10), vec![200; 6000 * 10 * 4], &rig.attachments).unwrap();
    assert!(large.contains(": 2048×3, "), "{large}");
    for (size, bytes) in [((0, 0), 0), ((8, 4), 3)] {
        assert!(attach_pixels(size, vec![0; bytes], &rig.attachments).is_err());
    }
}

#[test]
fn dropped_files_become_mentions() {
    let rig = Rig::new();
    rig.write("src/my file.rs", "one");
    rig.write("a.png", png(4, 4));
    std::fs::write(rig.folder.path().join("secret.txt"), "key").unwrap();
    let at = |name: &str| rig.folder.path().join(name).display().to_string();
    let dropped = |text: &str| rig.drop_text(text).map(Result::unwrap);
    let (inside, image, outside) = (at("w/src/my file.rs"), at("w/a.png"), at("secret.txt"));
    assert_eq!(dropped(&inside).as_deref(), Some("@\"src/my file.rs\""));
    assert_eq!(dropped(&format!("'{inside}' {image}")).as_deref(), Some("@\"src/my file.rs\" @a.png"));
    let url = format!("file://{}", inside.replace(' ', "%20"));
    assert_eq!(dropped(&format!("{url}\r\n{image}\r\n")).as_deref(), Some("@\"src/my file.rs\" @a.png"));
    assert_eq!(dropped(&outside), Some(format!("@{outside}")), "only linked");
    assert_eq!(dropped(&format!("{image} {}", at("w/missing"))), None);
    assert_eq!(dropped("/dev/null"), None);
}

#[test]
fn only_a_dropped_image_outside_of_the_folder_becomes_an_attachment() {
    let rig = Rig::new();
    std::fs::create_dir(rig.folder.path().join("w")).unwrap();
    std::fs::write(rig.folder.path().join("photo"), png(30, 20)).unwrap();
    std::fs::write(rig.folder.path().join("fake.png"), "text").unwrap();
    let at = |name: &str| rig.folder.path().join(name).display().to_string();
    let label = rig.drop_text(&at("photo")).unwrap().unwrap();
    assert!(label.starts_with("[Image #") && label.contains("30×20"), "{label}");
    std::fs::remove_file(at("photo")).unwrap();
    assert!(matches!(rig.prepare(&label, ALL).blocks.as_slice(), [ContentBlock::Image { .. }]));
    assert_eq!(rig.drop_text(&at("fake.png")).unwrap().unwrap(), format!("@{}", at("fake.png")));
}
