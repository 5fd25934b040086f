//! Parses the index of a git repository: the state of each tracked file when git last checked it.
//!
//! Invalid data neither panics nor is read past its end. `gix-index` has the same function, but forty dependencies, and
//! maps the file into memory, where an agent could truncate it.
//! Source: git, Documentation/gitformat-index, versions 2 to 4.

/// Maximum path length; the prefix compression of version 4 could produce paths that are much longer than the index.
const MAX_PATH_BYTES: usize = 4096;

/// An entry for a tracked file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// The path in the work tree, as bytes.
    pub path: Vec<u8>,
    pub mode: u32,
    /// Modification time in seconds and nanoseconds.
    pub modified: (u32, u32),
    /// The size modulo 2^32.
    pub size: u32,
    pub id: &'a [u8],
    /// Whether the user excluded it: assumed unchanged, or outside of a sparse checkout.
    pub is_ignored: bool,
    /// Whether it is in conflict, or was added without content (`git add -N`).
    pub is_open: bool,
}

/// A valid index.
#[derive(Debug, Clone)]
pub(super) struct Index<'a> {
    entries: Entries<'a>,
    pub has_ignored: bool,
    /// Whether git recorded that the index differs from the tree of the last commit.
    pub is_tree_changed: bool,
}

impl<'a> Index<'a> {
    /// Parses an index with hashes of `id_bytes`; `None`: invalid, or entries are shared with another file.
    pub(super) fn parse(bytes: &'a [u8], id_bytes: usize) -> Option<Self> {
        let body = bytes.get(..bytes.len().checked_sub(id_bytes)?)?;
        let mut reader = Reader { rest: body };
        let (magic, version, count) = (reader.take(4)?, reader.u32()?, reader.u32()?);
        if magic != b"DIRC" || !(2..=4).contains(&version) {
            return None;
        }
        let entries = Entries { reader, left: count, version, id_bytes, path: Vec::new() };
        let mut all = entries.clone();
        let has_ignored = all.by_ref().fold(false, |has, entry| has | entry.is_ignored);
        if all.left > 0 {
            return None;
        }
        let mut reader = all.reader;
        let mut is_tree_changed = false;
        while !reader.rest.is_empty() {
            let name = reader.take(4)?;
            let len = usize::try_from(reader.u32()?).ok()?;
            let data = reader.take(len)?;
            match name {
                b"link" => return None,
                // The first entry is the root; a negative entry count means that it was changed.
                b"TREE" => is_tree_changed = data.starts_with(b"\0-"),
                _ => {}
            }
        }
        Some(Self { entries, has_ignored, is_tree_changed })
    }

    /// Iterates over the entries. They are parsed again, because all of them at once could need many times the memory
    /// of the index.
    pub(super) fn entries(&self) -> Entries<'a> {
        self.entries.clone()
    }
}

/// Parses entries; stops at the first invalid one.
#[derive(Debug, Clone)]
pub(super) struct Entries<'a> {
    reader: Reader<'a>,
    left: u32,
    version: u32,
    id_bytes: usize,
    path: Vec<u8>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let left = self.left.checked_sub(1)?;
        let entry = self.reader.entry(self.version, self.id_bytes, &self.path)?;
        self.left = left;
        self.path.clone_from(&entry.path);
        Some(entry)
    }
}

#[derive(Debug, Clone)]
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let text = self.take(memchr::memchr(0, self.rest)?)?;
        self.take(1)?;
        Some(text)
    }

    fn entry(&mut self, version: u32, id_bytes: usize, before: &[u8]) -> Option<Entry<'a>> {
        const ASSUMED: u16 = 0x8000;
        const HAS_MORE: u16 = 0x4000;
        const STAGE: u16 = 0x3000;
        const SKIPPED: u16 = 0x4000;
        const ANNOUNCED: u16 = 0x2000;
        let start = self.rest.len();
        self.take(8)?;
        let modified = (self.u32()?, self.u32()?);
        self.take(8)?;
        let mode = self.u32()?;
        self.take(8)?;
        let size = self.u32()?;
        let id = self.take(id_bytes)?;
        let flags = self.u16()?;
        let more = if flags & HAS_MORE != 0 && version >= 3 { self.u16()? } else { 0 };
        let path = if version == 4 {
            let saved = before.len().checked_sub(self.offset()?)?;
            [before.get(..saved)?, self.text()?].concat()
        } else {
            let path = self.text()?.to_vec();
            // Entries are padded to a multiple of eight bytes with at least one NUL, which ends the path.
            let used = start - self.rest.len();
            self.take(used.next_multiple_of(8) - used)?;
            path
        };
        (path.len() <= MAX_PATH_BYTES).then_some(Entry {
            path,
            mode,
            modified,
            size,
            id,
            is_ignored: flags & ASSUMED != 0 || more & SKIPPED != 0,
            is_open: flags & STAGE != 0 || more & ANNOUNCED != 0,
        })
    }

    /// An offset of version 4: seven bits per byte, most significant first, plus one for each further byte.
    fn offset(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        loop {
            let byte = *self.take(1)?.first()?;
            value = value.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            value = value.checked_add(1)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(version in 0_u32..6, count in 0_u32..9, bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut all = b"DIRC".to_vec();
            all.extend(version.to_be_bytes());
            all.extend(count.to_be_bytes());
            all.extend(&bytes);
            for (bytes, id_bytes) in [(&all, 20), (&bytes, 20), (&all, 32)] {
                if let Some(index) = Index::parse(bytes, id_bytes) {
                    prop_assert_eq!(index.entries().count(), usize::try_from(count).unwrap());
                }
            }
        }
    }

    #[test]
    fn an_index_with_shared_entries_is_rejected() {
        let mut bytes = b"DIRC".to_vec();
        bytes.extend([0, 0, 0, 2, 0, 0, 0, 0]);
        let end = [0; 20];
        let index = [bytes.as_slice(), &end].concat();
        assert_eq!(Index::parse(&index, 20).unwrap().entries().count(), 0);
        bytes.extend(b"link\0\0\0\x02ab");
        assert!(Index::parse(&[bytes.as_slice(), &end].concat(), 20).is_none());
    }

    #[test]
    fn paths_that_grow_with_each_entry_are_rejected() {
        let entry = |suffix: &[u8]| [&[0; 60][..], &[0, 0], &[0], suffix, &[0]].concat();
        let index = |count: u32| {
            let mut bytes = b"DIRC".to_vec();
            bytes.extend(4_u32.to_be_bytes());
            bytes.extend(count.to_be_bytes());
            bytes.extend(entry(&[b'a'; 64]).repeat(count as usize));
            bytes.extend([0; 20]);
            bytes
        };
        let longest = index(64);
        let last = Index::parse(&longest, 20).unwrap().entries().last().unwrap();
        assert_eq!(last.path.len(), MAX_PATH_BYTES);
        assert!(Index::parse(&index(65), 20).is_none());
    }
}
