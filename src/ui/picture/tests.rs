use std::path::Path;
use std::time::Instant;

use super::*;
use crate::ui::theme::Theme;

const BLOCKS: Grid = Grid { cell: (1, 2), max_pixels: u32::MAX };

fn caption_lines(data: &Body, cols: u16) -> Vec<String> {
    let theme = Theme::plain();
    let render = RenderContext::new(&theme, Path::new("/"), Instant::now());
    lines(data, "image/png", "", &render, cols).iter().map(ToString::to_string).collect()
}

fn facts() -> Facts {
    Facts { pixels: (6, 4), format: "png", bytes: 3 }
}

fn drawn(weight: usize, saved_as: Option<u32>) -> Drawn {
    let rows = PictureRows::Text(vec![Line::raw("██"), Line::raw("▀▀")]);
    Drawn { facts: facts(), rows, saved_as, weight }
}

/// Rows of an image with these escape sequences.
pub(crate) fn strips(texts: &[&str], cols: u16) -> Vec<Line<'static>> {
    texts.iter().map(|text| strip::row(strip::keep(Arc::from(*text)), cols)).collect()
}

#[test]
fn images_are_scaled_down_only_and_keep_their_aspect_ratio() {
    let cells = Grid { cell: (10, 20), max_pixels: u32::MAX };
    assert_eq!(cells.fit((100, 100), 76), (10, 5));
    assert_eq!(cells.fit((1000, 100), 40), (40, 2), "limited by the width");
    assert_eq!(cells.fit((100, 4000), 76), (1, 20), "limited by the height");
    assert_eq!(cells.fit((3000, 2000), 200), (60, 20));
    assert_eq!(cells.fit((1, 1), 76), (1, 1));
    assert_eq!(cells.fit((u32::MAX, u32::MAX), u16::MAX), (40, 20));
    assert_eq!(cells.fit((0, 0), 0), (1, 1));
    assert_eq!(BLOCKS.fit((64, 32), 76), (64, 16));
    let few = Grid { cell: (10, 20), max_pixels: 76 * 10 * 20 * 4 };
    assert_eq!(few.fit((3000, 2000), 76).1, 4, "limited by the number of pixels");
}

#[test]
fn captions_begin_with_the_name_of_the_file() {
    let theme = Theme::plain();
    let render = RenderContext::new(&theme, Path::new("/code/shop"), Instant::now());
    show(None);
    let caption = |uri: &str, cols| {
        lines(&"AAAA".into(), "image/png", uri, &render, cols)
            .iter()
            .map(ToString::to_string)
            .collect::<String>()
    };
    assert_eq!(caption("file:///code/shop/art/logo.png", 60), "art/logo.png · image · image/png · 3 B");
    let long = caption(&format!("file:///home/{}/logo.png", "deep/".repeat(30)), 60);
    assert!(long.contains("logo.png · image"), "{long}");
}

#[test]
fn images_are_captioned_then_rendered() {
    let data: Body = "AAAA".into();
    show(None);
    assert_eq!(caption_lines(&data, 40), ["image · image/png · 3 B"]);
    assert!(take_wanted().is_none(), "disabled images are not rendered");
    show(Some(BLOCKS));
    assert_eq!(caption_lines(&data, 40), ["image · image/png · 3 B"]);
    assert_eq!(caption_lines(&data, 40).len(), 1);
    let wanted = take_wanted().unwrap();
    assert!(take_wanted().is_none(), "queued once");
    let before = rev();
    assert!(put(wanted.key, Ok(drawn(9, None))));
    assert!(rev() > before);
    assert_eq!(caption_lines(&data, 40), ["██", "▀▀", "image · png · 6×4 · 3 B"]);
    // At another width, the space is reserved.
    assert_eq!(caption_lines(&data, 30), ["", "", "image · png · 6×4 · 3 B"]);
    assert_eq!(take_wanted().unwrap().cols, 30);
}

#[test]
fn resizing_queues_only_the_last_width() {
    show(Some(BLOCKS));
    let data: Body = "AAAA".into();
    for cols in 20..60 {
        caption_lines(&data, cols);
    }
    assert_eq!(take_wanted().map(|wanted| wanted.cols), Some(59));
    assert!(take_wanted().is_none());
}

#[test]
fn undecodable_images_show_the_error() {
    show(Some(BLOCKS));
    let data: Body = "AAAA".into();
    caption_lines(&data, 60);
    assert!(put(take_wanted().unwrap().key, Err("not shown: it is damaged".to_owned())));
    assert_eq!(caption_lines(&data, 60), ["image · image/png · 3 B · not shown: it is damaged"]);
    assert!(take_wanted().is_none(), "it is not decoded again");
}

#[test]
fn evicted_images_keep_their_space() {
    show(Some(BLOCKS));
    let texts: Vec<Body> = (0..4).map(|n| format!("AAA{n}").into()).collect();
    for (index, data) in texts.iter().enumerate() {
        caption_lines(data, 40);
        let number = u32::try_from(index).unwrap();
        put(take_wanted().unwrap().key, Ok(drawn(CACHED_BYTES / 3, Some(number))));
    }
    assert_eq!(take_gone(), [0], "the terminal can delete it too");
    assert_eq!(caption_lines(&texts[3], 40)[0], "██");
    assert_eq!(caption_lines(&texts[0], 40), ["", "", "image · png · 6×4 · 3 B"]);
    assert_eq!(take_wanted().unwrap().data, texts[0], "it is rendered again when visible");
}

#[test]
fn outdated_and_unused_images_are_released() {
    show(Some(BLOCKS));
    let data: Body = "AAAA".into();
    caption_lines(&data, 40);
    let key = take_wanted().unwrap().key;
    show(Some(BLOCKS));
    assert!(!put(key, Ok(drawn(9, Some(7)))), "the image protocol has changed");
    assert_eq!(take_gone(), [7]);
    caption_lines(&data, 40);
    put(take_wanted().unwrap().key, Ok(drawn(9, Some(8))));
    drop(data);
    let other: Body = "BBBB".into();
    caption_lines(&other, 40);
    put(take_wanted().unwrap().key, Ok(drawn(9, Some(9))));
    assert_eq!(take_gone(), [8]);
}
