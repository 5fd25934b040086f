//! Reads what a prompt refers to when it is sent, and files that are dropped on it.
//!
//! Labels of pasted texts are replaced by the texts. Files in the session's folders are embedded if the agent accepts
//! that, others become links. Images are sent by their content, whatever their name, and made smaller if necessary.
//! Invariants: a mention sends the content of files inside the session's folders only, and a dropped file outside of them
//! becomes an attachment only if it is an image, because a text that a user pastes or pipes in may name any file. Mentions
//! and labels in a pasted text stay text.

use std::io::Cursor;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use image::{DynamicImage, ImageFormat, RgbaImage};

use crate::escape;
use crate::model::{
    Attachment, AttachmentContent, AttachmentKind, AttachmentLabel, CHANGES, CommandOutput, ContentBlock,
    DropJob, ExitInfo, LAST_OUTPUT, Mention, PreparedPrompt, PromptJob, ResourceBody, ResourceLink, Target,
    attachment_labels, mention_text, mentions, output_number,
};

use super::attachments::Attachments;
use super::fs::{Mentioned, MentionedContent, read_mentioned};
use super::git::{self, Changes};
use super::{picture, terminals};

/// Maximum size of an embedded text file; larger ones become links.
const EMBEDDED_MAX_BYTES: usize = 512 * 1024;
/// Maximum size of an output; of a longer one the end is sent.
const OUTPUT_MAX_BYTES: usize = 128 << 10;
/// Maximum size of a session's transcript; of a longer one the end is sent.
const SESSION_MAX_BYTES: usize = 128 << 10;
/// Maximum size of the part before the first prompt of a transcript.
const TRANSCRIPT_HEAD_MAX_BYTES: usize = 4 << 10;
/// Maximum number of mentions that are read; further ones stay text.
const MENTIONS_MAX: usize = 100;
/// Maximum size of the text with its pasted texts.
const TEXT_MAX_BYTES: usize = 16 << 20;
/// Maximum size of a mentioned file that is read.
const READ_MAX_BYTES: u64 = 32 << 20;
/// Images above this size, or with a longer edge, are made smaller. Common models reject larger ones.
const IMAGE_MAX_BYTES: usize = 3 << 20;
const IMAGE_MAX_EDGE: u32 = 4096;
/// The longer edge of an image that was made smaller.
const SMALL_EDGE: u32 = 2048;

/// Reads everything that a prompt refers to. Blocks on the disk.
pub fn prepare(job: &PromptJob, home: Option<&Path>, attachments: &Attachments) -> PreparedPrompt {
    let mut prepared = PreparedPrompt::default();
    add_attachments(job, attachments, &mut prepared);
    let mut known: Vec<Mention> = Vec::new();
    for (_, mention) in mentions(&job.text) {
        if known.contains(&mention) {
            continue;
        }
        if known.len() == MENTIONS_MAX {
            break;
        }
        let is_read = read(job, &mention, home, &mut prepared);
        if !is_read && job.listed.contains(&mention.path) {
            prepared.missing.push(mention.path.clone());
        } else if !is_read && job.folder.is_some() && mention.path.contains(['/', '.']) {
            prepared.unread.push(mention.path.clone());
        }
        known.push(mention);
    }
    prepared
}

/// Sets the text, with pasted texts in place of their labels, and adds the images and sessions that labels name.
fn add_attachments(job: &PromptJob, attachments: &Attachments, prepared: &mut PreparedPrompt) {
    let mut sent = Vec::new();
    let mut at = 0;
    for label in attachment_labels(&job.text) {
        let shown = job.text.get(label.range.clone()).unwrap_or_default();
        prepared.text.push_str(job.text.get(at..label.range.start).unwrap_or_default());
        at = label.range.end;
        let content = attachments.find(&label);
        match label.kind {
            AttachmentKind::Text => {
                let Some(text) = content.and_then(|bytes| String::from_utf8(bytes).ok()) else {
                    prepared.problems.push(format!("The content of {shown} is missing. Paste it again."));
                    continue;
                };
                let start = prepared.text.len();
                prepared.text.push_str(&text);
                prepared.pasted.push(start..prepared.text.len());
                if prepared.text.len() > TEXT_MAX_BYTES {
                    prepared
                        .problems
                        .push(format!("The prompt is larger than {} MiB.", TEXT_MAX_BYTES >> 20));
                    return;
                }
            }
            AttachmentKind::Image => {
                // The label stays in the text, so that the text can refer to it.
                prepared.text.push_str(shown);
                if sent.contains(&label.id) {
                    continue;
                }
                match content.and_then(|bytes| encode_image(&bytes)) {
                    None => {
                        prepared.problems.push(format!("The content of {shown} is missing. Paste it again."));
                    }
                    Some(_) if !job.takes.images => {
                        prepared.problems.push(format!("The agent does not accept images: {shown}"));
                    }
                    Some(image) => prepared.blocks.push(image.block()),
                }
                sent.push(label.id);
            }
            AttachmentKind::Session => {
                prepared.text.push_str(shown);
                if sent.contains(&label.id) {
                    continue;
                }
                if let Some(text) = content.and_then(|bytes| String::from_utf8(bytes).ok()) {
                    prepared.blocks.push(session_block(&label, text, job.takes.embedded));
                } else {
                    let problem = format!("The content of {shown} is missing. Mention the session again.");
                    prepared.problems.push(problem);
                }
                sent.push(label.id);
            }
        }
    }
    prepared.text.push_str(job.text.get(at..).unwrap_or_default());
}

