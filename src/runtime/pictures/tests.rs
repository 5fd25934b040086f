use std::io::Cursor;

use base64::Engine as _;
use image::{DynamicImage, Rgba, RgbaImage};

use super::*;
use crate::ui::picture::{Grid, MAX_ROWS, PictureRows};
use crate::ui::text::PICTURE_PLACEHOLDER;
use crate::ui::theme::ColorSupport;

const BLOCKS: Grid = Grid { cell: (1, 2), max_pixels: u32::MAX };
const PIXELS: Grid = Grid { cell: (8, 16), max_pixels: 1_000_000 };

/// Red above, blue below, and transparent in the middle.
fn picture(width: u32, height: u32) -> reader::Picture {
    let image = RgbaImage::from_fn(width, height, |x, y| {
        if x == width / 2 {
            Rgba([0, 0, 0, 0])
        } else if y < height / 2 {
            Rgba([255, 0, 0, 255])
        } else {
            Rgba([0, 0, 255, 255])
        }
    });
    reader::Picture { image: DynamicImage::ImageRgba8(image), format: "png", bytes: 9 }
}

fn encode(graphics: Graphics, grid: Grid, colors: ColorSupport, width: u32, height: u32) -> Encoded {
    let encoder = Encoder { graphics, grid, ground: [9, 9, 9], colors, number: 0x0012_3456 };
    encoder.encode(picture(width, height), 60).unwrap()
}

fn rows(encoded: &Encoded) -> &[crate::ui::text::Line<'static>] {
    match &encoded.drawn.rows {
        PictureRows::Text(rows) => rows,
        PictureRows::Strips(..) => panic!("strips"),
    }
}

fn strips(encoded: &Encoded) -> (u16, &[Arc<str>]) {
    match &encoded.drawn.rows {
        PictureRows::Strips(cols, strips) => (*cols, strips),
        PictureRows::Text(_) => panic!("text"),
    }
}

#[test]
fn half_blocks_show_two_pixels_per_cell() {
    let encoded = encode(Graphics::Blocks, BLOCKS, ColorSupport::TrueColor, 5, 6);
    let rows = rows(&encoded);
    assert_eq!((rows.len(), rows[0].width()), (3, 5));
    let colours: Vec<_> = rows[1].spans.iter().map(|span| (span.style.fg, span.style.bg)).collect();
    let tone = |r, g, b| Some(ratatui::style::Color::Rgb(r, g, b));
    assert_eq!(colours[0], (tone(255, 0, 0), tone(0, 0, 255)), "{rows:?}");
    assert_eq!(colours[1], (None, tone(9, 9, 9)), "the background shows through the transparent pixels");
    let few = encode(Graphics::Blocks, BLOCKS, ColorSupport::Ansi16, 5, 6);
    let all = self::rows(&few).iter().flat_map(|row| &row.spans);
    assert!(all.clone().all(|span| !matches!(span.style.fg, Some(ratatui::style::Color::Rgb(..)))));
    let first = self::rows(&few)[1].spans[0].style;
    let (red, blue) = (ratatui::style::Color::LightRed, ratatui::style::Color::Blue);
    assert_eq!((first.fg, first.bg), (Some(red), Some(blue)), "the nearest colors");
}

#[test]
fn shades_are_dithered_with_sixteen_colors() {
    let grey = RgbaImage::from_pixel(20, 20, Rgba([178, 178, 178, 255]));
    let image = DynamicImage::ImageRgba8(grey);
    let encoder = Encoder {
        graphics: Graphics::Blocks,
        grid: BLOCKS,
        ground: [9, 9, 9],
        colors: ColorSupport::Ansi16,
        number: 1,
    };
    let encoded = encoder.encode(reader::Picture { image, format: "png", bytes: 9 }, 60).unwrap();
    let spans = rows(&encoded).iter().flat_map(|row| &row.spans);
    let shades: std::collections::HashSet<_> =
        spans.flat_map(|span| [span.style.fg, span.style.bg]).collect();
    assert!(shades.len() > 1, "none of the colors is that grey: {shades:?}");
}

#[test]
fn kitty_gets_the_picture_once_and_a_placeholder_per_cell() {
    let graphics = Graphics::Kitty { is_in_tmux: false, compressed: true };
    let encoded = encode(graphics, PIXELS, ColorSupport::TrueColor, 80, 64);
    let sent = encoded.to_send.as_deref().unwrap();
    assert!(sent.starts_with("\x1b_Gq=2,i=1193046,a=T,U=1,c=10,r=4,f=32,o=z,"), "{}", &sent[..60]);
    assert!(sent.ends_with("\x1b\\"));
    assert_eq!(encoded.drawn.saved_as, Some(1_193_046));
    let rows = rows(&encoded);
    assert_eq!((rows.len(), rows[3].width()), (4, 10));
    let cells: Vec<&str> = rows[3].spans[0].content.split_inclusive(PICTURE_PLACEHOLDER).collect();
    assert_eq!(cells.len(), 11);
    // Rows and columns are encoded as diacritics, of which these are the first four.
    assert!(rows[3].spans[0].content.starts_with("\u{10eeee}\u{0310}\u{0305}\u{10eeee}\u{0310}\u{030d}"));
}

