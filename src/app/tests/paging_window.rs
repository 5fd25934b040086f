//! Tests of the memory limit: what is unloaded, what stays, and that it is loaded again unchanged.

use crate::app::lifecycle::operations;
use crate::app::state::changes;
use std::collections::BTreeMap;

use super::support::*;
use crate::app::state::search::Search;
use crate::app::*;
use crate::model::*;

/// The limit with the smallest possible pages.
pub(super) const LIMIT: usize = 64 << 10;

/// The first session as recorded by a store.
#[derive(Default)]
pub(super) struct Disk {
    pub(super) events: BTreeMap<i64, RecordedEvent>,
    /// The starts of pages, with the subjects of the page before.
    pub(super) pages: BTreeMap<i64, Subjects>,
    late: Vec<(i64, RecordedEvent)>,
    pub(super) next: i64,
    marks: BTreeMap<u64, i64>,
    held_from: Option<i64>,
    is_known: bool,
}

impl Disk {
    /// Writes the emitted records, and confirms that.
    pub(super) fn write(&mut self, app: &mut TestApp) {
        app.play(Event::Input);
        let (mut upto, mut marks) = (None, Vec::new());
        for note in std::mem::take(&mut app.kept) {
            let kept = |turn, record: Box<Record>| RecordedEvent { at_ms: self.next, turn, record: *record };
            match note {
                Note::Event { turn, record } => {
                    let event = kept(turn, record);
                    self.events.insert(self.next, event);
                    self.next += 1;
                }
                Note::Late { serial, before, turn, record } => {
                    let seq = match before {
                        EventPosition::Seq(seq) => seq,
                        EventPosition::Mark(mark) => self.marks[&mark],
                    };
                    let event = kept(turn, record);
                    self.late.push((seq - 1, event));
                    upto = Some(serial);
                }
                Note::Mark { mark, subjects } => {
                    self.marks.insert(mark, self.next);
                    self.pages.insert(self.next, subjects);
                    marks.push(MarkPosition { mark, seq: self.next, is_whole: true });
                    upto = Some(mark);
                }
                Note::Hold => self.held_from = Some(self.next),
                Note::Release { is_whole } => {
                    let from = self.held_from.take().expect("something is held");
                    if !is_whole {
                        self.events.split_off(&from);
                        self.pages.split_off(&from);
                        self.late.retain(|(seq, _)| *seq < from);
                        self.next = from;
                    }
                }
                Note::Head(_) | Note::Draft(_) | Note::Queue(_) | Note::CameFrom { .. } | Note::Closed => {}
            }
        }
        if !std::mem::replace(&mut self.is_known, true) {
            tell(app, StoreNews::KeptAs { key: KEY, uid: "k".into() });
        }
        if let Some(upto) = upto {
            tell(app, StoreNews::Written { key: KEY, upto, marks });
        }
    }

    /// Answers a store job. Returns whether there was one.
    pub(super) fn serve(&mut self, app: &mut TestApp) -> bool {
        let jobs: Vec<StoreJob> = std::mem::take(&mut app.fx)
            .into_iter()
            .filter_map(|effect| match effect {
                Effect::Store(job) => Some(job),
                _ => None,
            })
            .collect();
        for job in &jobs {
            let StoreJob::Earlier { key, from, before, .. } = job else { panic!("{job:?}") };
            tell(app, StoreNews::Earlier { key: *key, page: Ok(self.page(*from, *before)) });
        }
        !jobs.is_empty()
    }

    /// The events of a page.
    pub(super) fn page(&self, from: i64, before: i64) -> EventPage {
        let mut found: Vec<(i64, RecordedEvent)> =
            self.events.range(from..before).map(|(seq, event)| (*seq, event.clone())).collect();
        found.extend(self.late.iter().filter(|(seq, _)| (from..before).contains(seq)).cloned());
        found.sort_by_key(|(seq, _)| *seq);
        let events = found.into_iter().map(|(_, event)| event).collect();
        EventPage {
            events,
            first_seq: from,
            next_seq: before,
            later_count: (self.next - before).cast_unsigned(),
            ..EventPage::default()
        }
    }

