//! Texts that can leave memory once they are saved in a file.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Size from which a text can leave memory, in bytes.
pub const LARGE_BYTES: usize = 4 << 10;

/// An immutable text. One of at least [`LARGE_BYTES`] can be saved and unloaded; it is read again when it is used.
#[derive(Clone)]
pub struct Body(Repr);

#[derive(Clone)]
enum Repr {
    Small(Arc<str>),
    Large(Box<Large>),
}

#[derive(Clone)]
struct Large {
    text: OnceLock<Arc<str>>,
    source: Arc<Source>,
}

/// What all copies of a large text share.
struct Source {
    len: usize,
    saved: OnceLock<Box<dyn SavedBody>>,
}

/// A text in a file.
pub trait SavedBody: Send + Sync {
    fn read(&self) -> io::Result<String>;
}

/// Tells whether there is still a copy of a text.
#[derive(Clone)]
pub struct WeakBody(WeakRepr);

#[derive(Clone)]
enum WeakRepr {
    Small(Weak<str>),
    Large(Weak<Source>),
}

/// A text in memory that is not saved.
#[derive(Clone)]
pub struct UnsavedBody {
    text: Arc<str>,
    source: Arc<Source>,
}

/// Counts the bytes that were read from the file.
#[derive(Debug, Clone, Default)]
pub struct ReadBytes(Arc<AtomicUsize>);

impl Body {
    /// The text; reads it if it is not in memory.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Small(text) => text,
            Repr::Large(large) => large.text.get_or_init(|| large.source.read().into()),
        }
    }

    /// The text, without leaving it in memory if it was not there.
    pub fn peek(&self) -> Cow<'_, str> {
        match &self.0 {
            Repr::Large(large) if large.text.get().is_none() => large.source.read().into(),
            _ => self.as_str().into(),
        }
    }

    /// Size in bytes, without reading the text.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Small(text) => text.len(),
            Repr::Large(large) => large.source.len,
        }
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Identifies the text as long as there is a copy of it. All copies have the same address.
    pub fn address(&self) -> usize {
        match &self.0 {
            Repr::Small(text) => text.as_ptr().addr(),
            Repr::Large(large) => Arc::as_ptr(&large.source).addr(),
        }
    }

    /// Tells later whether there is still a copy of the text.
    pub fn downgrade(&self) -> WeakBody {
        WeakBody(match &self.0 {
            Repr::Small(text) => WeakRepr::Small(Arc::downgrade(text)),
            Repr::Large(large) => WeakRepr::Large(Arc::downgrade(&large.source)),
        })
    }

    /// Unloads the text if it is saved; otherwise returns what has to be saved first, if it is large.
    pub fn unload(&mut self) -> Option<UnsavedBody> {
        let Repr::Large(large) = &mut self.0 else { return None };
        if large.source.saved.get().is_some() {
            large.text.take();
            return None;
        }
        Some(UnsavedBody { text: Arc::clone(large.text.get()?), source: Arc::clone(&large.source) })
    }

    pub fn is_loaded(&self) -> bool {
        matches!(&self.0, Repr::Small(_))
            || matches!(&self.0, Repr::Large(large) if large.text.get().is_some())
    }
}

impl Source {
    fn read(&self) -> String {
        match self.saved.get().map(|saved| saved.read()) {
            Some(Ok(text)) => text,
            Some(Err(error)) => {
                format!("[This text could not be read: {error}. Reopen the session to read it.]")
            }
            // A text is unloaded only after it was saved.
            None => String::new(),
        }
    }
}

impl WeakBody {
    pub fn exists(&self) -> bool {
        match &self.0 {
            WeakRepr::Small(text) => text.strong_count() > 0,
            WeakRepr::Large(source) => source.strong_count() > 0,
        }
    }
}

impl UnsavedBody {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn set_saved(&self, saved: Box<dyn SavedBody>) {
        let _ = self.source.saved.set(saved);
    }
}

impl ReadBytes {
    /// Adds bytes that were read.
    pub fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The bytes that were read.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Starts again at 0.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Deref for Body {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Arc::<str>::from(text).into()
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        Arc::<str>::from(text).into()
    }
}

impl From<Arc<str>> for Body {
    fn from(text: Arc<str>) -> Self {
        if text.len() < LARGE_BYTES {
            return Self(Repr::Small(text));
        }
        let source = Arc::new(Source { len: text.len(), saved: OnceLock::new() });
        Self(Repr::Large(Box::new(Large { text: text.into(), source })))
    }
}

