//! The user's prompts from their submission to the end of their turns. Each is in one state.
//!
//! `lifecycle::turn` and `lifecycle::steer` send them. Invariants: a prompt leaves the outbox only when its turn is over,
//! when it was added to a turn, or when the user removes it or has it back; in the queue, prompts on hold are behind the
//! others; the queue waits behind a prompt that is to be resent.

use std::time::Instant;

use crate::model::{ContentBlock, PromptId};

/// The prompts of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outbox {
    /// The queue is those in the queue, in this order.
    prompts: Vec<Prompt>,
    last_id: u64,
    commands: CommandList,
}

/// A prompt of the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    pub id: PromptId,
    pub text: String,
    pub state: PromptState,
    /// Whether it is in the transcript because it was sent before: then it gets no new item.
    pub is_resent: bool,
    /// Whether it was already resent to a session that the agent had lost.
    pub is_reopened: bool,
}

/// Where a prompt is on its way to the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum PromptState {
    Queued(Release, Handling),
    /// The files that it refers to are being read.
    Preparing,
    /// Sent with the call of this number, whose response ends the turn.
    Running(u64),
    /// It was not processed, and is resent as soon as the session is open.
    Unsent,
    /// It was not processed, and waits for the user to choose what is sent before it.
    Undecided,
    /// Its turn failed; the user can resend it.
    Failed {
        /// Whether the agent may have received it, because only the response was lost: then it may run twice.
        may_have_arrived: bool,
    },
}

/// When a queued prompt is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// At the end of the running turn, also if the agent ends it as cancelled or the prompt failed.
    Next,
    /// As soon as the session can take it, and those before it were sent or resent.
    InOrder,
    /// When the user lets the queue continue.
    OnHold,
}

/// What is being done with a queued prompt.
#[derive(Debug, Clone, PartialEq)]
pub enum Handling {
    None,
    /// It is being edited in the composer, and not sent meanwhile.
    Editing {
        /// The draft before the edit.
        draft: String,
    },
    /// The files that it refers to are being read, to add it to the running turn.
    PreparingSteer,
    /// It was sent to be added to the running turn.
    Steering {
        number: u64,
        blocks: Vec<ContentBlock>,
    },
}

/// Whether prompts wait for the agent's list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum CommandList {
    #[default]
    Known,
    /// It is expected until then.
    Expected(Instant),
    /// A prompt waits for it until then.
    Awaited(Instant),
}

impl Prompt {
    fn is_queued(&self) -> bool {
        matches!(self.state, PromptState::Queued(..))
    }

    /// Whether it waits for the user to let the queue continue.
    pub(in crate::core) fn is_on_hold(&self) -> bool {
        matches!(self.state, PromptState::Queued(Release::OnHold, _))
    }

    /// Whether it is sent at the end of the running turn, however that ends.
    pub(in crate::core) fn is_next(&self) -> bool {
        matches!(self.state, PromptState::Queued(Release::Next, _))
    }

    pub fn is_edited(&self) -> bool {
        matches!(self.state, PromptState::Queued(_, Handling::Editing { .. }))
    }

    /// Whether it is being added to the running turn.
    pub fn is_steering(&self) -> bool {
        matches!(self.state, PromptState::Queued(_, Handling::PreparingSteer | Handling::Steering { .. }))
    }

    /// Whether it failed and the agent may have received it.
    pub fn may_have_arrived(&self) -> bool {
        self.state == PromptState::Failed { may_have_arrived: true }
    }

    fn release(&mut self, to: Release) {
        if let PromptState::Queued(release, _) = &mut self.state {
            *release = to;
        }
    }
}

impl Outbox {
    /// The prompts in the queue, the next one first.
    pub fn queue(&self) -> impl DoubleEndedIterator<Item = &Prompt> + Clone {
        self.prompts.iter().filter(|prompt| prompt.is_queued())
    }

    pub fn queue_len(&self) -> usize {
        self.queue().count()
    }

    pub fn queued(&self, position: usize) -> Option<&Prompt> {
        self.queue().nth(position)
    }

    pub fn position(&self, id: PromptId) -> Option<usize> {
        self.queue().position(|prompt| prompt.id == id)
    }

    /// Whether the session has no prompt in any state.
    pub fn is_empty(&self) -> bool {
        self.prompts.is_empty()
    }

    /// The texts of the prompts that are not in the transcript, in order. `edited`: what is in the composer, in place of
    /// the prompt that is edited there.
    pub(in crate::core) fn texts<'a>(&'a self, edited: &'a String) -> impl Iterator<Item = &'a String> {
        let is_typed = |prompt: &&Prompt| !prompt.is_resent && prompt.state == PromptState::Preparing;
        let text = move |prompt: &'a Prompt| if prompt.is_edited() { edited } else { &prompt.text };
        let texts = self.prompts.iter().filter(is_typed).chain(self.queue()).map(text);
        texts.filter(|text| !text.is_empty())
    }

