//! Exports a session as a self-contained HTML page.
//!
//! Invariants: text of an agent or a user is never interpreted as HTML, no link runs a script, and the page loads
//! nothing. Text is sanitised piece by piece: a page may be printed, and an escape sequence across two pieces would
//! swallow the markup between them.

use std::borrow::Cow;
use std::fmt::Write as _;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, html};

use super::export::{facts, unreadable_note};
use super::page::{Call, Picture, Section};
use crate::store::SessionRow;
use crate::ui::text::sanitize;

const STYLE: &str = "
:root { color-scheme: light dark; }
body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.5rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; opacity: .75; }
dd { margin: 0; }
img { max-width: 100%; }
pre { overflow-x: auto; padding: .6rem .8rem; border-radius: .4rem; background: #8881; font-size: .85em; }
.prompt { white-space: pre-wrap; border-left: .25rem solid #d7a65f; padding: .4rem .8rem; background: #d7a65f1a; }
.thought, .notice { opacity: .75; }
.call { border: 1px solid #8884; border-radius: .4rem; padding: .3rem .8rem; margin: .6rem 0; }
.error { color: #c33; opacity: 1; }
.plus { color: #2a8a3e; } .minus { color: #c33; }
";

/// Renders the page.
pub fn page(row: &SessionRow, pieces: &[Section], unreadable_count: u64) -> String {
    let title = escaped(row.name().lines().next().unwrap_or_default());
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<dl>\n"
    );
    for (name, value) in facts(row) {
        let _ = writeln!(page, "<dt>{name}</dt><dd>{}</dd>", escaped(&value));
    }
    page.push_str("</dl>\n");
    if let Some(note) = unreadable_note(unreadable_count) {
        let _ = writeln!(page, "<p class=\"notice error\">{note}</p>");
    }
    for piece in pieces {
        match piece {
            Section::Prompt(text) => {
                let _ = writeln!(page, "<div class=\"prompt\">{}</div>", escaped(text));
            }
            Section::Answer(text) => {
                let _ = writeln!(page, "<div class=\"answer\">\n{}</div>", markdown(text));
            }
            Section::Thought(text) => {
                let _ = writeln!(
                    page,
                    "<details class=\"thought\"><summary>Thought</summary>\n{}</details>",
                    markdown(text)
                );
            }
            Section::Picture(picture) => {
                let _ = writeln!(page, "<p>{}</p>", picture_html(picture));
            }
            Section::Call(call) => call_html(&mut page, call),
            Section::Notice { is_error, text } => {
                let class = if *is_error { "notice error" } else { "notice" };
                let _ = writeln!(page, "<p class=\"{class}\">{}</p>", escaped(text).replace('\n', "<br>\n"));
            }
        }
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn call_html(page: &mut String, call: &Call) {
    let status =
        call.status.map(|status| format!(" <span class=\"error\">{status}</span>")).unwrap_or_default();
    let _ = writeln!(page, "<details class=\"call\"><summary>{}{status}</summary>", escaped(&call.title));
    if let Some(command) = &call.command {
        let _ = writeln!(page, "<pre>$ {}</pre>", escaped(command));
    }
    for note in &call.notes {
        let _ = writeln!(page, "<p>{}</p>", escaped(note));
    }
    for (path, diff) in &call.diffs {
        let _ = write!(page, "<p><code>{}</code></p>\n<pre>", escaped(path));
        for line in diff.lines() {
            let class = match line.as_bytes().first() {
                Some(b'+') => "plus",
                Some(b'-') => "minus",
                _ => "",
            };
            let _ = writeln!(page, "<span class=\"{class}\">{}</span>", escaped(line));
        }
        page.push_str("</pre>\n");
    }
    if !call.output.is_empty() {
        let _ = writeln!(page, "<pre>{}</pre>", escaped(&call.output));
    }
    for picture in &call.pictures {
        let _ = writeln!(page, "<p>{}</p>", picture_html(picture));
    }
    page.push_str("</details>\n");
}

/// The image as a data URL if its format cannot contain scripts; otherwise a description.
fn picture_html(Picture { mime_type, data, alt }: &Picture) -> String {
    let is_picture = matches!(mime_type.as_str(), "image/png" | "image/jpeg" | "image/gif" | "image/webp");
    let is_base64 = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    if is_picture && is_base64 {
        format!("<img alt=\"{}\" src=\"data:{mime_type};base64,{data}\">", escaped(alt))
    } else {
        escaped(alt)
    }
}

/// Renders Markdown; embedded HTML is shown as text.
fn markdown(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    // Sanitises after parsing, because decoded entities can be control characters.
    let events = Parser::new_ext(text, options).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) | Event::Text(text) => Event::Text(clean(text)),
        Event::Code(text) => Event::Code(clean(text)),
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(clean(info))))
        }
        // Images must not be loaded; a link needs a click.
        Event::Start(Tag::Image { link_type, dest_url, title, id }) => Event::Start(Tag::Image {
            link_type,
            dest_url: CowStr::Borrowed(""),
            title: clean(image_title(&dest_url, title)),
            id,
        }),
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let dest_url = clean(dest_url);
            let dest_url = if is_harmless(&dest_url) { dest_url } else { CowStr::Borrowed("#") };
            Event::Start(Tag::Link { link_type, dest_url, title: clean(title), id })
        }
        other => other,
    });
    let mut out = String::with_capacity(text.len() * 2);
    html::push_html(&mut out, events);
    out
}

fn clean(text: CowStr<'_>) -> CowStr<'_> {
    match sanitize(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(clean) => CowStr::from(clean),
    }
}

fn image_title<'a>(url: &str, title: CowStr<'a>) -> CowStr<'a> {
    if title.is_empty() { CowStr::from(url.to_owned()) } else { title }
}

fn is_harmless(url: &str) -> bool {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        None | Some("http" | "https" | "mailto" | "file") => true,
        // A colon after a slash is part of a path.
        Some(scheme) => scheme.contains(['/', '#', '?']),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in sanitize(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}
