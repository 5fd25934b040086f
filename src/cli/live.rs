//! Changes and reads the configuration while a session runs.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::config::catalogue::{known, spec_of_installed};
use crate::config::project::ProjectSettings;
use crate::config::{self, Config, Origin, Paths, Problem, Surroundings, save, settings};
use crate::core::{AUTO_THEME, AgentChoice, ConfigNews, MouseOwner, Setup, ThemeInfo};
use crate::host::registry::{self, Registry};
use crate::lock::lock;
use crate::model::{AgentSpec, ConfigJob, SettingChange};
use crate::runtime::live::{Configure, Live, Reloaded, Themes};
use crate::runtime::{attention, pictures};
use crate::ui::text::WideAmbiguous;
use crate::ui::theme::{ColorSupport, ThemeSet};

use super::args::Options;
use super::choose;
use super::start::{editor_of_environment, find_themes, is_in_screen, shows_links, theme_name};

/// Known agents that are installed, with their display names.
pub type Found = Vec<(AgentSpec, String)>;

/// The id in the registry of an agent that parlor knows.
fn registry_id(name: &str) -> Option<String> {
    let is_it = |id: &str| known(id).is_some_and(|known| known.name == name);
    registry::built_in().agents.iter().find(|agent| is_it(&agent.id)).map(|agent| agent.id.clone())
}

/// What does not change while parlor runs.
#[derive(Debug, Clone)]
pub struct Facts {
    pub paths: Paths,
    /// The options of the command line, which override the file.
    pub options: Options,
    /// Looks for installed agents; with the data folder.
    pub find: fn(&Path) -> Found,
    /// The demo agent.
    pub demo: AgentSpec,
    /// The settings of the project that the user is asked about.
    pub project: Option<ProjectSettings>,
    pub colors: ColorSupport,
}

struct Current {
    config: Config,
    /// Known agents that are installed, with their display names.
    found: Found,
    /// The text of the file; `None`: it could not be read.
    text: Option<String>,
    themes: ThemeSet,
    /// The themes as last read, which may have problems.
    read_themes: ThemeSet,
    /// The number of changes of the themes.
    revision: usize,
    /// Permissions of the file that the user was asked about.
    asked: Vec<&'static str>,
}

/// The fields of the setup that come from the configuration.
pub fn setup_of(facts: &Facts, found: &Found, config: &Config, themes: &ThemeSet) -> Setup {
    let bindings = config.keymap.binding_rows();
    Setup {
        agents: agent_choices(facts, found, config),
        agents_dir: Registry::new(&facts.paths.data_dir, "").agents_dir().to_owned(),
        mcp_servers: config.mcp_servers.clone(),
        themes: themes
            .names()
            .into_iter()
            .map(|name| ThemeInfo { is_dark: themes.is_dark(&name), name })
            .collect(),
        theme: config.theme.clone(),
        auto_theme: theme_name(AUTO_THEME, facts.colors).to_owned(),
        folds: config.folds,
        mouse: mouse_owner(config),
        palette: config.keymap.palette(),
        settings: settings::rows(config, &facts.paths, &bindings),
        bindings,
        config_file: facts.paths.config_file.clone(),
        callbacks: config.callbacks,
        policy: config.policy,
        sandbox: config.sandbox.clone(),
        undo: config.undo.clone(),
        rules: config.rules.clone(),
        budget: config.budget.clone(),
        handover_bytes: config.handover_bytes,
        ..Setup::default()
    }
}

/// Who has the mouse. GNU screen holds back a single Esc while the mouse is reported, so there it is the terminal's unless it
/// was configured.
fn mouse_owner(config: &Config) -> MouseOwner {
    let is_default = config.origin("ui.mouse") == Origin::Default;
    if config.mouse && !(is_default && is_in_screen()) { MouseOwner::Parlor } else { MouseOwner::Terminal }
}

/// Configured agents, then installed agents, then the demo agent.
fn agent_choices(facts: &Facts, found: &Found, config: &Config) -> Vec<AgentChoice> {
    let installed = Registry::new(&facts.paths.data_dir, "").installed();
    let id_of = |name: &str| {
        let own = installed.iter().find(|agent| spec_of_installed(agent).name == name);
        own.map(|agent| agent.id.clone()).or_else(|| registry_id(name))
    };
    let configured = config.agents.values().map(|spec| AgentChoice {
        title: spec.shown_name().to_owned(),
        spec: spec.clone(),
        source: "configured".to_owned(),
        registry_id: id_of(&spec.name),
        version: String::new(),
    });
    let found =
        found.iter().filter(|(spec, _)| !config.agents.contains_key(&spec.name)).map(|(spec, title)| {
            let own = installed.iter().find(|agent| Path::new(&spec.command) == agent.command);
            AgentChoice {
                spec: config.with_settings(spec),
                title: title.clone(),
                source: if own.is_some() { "installed" } else { "found" }.to_owned(),
                registry_id: id_of(&spec.name),
                version: own.map(|agent| format!("version {}", agent.version)).unwrap_or_default(),
            }
        });
    let demo = AgentChoice {
        spec: config.with_settings(&facts.demo),
        title: "Demo agent".to_owned(),
        source: "built in".to_owned(),
        registry_id: None,
        version: String::new(),
    };
    configured.chain(found).chain([demo]).collect()
}