    /// The draft that is restored after the edit of a queued prompt, if there is one.
    pub(in crate::core) fn draft_before_edit(&self) -> Option<&String> {
        self.edited().and_then(|prompt| match &prompt.state {
            PromptState::Queued(_, Handling::Editing { draft }) => Some(draft),
            _ => None,
        })
    }

    #[cfg(test)]
    pub fn has_text(&self, text: &str) -> bool {
        self.prompts.iter().any(|prompt| prompt.text.contains(text))
    }

    /// Whether a queued prompt waits for the user: it is on hold, or behind a prompt that only the user can resend.
    pub fn is_waiting(&self, prompt: &Prompt) -> bool {
        match self.failed().map(|prompt| &prompt.state) {
            None => prompt.is_on_hold(),
            Some(PromptState::Undecided) => true,
            Some(_) => !prompt.is_next(),
        }
    }

    /// Number of queued prompts that wait for the user. They are the last ones.
    pub fn held(&self) -> usize {
        self.queue().filter(|prompt| self.is_waiting(prompt)).count()
    }

    /// Number of queued prompts that do not wait for the user. They are the first ones.
    pub fn free(&self) -> usize {
        self.queue_len() - self.held()
    }

    /// The prompt that was queued last: those on hold are older.
    pub(crate) fn last(&self) -> Option<&Prompt> {
        self.queue().rfind(|prompt| !prompt.is_on_hold()).or_else(|| self.queue().next_back())
    }

    /// The prompt that is sent next: one that was not processed, otherwise the first of the queue, unless it waits for
    /// the user, is edited, or is being added to the running turn.
    pub(crate) fn next(&self) -> Option<&Prompt> {
        let is_ready = |prompt: &&Prompt| {
            matches!(prompt.state, PromptState::Queued(_, Handling::None)) && !self.is_waiting(prompt)
        };
        // The response of the agent tells whether the steered one is still to be sent.
        let first = self.queue().next().filter(is_ready).filter(|_| self.steered().is_none());
        self.unsent().or(first)
    }

    pub(crate) fn get(&self, id: PromptId) -> Option<&Prompt> {
        self.prompts.iter().find(|prompt| prompt.id == id)
    }

    fn get_mut(&mut self, id: PromptId) -> Option<&mut Prompt> {
        self.prompts.iter_mut().find(|prompt| prompt.id == id)
    }

    fn find(&self, is_it: impl Fn(&PromptState) -> bool) -> Option<&Prompt> {
        self.prompts.iter().find(|prompt| is_it(&prompt.state))
    }

    fn added(&mut self, text: String, release: Release) -> Prompt {
        self.last_id += 1;
        let (id, state) = (PromptId(self.last_id), PromptState::Queued(release, Handling::None));
        Prompt { id, text, state, is_resent: false, is_reopened: false }
    }

    /// The place in [`Self::prompts`] of the first queued prompt that is on hold, or the end.
    fn first_held(&self) -> usize {
        self.prompts.iter().position(Prompt::is_on_hold).unwrap_or(self.prompts.len())
    }

    /// Queues a prompt before those that are on hold.
    pub(crate) fn enqueue(&mut self, text: String) -> PromptId {
        let prompt = self.added(text, Release::InOrder);
        let (id, at) = (prompt.id, self.first_held());
        self.prompts.insert(at, prompt);
        id
    }

    /// Queues a prompt behind all others, on hold.
    pub(in crate::core) fn enqueue_on_hold(&mut self, text: String) -> PromptId {
        let prompt = self.added(text, Release::OnHold);
        let id = prompt.id;
        self.prompts.push(prompt);
        id
    }

    pub(in crate::core) fn adopt(&mut self, prompts: Vec<Prompt>) {
        for prompt in prompts {
            let PromptState::Queued(release, _) = prompt.state else { continue };
            match release {
                Release::OnHold => self.enqueue_on_hold(prompt.text),
                Release::Next | Release::InOrder => self.enqueue(prompt.text),
            };
        }
    }

    pub(crate) fn take_queue(&mut self) -> Vec<Prompt> {
        self.prompts.extract_if(.., |prompt| prompt.is_queued()).collect()
    }

    /// Removes the queued prompts that are not on hold.
    pub(in crate::core) fn take_free(&mut self) -> Vec<Prompt> {
        self.prompts.extract_if(.., |prompt| prompt.is_queued() && !prompt.is_on_hold()).collect()
    }

    /// Returns the prompt to the front of the queue, on hold. If it is sent again, it counts as a new prompt.
    pub(in crate::core) fn give_back(&mut self, id: PromptId) {
        self.hold();
        self.put_first(id, Release::OnHold);
        if let Some(prompt) = self.get_mut(id) {
            prompt.is_resent = false;
        }
    }

