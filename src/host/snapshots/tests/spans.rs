//! Tests of undoing several turns, and of the worker.

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::host::fs::Files;
use crate::host::snapshots::worker::SnapshotWorker;
use crate::model::held::{Fit, HeldChange, HeldFile, HeldJob, HeldNews, HeldTask};
use crate::model::snapshot::{
    CaptureFault, Moment, Part, SnapshotJob, SnapshotNews, SnapshotTask, UndoRules,
};
use crate::model::{DiffChange, ServiceEvent, SessionKey};
use crate::random::Random;

const NAMES: [&str; 5] = ["a", "b", "dir/c", "dir/d", "e"];

type Texts = BTreeMap<&'static str, String>;

fn texts(rig: &Rig) -> Texts {
    NAMES.iter().map(|name| (*name, rig.text(name))).collect()
}

/// Changes some files. Contents are few, so that some come back.
fn edit(rig: &Rig, random: &mut Random) {
    for name in NAMES {
        match random.below(6) {
            0 if rig.path().join(name).exists() => rig.remove(name),
            1 => rig.write(name, random.below(3).to_string()),
            _ => {}
        }
    }
}

/// What undoing the spans gives for a path; `None`: it is a conflict.
fn expected(name: &str, spans: &[(Texts, Texts)], now: &Texts) -> Option<String> {
    let Some(first) = spans.iter().position(|(before, after)| before[name] != after[name]) else {
        return Some(now[name].clone());
    };
    let to = &spans[first].0[name];
    let (last, now) = (&spans[spans.len() - 1].1[name], &now[name]);
    let is_broken = spans[first..].windows(2).any(|pair| pair[0].1[name] != pair[1].0[name]);
    match () {
        () if to == last || now == to => Some(now.clone()),
        () if is_broken || now != last => None,
        () => Some(to.clone()),
    }
}

#[test]
fn several_turns_are_undone_and_what_the_user_did_between_them_stays() {
    for seed in 1..=12 {
        let mut random = Random::new(seed);
        let rig = if seed % 2 == 0 { Rig::repository() } else { Rig::new() };
        edit(&rig, &mut random);
        let mut states = Vec::new();
        let mut spans = Vec::new();
        for _ in 0..=random.below(3) {
            let before = (rig.capture(), texts(&rig));
            edit(&rig, &mut random);
            let after = (rig.capture(), texts(&rig));
            spans.push(Span { before: before.0, after: after.0 });
            states.push((before.1, after.1));
            if random.one_in(2) {
                edit(&rig, &mut random);
            }
        }
        let now = texts(&rig);
        let plan = rig.open().plan(&spans).unwrap();
        for name in NAMES {
            let action = plan.steps.iter().find(|step| step.path == Path::new(name)).map(|step| &step.action);
            let is_conflict = expected(name, &states, &now).is_none();
            assert_eq!(action == Some(&Action::Conflict), is_conflict, "seed {seed}, {name}: {plan:?}");
        }
        let done = rig.open().restore("s", &plan, &all(&plan)).unwrap();
        assert_eq!(done.refused, [], "seed {seed}");
        for name in NAMES {
            let wanted = expected(name, &states, &now).unwrap_or_else(|| now[name].clone());
            assert_eq!(rig.text(name), wanted, "seed {seed}, {name}");
        }
        // The way back.
        let after = rig.capture();
        rig.undo(&after, &done.before.id);
        assert_eq!(texts(&rig), now, "seed {seed}");
    }
}

#[test]
fn without_a_turn_there_is_nothing_to_plan() {
    assert!(matches!(Rig::new().open().plan(&[]), Err(SnapshotError::Refused(_))));
}

fn plan_of(span: Span) -> SnapshotTask {
    SnapshotTask::Plan { number: 7, spans: vec![span] }
}

struct Work {
    rig: Rig,
    worker: SnapshotWorker,
    events: UnboundedReceiver<ServiceEvent>,
}

impl Work {
    fn new() -> Self {
        let (sender, events) = unbounded_channel();
        Self { rig: Rig::repository(), worker: SnapshotWorker::new(sender, Files::new()), events }
    }

    fn run(&mut self, task: SnapshotTask) -> SnapshotNews {
        match self.event(task) {
            ServiceEvent::Snapshot(SessionKey(1), news) => news,
            other => panic!("{other:?}"),
        }
    }

