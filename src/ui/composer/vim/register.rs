//! Registers: what was deleted and yanked.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Lines are separated by line breaks, without one at the end.
    pub text: String,
    pub is_lines: bool,
}

impl Contents {
    fn is_multiline(&self) -> bool {
        self.is_lines || self.text.contains('\n')
    }
}

/// The registers by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Registers {
    by_name: BTreeMap<char, Contents>,
    /// The register that was written last, which is used without a name.
    last: char,
}

impl Default for Registers {
    fn default() -> Self {
        Self { by_name: BTreeMap::new(), last: '0' }
    }
}

impl Registers {
    /// The register of this name; without a name, the last one.
    pub fn get(&self, name: Option<char>) -> Option<&Contents> {
        let name = match name {
            None | Some('"') => self.last,
            Some('*') => '+',
            Some(name) => name.to_ascii_lowercase(),
        };
        self.by_name.get(&name)
    }

    /// Stores the text of the clipboard; a line break at its end means lines.
    pub fn set_clipboard(&mut self, text: &str) {
        let lines = text.strip_suffix('\n');
        let contents = Contents { text: lines.unwrap_or(text).to_owned(), is_lines: lines.is_some() };
        self.by_name.insert('+', contents);
    }

    pub fn yank(&mut self, name: Option<char>, contents: Contents) {
        self.write(name.unwrap_or('0'), contents);
    }

    /// Stores deleted text. `is_large`: it is stored in the numbered registers, even if it is part of a line.
    pub fn delete(&mut self, name: Option<char>, contents: Contents, is_large: bool) {
        if name == Some('_') {
            return;
        }
        if is_large || contents.is_multiline() {
            for number in ('1'..'9').rev() {
                let next = char::from_u32(u32::from(number) + 1).unwrap_or('9');
                if let Some(older) = self.by_name.get(&number).cloned() {
                    self.by_name.insert(next, older);
                }
            }
            self.by_name.insert('1', contents.clone());
            self.last = '1';
        }
        let is_small = !contents.is_multiline();
        match name {
            Some('"') | None if is_small => {
                self.by_name.insert('-', contents);
                self.last = if is_large { '1' } else { '-' };
            }
            Some('"') | None => {}
            Some(name) => self.write(name, contents),
        }
    }

    /// Writes a register; an upper-case letter appends to it.
    fn write(&mut self, name: char, contents: Contents) {
        let key = match name {
            '_' => return,
            '"' => '0',
            '*' => '+',
            name => name.to_ascii_lowercase(),
        };
        self.last = key;
        let old = self.by_name.get(&key).filter(|_| name.is_ascii_uppercase());
        let contents = match old {
            Some(old) => {
                let is_lines = old.is_lines || contents.is_lines;
                let between = if is_lines { "\n" } else { "" };
                Contents { text: format!("{}{between}{}", old.text, contents.text), is_lines }
            }
            None => contents,
        };
        self.by_name.insert(key, contents);
    }
}
