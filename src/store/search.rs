//! Full-text search of sessions.

use rusqlite::{Connection, named_params};

use super::rows;
use super::support::unix_ms;
use crate::host::when;
use crate::model::{ArchiveHit, ArchiveSearch};

/// Searches for words. The best matches are first, then the newest.
pub(super) fn search(conn: &Connection, search: &ArchiveSearch) -> rusqlite::Result<(Vec<ArchiveHit>, u64)> {
    let pattern = query_text(&search.text);
    if pattern.is_empty() {
        return Ok((Vec::new(), 0));
    }
    // Folders are compared as plain text, so that characters in a name have no special meaning.
    let folder = search.folder.as_ref().map(|folder| folder.to_string_lossy().into_owned());
    let below = folder.as_ref().map(|folder| format!("{}/", folder.trim_end_matches('/')));
    let kinds = format!(",{},", search.kinds.join(","));
    let sql =
        // Snippets are expensive, so they are computed only for the final rows.
        "WITH found AS MATERIALIZED (
            SELECT d.id, d.seq, d.turn, d.at, d.kind, d.is_error, s.uid, s.agent, s.folder,
                    coalesce(nullif(trim(s.title), ''), s.first_prompt, '') AS name, docs_fts.rank AS score
                FROM docs_fts JOIN docs d ON d.id = docs_fts.rowid JOIN listed s ON s.id = d.session
                WHERE docs_fts MATCH :pattern
                    AND (:agent IS NULL OR s.agent = :agent)
                    AND (:folder IS NULL OR s.folder = :folder OR substr(s.folder, 1, length(:below)) = :below)
                    AND (:since IS NULL OR d.at >= :since) AND (:until IS NULL OR d.at < :until)
                    AND (:kinds = ',,' OR instr(:kinds, ',' || d.kind || ',') > 0)
                    AND (NOT :errors OR d.is_error)
                ORDER BY docs_fts.rank, d.at DESC LIMIT :limit
            )
            SELECT uid, name, agent, folder, seq, turn, at, kind, is_error,
                    (SELECT snippet(docs_fts, 0, char(2), char(3), '…', 24) FROM docs_fts
                        WHERE docs_fts MATCH :pattern AND docs_fts.rowid = found.id)
                FROM found ORDER BY score, at DESC";
    let params = named_params! {
        ":pattern": pattern,
        ":agent": search.agent,
        ":folder": folder,
        ":below": below,
        ":since": search.since_ms,
        ":until": search.until_ms,
        ":kinds": kinds,
        ":errors": search.only_errors,
        ":limit": search.limit,
    };
    let now_ms = unix_ms();
    rows::readable(conn, sql, params, |row| {
        let at_ms = row.get(6)?;
        Ok(ArchiveHit {
            uid: row.get(0)?,
            name: row.get(1)?,
            agent: row.get(2)?,
            folder: row.get::<_, String>(3)?.into(),
            seq: row.get(4)?,
            turn: row.get(5)?,
            at_ms,
            when: when::ago(at_ms, now_ms),
            kind: row.get(7)?,
            is_error: row.get(8)?,
            snippet: row.get(9)?,
        })
    })
}

/// The query in FTS5 syntax, with all characters of a word quoted.
fn query_text(text: &str) -> String {
    let mut terms: Vec<String> = Vec::new();
    for (index, piece) in text.split('"').enumerate() {
        if index % 2 == 1 {
            terms.push(format!("\"{piece}\""));
            continue;
        }
        for word in piece.split_whitespace() {
            let (stem, star) = word.strip_suffix('*').map_or((word, ""), |stem| (stem, "*"));
            if stem.chars().any(char::is_alphanumeric) {
                terms.push(format!("\"{stem}\"{star}"));
            }
        }
    }
    terms.retain(|term| term.chars().any(char::is_alphanumeric));
    terms.join(" ")
}
