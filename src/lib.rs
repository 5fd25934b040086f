//! parlor: a terminal client for any agent that speaks the Agent Client Protocol.
//!
//! # Code map
//!
//! ```text
//! agent ── bytes ─▶ acp::transport ─▶ acp::frame ─┬─▶ acp::tap (raw, both ways)
//!                                                 └─▶ acp::peer ─▶ acp::codec ─▶ AgentEvent  (batches, wire order)
//! terminal ─ keys, mouse, paste ─▶ ui::input + config::keymap ─▶ Action ──────────▶ │
//! services (files, terminals, git, store), timers, signals ──────────────────────▶ │
//!                                                                                   ▼
//!                                          app::update(&mut State, Event, now) -> Vec<Effect>     pure
//!                                                 │                              │
//!                        ui::draw(&State, &mut ViewState, &Theme, frame)   runtime::effects
//! ```
//!
//! | folder | what it is |
//! |---|---|
//! | `model` | plain data that all share, shaped like ACP v2 |
//! | `program` | starts programs, the only place that does |
//! | `config` | what the user wrote: agents, keys, callbacks; the catalogue of known agents |
//! | `app` | the reducer, in layers: `state`, `session`, `recording`, `lifecycle`, `dialogs` |
//! | `acp` | the wire: transports (pipe, ssh, HTTP, web socket), frames, peer, codec with its dialects and version 2, tap |
//! | `services` | files, terminals, git, clipboard, editor, pictures, the store of sessions |
//! | `ui` | drawing and routing of keys; `plain`: the session in lines |
//! | `runtime` | the loop, effects, the terminal |
//! | `cli` | command line and subcommands |
//! | `demo` | the built-in agent |
//! | `private`, `escape` | leaves that all may use: files that only their owner can read; escaping of invisible characters |
//!
//! # Invariants (`tests/tidy.rs` and reducer tests check them)
//!
//! 1. The wire's structs and `serde_json` appear in `acp` only (besides files of parlor's own, and the demo
//!    agent, which is the other end of the wire).
//! 2. `ratatui` and `crossterm` appear in `ui` and `runtime` only, and for key names in `config::keymap`.
//! 3. Tasks and threads appear in `runtime`, `acp`, `services`, `cli` and `main` only; the highlighter loads its
//!    grammars on a thread of its own.
//! 4. `model` uses nothing of ours, `program` only `model`, `app` and `ui` only what lies below them, `acp` and `services`
//!    only `model` and `program`.
//! 5. `update` is total and pure: no clock, no IO, no channel in `State`.
//! 6. What one agent says reaches `update` in wire order: one channel for all of it.
//! 7. Every request of an agent gets exactly one answer, also on cancel, crash and quit.
//! 8. `State` keeps source text; only `ViewState` keeps rendered lines, and all of it can be thrown away.
//! 9. No byte of an agent reaches the terminal unless it went through `ui::text::sanitize` or vt100; what is printed
//!    without a screen goes through `runtime::print`.
//! 10. No colour is named outside `themes/` and `ui::theme`, no key outside `keymap.toml`.
//! 11. Rest means no frame and no timer.
//! 12. A frame costs what the screen holds, a chunk what the open block holds; neither grows with the transcript.
//! 13. No input takes memory without limit, or more than linear time: queues are `model::Bounded` or bounded channels,
//!     a long text is laid out where it is looked at, nesting has a limit. Signals end parlor also when the loop is busy.
//! 14. Beyond a ceiling `State` holds the end of a transcript only (`app::session::paging`). What went is on the disk, and whatever
//!     happens to an item is kept with its page, so that each page is read by itself.
//! 15. What was recorded of a session is never removed or moved by what an agent replays (`app::session::reconcile`).
//! 16. Programs are started by `program` only, with the party that asked for it. Roots of a session are `UserRoot`s, made only where
//!     the user's own words are read. No message of an agent changes a root, or the program that a sign-in starts.
//! 17. The id of an item is a name that is given once (`app::state::transcript`): places are looked up by it, and never stored.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start what they need"))]

pub mod acp;
pub mod app;
pub mod cli;
pub mod config;
pub mod demo;
pub mod escape;
pub mod model;
pub mod private;
pub mod program;
pub mod runtime;
pub mod services;
pub mod ui;
