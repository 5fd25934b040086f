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
    late: Vec<(i64, RecordedEvent)>,
    next: i64,
    marks: BTreeMap<u64, i64>,
    held_from: Option<i64>,
    is_known: bool,
}

impl Disk {
    /// Writes the emitted records, and confirms that.
    pub(super) fn write(&mut self, desk: &mut TestApp) {
        desk.play(Event::Input);
        let (mut upto, mut marks) = (None, Vec::new());
        for note in std::mem::take(&mut desk.kept) {
            let kept = |turn, record: Box<Record>| RecordedEvent { at_ms: self.next, turn, record: *record };
            match note {
                Note::Event { turn, record } => {
                    let event = kept(turn, record);
                    self.events.insert(self.next, event);
                    self.next += 1;
                }
                Note::Late { serial, before, turn, record } => {
                    let seq = match before {
                        EventPlace::Seq(seq) => seq,
                        EventPlace::Mark(mark) => self.marks[&mark],
                    };
                    let event = kept(turn, record);
                    self.late.push((seq - 1, event));
                    upto = Some(serial);
                }
                Note::Inserted { serial, turn, record } => {
                    let of_turn = self.events.iter().rev().find(|(_, event)| event.turn <= turn);
                    let seq = of_turn.map_or(0, |(seq, _)| *seq);
                    self.late.push((seq, kept(turn, record)));
                    upto = Some(serial);
                }
                Note::Mark(mark) => {
                    self.marks.insert(mark, self.next);
                    marks.push(MarkPlace { mark, seq: self.next, is_whole: true });
                    upto = Some(mark);
                }
                Note::Hold => self.held_from = Some(self.next),
                Note::Release { is_whole } => {
                    let from = self.held_from.take().expect("something is held");
                    if !is_whole {
                        self.events.split_off(&from);
                        self.late.retain(|(seq, _)| *seq < from);
                        self.next = from;
                    }
                }
                Note::Head(_) | Note::Draft(_) | Note::Queue(_) | Note::CameFrom { .. } | Note::Closed => {}
            }
        }
        if !std::mem::replace(&mut self.is_known, true) {
            tell(desk, StoreNews::KeptAs { key: KEY, uid: "k".into() });
        }
        if let Some(upto) = upto {
            tell(desk, StoreNews::Written { key: KEY, upto, marks });
        }
    }

    /// Answers a store job. Returns whether there was one.
    pub(super) fn serve(&mut self, desk: &mut TestApp) -> bool {
        let jobs: Vec<StoreJob> = std::mem::take(&mut desk.fx)
            .into_iter()
            .filter_map(|effect| match effect {
                Effect::Store(job) => Some(job),
                _ => None,
            })
            .collect();
        for job in &jobs {
            let StoreJob::Earlier { key, before, from: Some(from), .. } = job else { panic!("{job:?}") };
            let mut found: Vec<(i64, RecordedEvent)> =
                self.events.range(from..before).map(|(seq, event)| (*seq, event.clone())).collect();
            found.extend(self.late.iter().filter(|(seq, _)| (from..before).contains(&seq)).cloned());
            found.sort_by_key(|(seq, _)| *seq);
            let events = found.into_iter().map(|(_, event)| event).collect();
            let page = EarlierPage { events, first_seq: *from, left_out_count: 0 };
            tell(desk, StoreNews::Earlier { key: *key, page: Ok(page) });
        }
        !jobs.is_empty()
    }

    /// Loads all pages.
    pub(super) fn read_all(&mut self, desk: &mut TestApp) {
        self.write(desk);
        go_up(desk);
        desk.fx.clear();
        for _ in 0..1_000 {
            desk.play(Event::Act(Action::LoadEarlier));
            if !self.serve(desk) {
                assert_eq!(desk.session().pages.book.earlier, None);
                return;
            }
        }
        panic!("there is no beginning");
    }
}

/// Moves the reader to the first item.
pub(super) fn go_up(desk: &mut TestApp) {
    let first = desk.session().transcript.items().first().map(|item| item.id);
    desk.play(Event::Reader(first));
}

pub(super) fn tell(desk: &mut TestApp, news: StoreNews) {
    desk.service(ServiceEvent::Store(Box::new(news)));
}

