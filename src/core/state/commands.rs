//! Slash commands: which command, or template, a name refers to.
//!
//! Without a prefix, a command of the agent comes first, then a command of parlor, a template of the user, and a template
//! of the project. The prefixes `parlor:`, `user:` and `project:` select the others.

use super::lookup::{has_models, has_modes, mode_option, model_option};
use crate::core::{Session, State};
use crate::model::{Action, TemplateCall, TemplateSource, is_template_name};

pub const OWN_PREFIX: &str = "parlor";

/// A slash command of parlor.
#[derive(Debug)]
pub struct OwnCommand {
    pub name: &'static str,
    /// Other names, which are offered only when typed.
    pub aliases: &'static [&'static str],
    pub action: Action,
    /// Placeholder for the filter of the list that it opens; `None` if it opens none.
    pub hint: Option<&'static str>,
    pub filter: &'static str,
}

const fn own(name: &'static str, aliases: &'static [&'static str], action: Action) -> OwnCommand {
    OwnCommand { name, aliases, action, hint: None, filter: "" }
}

const fn list(
    name: &'static str,
    aliases: &'static [&'static str],
    action: Action,
    hint: &'static str,
) -> OwnCommand {
    OwnCommand { name, aliases, action, hint: Some(hint), filter: "" }
}

/// The commands of parlor, in the order of display.
pub const OWN_COMMANDS: &[OwnCommand] = &[
    own("help", &["keys"], Action::OpenHelp),
    list("model", &["models"], Action::OpenModels, "[name]"),
    list("mode", &["modes"], Action::OpenModes, "[name]"),
    list("agent", &["agents"], Action::OpenAgents, "[name]"),
    list("config", &["options"], Action::OpenOptions, "[option]"),
    list("settings", &["preferences"], Action::OpenSettings, "[filter]"),
    own("keybindings", &["keymap"], Action::OpenBindings),
    OwnCommand { filter: "ui.editing", ..own("vim", &[], Action::OpenSettings) },
    own("editor", &[], Action::EditDraft),
    own("clear", &["new", "reset"], Action::NewSession),
    list("resume", &["sessions"], Action::OpenSessions, "[filter]"),
    own("continue", &[], Action::ContinueLast),
    list("history", &["prompts"], Action::OpenHistory, "[filter]"),
    own("diff", &["changes"], Action::OpenChanges),
    own("copy", &[], Action::CopyReply),
    own("export", &["share"], Action::ExportSession),
    own("rename", &["title"], Action::RenameSession),
    own("fork", &["branch"], Action::ForkSession),
    list("worktree", &[], Action::NewWorktree, "[name]"),
    own("worktrees", &[], Action::OpenWorktrees),
    own("handover", &["handoff"], Action::HandOver),
    own("search", &["find"], Action::OpenSearch),
    own("outline", &["timeline"], Action::OpenOutline),
    own("tasks", &["bashes", "jobs"], Action::OpenTasks),
    own("queue", &[], Action::OpenQueue),
    own("undo", &["revert"], Action::UndoTurn),
    own("redo", &[], Action::RedoTurn),
    own("review-changes", &["hunks"], Action::ReviewChanges),
    own("review-held", &["held"], Action::ReviewHeld),
    own("rewind", &["checkpoint"], Action::Rewind),
    own("inbox", &[], Action::OpenAttention),
    own("cancel", &["stop"], Action::CancelTurn),
    own("retry", &[], Action::SendAgain),
    own("restart", &["reconnect"], Action::RestartAgent),
    own("approve-all", &["yolo"], Action::ToggleApproveAll),
    own("permissions", &["allowed"], Action::OpenGrants),
    own("status", &["usage", "cost", "context"], Action::OpenConnection),
    own("login", &["auth"], Action::OpenSignIn),
    own("logout", &[], Action::SignOut),
    list("theme", &["themes"], Action::OpenThemes, "[name]"),
    own("thinking", &[], Action::ToggleThoughts),
    own("todos", &["plan"], Action::TogglePlan),
    own("debug", &["log"], Action::OpenLog),
    own("quit", &["exit", "q"], Action::Quit),
];

/// Splits a prompt into the name of a command, without the slash, and its arguments.
pub fn split(prompt: &str) -> Option<(&str, &str)> {
    let line = prompt.strip_prefix('/')?;
    Some(line.split_once(char::is_whitespace).unwrap_or((line, "")))
}

/// The command of parlor with this name or alias, without the prefix.
pub fn own_command(name: &str) -> Option<&'static OwnCommand> {
    OWN_COMMANDS.iter().find(|command| command.name == name || command.aliases.contains(&name))
}

/// The command of parlor that a name refers to in a session, with or without the prefix.
pub fn own_of(session: &Session, name: &str) -> Option<&'static OwnCommand> {
    let prefixed = name.strip_prefix(OWN_PREFIX).and_then(|rest| rest.strip_prefix(':'));
    match prefixed.and_then(own_command) {
        Some(command) => Some(command),
        None => own_command(name).filter(|_| !is_of_agent(session, name)),
    }
}

/// Whether a name is that of a command of the agent. Where the agent offers a list of modes, models or options, the list
/// of parlor has the name: the command of one agent only prints how it is used.
pub fn is_of_agent(session: &Session, name: &str) -> bool {
    session.commands.iter().any(|command| command.name == name) && !has_list(session, name)
}

fn has_list(session: &Session, name: &str) -> bool {
    match own_command(name).map(|command| command.action) {
        Some(Action::OpenModels) => has_models(session) || model_option(session).is_some(),
        Some(Action::OpenModes) => has_modes(session) || mode_option(session).is_some(),
        Some(Action::OpenOptions) => !session.options.is_empty(),
        _ => false,
    }
}

/// Whether a name without a prefix refers to a command, so that a template of this name needs its prefix.
pub fn is_command(state: &State, session: &Session, name: &str) -> bool {
    is_of_agent(session, name) || (!state.setup.is_plain && own_command(name).is_some())
}

/// The template that a prompt may call. Whether it exists is decided when its file is read.
pub fn template_call(state: &State, session: &Session, prompt: &str) -> Option<TemplateCall> {
    let (full, arguments) = split(prompt.trim_end())?;
    let source_of = |prefix: &str| {
        [TemplateSource::User, TemplateSource::Project].into_iter().find(|source| source.prefix() == prefix)
    };
    let prefixed = full.split_once(':').and_then(|(prefix, rest)| Some((source_of(prefix)?, rest)));
    let list = &session.templates;
    let may_be = |name: &str, source| is_template_name(name) && (!list.is_loaded || list.has(name, source));
    let call = |name: &str, source| TemplateCall {
        name: name.to_owned(),
        source,
        arguments: arguments.to_owned(),
        project: project_of(state, session),
    };
    if let Some((source, name)) = prefixed
        && may_be(name, Some(source))
        && (list.is_loaded || !is_of_agent(session, full))
    {
        return Some(call(name, Some(source)));
    }
    (may_be(full, None) && !is_command(state, session, full)).then(|| call(full, None))
}

/// The folder whose templates a session may use. Files of another machine cannot be read.
pub fn project_of(state: &State, session: &Session) -> Option<std::path::PathBuf> {
    let cwd = &session.workspace.cwd;
    let is_off = state.setup.without_templates.as_ref() == Some(cwd);
    (session.workspace.remote.is_none() && !is_off).then(|| cwd.clone())
}
