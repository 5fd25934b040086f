//! The configuration of the project in the session's folder, with the user's earlier answer.
//!
//! Only the folder itself is looked at, not its parents: a folder above may belong to someone else.

use std::path::{Path, PathBuf};

use super::choose;
use crate::config::project::{self, ProjectSettings};
use crate::config::{Config, Origin, Problem};
use crate::core::AUTO_THEME;
use crate::escape::visible;
use crate::host::fs::{ProjectFile, read_project_file};
use crate::host::trust::{self, Subject};
use crate::model::{AgentSpec, ProjectQuestion};
use crate::ui::text::one_line;
use crate::ui::theme::ThemeSet;

/// The configuration of a project.
#[derive(Debug, Clone)]
pub struct Project {
    pub file: PathBuf,
    /// The complete text.
    pub text: String,
    pub settings: ProjectSettings,
    pub problems: Vec<Problem>,
    /// The user's earlier answer about this exact text.
    pub answer: Option<bool>,
    pub answer_file: PathBuf,
}

/// Reads the configuration of the project in a folder, if any.
pub fn find(folder: &Path, data_dir: &Path) -> Result<Option<Project>, Problem> {
    let file = folder.join(project::NAME);
    let text = match read_project_file(folder, project::NAME) {
        ProjectFile::Text(text) => text,
        ProjectFile::Missing => return Ok(None),
        ProjectFile::Refused(why) => {
            let fix = "correct or remove it".to_owned();
            return Err(Problem { file, line: None, text: format!("ignored: {why}"), fix });
        }
    };
    let (settings, problems) = project::read(&file, &text);
    let answer_file = trust::place(data_dir, Subject::Project, folder, &text);
    Ok(Some(Project { answer: trust::read(&answer_file), file, text, settings, problems, answer_file }))
}

/// The names that a project can refer to.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    pub config: &'a Config,
    /// Installed agents.
    pub found: &'a [(AgentSpec, String)],
    pub demo: &'a AgentSpec,
    pub themes: &'a ThemeSet,
}

impl Project {
    /// Removes names that are not known from the settings, and reports them.
    pub fn check(&mut self, known: Known<'_>) {
        let problem = |file: &Path, line, text: &str, fix: &str| Problem {
            file: file.to_owned(),
            line,
            text: text.to_owned(),
            fix: fix.to_owned(),
        };
        let line = |key: &str| self.settings.lines.get(key).copied();
        let is_theme = |name: &String| name == AUTO_THEME || known.themes.names().contains(name);
        if let Some(name) = self.settings.theme.take_if(|name| !is_theme(name)) {
            let text = format!("unknown theme {name:?}");
            self.problems.push(problem(&self.file, line("theme"), &text, "select another theme"));
        }
        let spec = |name: &str| choose::by_name(name, known.config, known.found, known.demo);
        if let Some(error) = self.settings.agent.as_ref().and_then(|name| spec(name).err()) {
            let text = error.to_string();
            let (text, fix) = text.split_once("; ").unwrap_or((&text, "name another agent"));
            self.problems.push(problem(&self.file, line("agent"), text, fix));
            self.settings.agent = None;
        }
    }

    /// The question about checked settings, if it is not answered. `takes_agent` is false if another agent takes
    /// precedence.
    pub fn question(&self, known: Known<'_>, takes_agent: bool) -> Option<ProjectQuestion> {
        if self.answer.is_some() || self.settings.is_empty() {
            return None;
        }
        let spec = |name: &String| choose::by_name(name, known.config, known.found, known.demo).ok();
        let agent = self.settings.agent.as_ref().and_then(spec);
        let is_free = known.config.origin("theme") != Origin::CommandLine;
        let theme = self.settings.theme.as_ref().map(|name| format!("theme = {name:?}"));
        let started =
            agent.as_ref().map(|spec| format!("agent = {:?}: starts {}", spec.name, spec.command_line()));
        let templates = self.settings.templates.map(|is_on| format!("templates = {is_on}"));
        let rules = self.settings.rules.iter().map(|rule| format!("policy rule: {rule}"));
        let lines = [theme, started, templates].into_iter().flatten().chain(rules);
        Some(ProjectQuestion {
            file: self.file.clone(),
            lines: lines.map(|line| visible(&line).into_owned()).collect(),
            theme: self.settings.theme.clone().filter(|_| is_free),
            agent: agent.filter(|_| takes_agent),
            templates: self.settings.templates,
            answer_file: self.answer_file.clone(),
        })
    }