pub(super) fn limit(desk: &mut TestApp) {
    desk.state.setup.keeps_sessions = true;
    desk.state.setup.memory_bytes = LIMIT;
    desk.state.sessions.get_mut(&KEY).unwrap().pages.limit_bytes = LIMIT;
}

/// A running turn in a session with a low memory limit.
pub(super) fn desk() -> (TestApp, Disk) {
    let mut desk = TestApp::ready();
    limit(&mut desk);
    desk.submit("the first prompt");
    desk.fx.clear();
    (desk, Disk::default())
}

pub(super) fn lorem(nth: usize) -> String {
    format!("number {nth}: {}", "lorem ipsum ".repeat(80))
}

/// Adds messages of 1 KiB each.
pub(super) fn stream(desk: &mut TestApp, numbers: std::ops::Range<usize>) {
    for nth in numbers {
        desk.update(says_in(&format!("m{nth}"), &lorem(nth)));
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
fn line_of(desk: &TestApp, item: ItemId) -> String {
    let at = desk.session().transcript.index_of(item).unwrap();
    digest(desk.session()).lines().nth(1 + at).unwrap_or_default().to_owned()
}

pub(super) fn count(desk: &TestApp) -> usize {
    desk.session().transcript.items().len()
}

#[test]
fn pages_on_disk_are_unloaded_and_loaded_again() {
    let (mut desk, mut disk) = desk();
    stream(&mut desk, 0..300);
    assert_eq!(count(&desk), 301, "only pages on disk are unloaded");
    disk.write(&mut desk);
    let left = count(&desk);
    assert!((100..200).contains(&left), "{left} items are left");
    let head = format!("notice Info: {} earlier events. Scroll up to load them.", 302 - left);
    assert_eq!(digest(desk.session()).lines().nth(1), Some(head.as_str()));
    let last = desk.session().transcript.items().last().map(|item| item.id);
    assert_eq!(last, Some(ItemId(300)), "items keep their ids");
    // The last items can still be appended to.
    desk.update(says_in("m299", " and more"));
    assert!(digest(desk.session()).ends_with(" and more\" …"));

    disk.read_all(&mut desk);
    assert_eq!(count(&desk), 302);
    let all = whole(desk.session());
    assert!(all[0].contains("the first prompt") && all[1].contains("number 0:"), "{:?}", &all[..2]);
    assert!(desk.session().pages.weight() > LIMIT, "visible items stay");
    desk.play(Event::Reader(None));
    assert!(count(&desk) < 200, "it is unloaded when the reader returns to the end");
}

#[test]
fn the_memory_of_a_long_stream_is_bounded() {
    let (mut desk, mut disk) = desk();
    let mut most = 0;
    for page in 0..40 {
        stream(&mut desk, page * 50..(page + 1) * 50);
        disk.write(&mut desk);
        most = most.max(count(&desk));
    }
    assert!(most < 260, "{most} items at once");
    assert_eq!(desk.session().turn_count, 1);
}

#[test]
fn running_selected_and_visible_items_stay() {
    let (mut desk, mut disk) = desk();
    desk.update(call("long", ToolStatus::InProgress));
    stream(&mut desk, 0..300);
    disk.write(&mut desk);
    assert_eq!(count(&desk), 302, "a call is running at the top");
    desk.update(news("long", ToolStatus::Completed));
    disk.write(&mut desk);
    assert!(count(&desk) < 200);

    let (mut desk, mut disk) = self::desk();
    desk.state.sessions.get_mut(&KEY).unwrap().selected = Some(ItemId(5));
    stream(&mut desk, 0..300);
    disk.write(&mut desk);
    assert_eq!(count(&desk), 301, "an item is selected at the top");

    let (mut desk, mut disk) = self::desk();
    stream(&mut desk, 0..150);
    desk.play(Event::Reader(Some(ItemId(60))));
    stream(&mut desk, 150..300);
    disk.write(&mut desk);
    assert!((241..301).contains(&count(&desk)), "visible items stay, those far above are unloaded");
    let reader = desk.session().pages.reader().unwrap();
    assert!(line_of(&desk, reader).contains("number 59:"), "the reader's position stays");
}

#[test]
fn a_late_update_of_an_unloaded_call_is_recorded_with_it() {
    let (mut desk, mut disk) = desk();
    desk.update(call("a", ToolStatus::Completed));
    stream(&mut desk, 0..300);
    disk.write(&mut desk);
    let left = count(&desk);
    desk.update(patch("a", |patch| patch.output_text = Patch::Set("late".into())));
    assert_eq!(count(&desk), left, "it is not a new call");
    assert!(!digest(desk.session()).contains("tool a"));
    // The page is not requested before the late event is on disk.
    desk.play(Event::Act(Action::LoadEarlier));
    assert!(!disk.serve(&mut desk));
    disk.read_all(&mut desk);
    let all = whole(desk.session());
    assert!(all[1].contains("tool a Completed") && all[1].contains("late"), "{}", all[1]);
    assert_eq!(all.iter().filter(|line| line.contains("tool a")).count(), 1);
    // Now it is loaded and receives updates.
    desk.update(patch("a", |patch| patch.output_text = Patch::Set("later".into())));
    assert!(whole(desk.session())[1].contains("later"));
    desk.play(Event::Reader(None));
    disk.write(&mut desk);
    assert!(!digest(desk.session()).contains("tool a"));
    disk.read_all(&mut desk);
    assert!(whole(desk.session())[1].contains("later"), "that was recorded too");
}

#[test]
fn updates_of_a_page_being_loaded_are_not_lost() {
    let (mut desk, mut disk) = desk();
    desk.update(call("a", ToolStatus::Completed));
    stream(&mut desk, 0..100);
    desk.update(call("b", ToolStatus::Completed));
    stream(&mut desk, 100..400);
    disk.write(&mut desk);
    let left = count(&desk);
    go_up(&mut desk);
    desk.fx.clear();
    desk.play(Event::Act(Action::LoadEarlier));
    for id in ["a", "b"] {
        desk.update(patch(id, |patch| patch.output_text = Patch::Set(format!("late {id}"))));
    }
    assert_eq!(count(&desk), left);
    assert!(disk.serve(&mut desk));
    assert_eq!(count(&desk), left, "a page without it is not used");
    disk.read_all(&mut desk);
    let all = whole(desk.session());
    for id in ["a", "b"] {
        let of: Vec<&String> = all.iter().filter(|line| line.contains(&format!("tool {id} "))).collect();
        assert!(of.len() == 1 && of[0].contains(&format!("late {id}")), "{of:?}");
    }
}

#[test]
fn a_search_loads_unloaded_pages_and_retains_them() {
    let (mut desk, mut disk) = desk();
    stream(&mut desk, 0..300);
    disk.write(&mut desk);
    desk.play(Event::Act(Action::OpenSearch));
    for sign in "first prompt".chars() {
        desk.play(Event::Line(LineEdit::Insert(sign.to_string())));
    }
    for _ in 0..200 {
        disk.serve(&mut desk);
        desk.play(Event::Timer(TimerId::Search(KEY)));
    }
    let found = desk.session().search.as_deref().map(Search::total);
    assert_eq!(found, Some(1));
    let hit = desk.session().search.as_ref().and_then(|search| search.current()).unwrap();
    assert!(line_of(&desk, hit.item).contains("the first prompt"));
    // While it is open, nothing is unloaded; after that it is.
    stream(&mut desk, 300..320);
    disk.write(&mut desk);
    assert!(count(&desk) > 300);
    desk.play(Event::Act(Action::Escape));
    desk.play(Event::Act(Action::Escape));
    disk.write(&mut desk);
    assert_eq!(desk.session().search, None);
    assert!(count(&desk) < 200, "{}", count(&desk));
}

#[test]
fn lists_of_a_whole_session_load_unloaded_pages_first() {
    let (mut desk, mut disk) = desk();
    desk.update(patch("edit", |patch| {
        patch.is_announcement = true;
        patch.kind = Patch::Set(ToolKind::Edit);
        patch.status = Patch::Set(ToolStatus::Completed);
        let change = DiffChange::Texts { old: Some("a".into()), new: "b".into() };
        patch.content = Patch::Set(vec![ToolContent::Diff(FileDiff { path: "/code/shop/x".into(), change })]);
    }));
    stream(&mut desk, 0..300);
    disk.write(&mut desk);
    assert!(changes::changed_files(&desk.state, KEY).is_empty(), "the change is unloaded");
    desk.fx.clear();
    desk.play(Event::Act(Action::OpenChanges));
    assert_eq!(desk.state.modals, []);
    while disk.serve(&mut desk) {}
    assert!(matches!(desk.state.modals.as_slice(), [Modal::Changes(_)]));
    assert_eq!(changes::changed_files(&desk.state, KEY).len(), 1);
    stream(&mut desk, 300..340);
    disk.write(&mut desk);
    assert_eq!(changes::changed_files(&desk.state, KEY).len(), 1, "it stays while the dialog is open");
    desk.play(Event::Act(Action::Escape));
    stream(&mut desk, 340..380);
    disk.write(&mut desk);
    assert!(count(&desk) < 260);

    desk.fx.clear();
    desk.play(Event::Act(Action::OpenOutline));
    while disk.serve(&mut desk) {}
    let Some(Modal::Picker(outline)) = desk.state.modals.last() else { panic!("{:?}", desk.state.modals) };
    assert!(outline.rows[0].label.contains("the first prompt") && outline.rows[1].label.contains("edit"));
    desk.play(Event::Act(Action::Escape));
    stream(&mut desk, 380..420);
    disk.write(&mut desk);
    desk.fx.clear();
    desk.play(Event::Act(Action::PreviousPrompt));
    while disk.serve(&mut desk) {}
    let marked = desk.session().selected.unwrap();
    assert!(line_of(&desk, marked).contains("the first prompt"));
}

#[test]
fn without_a_record_nothing_is_unloaded_and_a_notice_is_shown_once() {
    let mut desk = TestApp::ready();
    limit(&mut desk);
    desk.state.setup.keeps_sessions = false;
    desk.submit("go");
    stream(&mut desk, 0..300);
    let text = digest(desk.session());
    let told = text.matches("cannot be unloaded from memory").count();
    assert_eq!((told, count(&desk)), (1, 302));

    let (mut desk, mut disk) = self::desk();
    tell(&mut desk, StoreNews::Unsaved(Some("the disk is full".into())));
    stream(&mut desk, 0..300);
    assert!(digest(desk.session()).contains("cannot be unloaded from memory"));
    tell(&mut desk, StoreNews::Unsaved(None));
    disk.write(&mut desk);
    assert!(count(&desk) < 200, "it is unloaded once it is on disk");
}

#[test]
fn a_replay_is_paged_and_a_failed_one_restores_the_items() {
    let history = |desk: &mut TestApp| {
        for nth in 0..300 {
            if nth % 50 == 0 {
                desk.update(text(Role::User, &format!("prompt {nth}")));
            }
            desk.update(says_in(&format!("m{nth}"), &lorem(nth)));
        }
    };
    let loading = || {
        let (mut desk, mut disk) = desk();
        stream(&mut desk, 0..200);
        desk.end_turn(StopReason::EndTurn);
        disk.write(&mut desk);
        let session = desk.state.sessions.get_mut(&KEY).unwrap();
        session.phase = SessionPhase::Opening { since: desk.now, is_replay: true };
        session.replay = Replay::Armed;
        (desk, disk)
    };
    let (mut desk, mut disk) = loading();
    history(&mut desk);
    disk.write(&mut desk);
    assert!(count(&desk) < 200, "{}", count(&desk));
    assert_eq!(desk.session().turn_count, 6);
    disk.read_all(&mut desk);
    assert_eq!(count(&desk), 307);
    assert!(whole(desk.session())[0].contains("1 user \"prompt 0\""), "{}", whole(desk.session())[0]);

    let (mut desk, mut disk) = loading();
    let before = digest(desk.session());
    history(&mut desk);
    disk.write(&mut desk);
    desk.flow(|state, _, _| crate::app::lifecycle::open::drop_replay(state, KEY));
    let after = digest(desk.session());
    assert_eq!(after.lines().skip(1).collect::<Vec<_>>(), before.lines().skip(1).collect::<Vec<_>>());
    disk.read_all(&mut desk);
    assert!(whole(desk.session())[0].contains("the first prompt"));
    assert_eq!(count(&desk), 202);
}

#[test]
fn sessions_of_inactive_tabs_are_paged_too() {
    let (mut desk, mut disk) = desk();
    desk.flow(operations::new_session);
    assert_ne!(desk.state.active, KEY);
    stream(&mut desk, 0..300);
    disk.write(&mut desk);
    assert!(count(&desk) < 200);
}
