//! WebSocket servers: with one agent for each connection, and one that reads nothing during turns.

use std::sync::atomic::Ordering;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{Agent, Request, ServerState, Shape, is_request, message_of};

pub(super) async fn serve(server: &ServerState, request: Request, mut stream: TcpStream) {
    let Some(key) = request.headers.get("sec-websocket-key") else { return };
    let key = derive_accept_key(key.as_bytes());
    let accept_all = format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {key}\r\n\r\n"
    );
    if stream.write_all(accept_all.as_bytes()).await.is_err() {
        return;
    }
    server.connections.fetch_add(1, Ordering::SeqCst);
    let agent = Agent::start(&server.command);
    let mut said = agent.said.lock().await;
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
    let is_deaf = server.shape == Shape::DeafSocket;
    // The id of the running prompt.
    let mut turn: Option<Value> = None;
    loop {
        tokio::select! {
            line = said.recv() => {
                // The end of the agent closes the connection without a close frame.
                let Some(line) = line else { return };
                let message = message_of(&line);
                if message.get("method").is_none() && Some(&message["id"]) == turn.as_ref() {
                    turn = None;
                }
                if socket.send(Message::text(line)).await.is_err() {
                    return;
                }
            }
            heard = socket.next(), if turn.is_none() => match heard {
                Some(Ok(Message::Text(text))) => {
                    let message = message_of(&text);
                    if is_deaf && is_request(&message) && message["method"] == "session/prompt" {
                        turn = Some(message["id"].clone());
                    }
                    agent.tell(&text).await;
                }
                Some(Ok(Message::Close(_))) => {
                    server.client_closes.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            }
        }
    }
}