    pub(crate) fn remove(&mut self, id: PromptId) -> Option<Prompt> {
        let at = self.prompts.iter().position(|prompt| prompt.id == id)?;
        Some(self.prompts.remove(at))
    }

    /// Moves a prompt to the front of the queue, but after prompts with [`Release::Next`].
    pub(in crate::core) fn put_first(&mut self, id: PromptId, release: Release) {
        let Some(mut prompt) = self.remove(id) else { return };
        match &mut prompt.state {
            PromptState::Queued(former, _) => *former = release,
            state => *state = PromptState::Queued(release, Handling::None),
        }
        let next = self.prompts.iter().rposition(Prompt::is_next).map_or(0, |last| last + 1);
        let at = if release == Release::Next { 0 } else { next };
        self.prompts.insert(at, prompt);
    }

    /// Swaps two queued prompts. Their [`Release`] values keep their positions.
    pub(crate) fn exchange(&mut self, first: usize, second: usize) {
        let (Some(a), Some(b)) = (self.queued(first).map(|it| it.id), self.queued(second).map(|it| it.id))
        else {
            return;
        };
        let at = |id| self.prompts.iter().position(|prompt| prompt.id == id);
        let (Some(a), Some(b)) = (at(a), at(b)) else { return };
        self.prompts.swap(a, b);
        let release = |prompt: &Prompt| match prompt.state {
            PromptState::Queued(release, _) => release,
            _ => Release::InOrder,
        };
        let (of_a, of_b) = (release(&self.prompts[a]), release(&self.prompts[b]));
        self.prompts[a].release(of_b);
        self.prompts[b].release(of_a);
    }

    /// Puts all queued prompts on hold.
    pub(crate) fn hold(&mut self) {
        self.prompts.iter_mut().for_each(|prompt| prompt.release(Release::OnHold));
    }

    /// Puts all queued prompts on hold, except those with [`Release::Next`].
    pub(in crate::core) fn hold_others(&mut self) {
        self.prompts.iter_mut().filter(|it| !it.is_next()).for_each(|it| it.release(Release::OnHold));
    }

    pub(in crate::core) fn release(&mut self) {
        self.prompts.iter_mut().filter(|it| it.is_on_hold()).for_each(|it| it.release(Release::InOrder));
    }

    /// Changes [`Release::Next`] to [`Release::InOrder`].
    pub(in crate::core) fn stop_next(&mut self) {
        self.prompts.iter_mut().filter(|it| it.is_next()).for_each(|it| it.release(Release::InOrder));
    }

    /// Drops the prompt that only the user can resend.
    pub(in crate::core) fn drop_failed(&mut self) {
        self.prompts.retain(|prompt| !is_over(&prompt.state));
    }

    pub fn edited(&self) -> Option<&Prompt> {
        self.prompts.iter().find(|prompt| prompt.is_edited())
    }

    /// Begins the edit of a queued prompt. `draft` is restored after it.
    pub(crate) fn edit(&mut self, id: PromptId, draft: String) {
        if let Some(PromptState::Queued(_, handling)) = self.get_mut(id).map(|prompt| &mut prompt.state) {
            *handling = Handling::Editing { draft };
        }
    }

    /// Ends the edit. Returns the prompt and the draft before the edit.
    pub(crate) fn end_edit(&mut self) -> Option<(PromptId, String)> {
        let prompt = self.prompts.iter_mut().find(|prompt| prompt.is_edited())?;
        let PromptState::Queued(_, handling) = &mut prompt.state else { return None };
        match std::mem::replace(handling, Handling::None) {
            Handling::Editing { draft } => Some((prompt.id, draft)),
            _ => None,
        }
    }

    pub(crate) fn set_text(&mut self, id: PromptId, text: String) {
        if let Some(prompt) = self.get_mut(id) {
            prompt.text = text;
        }
    }

    /// The queued prompt that is being added to the running turn.
    pub fn steered(&self) -> Option<&Prompt> {
        self.prompts.iter().find(|prompt| prompt.is_steering())
    }

    /// The queued prompt is being added to the running turn, or not any more.
    pub(in crate::core) fn set_handling(&mut self, id: PromptId, to: Handling) {
        if let Some(PromptState::Queued(_, handling)) = self.get_mut(id).map(|prompt| &mut prompt.state) {
            *handling = to;
        }
    }

