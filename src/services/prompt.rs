//! Reads what a prompt refers to when it is sent.
//!
//! Files in the session's folders are embedded if the agent accepts that, others become links. Images are sent by their
//! content, whatever their name, and made smaller if necessary.
//! Invariant: a mention sends the content of files inside the session's folders only. Text that a user pastes or pipes in
//! may mention any file.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use image::{DynamicImage, ImageFormat};

use crate::model::{
    CHANGES, CommandOutput, ContentBlock, ExitInfo, Mention, PreparedPrompt, PromptJob, ResourceBody,
    ResourceLink, Target, mentions, output_number,
};

use super::fs::{Mentioned, MentionedContent, read_mentioned};
use super::git::{self, Changes};
use super::{picture, terminals};

/// Maximum size of an embedded text file; larger ones become links.
const EMBEDDED_MAX_BYTES: usize = 512 * 1024;
/// Maximum size of an output; of a longer one the end is sent.
const OUTPUT_MAX_BYTES: usize = 128 << 10;
/// Maximum number of mentions that are read; further ones stay text.
const MENTIONS_MAX: usize = 100;
/// Maximum size of a mentioned file that is read.
const READ_MAX_BYTES: u64 = 32 << 20;
/// Images above this size, or with a longer edge, are made smaller. Common models reject larger ones.
const IMAGE_MAX_BYTES: usize = 3 << 20;
const IMAGE_MAX_EDGE: u32 = 4096;
/// The longer edge of an image that was made smaller.
const SMALL_EDGE: u32 = 2048;

/// Reads everything that a prompt refers to. Blocks on the disk.
pub fn prepare(job: &PromptJob, home: Option<&Path>) -> PreparedPrompt {
    let mut prepared = PreparedPrompt { text: job.text.clone(), ..PreparedPrompt::default() };
    let mut known: Vec<Mention> = Vec::new();
    for (_, mention) in mentions(&job.text) {
        if known.contains(&mention) {
            continue;
        }
        if known.len() == MENTIONS_MAX {
            break;
        }
        read(job, &mention, home, &mut prepared);
        known.push(mention);
    }
    prepared
}

/// Adds the file or folder that is mentioned. A mention of nothing that exists is only text.
fn read(job: &PromptJob, mention: &Mention, home: Option<&Path>, prepared: &mut PreparedPrompt) {
    if mention.lines.is_none() {
        if let Some(output) = job.outputs.iter().find(|output| output.name == mention.path) {
            return prepared.blocks.push(output_block(output));
        }
        if let Some(number) = output_number(&mention.path) {
            return prepared.problems.push(format!("The output of command {number} is not available."));
        }
    }
    let Some(folder) = &job.folder else { return };
    if mention.path == CHANGES && mention.lines.is_none() {
        match git::changes(folder) {
            Ok(Some(diff)) => return prepared.blocks.push(diff_block(&diff)),
            Ok(None) => {}
            Err(why) => return prepared.problems.push(format!("The changes could not be read: {why}.")),
        }
    }
    let path = match (mention.path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.join(&mention.path),
    };
    let found = read_mentioned(&path, &job.roots, READ_MAX_BYTES);
    let Some(Mentioned { real, is_inside, content }) = found else { return };
    let name = mention.path.trim_end_matches('/');
    let name = name.rsplit_once('/').map_or(name, |(_, name)| name).to_owned();
    let link = |size_bytes| {
        let link = ResourceLink {
            uri: uri(&real, mention),
            name: name.clone(),
            size_bytes,
            ..ResourceLink::default()
        };
        ContentBlock::ResourceLink(link)
    };
    let bytes = match content {
        MentionedContent::Folder => return prepared.blocks.push(link(None)),
        MentionedContent::Large { size_bytes } => return prepared.blocks.push(link(Some(size_bytes))),
        MentionedContent::File(bytes) => bytes,
    };
    let size_bytes = Some(bytes.len() as u64);
    if !is_inside {
        return prepared.blocks.push(link(size_bytes));
    }
    if let Some(format) = image_format(&bytes) {
        if !job.takes.images {
            prepared.problems.push(format!("The agent does not accept images: {}", mention.path));
        } else if let Some((data, mime_type)) = encode_image(&bytes, format) {
            prepared.blocks.push(ContentBlock::Image { data, mime_type, uri: None });
        } else {
            prepared.problems.push(format!("Not a valid image: {}", mention.path));
        }
        return;
    }
    if let Some(mime_type) = audio_type(&bytes).filter(|_| job.takes.audio) {
        let data = BASE64_STANDARD.encode(&bytes).into();
        return prepared.blocks.push(ContentBlock::Audio { data, mime_type: mime_type.to_owned() });
    }
    let text = String::from_utf8(bytes).ok().map(|text| lines_of(text, mention));
    match text.filter(|text| job.takes.embedded && text.len() <= EMBEDDED_MAX_BYTES && !text.contains('\0')) {
        Some(text) => prepared.blocks.push(ContentBlock::Resource {
            uri: uri(&real, mention),
            mime_type: Some("text/plain".to_owned()),
            body: ResourceBody::Text(text),
        }),
        None => prepared.blocks.push(link(size_bytes)),
    }
}

/// The output of a command, as text.
fn output_block(output: &CommandOutput) -> ContentBlock {
    let (text, is_cut) = terminals::plain_text(&output.output, OUTPUT_MAX_BYTES);
    let place = output.cwd.as_ref().map(|cwd| format!(" in {}", cwd.display())).unwrap_or_default();
    let end = match &output.exit {
        None => "it is still running".to_owned(),
        Some(ExitInfo { code: Some(code), .. }) => format!("exit status {code}"),
        Some(ExitInfo { signal, .. }) => format!("ended by {}", signal.as_deref().unwrap_or("a signal")),
    };
    let cut = if is_cut || output.is_cut { ", its start is omitted" } else { "" };
    let head = format!("Output of the command `{}`{place} ({end}{cut}):", output.command);
    ContentBlock::Text(fenced(&head, "", text.trim_end()))
}

