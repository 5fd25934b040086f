//! Tests of actions in dialogs and on the main screen.

mod changes;
mod composer;
mod copy;
mod form;
mod grace;
mod history;
mod items;
mod leave;
mod lists;
mod open;
mod pickers;
mod requests;
mod rewind;
mod search;
mod sessions;
mod settings;
mod slash;
mod validate;
