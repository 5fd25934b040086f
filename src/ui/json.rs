//! JSON laid out for reading, without understanding it.
//!
//! Duty: line breaks and indents by brackets and commas outside of strings, so that also what is cut off or not
//! quite JSON comes out whole. Not its duty: checking, colours.

/// Deeper levels are not indented further.
const MOST_INDENT: usize = 24;

/// The text with a line for each member. Blanks between tokens are made anew; strings stay as they are.
pub fn lay_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut depth = 0_usize;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                out.push('"');
                while let Some(inner) = letters.next() {
                    out.push(inner);
                    match inner {
                        '"' => break,
                        '\\' => out.extend(letters.next()),
                        _ => {}
                    }
                }
            }
            '{' | '[' => {
                out.push(letter);
                while letters.next_if(|next| next.is_whitespace()).is_some() {}
                if let Some(close) = letters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push(letter);
            }
            ',' => {
                out.push(',');
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            blank if blank.is_whitespace() => {}
            other => out.push(other),
        }
    }
    out
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth.min(MOST_INDENT) {
        out.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_on_lines_of_their_own() {
        let text = r#"{"a":[1, {"b":"x, y: {z}"}],"c":{},"d":[ ],"e":null}"#;
        let lines = [
            "{",
            "  \"a\": [",
            "    1,",
            "    {",
            "      \"b\": \"x, y: {z}\"",
            "    }",
            "  ],",
            "  \"c\": {},",
            "  \"d\": [],",
            "  \"e\": null",
            "}",
        ];
        assert_eq!(lay_out(text), lines.join("\n"));
    }

    #[test]
    fn what_is_cut_off_or_no_json_loses_nothing() {
        for text in [r#"{"a":"b\"#, r#"["x\"y","#, "}}]", "plain-words", "\"é\\\"日"] {
            let kept = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            assert_eq!(kept(&lay_out(text)), kept(text));
        }
        let deep = "[".repeat(1000);
        assert!(lay_out(&deep).lines().all(|line| line.len() <= 2 * MOST_INDENT + 1));
    }
}
