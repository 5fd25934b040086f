use super::*;
use crate::model::Body;
use crate::model::held::{Fit, HeldChange, HeldFile, HeldFiles, HeldJob, HeldNews, HeldTask, Holding};

/// Serves the requests of an agent whose writes are held, as the core does.
struct Layer {
    rig: Rig,
    files: HeldFiles,
}

fn layer() -> Layer {
    Layer { rig: rig(), files: HeldFiles::new() }
}

impl Layer {
    fn done(&mut self, path: &str, op: FileOp) -> Result<Option<String>, RpcError> {
        let holding = Holding { files: Arc::new(self.files.clone()), is_on: true };
        match self.rig.serve(FileJob { holding, ..self.rig.job(path, op) }) {
            ServiceEvent::FileDone { result, served, .. } => {
                if let Some(ServedFile { access: Access::Write { path }, held: Some(held), .. }) =
                    served.map(|served| *served)
                {
                    self.files.insert(path, held);
                }
                result
            }
            other => panic!("{other:?}"),
        }
    }

    fn write(&mut self, path: &str, text: &str) -> Result<(), String> {
        let written = self.done(path, FileOp::Write { content: text.to_owned() });
        written.map(drop).map_err(|error| error.message)
    }

    fn read(&mut self, path: &str) -> String {
        self.done(path, FileOp::Read { line: None, limit: None }).unwrap().unwrap()
    }

    fn disk(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.rig.root.join(path)).ok()
    }

    fn put(&self, path: &str, text: &str) {
        fs::write(self.rig.root.join(path), text).unwrap();
    }

    fn run(&self, task: HeldTask) -> HeldNews {
        let roots = vec![self.rig.root.clone()];
        self.rig.files.serve_held(HeldJob { session: SessionKey(1), roots, task })
    }

    fn compared(&self) -> Vec<HeldChange> {
        let files = self.files.clone();
        let HeldNews::Compared(3, changes) = self.run(HeldTask::Compare { number: 3, files }) else {
            panic!()
        };
        changes
    }

    fn apply(&self, change: &HeldChange) -> Result<(), String> {
        let task = HeldTask::Apply { change: Box::new(change.clone()), text: change.text.clone() };
        let HeldNews::Applied { result, .. } = self.run(task) else { panic!() };
        result
    }
}

fn held(base: Option<&str>, text: &str) -> HeldFile {
    HeldFile { base: base.map(Body::from), text: text.into() }
}

#[test]
fn a_held_write_is_read_back_and_not_on_the_disk() {
    let mut layer = layer();
    layer.put("old.txt", "one\ntwo\n");
    assert_eq!(layer.read("old.txt"), "one\ntwo\n");
    layer.write("old.txt", "one\n2\n").unwrap();
    layer.write("deep/new.txt", "new\n").unwrap();
    assert_eq!((layer.read("old.txt"), layer.read("deep/new.txt")), ("one\n2\n".into(), "new\n".into()));
    assert_eq!((layer.disk("old.txt").as_deref(), layer.disk("deep")), (Some("one\ntwo\n"), None));
    assert_eq!(layer.rig.names(), ["old.txt"]);
    let lines = layer.done("old.txt", FileOp::Read { line: Some(2), limit: Some(1) });
    assert_eq!(lines.unwrap().as_deref(), Some("2\n"));
    // The base stays what the disk had.
    layer.write("old.txt", "1\n2\n").unwrap();
    let root = layer.rig.root.clone();
    assert_eq!(layer.files[&root.join("old.txt")], held(Some("one\ntwo\n"), "1\n2\n"));
    assert_eq!(layer.files[&root.join("deep/new.txt")], held(None, "new\n"));
}

#[test]
fn a_held_file_stays_held_when_the_setting_is_off() {
    let mut layer = layer();
    layer.write("a", "held").unwrap();
    let files = Arc::new(layer.files.clone());
    let op = FileOp::Write { content: "more".to_owned() };
    let job = FileJob { holding: Holding { files, is_on: false }, ..layer.rig.job("a", op) };
    assert!(layer.rig.done(job).is_ok());
    assert_eq!(layer.disk("a"), None);
    layer.rig.write("b", "direct").unwrap();
    assert_eq!(layer.disk("b").as_deref(), Some("direct"));
}

#[test]
fn a_file_that_changed_since_it_was_read_is_not_held() {
    let mut layer = layer();
    layer.put("a", "one");
    layer.read("a");
    layer.put("a", "two");
    assert!(layer.write("a", "mine").unwrap_err().contains("has changed since you read it"));
    assert_eq!(layer.read("a"), "two");
    layer.write("a", "mine").unwrap();
    // The user has discarded it.
    layer.files.clear();
    assert!(layer.write("a", "again").unwrap_err().contains("has changed since you read it"));
}