    /// Text for `parlor config`.
    pub fn shown(&self) -> String {
        let state = match self.answer {
            Some(true) => "allowed",
            Some(false) => "ignored: you refused it",
            None => "ignored until you allow it",
        };
        format!("\n# Configuration of the project ({state}):\n# {}\n", one_line(&self.file.to_string_lossy()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::os::fixtures;

    fn demo() -> AgentSpec {
        AgentSpec { name: "demo".into(), command: "parlor".into(), ..AgentSpec::default() }
    }

    #[test]
    fn the_answer_applies_until_the_file_changes() {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = folder.path().join(".parlor/config.toml");
        let find = || find(folder.path(), data.path()).unwrap();
        assert!(find().is_none());
        std::fs::create_dir(folder.path().join(".parlor")).unwrap();
        std::fs::write(&file, "theme = \"paper\"").unwrap();
        let first = find().unwrap();
        assert_eq!(first.answer, None);
        trust::keep(&first.answer_file, true, &first.file).unwrap();
        assert_eq!(find().unwrap().answer, Some(true));
        std::fs::write(&file, "theme = \"dark\"").unwrap();
        assert_eq!(find().unwrap().answer, None);
        std::fs::write(&file, b"\xff").unwrap();
        assert!(super::find(folder.path(), data.path()).unwrap_err().text.contains("UTF-8"));
        std::fs::remove_file(&file).unwrap();
        fixtures::link(data.path().join("elsewhere.toml"), &file);
        std::fs::write(data.path().join("elsewhere.toml"), "theme = \"paper\"").unwrap();
        assert!(super::find(folder.path(), data.path()).unwrap_err().text.contains("link"));
    }

    #[test]
    fn a_file_of_a_parent_folder_is_not_used() {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir_all(folder.path().join(".parlor")).unwrap();
        std::fs::create_dir_all(folder.path().join(".git")).unwrap();
        std::fs::create_dir_all(folder.path().join("sub")).unwrap();
        std::fs::write(folder.path().join(".parlor/config.toml"), "theme = \"paper\"").unwrap();
        assert!(find(&folder.path().join("sub"), data.path()).unwrap().is_none());
    }

    #[test]
    fn the_question_lists_known_names_only() {
        let ask = |text: &str, takes_agent| {
            let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            std::fs::create_dir(folder.path().join(".parlor")).unwrap();
            std::fs::write(folder.path().join(".parlor/config.toml"), text).unwrap();
            let mut project = find(folder.path(), data.path()).unwrap().unwrap();
            let (config, demo, themes) = (Config::default(), demo(), ThemeSet::built_in());
            let known = Known { config: &config, found: &[], demo: &demo, themes: &themes };
            project.check(known);
            let problems: Vec<String> = project.problems.iter().map(|problem| problem.text.clone()).collect();
            (project.question(known, takes_agent), problems)
        };
        let (question, problems) = ask("theme = \"sand\"\nagent = \"demo\"", true);
        let question = question.unwrap();
        assert_eq!(question.lines, ["theme = \"sand\"", "agent = \"demo\": starts parlor"]);
        assert_eq!((question.agent, problems.len()), (Some(demo()), 0));
        let (question, _) = ask("agent = \"demo\"", false);
        assert_eq!(question.unwrap().agent, None, "the agent of the command line takes precedence");
        for text in ["agent = \"sh -c evil\"", "agent = \"https://evil.example\"", "theme = \"../x\""] {
            let (question, problems) = ask(text, true);
            assert_eq!(question, None, "{text}");
            assert!(problems[0].starts_with("unknown"), "{problems:?}");
        }
    }
}
