//! Tests of actions in dialogs and on the main screen.

mod changes;
mod composer;
mod copy;
mod form;
mod history;
mod install;
mod items;
mod leave;
mod lists;
mod open;
mod pickers;
mod question;
mod requests;
mod rewind;
mod search;
mod sessions;
mod settings;
mod slash;
mod validate;