/// The text that replaces dropped paths: a mention of each file, or for an image outside of the session's folders, the
/// label of a new attachment. `None` if no reading of the paths exists. Blocks on the disk.
pub fn read_dropped(job: &DropJob, attachments: &Attachments) -> Option<Result<String, String>> {
    let found = job.readings.iter().find_map(|paths| {
        let read = |path: &PathBuf| read_mentioned(path, &job.roots, READ_MAX_BYTES);
        paths.iter().map(read).collect::<Option<Vec<_>>>().map(|found| (paths, found))
    });
    let (paths, found) = found?;
    let mut labels = Vec::new();
    for (path, Mentioned { real, is_inside, content }) in paths.iter().zip(found) {
        let image = match &content {
            MentionedContent::File(bytes) if !is_inside => encode_image(bytes),
            _ => None,
        };
        labels.push(match image {
            Some(image) => match image.save(attachments) {
                Ok(label) => label,
                Err(why) => return Some(Err(why)),
            },
            // Files of this machine cannot be mentioned to an agent on another one.
            None => mention_of(path, &real, job.folder.as_deref()?)?,
        });
    }
    Some(Ok(labels.join(" ")))
}

/// The mention of a file; `None` if its path cannot be written as one.
fn mention_of(path: &Path, real: &Path, folder: &Path) -> Option<String> {
    let folder = [Some(folder.to_owned()), folder.canonicalize().ok()];
    let inside = folder
        .iter()
        .flatten()
        .find_map(|folder| [path, real].into_iter().find_map(|path| path.strip_prefix(folder).ok()));
    let path = inside.filter(|path| !path.as_os_str().is_empty()).unwrap_or(path).to_str()?;
    // Such names mention outputs and changes.
    let is_named = path == CHANGES || path == LAST_OUTPUT || output_number(path).is_some();
    let path = if is_named { format!("./{path}") } else { path.to_owned() };
    let text = mention_text(&path);
    let is_read_back = matches!(mentions(&text).as_slice(),
        [(range, Mention { path: read, lines: None })] if range.len() == text.len() && *read == path);
    is_read_back.then_some(text)
}

/// Saves the image of the clipboard, which has four bytes per pixel, and returns its label. Blocks on the disk.
pub fn attach_pixels(
    (width, height): (u32, u32),
    pixels: Vec<u8>,
    attachments: &Attachments,
) -> Result<String, String> {
    let image = RgbaImage::from_raw(width, height, pixels).filter(|image| !image.is_empty());
    let image = DynamicImage::ImageRgba8(image.ok_or("The image in the clipboard is not valid.")?);
    let encoded = EncodedImage::of(&image).or_else(|| EncodedImage::shrunk(&image));
    encoded.ok_or("The image in the clipboard cannot be encoded.")?.save(attachments)
}

/// Saves the image of the clipboard, which is a file of an image, and returns its label. Blocks on the disk.
pub fn attach_encoded(bytes: &[u8], attachments: &Attachments) -> Result<String, String> {
    encode_image(bytes).ok_or("The image in the clipboard is not valid.")?.save(attachments)
}

/// Adds what is mentioned, or the problem with it. Returns whether it exists; a mention of nothing is only text.
fn read(job: &PromptJob, mention: &Mention, home: Option<&Path>, prepared: &mut PreparedPrompt) -> bool {
    match content_of(job, mention, home) {
        None => return false,
        Some(Ok(block)) => prepared.blocks.push(block),
        Some(Err(problem)) => prepared.problems.push(problem),
    }
    true
}

