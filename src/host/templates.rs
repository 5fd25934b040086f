//! Prompt templates: lists them, and replaces a call in a prompt by the text of the template.
//!
//! The user's templates are in the folder `prompts` next to the configuration, those of a project in `.parlor/prompts` of
//! the session's folder.
//! Invariants: a template of a project is used only if the user has allowed its exact text; links out of the project's
//! folder are not followed; sizes and numbers are limited.

use std::fs;
use std::path::{Path, PathBuf};

use crate::escape::visible;
use crate::model::{
    PreparedPrompt, PromptJob, TemplateCall, TemplateInfo, TemplateList, TemplateSource, UnreviewedTemplate,
    expand_template, is_template_name, is_template_name_part, parse_template,
};

use super::fs::{Glance, MentionedContent, glance, read_mentioned};
use super::trust::{self, Subject};

const PROJECT_FOLDER: &str = ".parlor/prompts";
/// Maximum size of a template.
const FILE_MAX_BYTES: u64 = 64 << 10;
/// Maximum number of templates in a folder.
const FILES_MAX: usize = 200;
/// Maximum size of all templates of a project that wait for a review.
const UNREVIEWED_MAX_BYTES: usize = 1 << 20;
/// Maximum number of entries of a folder that are looked at, with those of its subfolders.
const ENTRIES_MAX: usize = 2_000;
/// Maximum depth of subfolders.
const DEPTH_MAX: usize = 4;

/// Where templates and answers are.
#[derive(Debug, Clone, Default)]
pub struct TemplateFolders {
    pub own: PathBuf,
    /// The data folder, with the answers about templates of projects.
    pub data_dir: PathBuf,
}

/// A template file of a folder.
#[derive(Debug, Clone, Copy)]
struct Folder<'a> {
    source: TemplateSource,
    /// The folder of the user's templates, or that of the project.
    path: &'a Path,
}

impl TemplateFolders {
    /// All templates for a session. Blocks on the disk.
    pub fn list(&self, project: Option<&Path>) -> TemplateList {
        let mut list = TemplateList { is_loaded: true, ..TemplateList::default() };
        let own = Folder { source: TemplateSource::User, path: &self.own };
        let project = project.map(|path| Folder { source: TemplateSource::Project, path });
        let mut left = UNREVIEWED_MAX_BYTES;
        for folder in [Some(own), project].into_iter().flatten() {
            for name in folder.names(&mut list.problems) {
                let text = match folder.read(&name) {
                    Ok(Some(text)) => text,
                    Ok(None) => continue,
                    Err(why) => {
                        list.problems.push(why);
                        continue;
                    }
                };
                if folder.source == TemplateSource::Project {
                    let unreviewed = self.unreviewed(folder, &name, &text);
                    match trust::read(&unreviewed.answer_file) {
                        Some(true) => {}
                        Some(false) => continue,
                        None => {
                            left = left.saturating_sub(text.len());
                            if left > 0 {
                                list.unreviewed.push(unreviewed);
                            } else {
                                let file = shown(&unreviewed.file);
                                list.problems
                                    .push(format!("{file} is ignored: the project has too many templates."));
                            }
                            continue;
                        }
                    }
                }
                let template = parse_template(&text);
                list.offered.push(TemplateInfo {
                    name,
                    source: folder.source,
                    description: template.description,
                    hint: template.hint,
                });
            }
        }
        list
    }

    /// Replaces the call of a template in a prompt by its text. A call of no template stays text. Returns the prompt with
    /// the problem if the template cannot be used. Blocks on the disk.
    pub fn resolve(&self, mut job: PromptJob) -> Result<PromptJob, Box<PreparedPrompt>> {
        let Some(call) = job.template.take() else { return Ok(job) };
        let refused = |problem: String, unreviewed| {
            let text = job.text.clone();
            Box::new(PreparedPrompt {
                text,
                problems: vec![problem],
                unreviewed,
                ..PreparedPrompt::default()
            })
        };
        let found = self.find(&call).map_err(|problem| refused(problem, None))?;
        let Some((folder, text)) = found else { return Ok(job) };
        if folder.source == TemplateSource::Project {
            let unreviewed = self.unreviewed(folder, &call.name, &text);
            match trust::read(&unreviewed.answer_file) {
                Some(true) => {}
                Some(false) => {
                    let problem = format!("You chose to ignore the template {call} of this project.");
                    return Err(refused(problem, None));
                }
                None => {
                    let problem = format!("The template {call} of this project is new or has changed.");
                    return Err(refused(problem, Some(unreviewed)));
                }
            }
        }
        let expanded = expand_template(&parse_template(&text).body, &call.arguments);
        if expanded.is_empty() {
            return Err(refused(format!("The template {call} has no text."), None));
        }
        job.text = expanded;
        Ok(job)
    }

