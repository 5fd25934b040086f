//! Starts a session in the terminal: collects everything that the runtime needs, then runs it.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};

use crate::acp::tap::Tap;
use crate::config::{self, Config};
use crate::core::{AUTO_THEME, NamedSettings, Setup};
use crate::host::clipboard::Surroundings;
use crate::host::grants;
use crate::host::registry::Registry;
use crate::host::templates::TemplateFolders;
use crate::host::watch::Watched;
use crate::host::worktrees::Worktrees;
use crate::model::{AgentSpec, FolderServers, UserRoot};
use crate::runtime::{self, Launch, attention, pictures};
use crate::store::{Fault, Store};
use crate::ui::text::link;
use crate::ui::theme::{ColorSupport, ThemeSet};

use super::live::{self, Facts};
use super::resume::{self, ResumeRequest};
use super::session::Session;
use super::{prompt, servers, sessions};

/// Runs a session until the user quits.
pub fn run(session: Session) -> anyhow::Result<()> {
    let mut problems: Vec<String> = session.problems.iter().map(ToString::to_string).collect();
    let mut unsaved = None;
    let opened = sessions::open(&session.paths.data_dir).or_else(|error| match error.fault() {
        // The recorder tries again until that parlor is closed.
        Fault::Former(_) => Store::open(&session.paths.data_dir),
        _ => Err(error),
    });
    let store = match opened {
        Ok(store) => Some(store),
        Err(error) => {
            problems.push(format!("Sessions will not be saved: {error}"));
            unsaved = Some("the data folder cannot be used".to_owned());
            None
        }
    };
    // Opens the database on another thread, because it would delay the first frame.
    let draft_agents = store.clone().map(|store| std::thread::spawn(move || store.draft_agents()));
    let tap = Tap::default();
    if let Some(file) = &session.log_file {
        tap.log_to(file).with_context(|| format!("cannot write the log {}", file.display()))?;
    }
    let is_plain = is_plain(&session.config);
    // On the screen, the session is chosen in the list.
    let lists_sessions = session.resume == ResumeRequest::Choose && !is_plain && store.is_some();
    let found = match &store {
        Some(_) if lists_sessions => None,
        Some(store) => resume::find(store, &session.resume, &session.folder).map_err(|error| {
            // A file that was damaged is why nothing was found.
            let reported = store.take_problems();
            if reported.is_empty() { error } else { anyhow::anyhow!("{error}\n{}", reported.join("\n")) }
        })?,
        None if session.resume != ResumeRequest::New => {
            bail!("cannot read the saved sessions: {}", problems.join(" "))
        }
        None => None,
    };
    problems.extend(store.as_ref().and_then(|store| too_large(store, session.config.sessions_warn_mib)));
    problems.extend(store.as_ref().and_then(Store::unsaved_files));
    problems.extend(store.iter().flat_map(Store::take_problems));
    let (themes, theme_problems) = find_themes(&session.paths.theme_dir);
    problems.extend(theme_problems);
    let colors = color_support();
    let facts = Facts {
        paths: session.paths.clone(),
        options: session.options.clone(),
        find: super::choose::find_agents,
        demo: session.demo.clone(),
        project: session.project_settings.clone(),
        colors,
    };
    let mut configured = live::setup_of(&facts, &session.found, &session.config, &themes);
    if is_plain {
        configured.settings.clear();
    }
    let Session {
        mut folder,
        more_folders,
        mut agent,
        is_agent_named,
        offers_last,
        prompt,
        first_settings,
        install,
        found: known_agents,
        project,
        paths,
        config,
        ..
    } = session;
    let worktrees = Worktrees::beside(&paths.data_dir, config::environment("HOME").map(Into::into));
    let worktree_name = facts.options.worktree.as_deref();
    if worktree_name.is_some() && agent.as_ref().is_some_and(AgentSpec::is_elsewhere) {
        bail!("unexpected --worktree: the agent is on another machine; make the worktree there with git");
    }
    let new_worktree = worktree_name.map(|name| worktrees.make(&folder, Some(name)));
    let new_worktree = new_worktree.transpose().map_err(anyhow::Error::msg)?;
    if let Some(made) = &new_worktree {
        folder.clone_from(&made.folder);
    }
    // A resumed session may have another folder.
    let without_templates = (!config.project_templates).then(|| folder.clone());
    let mut reopen = None;
    let (mut folder_offers, mut other_tabs) = (Vec::new(), Vec::new());
    if let Some(found) = found {
        if !is_agent_named {
            let (known, problem) =
                resume::agent_for(&found.saved, &configured.agents, agent, config.callbacks);
            agent = known;
            problems.extend(problem);
        }
        folder = found.folder;
        folder_offers = found.offers;
        other_tabs = found.tabs;
        problems.extend(found.problems);
        reopen = Some(Box::new(found.saved));
    }
    let piped = if is_plain { None } else { prompt::piped()? };
    let first_prompt = prompt::join(prompt, piped);
    // Without a terminal, do not offer the last session.
    let offers_last = reopen.is_none()
        && first_prompt.is_none()
        && !lists_sessions
        && offers_last
        && (!is_plain || std::io::stdin().is_terminal());
    let folder_servers = servers_of(&folder, &paths.data_dir, is_plain, &mut problems);
    let project = project.filter(|question| {
        if is_plain {
            problems.push(format!(
                "The settings of {} are ignored until you allow them. Start parlor without --plain once.",
                question.file.display()
            ));
        }
        !is_plain
    });
    let (_, theme_problems) = themes.load(theme_name(&config.theme, colors), colors);
    problems.extend(theme_problems);
    let does_follow = ThemeSet::default_name(colors) == "dark";
    let setup = Setup {
        install_first: install,
        // The agent of the chosen session is started.
        start_with: agent.filter(|_| is_agent_named || !lists_sessions),
        last_agent: None,
        used_agents: BTreeSet::new(),
        draft_agents: draft_agents.and_then(|thread| thread.join().ok()).unwrap_or_default(),
        folder_servers,
        project: project.map(Box::new),
        without_templates,
        additional_directories: more_folders.into_iter().map(UserRoot::given).collect(),
        problems,
        saves_sessions: store.is_some(),
        is_plain,
        reopen,
        other_tabs,
        lists_sessions,
        folder_offers,
        home: config::environment("HOME").map(|home| real_path(Path::new(&home))),
        worktree_dir: worktrees.dir,
        new_worktree,
        own_folders: own_folders(&paths),
        grants: grants::list(&paths.data_dir).into_iter().map(|(_, grant)| grant).collect(),
        offers_last,
        unsaved,
        first_prompt,
        first_settings: NamedSettings { model: first_settings.model, mode: first_settings.mode },
        export_folder: export_folder().unwrap_or_else(|| folder.clone()),
        folder,
        ..configured
    };
    let launch = Launch {
        setup,
        live: live::live_of(&facts, &config, themes.clone(), 0),
        watched: Watched { file: paths.config_file.clone(), folder: paths.theme_dir.clone() },
        clipboard: Surroundings::judge(config::environment),
        terminal: attention::Terminal::detect(text_of_environment),
        pictures: pictures_here(&config.images, colors),
        has_rich_glyphs: has_rich_glyphs(),
        home: config::environment("HOME").map(Into::into),
        data_dir: paths.data_dir.clone(),
        templates: TemplateFolders { own: paths.prompt_dir.clone(), data_dir: paths.data_dir.clone() },
        theme_for: does_follow.then_some(theme_for),
        registry: Registry::new(&paths.data_dir, &config.registry),
        configure: live::configure(facts, known_agents, config, themes),
        find_servers: {
            let data_dir = paths.data_dir.clone();
            Arc::new(move |folder: &Path| servers::find(folder, &data_dir))
        },
        store,
        export: sessions::export_into,
        transcript: sessions::transcript,
        tap,
        log_dir: paths.log_dir,
        has_answers: session.has_answers,
    };
    if is_plain { runtime::plain::run(launch) } else { runtime::run(launch) }
}