#[test]
fn data_is_split_between_sequences_also_through_tmux() {
    for is_in_tmux in [false, true] {
        let graphics = Graphics::Kitty { is_in_tmux, compressed: false };
        let encoded = encode(graphics, PIXELS, ColorSupport::TrueColor, 600, 400);
        let sent = encoded.to_send.unwrap();
        let (mut rest, mut slices) = (sent.as_bytes(), 0);
        let begin: &[u8] = if is_in_tmux { b"\x1bPtmux;\x1b\x1b_G" } else { b"\x1b_G" };
        while !rest.is_empty() {
            let (slice, after) = rest.split_at(slice_end(rest));
            assert!(slice.starts_with(begin) && slice.ends_with(b"\x1b\\"), "{is_in_tmux}");
            assert!(slice.len() < 2 * SLICE_BYTES);
            (rest, slices) = (after, slices + 1);
        }
        assert!(slices > 3, "{slices}");
    }
}

#[test]
fn a_large_picture_is_scaled_down() {
    let graphics = Graphics::Kitty { is_in_tmux: false, compressed: false };
    let grid = Grid { cell: (20, 40), max_pixels: u32::MAX };
    let encoded = encode(graphics, grid, ColorSupport::TrueColor, 4000, 3000);
    let sent = encoded.to_send.unwrap();
    let number = |key: &str| -> u64 {
        let at = sent.find(key).unwrap() + key.len();
        sent[at..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    assert!(number(",s=") * number(",v=") <= 400_000, "{}", &sent[..90]);
}

#[test]
fn sixel_and_iterm2_are_sent_row_by_row() {
    let sixel = encode(Graphics::Sixel, PIXELS, ColorSupport::TrueColor, 80, 60);
    let (cols, parts) = strips(&sixel);
    assert_eq!((cols, parts.len()), (10, 4));
    for part in parts {
        assert!(part.starts_with("\x1b[10X\x1bP") && part.ends_with("\x1b\\"), "{part:?}");
    }
    let iterm2 = encode(Graphics::Iterm2, PIXELS, ColorSupport::TrueColor, 80, 60);
    let (_, parts) = strips(&iterm2);
    for part in parts {
        assert!(part.contains("]1337;File=inline=1;") && part.contains(";width=10;height=1;"), "{part:?}");
        assert!(part.ends_with('\x07'));
    }
}

#[test]
fn a_received_picture_is_shown() {
    let mut bytes = Cursor::new(Vec::new());
    picture(80, 64).image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    let data: crate::model::Body =
        base64::engine::general_purpose::STANDARD.encode(bytes.into_inner()).into();
    let theme = crate::ui::theme::Theme::plain();
    let render = crate::ui::render_context::RenderContext::new(
        &theme,
        std::path::Path::new("/"),
        std::time::Instant::now(),
    );
    let reported = || picture::lines(&data, "image/png", "", &render, 60);

    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut pictures =
        Pictures::new(Environment { setting: GraphicsSetting::Auto, ..Environment::default() });
    pictures.choose(Some((8, 16)), None);
    assert!(picture::grid().is_some_and(|grid| grid.cell == (1, 2)), "half blocks until it responds");
    pictures.note(|known| known.kitty = true);
    assert_eq!(reported().len(), 1);
    runtime.block_on(async {
        pictures.work();
        pictures.work();
        let done = pictures.next().await.unwrap();
        assert!(!pictures.take(done), "the terminal has not received it yet");
    });
    let mut sent = String::new();
    while pictures.has_more_to_send() {
        assert_eq!(reported().len(), 1);
        let (slice, _) = pictures.next_slice();
        assert!(slice.len() <= 2 * SLICE_BYTES && slice.ends_with("\x1b\\"));
        sent.push_str(&slice);
    }
    assert!(sent.contains("c=10,r=4,"));
    assert_eq!(reported().len(), 5);
    assert!(reported().len() <= usize::from(MAX_ROWS) + 1);
    let back = pictures.leave();
    assert!(back.starts_with("\x1b_Ga=d,d=I,i="), "{back:?}");
    assert_eq!(reported().len(), 1, "it is read again after parlor is resumed");
}
