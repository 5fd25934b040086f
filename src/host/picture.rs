//! Decodes images of agents: base64 to pixels, within limits.
//!
//! Supports PNG, JPEG, GIF (first frame) and WebP, detected from the data. Decoding is slow and belongs on a
//! separate thread; `runtime::pictures` shows images.
//! Invariant: the memory for an image is known before it is decoded, so decompression bombs are rejected.

use std::io::Cursor;

use base64::Engine as _;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Limits};

/// Maximum size of the base64 text in bytes.
const MAX_TEXT_BYTES: usize = 48 * 1024 * 1024;
/// Maximum number of pixels; covers photos of common cameras.
const MAX_PIXELS: u64 = 40_000_000;
/// Maximum memory for decoding an image.
const MAX_MEMORY_BYTES: u64 = 256 * 1024 * 1024;

/// A decoded image.
#[derive(Debug, Clone)]
pub struct Picture {
    pub image: DynamicImage,
    pub format: &'static str,
    /// Size of the encoded image.
    pub bytes: u64,
}

/// Decodes an image. The error is a message for the user.
pub fn read(base64: &str) -> Result<Picture, String> {
    // Some agents send `data:` URLs.
    let text = match base64.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        Some((_, data)) => data,
        None => base64,
    };
    if text.len() > MAX_TEXT_BYTES {
        return Err("not shown: larger than 36 MB".to_owned());
    }
    let bytes = decode_base64(text).ok_or("not shown: invalid base64")?;
    decode_bytes(&bytes)
}

/// Decodes base64, with or without padding and line breaks.
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    use base64::alphabet::STANDARD;
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&STANDARD, config);
    engine.decode(text).ok().or_else(|| {
        // Some agents send base64 with line breaks, as in MIME.
        let text: String = text.chars().filter(|ch| !ch.is_ascii_whitespace()).collect();
        engine.decode(text).ok()
    })
}

/// Decodes an image that is not in base64. The error is a message for the user.
pub fn decode_bytes(bytes: &[u8]) -> Result<Picture, String> {
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
    let reader = reader.map_err(|error| format!("not shown: {error}"))?;
    let format = match reader.format() {
        Some(ImageFormat::Png) => "png",
        Some(ImageFormat::Jpeg) => "jpeg",
        Some(ImageFormat::Gif) => "gif",
        Some(ImageFormat::WebP) => "webp",
        _ => return Err("not shown: not a PNG, JPEG, GIF or WebP image".to_owned()),
    };
    let damaged = |_| "not shown: damaged image".to_owned();
    let mut decoder = reader.into_decoder().map_err(damaged)?;
    let (width, height) = decoder.dimensions();
    let is_huge = u64::from(width) * u64::from(height) > MAX_PIXELS;
    if is_huge || decoder.total_bytes() > MAX_MEMORY_BYTES {
        return Err(format!("not shown: {width}×{height} pixels is too large"));
    }
    if width == 0 || height == 0 {
        return Err("not shown: empty image".to_owned());
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_MEMORY_BYTES);
    decoder.set_limits(limits).map_err(|_| "not shown: out of image memory".to_owned())?;
    let turned = decoder.orientation().ok();
    let mut image = DynamicImage::from_decoder(decoder).map_err(damaged)?;
    if let Some(turned) = turned {
        image.apply_orientation(turned);
    }
    Ok(Picture { image, format, bytes: bytes.len() as u64 })
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use image::RgbaImage;

    use super::*;

    fn bytes_of(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let image = DynamicImage::ImageRgba8(RgbaImage::from_fn(width, height, |x, y| {
            image::Rgba([u8::try_from(x % 256).unwrap(), u8::try_from(y % 256).unwrap(), 7, 255])
        }));
        let mut out = Cursor::new(Vec::new());
        match format {
            ImageFormat::Jpeg => image.to_rgb8().write_to(&mut out, format).unwrap(),
            _ => image.write_to(&mut out, format).unwrap(),
        }
        out.into_inner()
    }

    #[test]
    fn images_are_decoded_independently_of_the_declared_type() {
        for (format, name) in [
            (ImageFormat::Png, "png"),
            (ImageFormat::Jpeg, "jpeg"),
            (ImageFormat::Gif, "gif"),
            (ImageFormat::WebP, "webp"),
        ] {
            let bytes = bytes_of(30, 20, format);
            let text = STANDARD.encode(&bytes);
            let whole = read(&text).unwrap();
            assert_eq!((whole.format, whole.image.width(), whole.image.height()), (name, 30, 20));
            assert_eq!(whole.bytes, bytes.len() as u64);
            let (head, tail) = text.split_at(40);
            assert!(read(&format!("{head}\r\n{tail}\n")).is_ok(), "with line breaks");
            assert!(
                read(&format!("data:image/x;base64,{}", text.trim_end_matches('='))).is_ok(),
                "as a data URL"
            );
        }
    }

    #[test]
    fn invalid_images_are_rejected_with_a_message() {
        let why = |text: &str| read(text).unwrap_err();
        assert_eq!(why("&&&"), "not shown: invalid base64");
        assert_eq!(why(&STANDARD.encode("<svg/>")), "not shown: not a PNG, JPEG, GIF or WebP image");
        let whole = bytes_of(30, 20, ImageFormat::Png);
        assert_eq!(why(&STANDARD.encode(&whole[..60])), "not shown: damaged image");
        assert!(why(&"A".repeat(MAX_TEXT_BYTES + 4)).contains("larger"));
    }

    #[test]
    fn decompression_bombs_are_rejected_before_decoding() {
        // The size is in the header, so a few bytes can declare billions of pixels.
        let mut bytes = bytes_of(4, 4, ImageFormat::Png);
        bytes[16..20].copy_from_slice(&60_000_u32.to_be_bytes());
        bytes[20..24].copy_from_slice(&60_000_u32.to_be_bytes());
        let sum = crc(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(read(&STANDARD.encode(&bytes)).unwrap_err(), "not shown: 60000×60000 pixels is too large");
    }

    /// The checksum of PNG chunks.
    fn crc(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |sum, byte| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 * (sum & 1)))
        })
    }
}