    /// All pages.
    pub(super) fn starts(&self) -> Vec<RecordedPage> {
        let subjects = self.pages.values().skip(1).cloned().chain([Subjects::default()]);
        self.pages.keys().zip(subjects).map(|(seq, subjects)| RecordedPage { seq: *seq, subjects }).collect()
    }

    /// The session when it is opened with the page with this index.
    pub(super) fn kept(&self, at: usize) -> RecordedSession {
        let mut earlier = self.starts();
        let start = |at: usize| earlier.get(at).map_or(self.next, |page| page.seq);
        let (first_seq, next) = (start(at), start(at + 1));
        let EventPage { events, later_count, .. } = self.page(first_seq, next);
        earlier.truncate(at);
        RecordedSession {
            head: SessionHead {
                kept_as: Some("k".into()),
                session: Some(ID.into()),
                ..SessionHead::default()
            },
            events,
            earlier,
            first_seq,
            end_seq: self.next,
            later: (later_count > 0).then_some((next, later_count)),
            ..RecordedSession::default()
        }
    }

    /// Closes the session and opens it again with its last page.
    pub(super) fn reopen(&mut self, app: &mut TestApp) {
        self.write(app);
        let now = app.now;
        let session = app.state.sessions.get_mut(&KEY).unwrap();
        let mut again = Session {
            conn: session.conn,
            phase: session.phase.clone(),
            ..Session::new(KEY, session.workspace.clone())
        };
        again.pages.limit_bytes = LIMIT;
        restore(&mut again, self.kept(self.pages.len() - 1), now);
        *session = again;
    }

    /// Loads all pages.
    pub(super) fn read_all(&mut self, app: &mut TestApp) {
        self.write(app);
        go_up(app);
        app.fx.clear();
        for _ in 0..1_000 {
            app.play(Event::Act(Action::LoadEarlier));
            if !self.serve(app) {
                assert_eq!(app.session().pages.book.earlier, None);
                return;
            }
        }
        panic!("there is no beginning");
    }
}

/// Moves the reader to the first item.
pub(super) fn go_up(app: &mut TestApp) {
    let first = app.session().transcript.items().first().map(|item| item.id);
    app.play(Event::Reader(first));
}

pub(super) fn tell(app: &mut TestApp, news: StoreNews) {
    app.service(ServiceEvent::Store(Box::new(news)));
}

pub(super) fn limit(app: &mut TestApp) {
    app.state.setup.keeps_sessions = true;
    app.state.setup.memory_bytes = LIMIT;
    app.state.sessions.get_mut(&KEY).unwrap().pages.limit_bytes = LIMIT;
}

/// A running turn in a session with a low memory limit.
pub(super) fn app() -> (TestApp, Disk) {
    let mut app = TestApp::ready();
    limit(&mut app);
    app.submit("the first prompt");
    app.fx.clear();
    (app, Disk::default())
}

pub(super) fn lorem(nth: usize) -> String {
    format!("number {nth}: {}", "lorem ipsum ".repeat(80))
}

/// Adds messages of 1 KiB each.
pub(super) fn stream(app: &mut TestApp, numbers: std::ops::Range<usize>) {
    for nth in numbers {
        app.update(says_in(&format!("m{nth}"), &lorem(nth)));
    }
}

/// All visible data of the items, except times and the line above them.
pub(super) fn whole(session: &Session) -> Vec<String> {
    let lines: Vec<String> = digest(session).lines().skip(1).map(str::to_owned).collect();
    let shown = session.transcript.items().iter().zip(lines).map(|(item, line)| {
        let more = match &item.body {
            ItemBody::Tool(call) => {
                let outputs = call.content.iter().filter_map(|content| match content {
                    ToolContent::Terminal(id) => {
                        session.terminals.get(id).map(|view| (id, view.output.len(), view.exit.is_some()))
                    }
                    _ => None,
                });
                let outputs: Vec<_> = outputs.collect();
                let content = format!("{:?}", call.content).replace("xxxxxxxxxx", "X");
                format!("{content} {:?} {:?} {outputs:?}", call.output_text, call.exit_code)
            }
            _ => String::new(),
        };
        format!("{} {line} {more}", item.turn)
    });
    shown.filter(|line| !line.contains("earlier event") && !line.contains("Start of session")).collect()
}