/// What is mentioned, or the problem with it; `None` if nothing like that exists.
fn content_of(
    job: &PromptJob,
    mention: &Mention,
    home: Option<&Path>,
) -> Option<Result<ContentBlock, String>> {
    if mention.lines.is_none() {
        if let Some(output) = job.outputs.iter().find(|output| output.name == mention.path) {
            return Some(Ok(output_block(output)));
        }
        if let Some(number) = output_number(&mention.path) {
            return Some(Err(format!("The output of command {number} is not available.")));
        }
    }
    let folder = job.folder.as_ref()?;
    if mention.path == CHANGES && mention.lines.is_none() {
        match git::changes(folder) {
            Ok(Some(diff)) => return Some(Ok(diff_block(&diff))),
            Ok(None) => {}
            Err(why) => return Some(Err(format!("The changes could not be read: {why}."))),
        }
    }
    let path = match (mention.path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.join(&mention.path),
    };
    let Mentioned { real, is_inside, content } = read_mentioned(&path, &job.roots, READ_MAX_BYTES)?;
    if !is_inside && is_written_inside(&mention.path) {
        let target = mention_text(&escape::visible(&real.to_string_lossy()));
        let path = &mention.path;
        return Some(Err(format!(
            "{path} is a link out of the session's folders. Write {target} to send a link to its target."
        )));
    }
    let name = mention.path.trim_end_matches('/');
    let name = name.rsplit_once('/').map_or(name, |(_, name)| name).to_owned();
    let link = |size_bytes| {
        let link = ResourceLink {
            uri: uri(&real, mention),
            name: name.clone(),
            size_bytes,
            ..ResourceLink::default()
        };
        Some(Ok(ContentBlock::ResourceLink(link)))
    };
    let bytes = match content {
        MentionedContent::Folder => return link(None),
        MentionedContent::Large { size_bytes } => return link(Some(size_bytes)),
        MentionedContent::File(bytes) => bytes,
    };
    let size_bytes = Some(bytes.len() as u64);
    if !is_inside {
        return link(size_bytes);
    }
    if image_format(&bytes).is_some() {
        return Some(if !job.takes.images {
            Err(format!("The agent does not accept images: {}", mention.path))
        } else if let Some(image) = encode_image(&bytes) {
            Ok(image.block())
        } else {
            Err(format!("Not a valid image: {}", mention.path))
        });
    }
    if let Some(mime_type) = audio_type(&bytes).filter(|_| job.takes.audio) {
        let data = BASE64_STANDARD.encode(&bytes).into();
        return Some(Ok(ContentBlock::Audio { data, mime_type: mime_type.to_owned() }));
    }
    let Some(text) = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')) else {
        return link(size_bytes);
    };
    let count = text.lines().count();
    if let Some(first) =
        mention.lines.as_ref().map(|lines| *lines.start() as usize).filter(|first| *first > count)
    {
        return Some(Err(format!("{} has {count} lines, not {first}.", mention.path)));
    }
    let text = lines_of(text, mention);
    if !job.takes.embedded || text.len() > EMBEDDED_MAX_BYTES {
        return link(size_bytes);
    }
    Some(Ok(ContentBlock::Resource {
        uri: uri(&real, mention),
        mime_type: Some("text/plain".to_owned()),
        body: ResourceBody::Text(text.into()),
    }))
}

/// Whether a path as written does not lead out of the session's folder.
fn is_written_inside(path: &str) -> bool {
    let mut depth = 0_usize;
    !path.starts_with("~/")
        && Path::new(path).components().all(|part| match part {
            Component::Normal(_) => {
                depth += 1;
                true
            }
            Component::CurDir => true,
            Component::ParentDir => {
                let is_inside = depth > 0;
                depth = depth.saturating_sub(1);
                is_inside
            }
            Component::RootDir | Component::Prefix(_) => false,
        })
}

fn session_block(label: &AttachmentLabel, text: String, is_embedded: bool) -> ContentBlock {
    if is_embedded {
        // No file has this address: the file with the transcript is outside of the session's folders.
        let uri = format!("parlor:session/{}.md", label.id);
        let mime_type = Some("text/markdown".to_owned());
        return ContentBlock::Resource { uri, mime_type, body: ResourceBody::Text(text.into()) };
    }
    ContentBlock::Text(
        fenced(&format!("Transcript of the session “{}”:", label.name), "markdown", text.trim_end()).into(),
    )
}

/// Saves the transcript of a session as an attachment and returns the label. Of a long one, the start is omitted. Blocks
/// on the disk.
pub fn attach_session(name: &str, transcript: String, attachments: &Attachments) -> Result<String, String> {
    let size_bytes = transcript.len();
    let text = end_of(transcript);
    let content = AttachmentContent::Session { name: name.to_owned(), text: text.into(), size_bytes };
    let attachment = Attachment::new(content);
    attachments.save(&attachment).map_err(|error| format!("Could not save the transcript: {error}."))?;
    Ok(attachment.label())
}

