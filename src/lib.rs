//! parlor: a terminal client for any agent that speaks the Agent Client Protocol.
//!
//! # Code map
//!
//! ```text
//! agent ── bytes ─▶ acp::transport ─▶ acp::frame ─┬─▶ acp::tap (raw, both ways)
//!                                                 └─▶ acp::peer ─▶ acp::codec ─▶ AgentEvent  (batches, wire order)
//! terminal ─ keys, mouse, paste ─▶ ui::input + config::keymap ─▶ Action ──────────▶ │
//! host (files, terminals, git), store, timers, signals ──────────────────────────▶ │
//!                                                                                   ▼
//!                                           ui::update(&mut App, Event, now) -> Vec<Effect>       pure
//!                                                 │                              │
//!                        ui::draw(&App, &mut ViewState, &Theme, frame)     runtime::effects
//! ```
//!
//! | folder | contents |
//! |---|---|
//! | `model` | plain data that all layers share, shaped like ACP v2 |
//! | `program` | starts programs; no other module does |
//! | `config` | the user's configuration: agents, keys, callbacks; the catalogue of known agents |
//! | `core` | sessions and agents as a reducer, in layers: `state`, `session`, `recording`, `lifecycle` |
//! | `acp` | the protocol: transports (pipe, ssh, HTTP, WebSocket), frames, peer, codec with its dialects and version 2, tap |
//! | `host` | files, terminals, git, clipboard, editor, images; `os`: everything that differs between systems |
//! | `store` | the database of sessions |
//! | `ui` | the front end: dialogs, rendering and key routing; `plain`: the session as lines of text |
//! | `runtime` | the event loop, effects, the terminal |
//! | `cli` | command line and subcommands |
//! | `demo` | the built-in agent |
//! | `escape` | escapes invisible characters |
//! | `lock` | waits for locks, whatever panicked |
//!
//! # Invariants (`tests/tidy.rs` and reducer tests check them)
//!
//! 1. Wire types and `serde_json` appear only in `acp` (except for parlor's own files, and the demo agent,
//!    which implements the other side of the protocol).
//! 2. `ratatui` and `crossterm` appear only in `ui` and `runtime`, and for key names in `config::keymap`.
//! 3. Tasks and threads are started only in `runtime`, `acp`, `host`, `store`, `cli` and `main`; the
//!    highlighter loads its grammars on its own thread.
//! 4. `model` depends on no other module, `host::os` only on `model`, `program` only on these, `core` and `ui` only
//!    on the layers below them, `acp` and `host` only on `model`, `program` and `host::os`, `store` also on `host`.
//! 5. `update` is total and pure: no clock, no IO, no channel in `State`.
//! 6. All messages of an agent reach `update` in wire order, through one channel.
//! 7. Every request of an agent gets exactly one response, also on cancel, crash and quit.
//! 8. `State` holds source text; only `ViewState` holds rendered lines, and it can be rebuilt at any time.
//! 9. No byte of an agent reaches the terminal without passing `ui::text::sanitize` or vt100; output outside
//!    the screen goes through `runtime::print`.
//! 10. No colour is named outside `themes/` and `ui::theme`, no key outside `keymap.toml`.
//! 11. When idle, no frame is drawn and no timer is set.
//! 12. The cost of a frame depends on the screen size, and the cost of a chunk on the open block; neither
//!     grows with the transcript.
//! 13. No input uses unlimited memory or more than linear time: queues are `model::Bounded` or bounded
//!     channels, long texts are laid out only where they are visible, and nesting is limited. Signals end
//!     parlor even if the event loop is busy.
//! 14. The record of a session is a log of what parlor saw, in that order. Rows are only added (`store`).
//! 15. A replay of an agent never changes a record: what certainly comes after it is added, and nothing twice
//!     (`core::lifecycle::spool`).
//! 16. Only `program` starts programs, with the party that requested it. Roots of a session are `UserRoot`s,
//!     constructed only where the user's own input is read. No message of an agent changes a root, or the
//!     program of a sign-in.
//! 17. The id of an item is never reused (`core::state::transcript`): positions are looked up by id, and never
//!     stored.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start what they need"))]

pub mod acp;
pub mod cli;
pub mod config;
pub mod core;
pub mod demo;
pub mod escape;
pub mod guard;
pub mod host;
#[cfg(test)]
mod lives;
mod lock;
pub mod model;
pub mod program;
#[cfg(test)]
mod random;
mod redact;
pub mod runtime;
pub mod store;
pub mod tls;
pub mod ui;
