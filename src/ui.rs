//! The screen: the one reader of the state.
//!
//! Duty: turns state into cells, and keys and clicks into wishes.
//! Not its duty: deciding anything (`app`), raw mode (`runtime`).
//! Invariants: the cost of a frame depends on the screen, not on the transcript; all of `ViewState` can be
//! thrown away; nothing from an agent reaches a cell unless it went through `text::sanitize` or vt100.

pub mod text;
pub mod theme;