/// The changes since the last commit, as text.
fn diff_block(diff: &Changes) -> ContentBlock {
    let cut = if diff.is_cut { " (its end is omitted)" } else { "" };
    let text = String::from_utf8_lossy(&diff.text);
    let text = if text.trim().is_empty() { "No changes." } else { text.trim_end() };
    ContentBlock::Text(fenced(
        &format!("Changes since the last commit, as of `git diff HEAD`{cut}:"),
        "diff",
        text,
    ))
}

/// Text in a code block with a fence that it does not contain.
fn fenced(head: &str, language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("\n{head}\n\n{fence}{language}\n{text}\n{fence}\n")
}

/// The mentioned lines of a text.
fn lines_of(text: String, mention: &Mention) -> String {
    let Some(lines) = &mention.lines else { return text };
    let skip = usize::try_from(lines.start() - 1).unwrap_or(usize::MAX);
    let take = usize::try_from(lines.end() - lines.start() + 1).unwrap_or(usize::MAX);
    text.split_inclusive('\n').skip(skip).take(take).collect()
}

/// A `file` URL; the lines are a fragment as on code hosts.
fn uri(path: &Path, mention: &Mention) -> String {
    let address = Target::File(crate::model::Location { path: PathBuf::from(path), line: None }).address();
    let lines = mention.lines.as_ref().map_or(String::new(), |lines| {
        let (first, last) = (lines.start(), lines.end());
        if first == last { format!("#L{first}") } else { format!("#L{first}-L{last}") }
    });
    address.unwrap_or_default() + &lines
}

fn image_format(bytes: &[u8]) -> Option<ImageFormat> {
    let format = image::guess_format(bytes).ok()?;
    matches!(format, ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Gif | ImageFormat::WebP)
        .then_some(format)
}

fn audio_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("audio/wav"),
        [b'I', b'D', b'3', ..] | [0xff, 0xfb | 0xf3 | 0xf2, ..] => Some("audio/mpeg"),
        [b'O', b'g', b'g', b'S', ..] => Some("audio/ogg"),
        [b'f', b'L', b'a', b'C', ..] => Some("audio/flac"),
        _ => None,
    }
}

/// Base64 data and MIME type of an image, made smaller if it is too large. `None` if it cannot be decoded.
fn encode_image(bytes: &[u8], format: ImageFormat) -> Option<(Arc<str>, String)> {
    let image = picture::decode_bytes(bytes).ok()?.image;
    let (width, height) = (image.width(), image.height());
    if bytes.len() <= IMAGE_MAX_BYTES && width.max(height) <= IMAGE_MAX_EDGE {
        return Some((BASE64_STANDARD.encode(bytes).into(), format.to_mime_type().to_owned()));
    }
    let edge = SMALL_EDGE.min(width.max(height));
    let small = image.resize(edge, edge, image::imageops::FilterType::Triangle);
    let (small, format) = if small.color().has_alpha() {
        (small, ImageFormat::Png)
    } else {
        (DynamicImage::ImageRgb8(small.to_rgb8()), ImageFormat::Jpeg)
    };
    let mut encoded = Cursor::new(Vec::new());
    small.write_to(&mut encoded, format).ok()?;
    Some((BASE64_STANDARD.encode(encoded.into_inner()).into(), format.to_mime_type().to_owned()))
}

#[cfg(test)]
mod tests {
    use image::RgbImage;

    use super::*;
    use crate::model::{PromptTakes, SessionKey};

    const ALL: PromptTakes = PromptTakes { images: true, audio: true, embedded: true };
    const NONE: PromptTakes = PromptTakes { images: false, audio: false, embedded: false };

    struct Rig {
        folder: tempfile::TempDir,
    }

    impl Rig {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap() }
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
                text: text.to_owned(),
                roots: vec![folder.clone()],
                folder: Some(folder),
                takes,
                template: None,
                outputs: Vec::new(),
            }
        }

        fn prepare(&self, text: &str, takes: PromptTakes) -> PreparedPrompt {
            prepare(&self.job(text, takes), Some(self.folder.path()))
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
        assert_eq!(text, "two\nthree\n");
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
        std::os::unix::fs::symlink("../secret", rig.folder.path().join("w/link")).unwrap();
        let absolute = rig.folder.path().join("secret");
        std::fs::write(rig.folder.path().join("photo.png"), png(4, 4)).unwrap();
        for text in ["@../secret", "@~/secret", "@link", "@../photo.png", &format!("@{}", absolute.display())]
        {
            let prepared = rig.prepare(text, ALL);
            assert!(
                matches!(prepared.blocks.as_slice(), [ContentBlock::ResourceLink(_)]),
                "{text}: {prepared:?}"
            );
        }
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
        rig.write("a", "x\n");
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
        let prepared = prepare(&job, None);
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
        crate::services::git::tests::git(&folder, &["init", "-q"]);
        crate::services::git::tests::git(&folder, &["add", "a"]);
        let text = texts(&rig.prepare("review @diff", ALL));
        assert!(text.contains("```diff\n") && text.contains("+one\n```"), "{text}");
        let mut job = rig.job("@diff", ALL);
        job.folder = None;
        assert_eq!(prepare(&job, None).blocks, [], "on another machine");
    }

    #[test]
    fn pipes_and_devices_are_not_read() {
        let rig = Rig::new();
        rig.write("a", "");
        let pipe = rig.folder.path().join("w/pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
        assert_eq!(rig.prepare("@pipe @/dev/zero", ALL).blocks, []);
    }
}