/// The folder for exports, which do not belong into a project: that of downloads, or the home folder.
fn export_folder() -> Option<PathBuf> {
    let user = directories::UserDirs::new()?;
    let home = user.home_dir();
    let downloads = user.download_dir().map_or_else(|| home.join("Downloads"), Path::to_path_buf);
    [downloads, home.to_path_buf()].into_iter().find(|folder| folder.is_dir())
}

/// A warning if the saved sessions exceed the configured size.
fn too_large(store: &Store, max_mib: u64) -> Option<String> {
    let mib = store.size_bytes() >> 20;
    (max_mib > 0 && mib > max_mib).then(|| {
        format!(
            "Saved sessions use {mib} MiB; the configured limit is {max_mib} MiB. `parlor sessions prune \
             --down-to {max_mib}M` deletes the oldest after confirmation."
        )
    })
}

/// The MCP servers of the folder; ignored if approval is needed but not possible.
fn servers_of(
    folder: &Path,
    data_dir: &Path,
    is_plain: bool,
    problems: &mut Vec<String>,
) -> Option<FolderServers> {
    let found = servers::find(folder, data_dir).unwrap_or_else(|problem| {
        problems.push(problem);
        None
    })?;
    if found.answer.is_none() && !found.servers.is_empty() && is_plain && !std::io::stdin().is_terminal() {
        problems.push(format!(
            "The MCP servers of {} are ignored until you approve them. Start parlor in a terminal once.",
            found.file.display()
        ));
        return None;
    }
    Some(found)
}