#[test]
fn what_cannot_be_reviewed_is_neither_held_nor_written() {
    let mut layer = layer();
    fs::write(layer.rig.root.join("binary"), [0xff, 0xfe]).unwrap();
    let large = "x".repeat((1 << 20) + 1);
    for (path, text, why) in
        [("binary", "text", "it is not UTF-8 text"), ("large", large.as_str(), "it is larger than 1 MiB")]
    {
        assert!(layer.write(path, text).unwrap_err().ends_with(&format!("{why}.")));
    }
    assert_eq!((layer.files.len(), layer.disk("large")), (0, None));
}

#[test]
fn a_protected_file_is_asked_about_instead_of_held() {
    let layer = layer();
    fs::create_dir_all(layer.rig.root.join(".git/hooks")).unwrap();
    let op = FileOp::Write { content: "x".to_owned() };
    for path in [".git/hooks/pre-commit", "../outside/new"] {
        let holding = Holding { is_on: true, ..Holding::default() };
        let event = layer.rig.serve(FileJob { holding, ..layer.rig.job(path, op.clone()) });
        assert!(matches!(event, ServiceEvent::FileAsks { .. }), "{event:?}");
    }
}

#[test]
fn a_compared_file_is_applied_once() {
    let mut layer = layer();
    layer.put("a", "one\ntwo\n");
    layer.write("a", "one\n2\n").unwrap();
    layer.write("b/c", "new\n").unwrap();
    let changes = layer.compared();
    let shown: Vec<_> = changes.iter().map(|change| (change.hunks.len(), change.fit.clone())).collect();
    assert_eq!(shown, [(1, Fit::Clean), (0, Fit::Clean)]);
    for change in &changes {
        layer.apply(change).unwrap();
    }
    assert_eq!((layer.disk("a").as_deref(), layer.disk("b/c").as_deref()), (Some("one\n2\n"), Some("new\n")));
    // The disk is no longer what was compared.
    assert_eq!(layer.apply(&changes[0]).unwrap_err(), "it was changed meanwhile");
    assert_eq!(layer.apply(&changes[1]).unwrap_err(), "it was changed meanwhile");
}

#[test]
fn changes_on_the_disk_are_merged_or_shown_as_a_conflict() {
    let mut layer = layer();
    for name in ["far", "near"] {
        layer.put(name, "1\n2\n3\n4\n");
        layer.write(name, "1\n2\n3\nfour\n").unwrap();
    }
    layer.put("far", "one\n2\n3\n4\n");
    layer.put("near", "1\n2\nthree\n4\n");
    let changes = layer.compared();
    assert_eq!((&changes[0].fit, &*changes[0].text), (&Fit::Merged, "one\n2\n3\nfour\n"));
    assert_eq!((&changes[1].fit, &*changes[1].text), (&Fit::Conflict, "1\n2\n3\nfour\n"));
    layer.apply(&changes[0]).unwrap();
    assert_eq!(layer.disk("far").as_deref(), Some("one\n2\n3\nfour\n"));
}

#[test]
fn a_link_in_the_path_refuses_a_held_file() {
    let mut layer = layer();
    fs::create_dir(layer.rig.root.join("dir")).unwrap();
    layer.write("dir/secret", "stolen").unwrap();
    layer.write("file", "stolen").unwrap();
    let before = layer.compared();
    fs::remove_dir(layer.rig.root.join("dir")).unwrap();
    fixtures::link(&layer.rig.outside, layer.rig.root.join("dir"));
    fixtures::link(layer.rig.outside.join("secret"), layer.rig.root.join("file"));
    for change in before.iter().chain(&layer.compared()) {
        assert!(layer.apply(change).unwrap_err().contains("link"), "{change:?}");
    }
    assert!(layer.compared().iter().all(|change| matches!(change.fit, Fit::Refused(_))));
    assert_eq!(fs::read_to_string(layer.rig.outside.join("secret")).unwrap(), "secret");
}

#[test]
fn a_file_with_other_names_is_not_applied() {
    let mut layer = layer();
    layer.put("a", "mine");
    layer.write("a", "theirs").unwrap();
    fs::remove_file(layer.rig.root.join("a")).unwrap();
    fs::write(layer.rig.outside.join("bashrc"), "mine").unwrap();
    fs::hard_link(layer.rig.outside.join("bashrc"), layer.rig.root.join("a")).unwrap();
    let changes = layer.compared();
    assert!(layer.apply(&changes[0]).unwrap_err().contains("hard links"));
    assert_eq!(fs::read_to_string(layer.rig.outside.join("bashrc")).unwrap(), "mine");
}
