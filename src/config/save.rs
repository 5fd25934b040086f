//! Changes single values of the configuration file. Comments, order and formatting of the rest stay as they are.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use toml_edit::{DocumentMut, Item, Value};

use crate::private;

/// Writes the theme to the configuration file, which is created if it is missing. The error names the file.
pub fn set_theme(file: &Path, name: &str) -> Result<(), String> {
    write_theme(file, name).map_err(|why| format!("{}: {why}", file.display()))
}

fn write_theme(file: &Path, name: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    // A link, for example into a folder of dotfiles, is followed and not replaced.
    let is_link = fs::symlink_metadata(file).is_ok_and(|facts| facts.is_symlink());
    let target = if is_link { file.canonicalize().map_err(failed)? } else { file.to_owned() };
    let text = match fs::read_to_string(&target) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let line = with_theme("", name)?;
            return private::replace(&target, line.as_bytes()).map_err(failed);
        }
        Err(error) => return Err(failed(error)),
    };
    let facts = fs::metadata(&target).map_err(failed)?;
    if facts.permissions().readonly() {
        return Err("the file is read-only".to_owned());
    }
    let staged = private::staged(&target, with_theme(&text, name)?.as_bytes()).map_err(failed)?;
    // The file is the user's and keeps its mode.
    staged.as_file().set_permissions(facts.permissions()).map_err(failed)?;
    staged.persist(&target).map(drop).map_err(|refused| failed(refused.error))
}

/// The text of a configuration with this theme.
fn with_theme(text: &str, name: &str) -> Result<String, String> {
    let invalid = |error: toml_edit::TomlError| format!("invalid TOML: {}", error.message());
    let mut document: DocumentMut = text.parse().map_err(invalid)?;
    let mut value = Value::from(name);
    match document.get_mut("theme").and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => {
            document.insert("theme", Item::Value(value));
        }
    }
    let changed = document.to_string();
    let has_crlf = text.contains("\r\n");
    Ok(if has_crlf { changed.replace("\r\n", "\n").replace('\n', "\r\n") } else { changed })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn comments_and_order_are_kept() {
        let old = "# mine\nagent = \"a\" # first\ntheme   = 'dark' # at night\n\n# agents\n[agents.a]\ncommand = \"x\"\n";
        let new = with_theme(old, "nord").unwrap();
        assert_eq!(new, old.replace("'dark'", "\"nord\""));
        let old = "# mine\n\n[agents.a] # one\ncommand = \"x\"\n";
        let new = with_theme(old, "auto").unwrap();
        assert_eq!(new, format!("theme = \"auto\"\n{old}"));
        assert_eq!(with_theme("a = 1\r\n[b]\r\n", "x").unwrap(), "a = 1\r\ntheme = \"x\"\r\n[b]\r\n");
        assert_eq!(with_theme("# only\n", "x").unwrap(), "theme = \"x\"\n# only\n");
        assert!(with_theme("agent = \n", "x").is_err_and(|why| why.starts_with("invalid TOML: ")));
    }

    #[test]
    fn the_file_keeps_its_mode_and_its_link() {
        let root = tempfile::tempdir().unwrap();
        let (real, link) = (root.path().join("real.toml"), root.path().join("config.toml"));
        fs::write(&real, "agent = \"a\"\n").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o644)).unwrap();
        symlink(&real, &link).unwrap();
        set_theme(&link, "nord").unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "agent = \"a\"\ntheme = \"nord\"\n");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o644);
        let new = root.path().join("sub/config.toml");
        set_theme(&new, "light").unwrap();
        assert_eq!(fs::read_to_string(&new).unwrap(), "theme = \"light\"\n");
    }

    #[test]
    fn files_that_cannot_be_changed_are_reported_and_kept() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("config.toml");
        for (text, mode, why) in
            [("theme = \"a\"\n", 0o444, "read-only"), ("theme = \n", 0o644, "invalid TOML")]
        {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let error = set_theme(&file, "nord").unwrap_err();
            assert!(error.contains(why) && error.contains("config.toml"), "{error}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            fs::remove_file(&file).unwrap();
        }
    }
}
