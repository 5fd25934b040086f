//! Markdown: one chunk at the end of a long message, and a complete text.

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use parlor::ui::markdown::Markdown;
use parlor::ui::render_context::RenderContext;
use parlor::ui::theme::Theme;

/// Prose, lists, tables and code as in typical responses.
fn text(paragraphs: usize) -> String {
    let mut out = String::new();
    for n in 0..paragraphs {
        let _ = match n % 5 {
            0 => write!(
                out,
                "## Step {n}\n\nSome **bold** text with `code` and a [link](http://e.org/{n}).\n\n"
            ),
            1 => write!(out, "- one\n- two with *emphasis*\n  - nested {n}\n\n"),
            2 => write!(
                out,
                "```rust\nfn step_{n}() -> u32 {{\n    let x = {n}; // a comment\n    x + 1\n}}\n```\n\n"
            ),
            3 => write!(out, "| a | b |\n|---|---|\n| {n} | two |\n\n"),
            _ => write!(
                out,
                "> A quote that goes on for a while, long enough to be wrapped at eighty columns.\n\n"
            ),
        };
    }
    out
}

fn render(theme: &Theme) -> RenderContext<'_> {
    RenderContext { sideways: Some(0), ..RenderContext::new(theme, Path::new("/"), Instant::now()) }
}

fn chunks(c: &mut Criterion) {
    let theme = Theme::plain();
    let mut group = c.benchmark_group("markdown chunk of 24 bytes");
    for paragraphs in [40, 4000] {
        let source = text(paragraphs);
        group.bench_function(format!("after {} kB", source.len() / 1000), |b| {
            let mut markdown = Markdown::default();
            let mut grown = source.clone();
            markdown.update(&grown, false);
            b.iter(|| {
                grown.push_str("some more words follow, ");
                if grown.len().is_multiple_of(20) {
                    grown.push_str("\n\n");
                }
                markdown.update(&grown, false);
                let last = markdown.blocks().len() - 1;
                black_box(markdown.draw(last, &grown, &render(&theme), 96))
            });
        });
    }
    group.finish();
}

fn whole(c: &mut Criterion) {
    let source = text(2000);
    let mut group = c.benchmark_group("markdown whole text");
    group.throughput(Throughput::Bytes(source.len() as u64));
    group.bench_function("find blocks", |b| b.iter(|| black_box(Markdown::of(&source))));
    let theme = Theme::plain();
    group.bench_function("draw all blocks", |b| {
        b.iter_batched(
            || Markdown::of(&source),
            |mut markdown| {
                for index in 0..markdown.blocks().len() {
                    black_box(markdown.draw(index, &source, &render(&theme), 96));
                }
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, chunks, whole);
criterion_main!(benches);