/// The settings of the runtime.
pub fn live_of(facts: &Facts, config: &Config, themes: ThemeSet, revision: usize) -> Live {
    let colors = facts.colors;
    let themes: Themes = Arc::new(move |name: &str| {
        let (mut theme, _) = themes.load(name, colors);
        if revision > 0 {
            // What was laid out in a theme is found by its name, and its file may have changed.
            theme.name = format!("{} {revision}", theme.name);
        }
        theme
    });
    Live {
        keymap: config.keymap.clone(),
        themes,
        copies_on_select: config.copy_on_select,
        reduced_motion: config.reduced_motion,
        which_key_delay: Duration::from_millis(config.which_key_delay_ms),
        paste_lines: config.paste_lines,
        numbers_code: config.code_line_numbers,
        has_vim_keys: config.editing == "vim",
        attention: attention::Settings {
            bell: config.bell,
            notify: attention::Notify::of(&config.notify),
            title: config.title,
            progress: config.progress,
        },
        images: pictures::GraphicsSetting::of(&config.images),
        has_links: config.hyperlinks.unwrap_or_else(shows_links),
        ambiguous: WideAmbiguous::of(&config.ambiguous_width),
        editor: config.editor.clone().or_else(editor_of_environment),
    }
}

/// The function that does the jobs of a session.
pub fn configure(facts: Facts, found: Found, config: Config, themes: ThemeSet) -> Configure {
    let text = config::text_of(&facts.paths).ok();
    let current = Mutex::new(Current {
        config,
        found,
        text,
        read_themes: themes.clone(),
        themes,
        revision: 0,
        asked: Vec::new(),
    });
    Arc::new(move |job| {
        let mut current = lock(&current);
        run(&facts, &mut current, job)
    })
}

fn run(facts: &Facts, current: &mut MutexGuard<'_, Current>, job: ConfigJob) -> Option<Reloaded> {
    let mut change = None;
    let mut accepted = None;
    let is_accepting = job == ConfigJob::Accept;
    let is_of_project = job == ConfigJob::UseProject;
    if let ConfigJob::Change(wanted) = job {
        let written = save::change(&facts.paths, &wanted);
        if let SettingChange::Value { name, .. } = &wanted {
            accepted = Some(name.clone()).filter(|_| written.is_ok());
            if let Some(name) = &accepted
                && matches!(current.config.origin(name), Origin::Project { .. })
            {
                // The user's own choice applies until parlor ends.
                current.config.origins.remove(name);
            }
        }
        change = Some((wanted, written));
    }
    let mut news = ConfigNews { change, ..ConfigNews::default() };
    let mut is_new = is_accepting;
    if is_of_project && let Some(project) = &facts.project {
        project.apply(&mut current.config);
        is_new = true;
    }
    let found = (facts.find)(&facts.paths.data_dir);
    if found != current.found {
        current.found = found;
        is_new = true;
    }
    // The themes.
    let (themes, theme_problems) = find_themes(&facts.paths.theme_dir);
    if themes != current.read_themes {
        let (_, mut problems) = themes.load(theme_name(&current.config.theme, facts.colors), facts.colors);
        problems.extend(theme_problems);
        if problems.is_empty() {
            current.revision += 1;
            current.themes = themes.clone();
            is_new = true;
        }
        news.problems.extend(problems);
        current.read_themes = themes;
    }
    // The file.
    match config::text_of(&facts.paths) {
        Ok(text) if current.text.as_ref() != Some(&text) || is_accepting || accepted.is_some() => {
            current.text = Some(text.clone());
            match config::reread(&facts.paths, &text, &current.config, &Surroundings::of_process()) {
                Ok((mut config, problems)) => {
                    facts.options.apply(&mut config);
                    if !is_accepting {
                        news.held = settings::hold_back(&current.config, &mut config, accepted.as_deref());
                    }
                    let held = news.held.clone();
                    news.held.retain(|name| !current.asked.contains(name));
                    current.asked = held;
                    if config.theme != current.config.theme {
                        let unknown = choose::theme_problems(&config, &facts.paths);
                        if !unknown.is_empty() {
                            config.theme.clone_from(&current.config.theme);
                        }
                        news.problems.extend(unknown.iter().map(not_applied));
                    }
                    news.changed = settings::changed(&current.config, &config);
                    // A problem that was there at the start was shown then.
                    if news.change.is_none() {
                        news.problems.extend(problems.iter().map(ToString::to_string));
                    }
                    is_new = true;
                    current.config = config;
                }
                Err(problem) => news.problems.push(not_applied(&problem)),
            }
        }
        Err(problem) if current.text.is_some() => {
            current.text = None;
            news.problems.push(not_applied(&problem));
        }
        Ok(_) | Err(_) => {}
    }
    if !is_new && news == ConfigNews::default() {
        return None;
    }
    let live = is_new.then(|| {
        news.setup = Some(Box::new(setup_of(facts, &current.found, &current.config, &current.themes)));
        live_of(facts, &current.config, current.themes.clone(), current.revision)
    });
    Some(Reloaded { live, news })
}

/// The message for a file that cannot be read.
fn not_applied(problem: &Problem) -> String {
    let fix = "the former settings stay until it is corrected".to_owned();
    Problem { fix, ..problem.clone() }.to_string()
}

#[cfg(test)]
mod tests;