/// An item as text.
fn line_of(app: &TestApp, item: ItemId) -> String {
    let at = app.session().transcript.index_of(item).unwrap();
    digest(app.session()).lines().nth(1 + at).unwrap_or_default().to_owned()
}

pub(super) fn count(app: &TestApp) -> usize {
    app.session().transcript.items().len()
}

#[test]
fn pages_on_disk_are_unloaded_and_loaded_again() {
    let (mut app, mut disk) = app();
    stream(&mut app, 0..300);
    assert_eq!(count(&app), 301, "only pages on disk are unloaded");
    disk.write(&mut app);
    let left = count(&app);
    assert!((100..200).contains(&left), "{left} items are left");
    let head = format!("notice Info: {} earlier events. Scroll up to load them.", 302 - left);
    assert_eq!(digest(app.session()).lines().nth(1), Some(head.as_str()));
    let last = app.session().transcript.items().last().map(|item| item.id);
    assert_eq!(last, Some(ItemId(300)), "items keep their ids");
    // The last items can still be appended to.
    app.update(says_in("m299", " and more"));
    assert!(digest(app.session()).ends_with(" and more\" …"));

    disk.read_all(&mut app);
    assert_eq!(count(&app), 302);
    let all = whole(app.session());
    assert!(all[0].contains("the first prompt") && all[1].contains("number 0:"), "{:?}", &all[..2]);
    assert!(app.session().pages.weight() > LIMIT, "visible items stay");
    app.play(Event::Reader(None));
    assert!(count(&app) < 200, "it is unloaded when the reader returns to the end");
}

#[test]
fn the_memory_of_a_long_stream_is_bounded() {
    let (mut app, mut disk) = app();
    let mut most = 0;
    for page in 0..40 {
        stream(&mut app, page * 50..(page + 1) * 50);
        disk.write(&mut app);
        most = most.max(count(&app));
    }
    assert!(most < 260, "{most} items at once");
    assert_eq!(app.session().turn_count, 1);
}

#[test]
fn running_selected_and_visible_items_stay() {
    let (mut app, mut disk) = app();
    app.update(call("long", ToolStatus::InProgress));
    stream(&mut app, 0..300);
    disk.write(&mut app);
    assert_eq!(count(&app), 302, "a call is running at the top");
    app.update(news("long", ToolStatus::Completed));
    disk.write(&mut app);
    assert!(count(&app) < 200);

    let (mut app, mut disk) = self::app();
    app.state.sessions.get_mut(&KEY).unwrap().selected = Some(ItemId(5));
    stream(&mut app, 0..300);
    disk.write(&mut app);
    assert_eq!(count(&app), 301, "an item is selected at the top");

    let (mut app, mut disk) = self::app();
    stream(&mut app, 0..150);
    app.play(Event::Reader(Some(ItemId(60))));
    stream(&mut app, 150..300);
    disk.write(&mut app);
    assert!((241..301).contains(&count(&app)), "visible items stay, those far above are unloaded");
    let reader = app.session().pages.reader().unwrap();
    assert!(line_of(&app, reader).contains("number 59:"), "the reader's position stays");
}