    fn event(&mut self, task: SnapshotTask) -> ServiceEvent {
        let rules = UndoRules { allows_network: true, ..UndoRules::default() };
        let job = SnapshotJob { session: SessionKey(1), folder: self.rig.path(), rules, task };
        self.worker.run(job, Some(&self.rig.base.path().join("data")), None);
        self.events.blocking_recv().unwrap()
    }

    fn capture(&mut self, moment: Moment) -> crate::model::snapshot::Capture {
        match self.run(SnapshotTask::Capture { moment, extra: Vec::new() }) {
            SnapshotNews::Captured(of, Ok(capture)) if of == moment => capture,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_turn_is_captured_undone_and_redone_by_the_worker() {
    let mut work = Work::new();
    work.rig.write("text", "one\n");
    work.rig.write("binary", b"\0\xff");
    let before = work.capture(Moment::Before(1));
    assert_eq!((before.changed, before.root), (vec![], work.rig.path()));
    work.rig.write("text", "two\n");
    work.rig.write("binary", b"\0\xfe");
    work.rig.write("new", "");
    let after = work.capture(Moment::After(1));
    assert_eq!(after.changed, ["binary", "new", "text"].map(PathBuf::from));

    let span = Span { before: before.id, after: after.id };
    let SnapshotNews::Planned(7, Ok(preview)) = work.run(plan_of(span)) else { panic!() };
    let shown: Vec<Option<DiffChange>> =
        preview.diffs.iter().map(|diff| diff.as_ref().map(|diff| diff.change.clone())).collect();
    let texts = |old: &str, new: &str| Some(DiffChange::Texts { old: Some(old.into()), new: new.into() });
    assert_eq!(shown, [None, texts("", ""), texts("two\n", "one\n")], "a binary file is not shown");

    let chosen = all(&preview.plan);
    let SnapshotNews::Restored(Ok(restored)) =
        work.run(SnapshotTask::Restore(Box::new(preview.plan), chosen.into_iter().map(Part::from).collect()))
    else {
        panic!()
    };
    assert_eq!(
        (restored.changed.len(), work.rig.text("text"), work.rig.text("new")),
        (3, "one\n".into(), "absent".into())
    );
    let SnapshotNews::Planned(7, Ok(preview)) = work.run(plan_of(restored.span)) else { panic!() };
    let chosen = all(&preview.plan);
    work.run(SnapshotTask::Restore(Box::new(preview.plan), chosen.into_iter().map(Part::from).collect()));
    assert_eq!((work.rig.text("text"), work.rig.text("new")), ("two\n".into(), String::new()));
}

#[test]
fn what_somebody_else_wrote_is_shown_before_it_is_replaced() {
    let mut work = Work::new();
    work.rig.write("text", "one\n");
    let before = work.capture(Moment::Before(1)).id;
    work.rig.write("text", "two\n");
    let after = work.capture(Moment::After(1)).id;
    work.rig.write("text", "three\n");
    let task = plan_of(Span { before, after });
    let SnapshotNews::Planned(7, Ok(preview)) = work.run(task) else { panic!() };
    assert_eq!(preview.plan.steps[0].action, Action::Conflict);
    let change = &preview.diffs[0].as_ref().unwrap().change;
    assert_eq!(*change, DiffChange::Texts { old: Some("three\n".into()), new: "one\n".into() });
}

#[test]
fn what_somebody_else_wrote_elsewhere_in_the_file_stays() {
    let mut work = Work::new();
    let text = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n{last}\n");
    work.rig.write("text", text("one", "end"));
    let before = work.capture(Moment::Before(1)).id;
    work.rig.write("text", text("agent", "end"));
    let after = work.capture(Moment::After(1)).id;
    work.rig.write("text", text("agent", "user"));
    let task = plan_of(Span { before, after });
    let SnapshotNews::Planned(7, Ok(preview)) = work.run(task) else { panic!() };
    assert_eq!(preview.plan.steps[0].action, Action::Merge);
    let change = &preview.diffs[0].as_ref().unwrap().change;
    let (old, new) = (text("agent", "user"), text("one", "user"));
    assert_eq!(*change, DiffChange::Texts { old: Some(old.as_str().into()), new: new.as_str().into() });
    let chosen = vec![Part::from(PathBuf::from("text"))];
    work.run(SnapshotTask::Restore(Box::new(preview.plan), chosen));
    assert_eq!(work.rig.text("text"), new);
}

#[test]
fn the_worker_says_why_there_is_no_snapshot() {
    let mut work = Work::new();
    let job = |folder: PathBuf| SnapshotJob {
        session: SessionKey(1),
        folder,
        rules: UndoRules::default(),
        task: SnapshotTask::Capture { moment: Moment::Early, extra: Vec::new() },
    };
    let data = work.rig.base.path().join("data");
    work.worker.run(job("/".into()), Some(&data), None);
    let missing = work.rig.path().join("missing");
    let first = work.events.blocking_recv().unwrap();
    work.worker.run(job(missing), Some(&data), None);
    let second = work.events.blocking_recv().unwrap();
    work.worker.run(job(work.rig.path()), None, None);
    let third = work.events.blocking_recv().unwrap();
    let error = |event| match event {
        ServiceEvent::Snapshot(_, SnapshotNews::Captured(_, Err(error))) => (error.kind, error.text),
        other => panic!("{other:?}"),
    };
    let (kind, text) = error(first);
    assert!(kind == CaptureFault::Refused && text.contains("the root of the file system"), "{text}");
    let (kind, text) = error(second);
    assert!(kind == CaptureFault::Failed && text.starts_with("Cannot open "), "{text}");
    assert_eq!(error(third), (CaptureFault::Refused, "parlor has no data folder for snapshots.".to_owned()));
}

#[test]
fn an_interrupted_restore_is_recovered_and_told_by_the_next_job() {
    let capture = |_: &Rig| SnapshotTask::Capture { moment: Moment::Early, extra: vec![] };
    let apply = |rig: &Rig| SnapshotTask::Apply { job: Box::new(applied(rig, "new")), has_span: true };
    for next in [&capture as &dyn Fn(&Rig) -> SnapshotTask, &apply] {
        let mut work = Work::new();
        work.rig.write("a", "one");
        let before = work.capture(Moment::Before(1)).id;
        work.rig.write("a", "two");
        let after = work.capture(Moment::After(1)).id;
        let plan = work.rig.open().plan(&back(&after, &before)).unwrap();
        crashes::crash_after(Some(3));
        assert!(work.rig.open().restore("s", &plan, &all(&plan)).is_err());
        crashes::crash_after(None);
        // parlor is started again.
        let (sender, events) = unbounded_channel();
        (work.worker, work.events) = (SnapshotWorker::new(sender, Files::new()), events);
        let task = next(&work.rig);
        let SnapshotNews::Recovered(text) = work.run(task) else { panic!() };
        assert!(text.starts_with("An interrupted restore was "), "{text}");
    }
}

/// Writes a file that is held.
fn applied(rig: &Rig, name: &str) -> HeldJob {
    let disk = fs::read_to_string(rig.path().join(name)).ok();
    let change = HeldChange {
        path: rig.path().join(name),
        held: HeldFile { base: disk.clone().map(Into::into), text: "new\n".into() },
        disk: disk.map(Into::into),
        text: "new\n".into(),
        hunks: Vec::new(),
        fit: Fit::Clean,
    };
    let task = HeldTask::Apply { change: Box::new(change), text: "new\n".into() };
    HeldJob { session: SessionKey(1), roots: vec![rig.path()], task }
}

#[test]
fn an_applied_file_is_captured_before_and_after() {
    let mut work = Work::new();
    work.rig.write(".gitignore", "ignored\n");
    work.rig.write("ignored", "old\n");
    let job = Box::new(applied(&work.rig, "ignored"));
    let event = work.event(SnapshotTask::Apply { job: job.clone(), has_span: true });
    let ServiceEvent::Held(_, HeldNews::Applied { result: Ok(()), .. }, Some(span)) = event else {
        panic!("{event:?}")
    };
    assert_eq!(work.rig.text("ignored"), "new\n");
    let SnapshotNews::Planned(7, Ok(preview)) = work.run(plan_of(span)) else { panic!() };
    assert_eq!(all(&preview.plan), [PathBuf::from("ignored")]);
    // It has changed since.
    let event = work.event(SnapshotTask::Apply { job, has_span: true });
    assert!(matches!(event, ServiceEvent::Held(_, HeldNews::Applied { result: Err(_), .. }, None)));
}