    /// The file that a call refers to, with its text.
    fn find<'a>(&'a self, call: &'a TemplateCall) -> Result<Option<(Folder<'a>, String)>, String> {
        if !is_template_name(&call.name) {
            return Ok(None);
        }
        let own = Folder { source: TemplateSource::User, path: &self.own };
        let project = call.project.as_deref().map(|path| Folder { source: TemplateSource::Project, path });
        let folders = [Some(own), project].into_iter().flatten();
        for folder in folders.filter(|folder| call.source.is_none_or(|source| source == folder.source)) {
            if let Some(text) = folder.read(&call.name)? {
                return Ok(Some((folder, text)));
            }
        }
        Ok(None)
    }

    fn unreviewed(&self, folder: Folder<'_>, name: &str, text: &str) -> UnreviewedTemplate {
        UnreviewedTemplate {
            name: name.to_owned(),
            file: folder.file(name),
            text: text.to_owned(),
            answer_file: trust::place(
                &self.data_dir,
                Subject::Template,
                folder.path,
                &format!("{name}\0{text}"),
            ),
        }
    }
}

impl Folder<'_> {
    fn prompts(&self) -> PathBuf {
        match self.source {
            TemplateSource::User => self.path.to_owned(),
            TemplateSource::Project => self.path.join(PROJECT_FOLDER),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.prompts().join(name.replace(':', "/") + ".md")
    }

    fn names(&self, problems: &mut Vec<String>) -> Vec<String> {
        let top = self.prompts();
        if self.source == TemplateSource::Project {
            let real = |path: &Path| path.canonicalize().ok();
            match (real(&top), real(self.path)) {
                (Some(prompts), Some(project)) if prompts.starts_with(&project) => {}
                (Some(_), _) => {
                    problems.push(format!("{} is ignored: it is a link out of the project.", shown(&top)));
                    return Vec::new();
                }
                (None, _) => return Vec::new(),
            }
        }
        let mut names = Vec::new();
        let mut folders = vec![(top.clone(), String::new(), 0)];
        let mut looked_at = 0;
        while let Some((folder, prefix, depth)) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                looked_at += 1;
                if looked_at > ENTRIES_MAX {
                    problems.push(format!("{} has too many files; some are ignored.", shown(&top)));
                    return sorted(names);
                }
                let path = entry.path();
                let is_folder = match self.source {
                    // The user's own links are followed.
                    TemplateSource::User => path.is_dir(),
                    TemplateSource::Project => entry.file_type().is_ok_and(|kind| kind.is_dir()),
                };
                let file_name = entry.file_name().to_string_lossy().into_owned();
                let stem = if is_folder { Some(file_name.as_str()) } else { file_name.strip_suffix(".md") };
                let Some(stem) = stem.filter(|stem| !stem.starts_with('.')) else { continue };
                if !is_template_name_part(stem) {
                    let why = "a name has letters, digits, -, _, + and . only";
                    problems.push(format!("{} is ignored: {why}.", shown(&path)));
                } else if is_folder && depth < DEPTH_MAX {
                    folders.push((path, format!("{prefix}{stem}:"), depth + 1));
                } else if !is_folder {
                    names.push(format!("{prefix}{stem}"));
                }
            }
        }
        if names.len() > FILES_MAX {
            problems.push(format!("{} has more than {FILES_MAX} templates; some are ignored.", shown(&top)));
        }
        sorted(names)
    }

    /// The text of a template; `None` if there is none of this name. The error is a sentence.
    fn read(&self, name: &str) -> Result<Option<String>, String> {
        let file = self.file(name);
        let refused = |why: &str| format!("The template {} cannot be used: {why}.", shown(&file));
        let too_large = || refused("it is larger than 64 KiB");
        let bytes = match self.source {
            TemplateSource::User => {
                match read_mentioned(&file, &[], FILE_MAX_BYTES).map(|found| found.content) {
                    Some(MentionedContent::File(bytes)) => bytes,
                    Some(MentionedContent::Large { .. }) => return Err(too_large()),
                    None if file.exists() => return Err(refused("it cannot be read")),
                    Some(MentionedContent::Folder) | None => return Ok(None),
                }
            }
            TemplateSource::Project => match glance(&file, &[self.path.to_owned()], FILE_MAX_BYTES) {
                Glance::Text(bytes) => bytes,
                Glance::Missing => return Ok(None),
                Glance::Refused if file.metadata().is_ok_and(|meta| meta.len() > FILE_MAX_BYTES) => {
                    return Err(too_large());
                }
                Glance::Refused => {
                    return Err(refused("it cannot be read, or is a link out of the project"));
                }
            },
        };
        if bytes.len() as u64 > FILE_MAX_BYTES {
            return Err(too_large());
        }
        let is_text =
            |text: &String| !text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
        match String::from_utf8(bytes).ok().filter(is_text) {
            Some(text) => Ok(Some(text)),
            None => Err(refused("it is not UTF-8 text")),
        }
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names.truncate(FILES_MAX);
    names
}

fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::os::fixtures;
    use crate::model::{PromptTakes, SessionKey};

    struct Rig {
        top: tempfile::TempDir,
        locations: TemplateFolders,
    }

    impl Rig {
        fn new(files: &[(&str, &str)]) -> Self {
            let top = tempfile::tempdir().unwrap();
            let locations =
                TemplateFolders { own: top.path().join("own"), data_dir: top.path().join("data") };
            let rig = Self { top, locations };
            fs::create_dir_all(rig.project()).unwrap();
            for (path, text) in files {
                rig.write(path, text);
            }
            rig
        }

        fn project(&self) -> PathBuf {
            self.top.path().canonicalize().unwrap().join("w")
        }

        fn write(&self, path: &str, text: impl AsRef<[u8]>) {
            let file = self.top.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }

        fn list(&self) -> TemplateList {
            self.locations.list(Some(&self.project()))
        }

        fn offered(&self) -> Vec<String> {
            let name = |it: &TemplateInfo| format!("{}:{}", it.source.prefix(), it.name);
            self.list().offered.iter().map(name).collect()
        }

        fn answer(&self, allows: bool) {
            for template in self.list().unreviewed {
                trust::keep(&template.answer_file, allows, &template.file).unwrap();
            }
        }

        fn send(
            &self,
            name: &str,
            source: Option<TemplateSource>,
            arguments: &str,
        ) -> Result<String, Box<PreparedPrompt>> {
            let call = TemplateCall {
                name: name.into(),
                source,
                arguments: arguments.into(),
                project: Some(self.project()),
            };
            let job = PromptJob {
                session: SessionKey(1),
                prompt: crate::model::PromptId(1),
                text: format!("/{name} {arguments}"),
                folder: None,
                roots: Vec::new(),
                takes: PromptTakes::default(),
                outputs: Vec::new(),
                listed: Vec::new(),
                template: Some(call),
            };
            self.locations.resolve(job).map(|job| job.text)
        }
    }

    #[test]
    fn templates_of_the_user_are_listed_and_expanded() {
        let rig = Rig::new(&[
            ("own/review.md", "---\ndescription: Review\nargument-hint: <file>\n---\nReview @$1 for $2."),
            ("own/git/commit.md", "Write a commit message"),
            ("own/notes.txt", "no template"),
            ("own/my prompt.md", "x"),
            ("own/.hidden.md", "x"),
        ]);
        assert_eq!(rig.offered(), ["user:git:commit", "user:review"]);
        let list = rig.list();
        let review = &list.offered[1];
        assert_eq!((review.description.as_str(), review.hint.as_deref()), ("Review", Some("<file>")));
        assert_eq!(list.problems.len(), 1);
        assert!(list.problems[0].contains("my prompt.md is ignored"), "{list:?}");
        assert_eq!(
            rig.send("review", None, "src/a.rs 'long names'").unwrap(),
            "Review @src/a.rs for long names."
        );
        assert_eq!(rig.send("git:commit", None, "").unwrap(), "Write a commit message");
        assert_eq!(rig.send("unknown", None, "x").unwrap(), "/unknown x", "text that is not a call");
        assert_eq!(rig.send("../../w/x", None, "").unwrap(), "/../../w/x ");
    }

    #[test]
    fn a_template_of_a_project_is_used_only_while_its_text_is_allowed() {
        let rig = Rig::new(&[("w/.parlor/prompts/fix.md", "Fix $1"), ("w/.parlor/prompts/a.md", "A")]);
        assert_eq!(rig.offered(), [""; 0]);
        let refused = rig.send("fix", None, "it").unwrap_err();
        assert_eq!(refused.unreviewed.map(|template| template.text).as_deref(), Some("Fix $1"));
        assert!(refused.problems[0].contains("/fix of this project is new"), "{:?}", refused.problems);
        rig.answer(true);
        assert_eq!(rig.offered(), ["project:a", "project:fix"]);
        assert_eq!(rig.send("fix", None, "it").unwrap(), "Fix it");
        // A changed file asks again, and only for itself.
        rig.write("w/.parlor/prompts/fix.md", "Delete $1");
        assert_eq!(rig.offered(), ["project:a"]);
        assert_eq!(rig.list().unreviewed.len(), 1);
        assert!(rig.send("fix", Some(TemplateSource::Project), "it").is_err());
        rig.answer(false);
        let list = rig.list();
        assert_eq!((list.offered.len(), list.unreviewed.len()), (1, 0), "a refusal is saved");
        assert!(rig.send("fix", None, "it").unwrap_err().problems[0].contains("ignore"));
        // The same text under another name is another template.
        rig.write("w/.parlor/prompts/b.md", "A");
        assert_eq!(rig.list().unreviewed[0].name, "b");
    }

    #[test]
    fn the_user_s_template_precedes_that_of_the_project() {
        let rig = Rig::new(&[("own/fix.md", "Mine"), ("w/.parlor/prompts/fix.md", "Theirs")]);
        rig.answer(true);
        assert_eq!(rig.offered(), ["user:fix", "project:fix"]);
        assert_eq!(rig.send("fix", None, "").unwrap(), "Mine");
        assert_eq!(rig.send("fix", Some(TemplateSource::Project), "").unwrap(), "Theirs");
    }

    #[test]
    fn links_out_of_a_project_are_not_followed() {
        let rig = Rig::new(&[("secret.md", "key"), ("w/.parlor/prompts/ok.md", "ok"), ("out/x.md", "x")]);
        let prompts = rig.project().join(".parlor/prompts");
        fixtures::link(rig.top.path().join("secret.md"), prompts.join("link.md"));
        fixtures::link(rig.top.path().join("out"), prompts.join("out"));
        let list = rig.list();
        assert_eq!(list.unreviewed.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["ok"]);
        assert!(list.problems[0].contains("link.md cannot be used"), "{:?}", list.problems);
        for name in ["link", "out:x"] {
            let refused = rig.send(name, None, "").unwrap_err();
            assert_eq!(refused.unreviewed, None, "{name}");
        }
        // The whole folder may be a link as well.
        fs::remove_dir_all(&prompts).unwrap();
        fixtures::link(rig.top.path().join("out"), &prompts);
        assert_eq!(rig.list().unreviewed, []);
        assert!(rig.send("x", None, "").unwrap_err().problems[0].contains("out of the project"));
    }

    #[test]
    fn templates_are_text_of_limited_size_and_number() {
        let rig =
            Rig::new(&[("own/nul.md", "a\0b"), ("own/esc.md", "\u{1b}[31m"), ("own/empty.md", "---\n---\n")]);
        rig.write("own/latin.md", b"caf\xe9");
        rig.write("own/large.md", "x".repeat(70_000));
        for (name, why) in [
            ("nul", "not UTF-8"),
            ("esc", "not UTF-8"),
            ("latin", "not UTF-8"),
            ("large", "64 KiB"),
            ("empty", "no text"),
        ] {
            let refused = rig.send(name, None, "").unwrap_err();
            assert!(refused.problems[0].contains(why), "{name}: {:?}", refused.problems);
        }
        for number in 0..20 {
            rig.write(&format!("w/.parlor/prompts/long{number}.md"), "x".repeat(60_000));
        }
        let list = rig.list();
        assert!(list.unreviewed.len() > 10 && list.unreviewed.len() < 20, "{}", list.unreviewed.len());
        fs::remove_dir_all(rig.project().join(".parlor")).unwrap();
        for number in 0..FILES_MAX + 10 {
            rig.write(&format!("w/.parlor/prompts/t{number}.md"), "x");
        }
        let list = rig.list();
        assert_eq!(list.unreviewed.len(), FILES_MAX);
        assert!(list.problems.iter().any(|why| why.contains("more than 200")), "{:?}", list.problems);
    }

    #[test]
    fn lines_with_an_exclamation_mark_are_text() {
        let rig = Rig::new(&[("own/run.md", "!touch x\nCheck !`ls`")]);
        assert_eq!(rig.send("run", None, "").unwrap(), "!touch x\nCheck !`ls`");
        assert!(!rig.project().join("x").exists());
    }
}
