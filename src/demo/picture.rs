//! Generates a PNG image: hills under an evening sky.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};

/// Width and height in pixels.
const SIZE: (u32, u32) = (192, 96);

/// The image in base64.
pub(super) fn evening() -> String {
    let image = RgbImage::from_fn(SIZE.0, SIZE.1, |x, y| Rgb(tone(x, y)));
    let mut bytes = Cursor::new(Vec::new());
    // Writing to memory cannot fail; otherwise the image would be empty.
    let _ = DynamicImage::ImageRgb8(image).write_to(&mut bytes, ImageFormat::Png);
    STANDARD.encode(bytes.into_inner())
}

/// The colour of a pixel: hills from front to back, then the sun, then the sky.
fn tone(x: u32, y: u32) -> [u8; 3] {
    let hills: [(u32, u32, u32, [u8; 3]); 3] =
        [(22, 12, 97, [24, 38, 52]), (38, 16, 61, [43, 66, 82]), (52, 10, 43, [82, 98, 122])];
    for (height, swing, length, tone) in hills {
        if SIZE.1 - y < height + wave(x + length, length) * swing / 100 {
            return tone;
        }
    }
    let (wide, high) = (x.abs_diff(132), y.abs_diff(40));
    if wide * wide + high * high < 15 * 15 {
        return [255, 226, 158];
    }
    let blend = |from: u32, to: u32| u8::try_from((from * (SIZE.1 - y) + to * y) / SIZE.1).unwrap_or(u8::MAX);
    [blend(72, 250), blend(84, 158), blend(140, 120)]
}

/// A smooth wave between 0 and 100.
fn wave(x: u32, length: u32) -> u32 {
    let step = x % length * 200 / length;
    let slope = if step > 100 { 200 - step } else { step };
    slope * slope * (300 - 2 * slope) / 10_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_is_a_png_with_sky_and_hills() {
        let bytes = STANDARD.decode(evening()).unwrap();
        let image = image::load_from_memory_with_format(&bytes, ImageFormat::Png).unwrap().to_rgb8();
        assert_eq!(image.dimensions(), SIZE);
        assert_eq!(image.get_pixel(10, 95).0, [24, 38, 52]);
        assert_eq!(image.get_pixel(132, 40).0, [255, 226, 158]);
        assert!(image.get_pixel(10, 0).0[2] > image.get_pixel(10, 0).0[0]);
        assert!(bytes.len() < 20_000);
    }
}
