//! What agents asked for in saved sessions.

use std::path::PathBuf;
use std::time::Instant;

use jiff::Timestamp;

use super::effects::EffectRunner;
use crate::core::{SavedRequest, SavedRequests};
use crate::model::{
    MATCH_DAYS, MatchJob, RecordedSession, Rule, RuleAction, RuleMatches, Rules, ServiceEvent,
};
use crate::store::{ListFilter, Store, StoreError};
use crate::ui::text::{one_line, truncate};

/// Maximum number of characters of a request in a text.
const MAX_SHOWN: usize = 100;

/// Maximum number of requests that are shown as examples.
const MAX_EXAMPLES: usize = 3;

const DAY_MS: i64 = 86_400_000;

/// What is read of the saved sessions.
#[derive(Debug)]
pub struct Source<'a> {
    pub store: &'a Store,
    /// Only requests since then, in Unix milliseconds.
    pub since_ms: i64,
    pub filter: ListFilter,
    pub home: Option<PathBuf>,
    /// The folders of parlor's own files.
    pub own_folders: Vec<PathBuf>,
}

impl Source<'_> {
    /// Calls a function for each request, session by session, those that were used last first.
    pub fn each(&self, mut call: impl FnMut(&str, &SavedRequests, &SavedRequest)) -> Result<(), StoreError> {
        for row in self.store.list(&self.filter)? {
            let last = self.store.glance(&row.uid)?.events.pop();
            if last.is_none_or(|event| event.at_ms < self.since_ms) {
                continue;
            }
            let (_, head) = self.store.peek(&row.uid)?;
            let (events, _) = self.store.events(&row.uid)?;
            let saved = RecordedSession { events, ..head };
            let places = (self.home.clone(), self.own_folders.clone());
            let found = SavedRequests::of(saved, places, Instant::now());
            for request in found.requests.iter().filter(|request| request.at_ms >= self.since_ms) {
                call(&row.uid, &found, request);
            }
        }
        Ok(())
    }
}

impl EffectRunner {
    pub(super) fn match_rules(&self, job: MatchJob) {
        let store = self.store.clone();
        self.work(move || {
            let store = store.ok_or_else(|| "sessions are not saved.".to_owned());
            let found = store.and_then(|store| matches(&store, &job).map_err(|error| error.to_string()));
            Some(ServiceEvent::RulesMatched(job, found))
        });
    }
}

/// What was asked for, in one line.
pub fn shown(request: &SavedRequest) -> String {
    truncate(&one_line(&request.what.description()), MAX_SHOWN)
}

/// Counts the requests that rules would have allowed.
pub fn matches(store: &Store, job: &MatchJob) -> Result<RuleMatches, StoreError> {
    let source = Source {
        store,
        since_ms: Timestamp::now().as_millisecond() - i64::from(MATCH_DAYS) * DAY_MS,
        filter: ListFilter {
            folder: Some(job.folder.clone()),
            agent: Some(job.agent.clone()),
            with_children: true,
            limit: None,
        },
        home: job.home.clone(),
        own_folders: job.own_folders.clone(),
    };
    let rules = Rules::new(job.rules.iter().filter_map(|rule| Rule::parse(rule).ok()).collect());
    let mut found = RuleMatches::default();
    source.each(|_, session, request| {
        // Such as the one for which the rules were suggested.
        if request.is_undecided() {
            return;
        }
        found.all += 1;
        if session.ruling(request, &rules).is_some_and(|(action, _)| action == RuleAction::Allow) {
            found.allowed += 1;
            let text = shown(request);
            if found.examples.len() < MAX_EXAMPLES && !found.examples.contains(&text) {
                found.examples.push(text);
            }
        }
    })?;
    Ok(found)
}
