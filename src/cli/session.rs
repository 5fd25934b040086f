//! A session that the command line requests.

use std::path::PathBuf;

use super::args::Options;
use super::prompt::FirstSettings;
use super::resume::ResumeRequest;
use crate::config::project::ProjectSettings;
use crate::config::{Config, Paths, Problem};
use crate::model::{AgentSpec, ProjectQuestion};

/// A validated session request of the command line.
#[derive(Debug, Clone)]
pub struct Session {
    /// The folder, absolute, links resolved.
    pub folder: PathBuf,
    /// The agent to start; `None` for that of the resumed session, or for the user's choice.
    pub agent: Option<AgentSpec>,
    /// Whether the agent was named on the command line; it then replaces that of a resumed session.
    pub is_agent_named: bool,
    /// The session to resume.
    pub resume: ResumeRequest,
    /// Whether to offer the folder's last session.
    pub offers_last: bool,
    /// Additional folders.
    pub more_folders: Vec<PathBuf>,
    /// Known agents that are installed, with their display names.
    pub found: Vec<(AgentSpec, String)>,
    /// The demo agent.
    pub demo: AgentSpec,
    /// The first prompt, without piped input.
    pub prompt: Option<String>,
    /// The settings for the first turn.
    pub first_settings: FirstSettings,
    /// The agent to install first, by its id in the registry.
    pub install: Option<String>,
    /// Settings of the project to ask about.
    pub project: Option<ProjectQuestion>,
    /// These settings.
    pub project_settings: Option<ProjectSettings>,
    /// The file of the protocol log.
    pub log_file: Option<PathBuf>,
    /// Whether lines of a pipe or a file answer questions in plain-text mode.
    pub has_answers: bool,
    pub paths: Paths,
    pub config: Config,
    pub problems: Vec<Problem>,
    /// The options of the command line.
    pub options: Options,
}
