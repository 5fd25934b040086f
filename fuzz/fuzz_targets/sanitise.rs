//! Sanitisation of agent text for the terminal: no control character remains, and clean text is unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use parlor::ui::text::sanitize;

fuzz_target!(|text: &str| {
    let clean = sanitize(text).into_owned();
    assert!(clean.chars().all(|ch| ch == '\n' || ch == '\t' || !ch.is_control()));
    assert!(!clean.contains(['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}']));
    assert_eq!(sanitize(&clean), clean);
});
