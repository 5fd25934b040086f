//! The symbols of the interface: only characters that common fonts have.

use super::sources;

/// Characters beyond ASCII that the interface may draw. `DejaVu` Sans Mono has all of them.
const ALLOWED: &str = "·…“”’«»×−•€£←↑→↓›─│┼╭╮╯╰▀▄▌▐▖▗▘▝■□▸○●◦✓✗⟨⟩";

/// Control pictures, which stand for characters that would be invisible. Systems have them in another font.
const PICTURES: &str = "␉␊␠";

/// Files with characters that are recognized and not drawn.
const RECOGNIZING: [&str; 1] = ["src/ui/text/wrap.rs"];

#[test]
fn the_interface_draws_only_common_characters() {
    let mut rare = Vec::new();
    for source in sources() {
        let is_drawn = source.path.starts_with("src/") && !source.is_test() && !source.is_in(&["demo"]);
        if !is_drawn || RECOGNIZING.contains(&source.path.as_str()) {
            continue;
        }
        for line in source.code().lines() {
            let code = line.split(" // ").next().unwrap_or(line);
            let letters = code.chars().filter(|ch| !ch.is_ascii());
            let unknown = letters.filter(|ch| !ALLOWED.contains(*ch) && !PICTURES.contains(*ch));
            rare.extend(unknown.map(|ch| format!("{}: {ch} in {}", source.path, line.trim())));
        }
    }
    assert!(rare.is_empty(), "common fonts may lack:\n{}", rare.join("\n"));
}
