//! Serves an agent with stdio over one of the remote transports, for manual tests:
//!
//! ```sh
//! cargo run --example bridge -- post-sse 8123 my-agent --acp
//! parlor --connect http://127.0.0.1:8123/acp
//! ```

#![allow(clippy::unwrap_used, reason = "a server for manual tests fails by panicking")]

#[path = "../tests/support/bridge.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod bridge;

use std::io::Write as _;

use bridge::{Bridge, Shape};

const USAGE: &str = "usage: bridge (rpc-sse | post | post-sse | named-events | websocket | deaf-websocket | http) PORT COMMAND [ARG…]";

fn main() {
    let mut args = std::env::args_os().skip(1);
    let shape = args.next().and_then(|word| {
        Some(match word.to_str()? {
            "rpc-sse" => Shape::RpcSse,
            "post" => Shape::Post,
            "post-sse" => Shape::PostSse,
            "named-events" => Shape::NamedEvents,
            "websocket" => Shape::Socket,
            "deaf-websocket" => Shape::DeafSocket,
            "http" => Shape::OneStream,
            _ => return None,
        })
    });
    let port = args.next().and_then(|port| port.to_str()?.parse().ok());
    let command: Vec<_> = args.collect();
    let (Some(shape), Some(port), false) = (shape, port, command.is_empty()) else {
        let _ = writeln!(std::io::stderr(), "{USAGE}");
        std::process::exit(2);
    };
    let bridge = Bridge::at(port, shape, command, None);
    let _ = writeln!(std::io::stdout(), "{}", bridge.url());
    loop {
        std::thread::park();
    }
}