    /// The response to the call with this number is there: returns the prompt that it was to add to the turn, and its
    /// blocks. It is an ordinary prompt of the queue again.
    pub(in crate::core) fn end_steering(&mut self, number: u64) -> Option<(PromptId, Vec<ContentBlock>)> {
        self.prompts.iter_mut().find_map(|prompt| match &mut prompt.state {
            PromptState::Queued(_, handling @ Handling::Steering { .. }) => {
                let Handling::Steering { number: open, blocks } = handling else { return None };
                let blocks = (*open == number).then(|| std::mem::take(blocks))?;
                *handling = Handling::None;
                Some((prompt.id, blocks))
            }
            _ => None,
        })
    }

    /// The connection has ended. If the prompt was already sent, the agent may have received it, so the queue is put on
    /// hold.
    pub(in crate::core) fn stop_steering(&mut self) {
        let Some(steered) = self.steered() else { return };
        let (id, is_sent) =
            (steered.id, !matches!(steered.state, PromptState::Queued(_, Handling::PreparingSteer)));
        self.set_handling(id, Handling::None);
        if is_sent {
            self.hold();
        }
    }

    /// Whether the files of a prompt are being read.
    pub fn is_preparing(&self) -> bool {
        let is_it = |state: &PromptState| {
            matches!(state, PromptState::Preparing | PromptState::Queued(_, Handling::PreparingSteer))
        };
        self.find(is_it).is_some()
    }

    /// A prompt whose files are being read returns to the queue.
    pub(in crate::core) fn stop_preparing(&mut self) {
        if let Some(id) = self.find(|state| *state == PromptState::Preparing).map(|prompt| prompt.id) {
            self.put_first(id, Release::InOrder);
        }
    }

    pub(crate) fn set_state(&mut self, id: PromptId, state: PromptState) {
        if let Some(prompt) = self.get_mut(id) {
            prompt.state = state;
        }
    }

    pub(in crate::core) fn set_reopened(&mut self, id: PromptId) {
        if let Some(prompt) = self.get_mut(id) {
            prompt.is_reopened = true;
        }
    }

    /// The prompt was sent. One whose turn failed before can no longer be resent.
    pub(in crate::core) fn sent(&mut self, id: PromptId, number: u64) {
        self.drop_failed();
        self.set_state(id, PromptState::Running(number));
    }

    pub fn running(&self) -> Option<&Prompt> {
        self.find(|state| matches!(state, PromptState::Running(_)))
    }

    /// The prompt of the running turn, if its call has this number.
    pub(in crate::core) fn running_as(&self, number: u64) -> Option<&Prompt> {
        self.find(|state| *state == PromptState::Running(number))
    }

    /// The turn of the prompt is over. Returns its text. It stays in the outbox in the given state, if any.
    pub(in crate::core) fn end(&mut self, state: Option<PromptState>) -> Option<String> {
        let id = self.running()?.id;
        let mut prompt = self.remove(id)?;
        let text = prompt.text.clone();
        if let Some(state) = state {
            self.drop_failed();
            (prompt.state, prompt.is_resent) = (state, true);
            self.prompts.insert(0, prompt);
        }
        Some(text)
    }

    /// The prompt that is resent once the session is open.
    pub fn unsent(&self) -> Option<&Prompt> {
        self.find(|state| *state == PromptState::Unsent)
    }

    /// The prompt that the user can resend, or decide about.
    pub fn failed(&self) -> Option<&Prompt> {
        self.find(is_over)
    }

    /// The prompt that waits for the user to choose what is sent before it.
    pub fn undecided(&self) -> Option<&Prompt> {
        self.find(|state| *state == PromptState::Undecided)
    }

    /// Sets until when prompts wait for the agent's list of commands; `None`: they do not wait.
    pub(in crate::core) fn expect_commands_until(&mut self, until: Option<Instant>) {
        self.commands = until.map_or(CommandList::Known, CommandList::Expected);
    }

    /// The time until which prompts wait for the agent's list of commands.
    pub(crate) fn commands_until(&self) -> Option<Instant> {
        match self.commands {
            CommandList::Known => None,
            CommandList::Expected(until) | CommandList::Awaited(until) => Some(until),
        }
    }

    /// Whether a prompt waits for the agent's list of commands.
    pub(in crate::core) fn waits_for_commands(&self) -> bool {
        matches!(self.commands, CommandList::Awaited(_))
    }

    pub(in crate::core) fn wait_for_commands(&mut self) {
        if let CommandList::Expected(until) = self.commands {
            self.commands = CommandList::Awaited(until);
        }
    }

    /// The prompt that waits for the agent's list of commands is looked at again.
    pub(in crate::core) fn stop_waiting_for_commands(&mut self) {
        if let CommandList::Awaited(until) = self.commands {
            self.commands = CommandList::Expected(until);
        }
    }
}

/// Whether the prompt waits only for the user to resend it.
fn is_over(state: &PromptState) -> bool {
    matches!(state, PromptState::Failed { .. } | PromptState::Undecided)
}
