//! Executes the effects of the app: agents, services, disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc::UnboundedSender;

use super::attachments::{edit_pasted, open_attachment};
use crate::acp::gate::Gate;
use crate::acp::tap::{Direction, Tap};
use crate::acp::{self, Commands, ConnectOptions};
use crate::core::Effect;
use crate::host::attachments::Attachments;
use crate::host::browser;
use crate::host::clipboard::{self, Contents, Surroundings};
use crate::host::editor;
use crate::host::file_finder::FileFinder;
use crate::host::folder;
use crate::host::fs::Files;
use crate::host::git;
use crate::host::grants;
use crate::host::locate::Locator;
use crate::host::login;
use crate::host::notification;
use crate::host::prompt;
use crate::host::registry::{Registry, Stop};
use crate::host::snapshots::worker::SnapshotWorker;
use crate::host::spill::Spill;
use crate::host::templates::TemplateFolders;
use crate::host::terminals::Terminals;
use crate::host::trust;
use crate::host::worktrees::Worktrees;
use crate::model::{
    AgentSpec, Attachment, AttachmentLabel, ConnId, CopyJob, FileQuery, FolderServers, Location,
    ServiceEvent, SessionAttachJob, SessionKey, StoreJob,
};
use crate::store::{Backlog, Export, Recorder, Store, Transcript};
use crate::ui::ViewState;
use crate::ui::log::{LogDirection, LogLine};

use super::agents::Agents;

/// Maximum number of lines in the log view.
const LOG_LINES: usize = 4_000;

/// The lines that the log view contains: the last sequence number, and the connections.
pub type LogStand = (u64, Option<Vec<u64>>);

/// Reads the MCP servers of a folder; the error describes an invalid file. May block.
pub type FindServers = Arc<dyn Fn(&Path) -> Result<Option<FolderServers>, String> + Send + Sync>;

/// Executes effects.
pub struct EffectRunner {
    /// Whether parlor is quitting; the loop ends once all agents have ended.
    pub is_leaving: bool,
    /// The command of the user's editor; `None`: `vi`.
    pub editor: Option<String>,
    /// Reads the MCP servers of a folder.
    pub find_servers: FindServers,
    pub home: Option<PathBuf>,
    /// The data folder; `None`: there is none.
    data_dir: Option<PathBuf>,
    pub(super) worktrees: Option<Worktrees>,
    pub templates: TemplateFolders,
    /// The texts and images that prompts refer to.
    attachments: Attachments,
    /// Delays updates of agents until the next frame.
    pub gate: Gate,
    conns: BTreeMap<ConnId, Commands>,
    /// Agents that are restarted after a delay.
    delayed: Vec<Delayed>,
    files: Files,
    /// Finds files to mention in the folder of the last query.
    finder: Option<FileFinder>,
    locator: Locator,
    snapshots: SnapshotWorker,
    terminals: Terminals,
    pub(super) store: Option<Store>,
    spill: Arc<Spill>,
    recorder: Option<Recorder>,
    tap: Tap,
    log_dir: PathBuf,
    /// Exports a saved session to a file.
    pub export: Export,
    /// Formats a saved session as Markdown.
    pub transcript: Transcript,
    pub clipboard: Surroundings,
    /// The registry of agents; `None`: there is none.
    pub registry: Option<Registry>,
    pub(super) installation: Stop,
    services: UnboundedSender<ServiceEvent>,
}

struct Delayed {
    at: Instant,
    conn: ConnId,
    spec: AgentSpec,
    cwd: PathBuf,
}

