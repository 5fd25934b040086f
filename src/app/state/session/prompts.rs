//! The prompt of the running turn, and prompts that are not sent yet, except for the queue.

use std::time::Instant;

use crate::model::{ContentBlock, mentions};

/// Maximum number of listed files that are remembered.
const MOST_LISTED: usize = 200;

/// The state of prompts apart from the queue.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct PromptState {
    /// Call number and text of the prompt whose response ends the turn.
    running: Option<(u64, String)>,
    /// The sent prompt, and the number of its bytes that the agent has echoed.
    echo: Option<(String, usize)>,
    /// A prompt that was not processed and is resent, without a new item, once the session is open: after a sign-in, or
    /// because the agent had lost the session.
    unsent: Option<String>,
    /// Whether the failed prompt waits for the user to choose what is sent before it.
    is_held: bool,
    /// Whether the queue is sent as soon as the session is open.
    sends_when_ready: bool,
    /// Whether the running turn's prompt was already sent to a session that the agent had lost.
    is_retry: bool,
    /// The prompt whose files are being read before it is sent.
    preparing: Option<Preparing>,
    /// Whether the first prompt of the queue is sent when the cancelled turn ends.
    sends_now: bool,
    /// Number of prompts at the end of the queue that wait for the user, also when the running turn ends: an earlier turn
    /// was cancelled or failed.
    held: usize,
    /// The queued prompt that is being edited in the composer.
    editing: Option<QueueEdit>,
    /// The queued prompt that is being added to the running turn.
    steering: Option<Steering>,
    /// The paths of files that were listed when they were mentioned, latest last.
    listed: Vec<String>,
    /// Until when a prompt that calls a template waits for the agent's commands, and whether one does.
    commands_until: Option<Instant>,
    waits_for_commands: bool,
}

/// A queued prompt that was sent to be added to the running turn.
#[derive(Debug, Clone, PartialEq)]
struct Steering {
    /// The number of the call.
    number: u64,
    text: String,
    /// The prompt as it was sent.
    blocks: Vec<ContentBlock>,
}

/// A queued prompt that is being edited in the composer. It stays in the queue, and is not sent meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueEdit {
    /// Its index when the edit began; see [`super::Session::edited_prompt`].
    pub position: usize,
    /// Its text before the edit.
    pub text: String,
    /// The draft before the edit.
    pub draft: String,
}

/// A prompt whose files are being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preparing {
    pub text: String,
    /// Whether it is new in the transcript.
    pub shows_item: bool,
    /// Whether it is added to the running turn. Then it is still in the queue.
    pub is_steer: bool,
}

impl PromptState {
    /// A prompt was sent with the call of this number. `echo` is the part that the agent may send back.
    pub(in crate::app) fn begin(&mut self, number: u64, text: String, echo: String) {
        self.running = Some((number, text));
        self.expect_echo(echo);
        self.is_held = false;
    }

    /// A listed file was mentioned.
    pub(in crate::app) fn mentioned(&mut self, path: &str) {
        self.listed.retain(|known| known != path);
        if self.listed.len() == MOST_LISTED {
            self.listed.remove(0);
        }
        self.listed.push(path.to_owned());
    }

    /// The mentions of listed files in a text that was put into the draft.
    pub(in crate::app) fn note_mentions(&mut self, text: &str) {
        for (_, mention) in mentions(text) {
            self.mentioned(&mention.path);
        }
    }

    /// The paths of files that were listed when they were mentioned.
    pub(in crate::app) fn listed(&self) -> &[String] {
        &self.listed
    }

    /// Forgets listed files that do not exist, after the user was told.
    pub(in crate::app) fn forget_listed(&mut self, paths: &[String]) {
        self.listed.retain(|known| !paths.contains(known));
    }

    /// Sets how long prompts wait for the agent's list of commands; `None`: they do not wait.
    pub(in crate::app) fn expect_commands_until(&mut self, until: Option<Instant>) {
        self.commands_until = until;
    }

    /// The time until which prompts wait for the agent's list of commands.
    pub(in crate::app) fn commands_until(&self) -> Option<Instant> {
        self.commands_until
    }

    /// Whether a prompt waits for the agent's commands.
    pub(in crate::app) fn waits_for_commands(&self) -> bool {
        self.waits_for_commands
    }

    pub(in crate::app) fn wait_for_commands(&mut self) {
        self.waits_for_commands = true;
    }

    /// Clears and returns [`Self::waits_for_commands`].
    pub(in crate::app) fn stop_waiting_for_commands(&mut self) -> bool {
        std::mem::take(&mut self.waits_for_commands)
    }

    /// Whether the files of a prompt are being read.
    pub fn is_preparing(&self) -> bool {
        self.preparing.is_some()
    }

    pub(in crate::app) fn prepare(&mut self, preparing: Preparing) {
        self.preparing = Some(preparing);
    }

    pub(in crate::app) fn take_preparing(&mut self) -> Option<Preparing> {
        self.preparing.take()
    }