/// The canonical path, as far as it exists.
fn real_path(path: &Path) -> PathBuf {
    let of_parent = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(of_parent).unwrap_or_else(|| path.to_owned())
}

/// The editor of `VISUAL` or `EDITOR`.
pub(super) fn editor_of_environment() -> Option<String> {
    ["VISUAL", "EDITOR"]
        .into_iter()
        .filter_map(config::environment)
        .filter_map(|command| command.into_string().ok())
        .find(|command| !command.trim().is_empty())
}

/// Detects the terminal's image support from the environment.
fn pictures_here(setting: &str, colors: ColorSupport) -> pictures::Environment {
    let text = |name: &str| config::environment(name).map(|value| value.to_string_lossy().into_owned());
    let is_set = |name: &str| text(name).is_some_and(|value| !value.is_empty());
    let program = if is_set("KONSOLE_VERSION") {
        "Konsole".to_owned()
    } else {
        // ssh forwards only the second variable.
        let own = text("TERM_PROGRAM").filter(|name| !name.is_empty());
        own.or_else(|| text("LC_TERMINAL")).unwrap_or_default()
    };
    pictures::Environment {
        setting: pictures::GraphicsSetting::of(setting),
        is_in_tmux: is_set("TMUX"),
        is_in_screen: is_in_screen(),
        program,
        colors,
        has_rich_glyphs: has_rich_glyphs(),
    }
}

/// Whether the terminal is known to show links.
pub(super) fn shows_links() -> bool {
    link::are_known_to(text_of_environment)
}

fn text_of_environment(name: &str) -> Option<String> {
    config::environment(name).and_then(|value| value.into_string().ok())
}

/// Built-in and user themes, with the problems of the user's files.
pub(super) fn find_themes(theme_dir: &Path) -> (ThemeSet, Vec<String>) {
    let mut set = ThemeSet::built_in();
    let problems = set.add_folder(theme_dir);
    (set, problems)
}

/// The name of the theme; `auto` uses the terminal's background, or dark if it is unknown.
pub(super) fn theme_name(configured: &str, colors: ColorSupport) -> &str {
    if configured != AUTO_THEME {
        return configured;
    }
    // rxvt and others set COLORFGBG to "foreground;background", as indices of the 16 colours.
    let value = config::environment("COLORFGBG").map(|value| value.to_string_lossy().into_owned());
    let background = value.as_deref().and_then(|value| value.rsplit(';').next()?.parse::<u8>().ok());
    match (ThemeSet::default_name(colors), background) {
        ("dark", Some(7 | 15)) => "light",
        (name, _) => name,
    }
}

/// The theme for a background colour, by its perceived brightness.
fn theme_for([red, green, blue]: [u8; 3]) -> String {
    let brightness = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
    if brightness > 127_500 { "light" } else { "dark" }.to_owned()
}

/// Whether parlor runs in GNU screen.
pub(super) fn is_in_screen() -> bool {
    text_of_environment("STY").is_some_and(|session| !session.is_empty())
}

/// The terminal's colour support, from the environment.
pub(super) fn color_support() -> ColorSupport {
    let text = text_of_environment;
    let no_color = text("NO_COLOR").is_some_and(|value| !value.is_empty());
    ColorSupport::detect(no_color, is_in_screen(), text("COLORTERM").as_deref(), text("TERM").as_deref())
}

/// Whether text is printed: as configured, or on a terminal that cannot move its cursor.
pub(super) fn is_plain(config: &Config) -> bool {
    config.plain || config::environment("TERM").is_some_and(|term| term == "dumb")
}

/// Whether the terminal supports non-ASCII symbols: a UTF-8 locale, and not a bare console.
pub(super) fn has_rich_glyphs() -> bool {
    let set = |name: &str| {
        config::environment(name)
            .map(|value| value.to_string_lossy().to_lowercase())
            .filter(|value| !value.is_empty())
    };
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
    let is_bare = set("TERM").is_none_or(|term| term == "linux" || term == "dumb");
    !is_bare && locale.replace('-', "").contains("utf8")
}

/// The folders of parlor's own files.
pub(super) fn own_folders(paths: &config::Paths) -> Vec<PathBuf> {
    paths.own().iter().map(|own| real_path(own)).collect()
}