/// The head and the end of a transcript that is too long.
fn end_of(transcript: String) -> String {
    if transcript.len() <= SESSION_MAX_BYTES {
        return transcript;
    }
    let head = transcript.find("\n## ").filter(|bytes| *bytes <= TRANSCRIPT_HEAD_MAX_BYTES);
    let mut head = head.and_then(|end| transcript.get(..end)).unwrap_or_default().trim_end().to_owned();
    head.push_str("\n\n*The start of this transcript is omitted.*\n");
    let min = transcript.len() - SESSION_MAX_BYTES.saturating_sub(head.len());
    let start = (min..transcript.len()).find(|at| transcript.is_char_boundary(*at)).unwrap_or(min);
    let end = transcript.get(start..).unwrap_or_default();
    // A whole turn, or at least a whole line.
    let turn = end.find("\n## Prompt\n").filter(|at| *at < SESSION_MAX_BYTES / 2);
    let whole = turn.or_else(|| end.find('\n')).and_then(|at| end.get(at..)).unwrap_or(end);
    head + whole
}

fn output_block(output: &CommandOutput) -> ContentBlock {
    let (text, is_cut) = terminals::plain_text(&output.output, OUTPUT_MAX_BYTES);
    let position = output.cwd.as_ref().map(|cwd| format!(" in {}", cwd.display())).unwrap_or_default();
    let end = match &output.exit {
        None => "it is still running".to_owned(),
        Some(ExitInfo { code: Some(code), .. }) => format!("exit status {code}"),
        Some(ExitInfo { signal, .. }) => format!("ended by {}", signal.as_deref().unwrap_or("a signal")),
    };
    let cut = if is_cut || output.is_cut { ", its start is omitted" } else { "" };
    let head = format!("Output of the command `{}`{position} ({end}{cut}):", output.command);
    ContentBlock::Text(fenced(&head, "", text.trim_end()).into())
}

/// The changes since the last commit, as text.
fn diff_block(diff: &Changes) -> ContentBlock {
    let cut = if diff.is_cut { " (its end is omitted)" } else { "" };
    let text = String::from_utf8_lossy(&diff.text);
    let text = if text.trim().is_empty() { "No changes." } else { text.trim_end() };
    ContentBlock::Text(
        fenced(&format!("Changes since the last commit, as of `git diff HEAD`{cut}:"), "diff", text).into(),
    )
}

/// Text in a code block with a fence that it does not contain.
fn fenced(head: &str, language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("\n{head}\n\n{fence}{language}\n{text}\n{fence}\n")
}

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

/// An image within the limits of common models.
struct EncodedImage {
    bytes: Arc<[u8]>,
    format: ImageFormat,
    size: (u32, u32),
}

impl EncodedImage {
    /// Encodes pixels as PNG, made smaller if that is too large.
    fn of(image: &DynamicImage) -> Option<Self> {
        let bytes = encoded(image, ImageFormat::Png).filter(|bytes| is_sendable(bytes, image))?;
        Some(Self { bytes, format: ImageFormat::Png, size: (image.width(), image.height()) })
    }

    /// Makes an image smaller. One with transparency becomes a PNG.
    fn shrunk(image: &DynamicImage) -> Option<Self> {
        let edge = SMALL_EDGE.min(image.width().max(image.height()));
        let small = image.resize(edge, edge, image::imageops::FilterType::Triangle);
        let (small, format) = if small.color().has_alpha() {
            (small, ImageFormat::Png)
        } else {
            (DynamicImage::ImageRgb8(small.to_rgb8()), ImageFormat::Jpeg)
        };
        let size = (small.width(), small.height());
        Some(Self { bytes: encoded(&small, format)?, format, size })
    }

    fn block(&self) -> ContentBlock {
        let data = BASE64_STANDARD.encode(&self.bytes).into();
        ContentBlock::Image { data, mime_type: self.format.to_mime_type().to_owned(), uri: None }
    }

    /// Saves it as an attachment and returns the label.
    fn save(self, attachments: &Attachments) -> Result<String, String> {
        let attachment = Attachment::new(AttachmentContent::Image { bytes: self.bytes, size: self.size });
        attachments.save(&attachment).map_err(|error| format!("Could not save the image: {error}."))?;
        Ok(attachment.label())
    }
}

fn encoded(image: &DynamicImage, format: ImageFormat) -> Option<Arc<[u8]>> {
    let mut encoded = Cursor::new(Vec::new());
    image.write_to(&mut encoded, format).ok()?;
    Some(encoded.into_inner().into())
}

fn is_sendable(bytes: &[u8], image: &DynamicImage) -> bool {
    bytes.len() <= IMAGE_MAX_BYTES && image.width().max(image.height()) <= IMAGE_MAX_EDGE
}

/// Checks an image and makes it smaller if it is too large. `None` if it cannot be decoded.
fn encode_image(bytes: &[u8]) -> Option<EncodedImage> {
    let format = image_format(bytes)?;
    let image = picture::decode_bytes(bytes).ok()?.image;
    if is_sendable(bytes, &image) {
        return Some(EncodedImage { bytes: bytes.into(), format, size: (image.width(), image.height()) });
    }
    EncodedImage::shrunk(&image)
}

#[cfg(test)]
mod tests;
