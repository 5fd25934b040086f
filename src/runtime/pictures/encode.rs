//! Encodes a picture as rows of cells. Slow, so it runs on a separate thread.

use std::sync::OnceLock;

use image::imageops::{self, ColorMap, FilterType};
use image::{DynamicImage, Rgba, RgbaImage};
use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use ratatui::style::{Color, Style};
use ratatui::widgets::Widget as _;
use ratatui_image::Image;
use ratatui_image::protocol::Protocol;
use ratatui_image::protocol::halfblocks::Halfblocks;
use ratatui_image::protocol::iterm2::Iterm2;
use ratatui_image::protocol::kitty::Kitty;
use ratatui_image::protocol::sixel::Sixel;

use crate::host::picture::Picture;
use crate::ui::picture::{Drawn, Facts, Grid, MAX_COLS, MAX_ROWS, PictureRows, row_of_cells};
use crate::ui::text::PICTURE_PLACEHOLDER;
use crate::ui::text::copy_hint::Mark;
use crate::ui::text::{Line, Span};
use crate::ui::theme::{ColorSupport, nearest_ansi, reduce};

use super::Text;
use super::graphics::Graphics;

/// Maximum number of pixels sent to a terminal that stores pictures; it scales them to the cells.
const MAX_STORED_PIXELS: u64 = 400_000;

/// The parameters of the encoding.
pub(super) struct Encoder {
    pub graphics: Graphics,
    pub grid: Grid,
    /// The background of transparent pixels where the terminal does not support transparency.
    pub ground: [u8; 3],
    /// The colors for half blocks.
    pub colors: ColorSupport,
    pub number: u32,
}

pub(super) struct Encoded {
    pub drawn: Drawn,
    /// Data that the terminal needs before the picture can be shown.
    pub to_send: Option<String>,
}

impl Encoder {
    /// Encodes a picture for `cols` columns. Errors are messages for the user.
    pub fn encode(&self, picture: Picture, cols: u16) -> Result<Encoded, String> {
        let Picture { image, format, bytes } = picture;
        let facts = Facts { pixels: (image.width(), image.height()), format, bytes };
        let (cols, rows) = self.grid.fit(facts.pixels, cols);
        let size = Size::new(cols, rows);
        let mut to_send = None;
        let mut saved_as = None;
        let rows = match self.graphics {
            Graphics::Off => return Err("not shown".to_owned()),
            Graphics::Blocks => PictureRows::Text(self.blocks(image, size)?),
            Graphics::Kitty { is_in_tmux, compressed } => {
                let image = self.scaled(image, size, MAX_STORED_PIXELS);
                let kitty =
                    Kitty::new(image, size, self.number, is_in_tmux, compressed).map_err(error_text)?;
                to_send = Some(transmission(kitty, size)?);
                saved_as = Some(self.number);
                PictureRows::Text((0..rows).map(|row| placeholders(self.number, row, cols)).collect())
            }
            Graphics::Iterm2 | Graphics::Sixel => {
                let image = flat(self.scaled(image, size, u64::MAX), self.ground);
                let strips = (0..rows).map(|row| self.strip(&image, row, cols)).collect::<Result<_, _>>()?;
                PictureRows::Strips(cols, strips)
            }
        };
        let weight = weigh(&rows);
        Ok(Encoded { drawn: Drawn { facts, rows, saved_as, weight }, to_send })
    }

    fn blocks(&self, image: DynamicImage, size: Size) -> Result<Vec<Line<'static>>, String> {
        let (width, height) = (u32::from(size.width), u32::from(size.height) * 2);
        let mut image = flat(smaller(image, width, height), self.ground);
        if self.colors == ColorSupport::Ansi16 {
            let mut dithered = image.into_rgba8();
            imageops::dither(&mut dithered, &Ansi16);
            image = DynamicImage::ImageRgba8(dithered);
        }
        let protocol = Protocol::Halfblocks(Halfblocks::new(image, size).map_err(error_text)?);
        let buf = cells_of(&protocol, size);
        let rows = buf.content.chunks(usize::from(size.width.max(1)));
        Ok(rows
            .map(|row| {
                row_of_cells(row.iter().map(|cell| {
                    // Each color is reduced separately: there is no text whose contrast matters.
                    let style = Style {
                        fg: reduce(Style::new().fg(cell.fg), self.colors, None).fg,
                        bg: reduce(Style::new().bg(cell.bg), self.colors, None).bg,
                        ..Style::default()
                    };
                    // A blank has no foreground, so that more of them are equal.
                    let style = if cell.symbol() == " " { Style { fg: None, ..style } } else { style };
                    (cell.symbol(), style)
                }))
            })
            .collect())
    }

    /// The picture scaled to its cells, transparent where it does not fill the last ones. With more than `max` pixels
    /// it is smaller than its cells.
    fn scaled(&self, image: DynamicImage, size: Size, max: u64) -> DynamicImage {
        let room = (
            u64::from(size.width) * u64::from(self.grid.cell.0),
            u64::from(size.height) * u64::from(self.grid.cell.1),
        );
        // Both sides are reduced by the same percentage.
        let mut percent = 100;
        while percent > 10 && room.0 * room.1 * percent * percent / 10_000 > max {
            percent -= 5;
        }
        let pixels = |count: u64| u32::try_from((count * percent / 100).max(1)).unwrap_or(1);
        let room = (pixels(room.0), pixels(room.1));
        let wanted = (pixels(u64::from(image.width())), pixels(u64::from(image.height())));
        let (wide, high) = (u64::from(wanted.0), u64::from(wanted.1));
        let (mut width, mut height) = wanted;
        if width > room.0 {
            (width, height) = (room.0, pixels_of(high * u64::from(room.0) / wide));
        }
        if height > room.1 {
            (width, height) = (pixels_of(wide * u64::from(room.1) / high), room.1);
        }
        let image = smaller(image, width.min(room.0), height.min(room.1));
        if (image.width(), image.height()) == room {
            return image;
        }
        let mut padded = RgbaImage::new(room.0, room.1);
        image::imageops::replace(&mut padded, &image.to_rgba8(), 0, 0);
        DynamicImage::ImageRgba8(padded)
    }

    fn strip(&self, image: &DynamicImage, row: u16, cols: u16) -> Result<Text, String> {
        let high = u32::from(self.grid.cell.1);
        let part = image.crop_imm(0, u32::from(row) * high, image.width(), high);
        let size = Size::new(cols, 1);
        let text = if self.graphics == Graphics::Sixel {
            Sixel::new(part, size, false).map_err(error_text)?.data
        } else {
            // In cells: the size of a pixel depends on the terminal.
            let pixels = format!("width={}px;height={}px;", part.width(), part.height());
            let data = Iterm2::new(part, size, false).map_err(error_text)?.data;
            data.replacen(&pixels, &format!("width={cols};height=1;preserveAspectRatio=0;"), 1)
        };
        Ok(text.into())
    }
}

