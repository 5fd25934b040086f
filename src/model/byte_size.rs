//! Sizes of texts and files, for display.

/// A short size: `812 B`, `34 KiB`, `1.2 MiB`.
pub fn byte_size(bytes: u64) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..KIB => format!("{bytes} B"),
        KIB..MIB => format!("{} KiB", bytes.div_ceil(KIB)),
        MIB..GIB => format!("{} MiB", tenths(MIB)),
        _ => format!("{} GiB", tenths(GIB)),
    }
}

#[cfg(test)]
mod tests {
    use super::byte_size;

    #[test]
    fn sizes_have_binary_units() {
        let shown = [0, 812, 1023, 1024, 34_900, 1_048_575, 1_363_149, 5 << 30].map(byte_size);
        assert_eq!(shown, ["0 B", "812 B", "1023 B", "1 KiB", "35 KiB", "1024 KiB", "1.3 MiB", "5.0 GiB"]);
    }
}