#[test]
fn a_late_update_of_an_unloaded_call_is_recorded_with_it() {
    let (mut app, mut disk) = app();
    app.update(call("a", ToolStatus::Completed));
    stream(&mut app, 0..300);
    disk.write(&mut app);
    let left = count(&app);
    app.update(patch("a", |patch| patch.output_text = Patch::Set("late".into())));
    assert_eq!(count(&app), left, "it is not a new call");
    assert!(!digest(app.session()).contains("tool a"));
    // The page is not requested before the late event is on disk.
    go_up(&mut app);
    app.fx.clear();
    while disk.serve(app.play(Event::Act(Action::LoadEarlier))) {}
    assert_eq!(app.session().pages.book.unloaded, 1);
    disk.read_all(&mut app);
    let all = whole(app.session());
    assert!(all[1].contains("tool a Completed") && all[1].contains("late"), "{}", all[1]);
    assert_eq!(all.iter().filter(|line| line.contains("tool a")).count(), 1);
    // Now it is loaded and receives updates.
    app.update(patch("a", |patch| patch.output_text = Patch::Set("later".into())));
    assert!(whole(app.session())[1].contains("later"));
    app.play(Event::Reader(None));
    disk.write(&mut app);
    assert!(!digest(app.session()).contains("tool a"));
    disk.read_all(&mut app);
    assert!(whole(app.session())[1].contains("later"), "that was recorded too");
}

#[test]
fn updates_of_a_page_being_loaded_are_not_lost() {
    let (mut app, mut disk) = app();
    for nth in 0..300 {
        app.update(call(&format!("c{nth}"), ToolStatus::Completed));
        stream(&mut app, nth..nth + 1);
    }
    disk.write(&mut app);
    let left = count(&app);
    go_up(&mut app);
    app.fx.clear();
    app.play(Event::Act(Action::LoadEarlier));
    for nth in 0..300 {
        let id = format!("c{nth}");
        app.update(patch(&id, |patch| patch.output_text = Patch::Set(format!("late {id};"))));
    }
    assert_eq!(count(&app), left);
    assert!(disk.serve(&mut app));
    assert_eq!(count(&app), left, "a page without the updates is not used");
    disk.read_all(&mut app);
    let all = whole(app.session());
    for nth in [0, 100, 299] {
        let of: Vec<&String> = all.iter().filter(|line| line.contains(&format!("tool c{nth} "))).collect();
        assert!(of.len() == 1 && of[0].contains(&format!("late c{nth};")), "{of:?}");
    }
}

#[test]
fn a_search_loads_unloaded_pages_and_retains_them() {
    let (mut app, mut disk) = app();
    stream(&mut app, 0..300);
    disk.write(&mut app);
    app.play(Event::Act(Action::OpenSearch));
    for sign in "first prompt".chars() {
        app.play(Event::Line(LineEdit::Insert(sign.to_string())));
    }
    for _ in 0..200 {
        disk.serve(&mut app);
        app.play(Event::Timer(TimerId::Search(KEY)));
    }
    let found = app.session().search.as_deref().map(Search::total);
    assert_eq!(found, Some(1));
    let hit = app.session().search.as_ref().and_then(|search| search.current()).unwrap();
    assert!(line_of(&app, hit.item).contains("the first prompt"));
    // While it is open, nothing is unloaded; after that it is.
    stream(&mut app, 300..320);
    disk.write(&mut app);
    assert!(count(&app) > 300);
    app.play(Event::Act(Action::Escape));
    app.play(Event::Act(Action::Escape));
    disk.write(&mut app);
    assert_eq!(app.session().search, None);
    assert!(count(&app) < 200, "{}", count(&app));
}

#[test]
fn lists_of_a_whole_session_load_unloaded_pages_first() {
    let (mut app, mut disk) = app();
    app.update(patch("edit", |patch| {
        patch.is_announcement = true;
        patch.kind = Patch::Set(ToolKind::Edit);
        patch.status = Patch::Set(ToolStatus::Completed);
        let change = DiffChange::Texts { old: Some("a".into()), new: "b".into() };
        patch.content = Patch::Set(vec![ToolContent::Diff(FileDiff { path: "/code/shop/x".into(), change })]);
    }));
    stream(&mut app, 0..300);
    disk.write(&mut app);
    assert!(changes::changed_files(&app.state, KEY).is_empty(), "the change is unloaded");
    app.fx.clear();
    app.play(Event::Act(Action::OpenChanges));
    assert_eq!(app.state.modals, []);
    while disk.serve(&mut app) {}
    assert!(matches!(app.state.modals.as_slice(), [Modal::Changes(_)]));
    assert_eq!(changes::changed_files(&app.state, KEY).len(), 1);
    stream(&mut app, 300..340);
    disk.write(&mut app);
    assert_eq!(changes::changed_files(&app.state, KEY).len(), 1, "it stays while the dialog is open");
    app.play(Event::Act(Action::Escape));
    stream(&mut app, 340..380);
    disk.write(&mut app);
    assert!(count(&app) < 260);

    app.fx.clear();
    app.play(Event::Act(Action::OpenOutline));
    while disk.serve(&mut app) {}
    let Some(Modal::Picker(outline)) = app.state.modals.last() else { panic!("{:?}", app.state.modals) };
    assert!(outline.rows[0].label.contains("the first prompt") && outline.rows[1].label.contains("edit"));
    app.play(Event::Act(Action::Escape));
    stream(&mut app, 380..420);
    disk.write(&mut app);
    app.fx.clear();
    app.play(Event::Act(Action::PreviousPrompt));
    while disk.serve(&mut app) {}
    let marked = app.session().selected.unwrap();
    assert!(line_of(&app, marked).contains("the first prompt"));
}

