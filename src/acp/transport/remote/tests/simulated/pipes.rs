//! A WebSocket and the standard input and output of a process, as a simulated network carries them: bytes are split
//! anywhere, delayed, and cut off. A server may also stop to read and to write.

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::time::{Duration, Instant, sleep, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{Carrier, Simulation, lost};
use crate::acp::transport::memory::{self, Memory};
use crate::acp::transport::remote::http_error::HttpError;

/// Less than the messages of a turn, so that writers have to wait.
const PIPE_BYTES: usize = 256;

/// More than two pings.
const MIN_DEAF: Duration = Duration::from_secs(70);

impl Simulation {
    /// The client's end of a WebSocket.
    pub fn open_socket(&self) -> Result<DuplexStream, HttpError> {
        if Instant::now() < self.world().down_until {
            return Err(lost(true));
        }
        let generation = self.connect();
        let (client, network) = tokio::io::duplex(PIPE_BYTES);
        let (other_side, server) = tokio::io::duplex(PIPE_BYTES);
        self.carry(network, other_side, generation);
        let this = self.clone();
        tokio::spawn(async move {
            let socket = WebSocketStream::from_raw_socket(server, Role::Server, None).await;
            let (mut sink, mut stream) = socket.split();
            let writer = this.clone();
            tokio::spawn(async move {
                let mut position = 0;
                while let Some(event) = writer.event_after(&mut position, generation).await {
                    if sink.send(Message::Text(event.into())).await.is_err() {
                        return;
                    }
                }
                let _ = sink.close().await;
            });
            while let Some(Ok(message)) = stream.next().await {
                if let Message::Text(text) = message {
                    this.handle(&text, generation);
                }
            }
        });
        Ok(client)
    }

    /// The transport to a process.
    pub(super) fn start_process(&self) -> Memory {
        let generation = self.connect();
        let (transport, network) = memory::pair(PIPE_BYTES);
        let (other_side, process) = tokio::io::duplex(PIPE_BYTES);
        self.carry(network, other_side, generation);
        let (input, mut output) = tokio::io::split(process);
        let writer = self.clone();
        tokio::spawn(async move {
            let mut position = 0;
            while let Some(event) = writer.event_after(&mut position, generation).await {
                let noise = ["", "", "", "\n", "warning: a log line\n"][writer.below(5)];
                if output.write_all(format!("{noise}{event}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
            let _ = output.shutdown().await;
        });
        let reader = self.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(input).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                reader.handle(&line, generation);
            }
        });
        transport
    }

    /// Carries bytes in both directions, until it is cut.
    fn carry(&self, client: DuplexStream, server: DuplexStream, generation: u64) {
        let (cut_at, deaf_at) = {
            let mut world = self.world();
            let (now, time) = (Instant::now(), world.rng.millis(120_000));
            match world.rng.below(6) {
                0 => (Some(now + time), None),
                // Only a server that has answered a ping during a request is taken for lost when it does not. In
                // version 2, requests are short.
                1 if world.carrier == Some(Carrier::WebSocket) && world.version == 1 => {
                    (None, Some(now + MIN_DEAF + time))
                }
                _ => (None, None),
            }
        };
        let (client_out, client_in) = tokio::io::split(client);
        let (server_out, server_in) = tokio::io::split(server);
        let this = self.clone();
        tokio::spawn(async move {
            let up = this.copy(client_out, server_in, deaf_at);
            let down = this.copy(server_out, client_in, deaf_at);
            let cut = async {
                match cut_at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = async { tokio::join!(up, down); } => {}
                () = cut => if this.world().generation == generation {
                    this.restart();
                },
            }
        });
    }

    /// Copies bytes in parts of any size, with delays.
    async fn copy(
        &self,
        mut from: ReadHalf<DuplexStream>,
        mut to: WriteHalf<DuplexStream>,
        deaf_at: Option<Instant>,
    ) {
        let mut part = [0; PIPE_BYTES];
        loop {
            let max = 1 + self.below(PIPE_BYTES);
            let Ok(count @ 1..) = from.read(&mut part[..max]).await else { break };
            if deaf_at.is_some_and(|at| Instant::now() >= at) {
                std::future::pending::<()>().await;
            }
            let is_slow = self.below(40) == 0;
            sleep(Duration::from_millis(self.below(if is_slow { 500 } else { 3 }) as u64)).await;
            if to.write_all(&part[..count]).await.is_err() {
                break;
            }
        }
        let _ = to.shutdown().await;
    }

    fn below(&self, end: usize) -> usize {
        usize::try_from(self.world().rng.below(end as u64)).unwrap()
    }

    /// The next event for the only stream; `None` after a restart of the server.
    async fn event_after(&self, position: &mut usize, generation: u64) -> Option<String> {
        loop {
            let changed = self.changed.notified();
            {
                let world = self.world();
                if world.generation != generation {
                    return None;
                }
                if let Some(event) = world.logs.get("").and_then(|log| log.get(*position)) {
                    *position += 1;
                    return Some(event.clone());
                }
            }
            changed.await;
        }
    }

    /// The server handles a message.
    fn handle(&self, text: &str, generation: u64) {
        if self.world().generation != generation {
            return;
        }
        let message: serde_json::Value = serde_json::from_str(text).unwrap();
        if message["method"] == "initialize" {
            return self.emit("", self.initialized(message["id"].as_u64().unwrap()));
        }
        self.serve_message(&message, None);
    }
}