impl EffectRunner {
    /// Creates a runner without agents.
    pub fn new(
        services: UnboundedSender<ServiceEvent>,
        store: Option<Store>,
        tap: Tap,
        log_dir: PathBuf,
    ) -> Self {
        let recorder = store.clone().map(|store| {
            let mut recorder = Recorder::new(store, services.clone());
            recorder.rescue_folders.insert(0, log_dir.clone());
            recorder
        });
        let files = Files::new();
        Self {
            is_leaving: false,
            editor: None,
            find_servers: Arc::new(|_| Ok(None)),
            home: None,
            data_dir: None,
            worktrees: None,
            templates: TemplateFolders::default(),
            attachments: Attachments::default(),
            gate: Gate::default(),
            conns: BTreeMap::new(),
            delayed: Vec::new(),
            files: files.clone(),
            finder: None,
            locator: Locator::new(services.clone()),
            snapshots: SnapshotWorker::new(services.clone(), files),
            terminals: Terminals::new(services.clone()),
            recorder,
            store,
            spill: Arc::default(),
            tap,
            log_dir,
            registry: None,
            installation: Stop::default(),
            export: |_, _, _, _| Err("Export is not available here.".to_owned()),
            transcript: |_, _| Err("Transcripts are not available here.".to_owned()),
            clipboard: Surroundings::default(),
            services,
        }
    }

    /// Saves grants and attachments in this folder.
    pub fn use_data_dir(&mut self, data_dir: PathBuf) {
        self.attachments = Attachments::new(Some(&data_dir));
        self.worktrees = Some(Worktrees::beside(&data_dir, self.home.clone()));
        self.data_dir = Some(data_dir);
    }

