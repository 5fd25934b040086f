//! Suggestions for mistyped names.

/// Up to three similar candidates, most similar first.
///
/// Case is ignored. A candidate is similar if at most a third of the longer word's characters differ (at
/// least one is allowed), or if one word is a prefix of the other.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    let mut scored: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let other: Vec<char> = candidate.to_lowercase().chars().collect();
            let edits = distance(&wanted, &other);
            let allowed = (wanted.len().max(other.len()) / 3).max(1);
            let is_prefix = wanted.len() > 1 && (other.starts_with(&wanted) || wanted.starts_with(&other));
            (edits <= allowed || is_prefix && !other.is_empty()).then_some((edits, candidate))
        })
        .collect();
    scored.sort_unstable();
    scored.dedup();
    scored.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

/// "did you mean `a`?", "did you mean `a` or `b`?", or `otherwise` if no name is similar.
pub fn advice<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>, otherwise: &str) -> String {
    let near = nearest(name, candidates);
    if near.is_empty() {
        return otherwise.to_owned();
    }
    let quoted: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    format!("did you mean {}?", quoted.join(" or "))
}

/// Number of edits (insert, remove, replace, swap neighbours) between two words.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, from) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, to) in right.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(&above, column + 1) + 1)
                .min(at(&current, column) + 1)
                .min(at(&above, column) + usize::from(from != to));
            let is_swap =
                row > 0 && column > 0 && left.get(row - 1) == Some(to) && right.get(column - 1) == Some(from);
            if is_swap {
                best = best.min(at(&before, column - 1) + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut above, current);
    }
    above.last().copied().unwrap_or(left.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found() {
        let names = ["theme", "agents", "agent", "callbacks", "mcp_servers"];
        assert_eq!(nearest("themes", names), ["theme"]);
        assert_eq!(nearest("thmee", names), ["theme"]);
        assert_eq!(nearest("Agent", names), ["agent", "agents"]);
        assert_eq!(nearest("mcp", names), ["mcp_servers"]);
        assert!(nearest("zebra", names).is_empty());
    }

    #[test]
    fn advice_falls_back_to_the_given_sentence() {
        assert_eq!(advice("codx", ["codex", "gemini"], "use another name"), "did you mean `codex`?");
        assert_eq!(advice("zebra", ["codex", "gemini"], "use another name"), "use another name");
    }

    #[test]
    fn distance_counts_edits() {
        let count =
            |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        assert_eq!(count("", "abc"), 3);
        assert_eq!(count("abc", ""), 3);
        assert_eq!(count("kitten", "sitting"), 3);
        assert_eq!(count("ab", "ba"), 1);
    }
}
