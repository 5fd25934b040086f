use super::*;
use crate::lock::lock;
use crate::model::Role;

/// Runs the thread's work synchronously.
pub fn writer(store: &Store) -> (TestWriter, tokio::sync::mpsc::UnboundedReceiver<ServiceEvent>) {
    let (services, received) = tokio::sync::mpsc::unbounded_channel();
    let writer = Writer::new(Arc::default(), store.clone(), services);
    (TestWriter(writer), received)
}

pub struct TestWriter(Writer);

impl TestWriter {
    pub fn keep_now(&mut self, notes: Vec<Note>) {
        self.keep_for(SessionKey(1), notes);
    }

    pub fn keep_for(&mut self, session: SessionKey, notes: Vec<Note>) {
        self.keep_all(notes.into_iter().map(|note| (session, note)));
    }

    pub fn keep_all(&mut self, notes: impl Iterator<Item = (SessionKey, Note)>) {
        let mut inbox = lock(&self.0.shared.inbox);
        for (session, note) in notes {
            inbox.add(Taken { session, at_ms: unix_ms(), note });
        }
        let notes = inbox.take();
        drop(inbox);
        self.0.take_all(notes, false);
    }

    pub fn close(&mut self) {
        self.0.take_all(Vec::new(), true);
    }

    pub fn tell_growth_each(&mut self, step: u64) {
        self.0.growth = Growth { bytes: 0, step };
    }

    pub fn on_conn_for_test(&mut self, work: impl Fn(&Connection) -> rusqlite::Result<()>) {
        self.0.on_conn(|_, conn| Ok(work(conn)?)).unwrap();
    }

    /// Ends as when parlor quits; further files go to these folders.
    pub fn finish_now(mut self, folders: &[PathBuf]) -> Option<String> {
        self.0.rescue_folders.extend_from_slice(folders);
        self.0.take_all(Vec::new(), true);
        (!self.0.batch.is_empty()).then(|| self.0.rescue())
    }

    pub fn use_folders(&mut self, folders: Vec<PathBuf>) {
        self.0.rescue_folders = folders;
    }

    /// The id of a session.
    pub fn uid(&self, session: SessionKey) -> &str {
        &self.0.tracks[&session].row.uid
    }

    /// Continues a saved session in the next head with its id.
    pub fn reopen(&mut self, row: super::super::SessionRow) {
        lock(&self.0.store.inner.reopened).push(row);
    }

    pub fn drop_conn(&mut self) {
        self.0.conn = None;
    }
}

fn chunk(text: &str) -> Note {
    let update =
        crate::model::SessionUpdate::Chunk { role: Role::Agent, message: None, text: text.to_owned() };
    Note::Event { turn: 1, record: Box::new(Record::Update(update)) }
}

#[test]
fn large_batches_are_written_immediately() {
    let mut inbox = Inbox::default();
    for _ in 0..3 {
        assert!(!inbox.is_much());
        let note = chunk(&"x".repeat(MUCH_BYTES / 3 + 1));
        inbox.add(Taken { session: SessionKey(1), at_ms: 0, note });
    }
    assert!(inbox.is_much());
    assert_eq!(inbox.take().len(), 2, "merged up to a limit");
    assert!(!inbox.is_much());
}

#[test]
fn a_long_backlog_is_written_in_several_batches() {
    let (_dir, store) = super::super::tests::store();
    let (mut writer, mut received) = writer(&store);
    let texts = ["a", "b", "c"].map(|text| text.repeat(MUCH_BYTES));
    let notes = (1..).zip(&texts).flat_map(|(upto, text)| [chunk(text), Note::Sync(upto)]);
    writer.keep_now(notes.collect());
    let mut written = Vec::new();
    while let Ok(event) = received.try_recv() {
        if let ServiceEvent::Store(news) = event
            && let StoreNews::Written { upto, .. } = *news
        {
            written.push(upto);
        }
    }
    assert_eq!(written, [1, 2, 3]);
}

#[test]
fn pending_chunks_of_a_message_are_merged() {
    let mut inbox = Inbox::default();
    let mut add = |session, note| inbox.add(Taken { session: SessionKey(session), at_ms: 0, note });
    for piece in ["a", "b", "c"] {
        add(1, chunk(piece));
    }
    add(2, chunk("d"));
    add(1, chunk("e"));
    add(1, Note::Draft("f".to_owned()));
    add(1, Note::Draft("fg".to_owned()));
    let notes: Vec<Note> = inbox.notes.into_iter().map(|taken| taken.note).collect();
    assert_eq!(notes, [chunk("abc"), chunk("d"), chunk("e"), Note::Draft("fg".to_owned())]);
}