    /// Executes one effect. Never blocks.
    pub fn carry_out(&mut self, effect: Effect, agents: &mut Agents, now: Instant) {
        match effect {
            Effect::Connect { conn, spec, cwd, delay } if delay > Duration::ZERO => {
                self.delayed.push(Delayed { at: now + delay, conn, spec, cwd });
            }
            Effect::Connect { conn, spec, cwd, .. } => self.connect(conn, spec, cwd, agents),
            Effect::Send(conn, command) => {
                if let Some(commands) = self.conns.get(&conn) {
                    commands.send(command);
                }
            }
            Effect::RetryNow(conn) => _ = self.conns.get(&conn).map(Commands::retry_now),
            Effect::Disconnect { conn, force } => {
                self.delayed.retain(|delayed| delayed.conn != conn);
                if let Some(commands) = self.conns.get(&conn) {
                    commands.stop(force);
                }
            }
            Effect::File(job) => {
                let accepted = self.files.accept(job);
                self.work(move || Some(accepted.serve()));
            }
            Effect::StopFiles { session, keeps_writes } => self.files.stop(session, keeps_writes),
            Effect::Held(job) => self.work(self.files.held_work(job)),
            Effect::Snapshot(job) => self.snapshots.run(job, self.data_dir.as_deref(), self.home.clone()),
            Effect::LocateDiffs(job) => self.locator.look(job),
            Effect::Terminal(job) => self.terminals.run(job),
            Effect::FindFiles(query) => self.find_files(query),
            Effect::PreparePrompt(job) => {
                let (home, templates) = (self.home.clone(), self.templates.clone());
                let (session, id) = (job.session, job.prompt);
                let attachments = self.attachments.clone();
                self.work(move || {
                    let prepared = match templates.resolve(job) {
                        Ok(job) => Box::new(prompt::prepare(&job, home.as_deref(), &attachments)),
                        Err(refused) => refused,
                    };
                    Some(ServiceEvent::PromptPrepared(session, id, prepared))
                });
            }
            Effect::AttachSession(job) => self.attach_session(job),
            Effect::SaveAttachment(attachment) => self.save_attachment(attachment),
            Effect::ReadDropped(job) => {
                let attachments = self.attachments.clone();
                self.work(move || {
                    let read = prompt::read_dropped(&job, &attachments)?;
                    Some(ServiceEvent::DropRead(Box::new(job), read))
                });
            }
            // The loop has released the terminal to the editor.
            Effect::EditDraft { session, text, folder } => self.edit_draft(session, text, folder),
            Effect::OpenAttachment { session, draft, label, folder } if label.kind.is_text() => {
                self.edit_pasted(session, draft, label, folder);
            }
            Effect::OpenAttachment { label, .. } => {
                let attachments = self.attachments.clone();
                self.work(move || open_attachment(&attachments, &label).err().map(ServiceEvent::Problem));
            }
            Effect::SavePrompt { folder, text } => {
                self.keep(move |store| store.append_prompt(&folder, &text));
            }
            Effect::Keep { session, notes } => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.keep(session, notes);
                }
            }
            Effect::FindServers { folder } => {
                let find = Arc::clone(&self.find_servers);
                self.work(move || {
                    let found = find(&folder);
                    Some(ServiceEvent::ServersFound(folder, found))
                });
            }
            Effect::KeepTrust { location, allows, about } => {
                self.work(move || trust::keep(&location, allows, &about).err().map(ServiceEvent::Problem));
            }
            Effect::LoadTemplates { session, project, answers, allows } => {
                let locations = self.templates.clone();
                self.work(move || {
                    let saved = answers.iter().map(|(location, about)| trust::keep(location, allows, about));
                    let problems: Vec<String> = saved.filter_map(Result::err).take(1).collect();
                    let mut list = locations.list(project.as_deref());
                    list.problems.extend(problems);
                    Some(ServiceEvent::TemplatesFound(session, list))
                });
            }
            Effect::LoadGrants => self.on_data(|data| {
                let grants = grants::list(data).into_iter().map(|(_, grant)| grant).collect();
                Some(ServiceEvent::Grants(grants))
            }),
            Effect::SaveGrant(grant) => {
                self.on_data(move |data| grants::save(data, &grant).err().map(ServiceEvent::Problem));
            }
            Effect::RemoveGrant(grant) => {
                self.on_data(move |data| grants::remove(data, &grant).err().map(ServiceEvent::Problem));
            }
            Effect::SaveAgentChoice { folder, agent } => {
                self.keep(move |store| store.save_agent(&folder, &agent));
            }
            Effect::SaveDraftAgent { agent, is_draft } => {
                self.keep(move |store| store.save_draft_agent(&agent, is_draft));
            }
            Effect::ListFolders => self.list_folders(),
            Effect::FindFolder { text, base } => {
                let home = self.home.clone();
                self.work(move || {
                    let found = folder::find(&text, &base, home.as_deref());
                    Some(ServiceEvent::FolderFound { text, found })
                });
            }
            Effect::SaveBodies { bodies, read } => {
                let spill = Arc::clone(&self.spill);
                self.on_data(move |data| {
                    Some(ServiceEvent::BodiesSaved(spill.save(data, &bodies, &read).is_ok()))
                });
            }
            Effect::Store(job) => self.ask_store(job),
            Effect::MatchRules(job) => self.match_rules(job),
            Effect::LoadHistory { session, folder } => self.load_history(session, &folder),
            Effect::ReadGit { session, folder } => {
                self.work(move || Some(ServiceEvent::Git(session, git::read(&folder))));
            }
            Effect::ReadProtected(job) => self.work(move || Some(crate::host::sandbox::read_protected(job))),
            Effect::Worktree { session, folder, job } => self.run_worktree_job(session, folder, job),
            Effect::ReadRegistry { refresh } => self.read_registry(refresh),
            Effect::InstallAgent { agent, scripts } => self.install_agent(agent, scripts),
            Effect::CancelInstall => self.installation.set(),
            Effect::NoteStart { id, has_worked } => self.note_start(id, has_worked),
            Effect::OpenUrl(url) => self.work(move || {
                browser::open(&url).err().map(|error| {
                    ServiceEvent::Problem(format!(
                        "Could not open a browser: {error}. The URL is in the transcript."
                    ))
                })
            }),
            Effect::Copy(CopyJob { what, content }) => {
                let around = self.clipboard;
                self.work(move || {
                    let outcome = clipboard::copy(&super::clipboard::text_to_copy(content, now), around);
                    Some(ServiceEvent::Copied { what, outcome })
                });
            }
            Effect::Quit => {
                self.is_leaving = true;
                self.delayed.clear();
                for commands in self.conns.values() {
                    commands.stop(false);
                }
            }
            // Executed by the loop, because they need the screen or the clock.
            Effect::View(_)
            | Effect::Timer(..)
            | Effect::StopTimer(_)
            | Effect::SetTheme(_)
            | Effect::Configure(_)
            | Effect::CopySelection
            | Effect::QuoteSelection(_)
            | Effect::ReadClipboard { .. }
            | Effect::Announce { .. }
            | Effect::CaptureMouse(_)
            | Effect::RunLogin { .. }
            | Effect::OpenFile { .. }
            | Effect::Suspend => {}
        }
    }

    /// Reads a clipboard for a draft: an image is attached, a text is inserted. `before`: the draft before the cursor;
    /// `None`: a command needs the text.
    pub fn paste(
        &self,
        session: SessionKey,
        before: Option<String>,
        read: impl FnOnce(bool) -> Result<Contents, String> + Send + 'static,
    ) {
        let attachments = self.attachments.clone();
        self.work(move || {
            let is_register = before.is_none();
            let (label, before) = match (read(!is_register), before) {
                (Ok(Contents::Pixels(size, pixels)), Some(before)) => {
                    (prompt::attach_pixels(size, pixels, &attachments), before)
                }
                (Ok(Contents::Encoded(bytes)), Some(before)) => {
                    (prompt::attach_encoded(&bytes, &attachments), before)
                }
                (Ok(Contents::Pixels(..) | Contents::Encoded(_)), None) => return None,
                (Ok(Contents::Text(text)), _) => {
                    return Some(ServiceEvent::ClipboardRead { session, is_register, text: Ok(text) });
                }
                (Err(why), _) => {
                    return Some(ServiceEvent::ClipboardRead { session, is_register, text: Err(why) });
                }
            };
            Some(ServiceEvent::ImagePasted { session, before, label })
        });
    }

    /// Runs an agent's sign-in command in the terminal, which was released before.
    pub fn login(&self, conn: ConnId, spec: AgentSpec, env: Vec<(String, String)>) {
        self.work(move || Some(ServiceEvent::LoginDone(conn, login::run(&spec, &env))));
    }

    /// The command of an editor (`own`, or the configured one) for a location; an error is reported to the user.
    pub fn editor_for(&self, location: &Location, own: Option<&str>) -> Option<editor::Launch> {
        let launch = editor::Launch::of(own.or(self.editor.as_deref()), location);
        launch
            .map_err(|why| {
                let _ = self.services.send(ServiceEvent::Problem(format!("Could not open the file: {why}.")));
            })
            .ok()
    }

    /// Runs the editor; the terminal was released before, unless the editor has a window. `is_remote`: the file may be on
    /// another machine.
    pub fn edit(&self, launch: editor::Launch, path: PathBuf, folder: PathBuf, is_remote: bool) {
        self.work(move || {
            let done = if is_remote || path.exists() {
                launch.run(&folder)
            } else {
                Err(format!("File not found: {}.", path.display()))
            };
            if launch.is_windowed {
                done.err().map(ServiceEvent::Problem)
            } else {
                Some(ServiceEvent::EditorDone(done))
            }
        });
    }

    /// Edits a draft in the user's editor; the terminal was released before, unless the editor has a window.
    fn edit_draft(&self, session: SessionKey, before: String, folder: PathBuf) {
        let template = self.editor.clone();
        self.work(move || {
            let edited = editor::edit_text(template.as_deref(), &before, &folder);
            Some(ServiceEvent::DraftEdited { session, before, edited })
        });
    }

    /// Edits a pasted text of a draft in the user's editor, like [`Self::edit_draft`].
    fn edit_pasted(&self, session: SessionKey, before: String, label: AttachmentLabel, folder: PathBuf) {
        let (template, attachments) = (self.editor.clone(), self.attachments.clone());
        self.work(move || {
            let edited = edit_pasted(template.as_deref(), &before, &label, &folder, &attachments);
            Some(ServiceEvent::DraftEdited { session, before, edited })
        });
    }

    /// When the next delayed agent is started.
    pub fn next_connect(&self) -> Option<Instant> {
        self.delayed.iter().map(|delayed| delayed.at).min()
    }

    /// Starts the agents whose delay has passed.
    pub fn connect_due(&mut self, agents: &mut Agents, now: Instant) {
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.delayed).into_iter().partition(|delayed| delayed.at <= now);
        self.delayed = later;
        for Delayed { conn, spec, cwd, .. } in due {
            self.connect(conn, spec, cwd, agents);
        }
    }

    pub fn forget(&mut self, conn: ConnId) {
        self.conns.remove(&conn);
        self.files.forget(conn);
    }

    pub fn force_all(&mut self) {
        for commands in self.conns.values() {
            commands.stop(true);
        }
    }

    /// Loads the previously used folders that still exist.
    fn list_folders(&self) {
        let Some(store) = self.store.clone() else { return };
        self.work(move || {
            let folders = store.folders().into_iter().filter(|folder| folder.is_dir()).collect();
            Some(ServiceEvent::Folders(folders))
        });
    }

    fn load_history(&self, session: SessionKey, folder: &Path) {
        let Some(store) = self.store.clone() else { return };
        let folder = folder.to_owned();
        self.work(move || Some(ServiceEvent::History(session, store.history(&folder))));
    }

    /// Executes a job of the store on another thread; a list is sent in pages.
    fn ask_store(&self, job: StoreJob) {
        let services = self.services.clone();
        let Some(store) = self.store.clone() else {
            let message = "Not saved: the data folder cannot be used. `parlor config` shows its path.";
            let _ = services.send(ServiceEvent::Problem(message.to_owned()));
            return;
        };
        store.announce(&job);
        let export = self.export;
        tokio::task::spawn_blocking(move || {
            store.serve(job, export, &mut |news| {
                let _ = services.send(ServiceEvent::Store(Box::new(news)));
            });
            store.report_problems(&mut |event| {
                let _ = services.send(event);
            });
        });
    }

    /// Updates the lines of the log view for these connections (`None`: all) if they changed.
    pub fn refresh_log(&self, view: &mut ViewState, last: &mut LogStand, conns: Option<Vec<u64>>) {
        let stand = (self.tap.version(), conns);
        if *last == stand {
            return;
        }
        let lines = self.tap.snapshot(stand.1.as_deref(), LOG_LINES).into_iter().map(|line| LogLine {
            time_ms: u64::try_from(line.at.as_millis()).unwrap_or(u64::MAX),
            direction: match line.direction {
                Direction::ToAgent => LogDirection::ToAgent,
                Direction::FromAgent => LogDirection::FromAgent,
                Direction::Stderr => LogDirection::Stderr,
            },
            text: line.text,
        });
        view.set_log(lines.collect());
        *last = stand;
    }

    /// Reports received output to the terminals, so that they can send more.
    pub fn note_taken(&self, event: &ServiceEvent) {
        if let ServiceEvent::TerminalOutput { bytes, .. } = event {
            self.terminals.taken(bytes.len());
        }
    }

    /// Starts the recorder, which first closes sessions of dead parlors, in the background.
    pub fn start_recording(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.start();
        }
        let attachments = self.attachments.clone();
        let Some(store) = self.store.clone() else { return };
        self.work(move || {
            // Without the list, all files are kept.
            attachments.sweep(&store.unsent_prompts().ok()?, SystemTime::now());
            None
        });
    }

    /// Stops all commands, flushes the log, and saves pending changes. Returns an error if something could not be
    /// saved.
    pub fn shut_down(&mut self) -> Option<String> {
        self.terminals.shut_down();
        self.tap.flush();
        let lost = self.recorder.as_mut().and_then(Recorder::finish);
        if let Some(worktrees) = &self.worktrees {
            worktrees.unlock_all();
        }
        lost
    }

    fn connect(&mut self, conn: ConnId, spec: AgentSpec, cwd: PathBuf, agents: &mut Agents) {
        let stderr_log = Some(self.log_dir.join(format!("{}.stderr.log", file_name(&spec.name))));
        let connection = acp::connect(
            ConnectOptions { spec, cwd, tap: self.tap.of_conn(conn.0), stderr_log },
            self.gate.clone(),
        );
        self.conns.insert(conn, connection.commands);
        agents.add(conn, connection.events);
    }

    /// What is not yet written to the store; always empty without one.
    pub(super) fn backlog(&self) -> Backlog {
        self.recorder.as_ref().map(Recorder::backlog).unwrap_or_default()
    }

    pub(super) fn sender(&self) -> UnboundedSender<ServiceEvent> {
        self.services.clone()
    }

    pub(super) fn work(&self, job: impl FnOnce() -> Option<ServiceEvent> + Send + 'static) {
        let services = self.services.clone();
        tokio::task::spawn_blocking(move || {
            if let Some(event) = job() {
                let _ = services.send(event);
            }
        });
    }

    pub fn notify(&self, title: String, text: String) {
        self.work(move || notification::show(&title, &text).err().map(ServiceEvent::Problem));
    }

    fn find_files(&mut self, query: FileQuery) {
        if self.finder.as_ref().is_none_or(|finder| finder.folder() != query.folder) {
            self.finder = FileFinder::new(query.folder.clone(), self.services.clone()).ok();
        }
        let is_sent = self.finder.as_ref().is_some_and(|finder| finder.find(query.clone()));
        if !is_sent {
            // The finder ends after a time without queries.
            self.finder = FileFinder::new(query.folder.clone(), self.services.clone()).ok();
            self.finder.as_ref().map(|finder| finder.find(query));
        }
    }

    fn attach_session(&self, job: SessionAttachJob) {
        let (transcript, attachments) = (self.transcript, self.attachments.clone());
        let store = self.store.clone();
        self.work(move || {
            let store = store.ok_or_else(|| "sessions are not saved.".to_owned());
            let label = store
                .and_then(|store| transcript(&store, &job.uid))
                .and_then(|text| prompt::attach_session(&job.name, text, &attachments))
                .map_err(|why| format!("Could not read the session: {why}"));
            Some(ServiceEvent::SessionAttached(Box::new(job), label))
        });
    }

    fn save_attachment(&self, attachment: Attachment) {
        // The prompt may be sent before the file is written.
        self.attachments.hold(attachment.clone());
        let attachments = self.attachments.clone();
        self.work(move || {
            let failed = attachments.save(&attachment).err()?;
            let message = "The pasted text is available until you quit, but could not be saved";
            Some(ServiceEvent::Problem(format!("{message}: {failed}.")))
        });
    }

    /// Runs a job with the data folder, if there is one.
    fn on_data(&self, job: impl FnOnce(&Path) -> Option<ServiceEvent> + Send + 'static) {
        let Some(data_dir) = self.data_dir.clone() else { return };
        self.work(move || job(&data_dir));
    }

    fn keep<E: std::fmt::Display>(&self, job: impl FnOnce(&Store) -> Result<(), E> + Send + 'static) {
        let Some(store) = self.store.clone() else { return };
        self.work(move || job(&store).err().map(|error| ServiceEvent::Problem(error.to_string())));
    }
}

/// Replaces characters that are not safe in a file name.
fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' }).collect()
}