    /// The text of the running turn's prompt.
    pub(in crate::app) fn running(&self) -> Option<&str> {
        self.running.as_ref().map(|(_, text)| text.as_str())
    }

    /// The text of the running turn's prompt, if its call has this number.
    pub(in crate::app) fn running_as(&self, number: u64) -> Option<&str> {
        self.running().filter(|_| self.running.as_ref().is_some_and(|(open, _)| *open == number))
    }

    /// The turn has ended. Returns its prompt.
    pub(in crate::app) fn end(&mut self) -> Option<String> {
        self.echo = None;
        self.running.take().map(|(_, text)| text)
    }

    /// The agent may send this text back as a message of the user.
    pub(in crate::app) fn expect_echo(&mut self, text: String) {
        self.echo = Some((text, 0));
    }

    pub(in crate::app) fn stop_echo(&mut self) {
        self.echo = None;
    }

    /// Removes the echo of the prompt from a user message; `None`: nothing remains. Text that continues exactly the
    /// sent prompt is dropped; other text is returned with what was held back.
    pub(in crate::app) fn strip_echo(&mut self, text: String) -> Option<String> {
        let Some((sent, matched)) = &mut self.echo else {
            return Some(text);
        };
        let rest = sent.get(*matched..).unwrap_or_default();
        if rest.starts_with(text.as_str()) {
            *matched += text.len();
            return None;
        }
        // An echo may end with additional white space.
        if let Some(tail) = text.strip_prefix(rest)
            && tail.trim().is_empty()
        {
            *matched = sent.len();
            return None;
        }
        let is_complete = rest.is_empty();
        let held_back = sent.get(..*matched).unwrap_or_default();
        let shown = if is_complete { text } else { format!("{held_back}{text}") };
        self.echo = None;
        Some(shown)
    }

    /// The prompt that is resent once the session is open.
    pub fn unsent(&self) -> Option<&str> {
        self.unsent.as_deref()
    }

    pub(in crate::app) fn set_unsent(&mut self, text: Option<String>) {
        self.unsent = text;
    }

    pub(in crate::app) fn take_unsent(&mut self) -> Option<String> {
        self.unsent.take()
    }

    /// Whether the failed prompt waits for the user to choose what is sent before it.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    pub(in crate::app) fn hold(&mut self) {
        self.is_held = true;
    }

    /// Clears and returns [`Self::is_held`].
    pub(in crate::app) fn release(&mut self) -> bool {
        std::mem::take(&mut self.is_held)
    }

    /// Whether the queue is sent as soon as the session is open.
    pub(in crate::app) fn sends_when_ready(&self) -> bool {
        self.sends_when_ready
    }

    pub(in crate::app) fn send_when_ready(&mut self, is_sending: bool) {
        self.sends_when_ready = is_sending;
    }

    pub(in crate::app) fn take_send_when_ready(&mut self) -> bool {
        std::mem::take(&mut self.sends_when_ready)
    }

    /// The first prompt of the queue is sent when the cancelled turn ends.
    pub(in crate::app) fn send_now(&mut self) {
        self.sends_now = true;
    }

    /// Number of prompts at the end of the queue that are on hold, also when the running turn ends.
    pub fn held(&self) -> usize {
        self.held
    }

    pub(in crate::app) fn set_held(&mut self, held: usize) {
        self.held = held;
    }

    /// The queued prompt that is being edited.
    pub fn editing(&self) -> Option<&QueueEdit> {
        self.editing.as_ref()
    }

    pub(in crate::app) fn edit(&mut self, edit: QueueEdit) {
        self.editing = Some(edit);
    }

    pub(in crate::app) fn take_edit(&mut self) -> Option<QueueEdit> {
        self.editing.take()
    }

    /// The queued prompt that is being added to the running turn.
    pub fn steering(&self) -> Option<&str> {
        let preparing = self.preparing.as_ref().filter(|preparing| preparing.is_steer);
        self.steering.as_ref().map(|it| &it.text).or(preparing.map(|it| &it.text)).map(String::as_str)
    }

    pub(in crate::app) fn steer(&mut self, number: u64, text: String, blocks: Vec<ContentBlock>) {
        self.steering = Some(Steering { number, text, blocks });
    }

    /// The text and blocks of the prompt that the call with this number was to add to the turn.
    pub(in crate::app) fn take_steering(&mut self, number: u64) -> Option<(String, Vec<ContentBlock>)> {
        self.steering.take_if(|open| open.number == number).map(|open| (open.text, open.blocks))
    }

    pub(in crate::app) fn stop_steering(&mut self) {
        self.steering = None;
    }

    /// Clears and returns whether the first prompt of the queue is sent when the cancelled turn ends.
    pub(in crate::app) fn take_send_now(&mut self) -> bool {
        std::mem::take(&mut self.sends_now)
    }

    /// The prompt is resent to a reopened session. Returns whether it was already resent before.
    pub(in crate::app) fn retry(&mut self) -> bool {
        std::mem::replace(&mut self.is_retry, true)
    }

    /// A prompt was answered successfully.
    pub(in crate::app) fn succeed(&mut self) {
        self.is_retry = false;
    }
}