fn pixels_of(count: u64) -> u32 {
    u32::try_from(count.max(1)).unwrap_or(1)
}

fn error_text(error: impl std::fmt::Display) -> String {
    format!("not shown: {error}")
}

fn smaller(image: DynamicImage, width: u32, height: u32) -> DynamicImage {
    if (image.width(), image.height()) == (width, height) {
        return image;
    }
    // A large picture is halved by averaging first, which takes a tenth of the time.
    let image = if image.width() / 4 > width && image.height() / 4 > height {
        image.thumbnail_exact(width * 2, height * 2)
    } else {
        image
    };
    image.resize_exact(width, height, FilterType::Triangle)
}

fn flat(image: DynamicImage, ground: [u8; 3]) -> DynamicImage {
    let mut image = image.into_rgba8();
    for Rgba([red, green, blue, alpha]) in image.pixels_mut() {
        for (tone, under) in [red, green, blue].into_iter().zip(ground) {
            let mixed = u32::from(*tone) * u32::from(*alpha) + u32::from(under) * (255 - u32::from(*alpha));
            *tone = u8::try_from(mixed / 255).unwrap_or(u8::MAX);
        }
        *alpha = 255;
    }
    DynamicImage::ImageRgba8(image)
}

/// The 16 colors that every terminal has, for dithering.
struct Ansi16;

impl ColorMap for Ansi16 {
    type Color = Rgba<u8>;

    // Dithering does not use the index.
    fn index_of(&self, _: &Self::Color) -> usize {
        0
    }

    fn map_color(&self, pixel: &mut Self::Color) {
        let Rgba([red, green, blue, alpha]) = *pixel;
        let [red, green, blue] = nearest_ansi([red, green, blue]);
        *pixel = Rgba([red, green, blue, alpha]);
    }
}

fn cells_of(protocol: &Protocol, size: Size) -> Buffer {
    let area = Rect::new(0, 0, size.width, size.height);
    let mut buf = Buffer::empty(area);
    Image::new(protocol).render(area, &mut buf);
    buf
}

/// The sequence for a picture that the terminal stores, with its size in cells, so that the terminal does not derive it
/// from the pixels.
fn transmission(kitty: Kitty, size: Size) -> Result<String, String> {
    let buf = cells_of(&Protocol::Kitty(kitty), size);
    let first = buf.content.first().map(ratatui::buffer::Cell::symbol).unwrap_or_default();
    let (text, _) = first.split_once(PICTURE_PLACEHOLDER).ok_or("not shown: encoding failed")?;
    let cells = format!("U=1,c={},r={},", size.width, size.height);
    Ok(text.replacen("U=1,", &cells, 1))
}

/// A row of placeholders, which the terminal replaces by its picture. Each cell encodes its own position, because its
/// neighbours may be hidden.
fn placeholders(number: u32, row: u16, cols: u16) -> Line<'static> {
    let mark = |position: u16| counting_marks().get(usize::from(position)).copied();
    let mut text = String::new();
    for col in 0..cols {
        text.push(PICTURE_PLACEHOLDER);
        text.extend(mark(row).into_iter().chain(mark(col)));
    }
    Mark::NO_LINE.row(Line::from(Span::styled(text, Style::new().fg(Color::from_u32(number)))))
}

/// The diacritics by which kitty encodes rows and columns, taken from the library.
fn counting_marks() -> &'static [char] {
    static MARKS: OnceLock<Vec<char>> = OnceLock::new();
    MARKS.get_or_init(|| {
        let size = Size::new(1, MAX_COLS.max(MAX_ROWS));
        let Ok(kitty) = Kitty::new(DynamicImage::new_rgba8(1, 1), size, 1, false, false) else {
            return Vec::new();
        };
        let buf = cells_of(&Protocol::Kitty(kitty), size);
        let mark = |symbol: &str| symbol.split_once(PICTURE_PLACEHOLDER)?.1.chars().next();
        buf.content.iter().filter_map(|cell| mark(cell.symbol())).collect()
    })
}

fn weigh(rows: &PictureRows) -> usize {
    match rows {
        PictureRows::Text(rows) => {
            let spans = rows.iter().flat_map(|row| &row.spans);
            spans.map(|span| size_of::<Span<'_>>() + span.content.len()).sum()
        }
        PictureRows::Strips(_, strips) => strips.iter().map(|strip| strip.len()).sum(),
    }
}