#[test]
fn without_a_record_nothing_is_unloaded_and_a_notice_is_shown_once() {
    let mut app = TestApp::ready();
    limit(&mut app);
    app.state.setup.keeps_sessions = false;
    app.submit("go");
    stream(&mut app, 0..300);
    let text = digest(app.session());
    let told = text.matches("cannot be unloaded from memory").count();
    assert_eq!((told, count(&app)), (1, 302));

    let (mut app, mut disk) = self::app();
    tell(&mut app, StoreNews::Unsaved(Some("the disk is full".into())));
    stream(&mut app, 0..300);
    assert!(digest(app.session()).contains("cannot be unloaded from memory"));
    tell(&mut app, StoreNews::Unsaved(None));
    disk.write(&mut app);
    assert!(count(&app) < 200, "it is unloaded once it is on disk");
}

#[test]
fn a_replay_is_paged_and_a_failed_one_restores_the_items() {
    let history = |app: &mut TestApp| {
        for nth in 0..300 {
            if nth % 50 == 0 {
                app.update(text(Role::User, &format!("prompt {nth}")));
            }
            app.update(says_in(&format!("m{nth}"), &lorem(nth)));
        }
    };
    let loading = || {
        let (mut app, mut disk) = app();
        stream(&mut app, 0..200);
        app.end_turn(StopReason::EndTurn);
        disk.write(&mut app);
        let session = app.state.sessions.get_mut(&KEY).unwrap();
        session.phase = SessionPhase::Opening { since: app.now, is_replay: true };
        session.replay = Replay::Armed;
        (app, disk)
    };
    let (mut app, mut disk) = loading();
    history(&mut app);
    disk.write(&mut app);
    assert!(count(&app) < 200, "{}", count(&app));
    assert_eq!(app.session().turn_count, 6);
    disk.read_all(&mut app);
    assert_eq!(count(&app), 307);
    assert!(whole(app.session())[0].contains("1 user \"prompt 0\""), "{}", whole(app.session())[0]);

    let (mut app, mut disk) = loading();
    // The response to this request is received during the replay, and is not for it.
    go_up(&mut app);
    app.fx.clear();
    app.play(Event::Act(Action::LoadEarlier));
    let before = digest(app.session());
    history(&mut app);
    app.fx.clear();
    disk.write(&mut app);
    app.flow(|state, _, _| crate::app::lifecycle::open::drop_replay(state, KEY));
    let after = digest(app.session());
    assert_eq!(after.lines().skip(1).collect::<Vec<_>>(), before.lines().skip(1).collect::<Vec<_>>());
    disk.read_all(&mut app);
    assert!(whole(app.session())[0].contains("the first prompt"));
    assert_eq!(count(&app), 202);
}

#[test]
fn sessions_of_inactive_tabs_are_paged_too() {
    let (mut app, mut disk) = app();
    app.flow(operations::new_session);
    assert_ne!(app.state.active, KEY);
    stream(&mut app, 0..300);
    disk.write(&mut app);
    assert!(count(&app) < 200);
}
