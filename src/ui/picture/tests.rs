use std::path::Path;
use std::time::Instant;

use super::*;
use crate::ui::theme::Theme;

const BLOCKS: Grid = Grid { cell: (1, 2), most_points: u32::MAX };

fn told(data: &Arc<str>, cols: u16) -> Vec<String> {
    let theme = Theme::plain();
    let look = RenderContext::new(&theme, Path::new("/"), Instant::now());
    lines(data, "image/png", "", &look, cols).iter().map(ToString::to_string).collect()
}

fn facts() -> Facts {
    Facts { points: (6, 4), format: "png", bytes: 3 }
}

fn drawn(weight: usize, kept_as: Option<u32>) -> Drawn {
    let rows = PictureRows::Text(vec![Line::raw("██"), Line::raw("▀▀")]);
    Drawn { facts: facts(), rows, kept_as, weight }
}

/// Rows of a picture for which the terminal is sent these texts.
pub(crate) fn strips(texts: &[&str], cols: u16) -> Vec<Line<'static>> {
    texts.iter().map(|text| strip::row(strip::keep(Arc::from(*text), cols), cols)).collect()
}

#[test]
fn a_picture_keeps_its_shape_and_is_never_made_larger() {
    let cells = Grid { cell: (10, 20), most_points: u32::MAX };
    assert_eq!(cells.fit((100, 100), 76), (10, 5));
    assert_eq!(cells.fit((1000, 100), 40), (40, 2), "as wide as there is room");
    assert_eq!(cells.fit((100, 4000), 76), (1, 20), "as high as there is room");
    assert_eq!(cells.fit((3000, 2000), 200), (60, 20));
    assert_eq!(cells.fit((1, 1), 76), (1, 1));
    assert_eq!(cells.fit((u32::MAX, u32::MAX), u16::MAX), (40, 20));
    assert_eq!(cells.fit((0, 0), 0), (1, 1));
    assert_eq!(BLOCKS.fit((64, 32), 76), (64, 16));
    let few = Grid { cell: (10, 20), most_points: 76 * 10 * 20 * 4 };
    assert_eq!(few.fit((3000, 2000), 76).1, 4, "no more points than are allowed");
}

#[test]
fn a_picture_is_told_then_read_then_seen() {
    let data: Arc<str> = "AAAA".into();
    show(None);
    assert_eq!(told(&data, 40), ["image · image/png · 3 B"]);
    assert!(take_wanted().is_none(), "nobody is to read what is not shown");
    show(Some(BLOCKS));
    assert_eq!(told(&data, 40), ["image · image/png · 3 B"]);
    assert_eq!(told(&data, 40).len(), 1);
    let wanted = take_wanted().unwrap();
    assert!(take_wanted().is_none(), "asked for once");
    let before = rev();
    assert!(put(wanted.key, Ok(drawn(9, None))));
    assert!(rev() > before);
    assert_eq!(told(&data, 40), ["██", "▀▀", "image · png · 6×4 · 3 B"]);
    // In another width its place is kept.
    assert_eq!(told(&data, 30), ["", "", "image · png · 6×4 · 3 B"]);
    assert_eq!(take_wanted().unwrap().cols, 30);
}

#[test]
fn a_window_that_is_being_resized_asks_for_one_width() {
    show(Some(BLOCKS));
    let data: Arc<str> = "AAAA".into();
    for cols in 20..60 {
        told(&data, cols);
    }
    assert_eq!(take_wanted().map(|wanted| wanted.cols), Some(59));
    assert!(take_wanted().is_none());
}

#[test]
fn what_cannot_be_read_says_why() {
    show(Some(BLOCKS));
    let data: Arc<str> = "AAAA".into();
    told(&data, 60);
    assert!(put(take_wanted().unwrap().key, Err("not shown: it is damaged".to_owned())));
    assert_eq!(told(&data, 60), ["image · image/png · 3 B · not shown: it is damaged"]);
    assert!(take_wanted().is_none(), "it is not read again and again");
}

#[test]
fn much_is_not_kept_but_its_place_is() {
    show(Some(BLOCKS));
    let texts: Vec<Arc<str>> = (0..4).map(|n| format!("AAA{n}").into()).collect();
    for (index, data) in texts.iter().enumerate() {
        told(data, 40);
        let number = u32::try_from(index).unwrap();
        put(take_wanted().unwrap().key, Ok(drawn(KEPT_BYTES / 3, Some(number))));
    }
    assert_eq!(take_gone(), [0], "the terminal need not keep it either");
    assert_eq!(told(&texts[3], 40)[0], "██");
    assert_eq!(told(&texts[0], 40), ["", "", "image · png · 6×4 · 3 B"]);
    assert_eq!(take_wanted().unwrap().data, texts[0], "it is read again when it is looked at");
}

#[test]
fn what_came_too_late_or_stands_nowhere_is_let_go() {
    show(Some(BLOCKS));
    let data: Arc<str> = "AAAA".into();
    told(&data, 40);
    let key = take_wanted().unwrap().key;
    show(Some(BLOCKS));
    assert!(!put(key, Ok(drawn(9, Some(7)))), "the terminal shows pictures in another way now");
    assert_eq!(take_gone(), [7]);
    told(&data, 40);
    put(take_wanted().unwrap().key, Ok(drawn(9, Some(8))));
    drop(data);
    let other: Arc<str> = "BBBB".into();
    told(&other, 40);
    put(take_wanted().unwrap().key, Ok(drawn(9, Some(9))));
    assert_eq!(take_gone(), [8]);
}