impl Default for Body {
    fn default() -> Self {
        "".into()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.address() == other.address() || (self.len() == other.len() && *self.peek() == *other.peek())
    }
}

impl Eq for Body {}

impl Hash for Body {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.peek().hash(state);
    }
}

impl fmt::Debug for UnsavedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnsavedBody({} bytes)", self.text.len())
    }
}

impl PartialEq for UnsavedBody {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.source, &other.source)
    }
}

impl PartialEq for ReadBytes {
    fn eq(&self, other: &Self) -> bool {
        self.count() == other.count()
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.peek())
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

/// A text or an output that may grow until it is closed.
#[derive(Clone)]
pub enum Growing<T> {
    Open(T),
    Closed(Body),
}

impl<T: From<String>> Growing<T> {
    /// Changes the text, which is open after that.
    pub fn edit(&mut self, change: impl FnOnce(&mut T)) {
        match self {
            Self::Open(text) => change(text),
            Self::Closed(body) => {
                let mut text = T::from(body.to_string());
                change(&mut text);
                *self = Self::Open(text);
            }
        }
    }
}

impl<T> Growing<T> {
    /// Size in bytes, without reading the text.
    pub fn len(&self) -> usize
    where
        T: AsRef<[u8]>,
    {
        match self {
            Self::Open(text) => text.as_ref().len(),
            Self::Closed(body) => body.len(),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool
    where
        T: AsRef<[u8]>,
    {
        self.len() == 0
    }

    /// The text, if it is closed.
    pub fn closed_mut(&mut self) -> Option<&mut Body> {
        match self {
            Self::Open(_) => None,
            Self::Closed(body) => Some(body),
        }
    }
}

impl Growing<String> {
    pub fn push_str(&mut self, more: &str) {
        self.edit(|text| text.push_str(more));
    }

    pub fn close(&mut self) {
        if let Self::Open(text) = self {
            *self = Self::Closed(std::mem::take(text).into());
        }
    }

    pub fn as_str(&self) -> &str {
        self
    }

    /// The text, without leaving it in memory if it was not there.
    pub fn peek(&self) -> Cow<'_, str> {
        match self {
            Self::Open(text) => text.into(),
            Self::Closed(body) => body.peek(),
        }
    }

    pub fn into_string(self) -> String {
        match self {
            Self::Open(text) => text,
            Self::Closed(body) => body.to_string(),
        }
    }
}

impl Growing<Vec<u8>> {
    /// Closes the output, unless it is not valid UTF-8 and so cannot be saved as a text.
    pub fn close(&mut self) {
        if let Self::Open(output) = self
            && let Ok(text) = std::str::from_utf8(output)
        {
            *self = Self::Closed(text.into());
        }
    }

    /// The output, without leaving it in memory if it was not there.
    pub fn peek(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Open(output) => output.into(),
            Self::Closed(body) => match body.peek() {
                Cow::Borrowed(text) => text.as_bytes().into(),
                Cow::Owned(text) => text.into_bytes().into(),
            },
        }
    }
}

impl Deref for Growing<String> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Open(text) => text,
            Self::Closed(body) => body,
        }
    }
}

impl Deref for Growing<Vec<u8>> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Open(output) => output,
            Self::Closed(body) => body.as_bytes(),
        }
    }
}

impl<T> PartialEq for Growing<T>
where
    Self: Deref<Target: PartialEq>,
{
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T> fmt::Debug for Growing<T>
where
    Self: Deref<Target: fmt::Debug>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Growing<String> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl From<Vec<u8>> for Growing<Vec<u8>> {
    fn from(output: Vec<u8>) -> Self {
        Self::Open(output)
    }
}

impl From<String> for Growing<String> {
    fn from(text: String) -> Self {
        Self::Open(text)
    }
}

impl From<&str> for Growing<String> {
    fn from(text: &str) -> Self {
        Self::Open(text.to_owned())
    }
}

impl<T> Eq for Growing<T> where Self: Deref<Target: Eq> {}

impl<T: Default> Default for Growing<T> {
    fn default() -> Self {
        Self::Open(T::default())
    }
}

impl Serialize for Growing<String> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Open(text) => text.serialize(serializer),
            Self::Closed(body) => body.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Growing<String> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::Open)
    }
}
