//! An HTTP server whose responses are written by the test.

use std::collections::HashMap;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::HANG;

/// A server; each request waits until the test responds.
pub struct Server {
    port: u16,
    requests: mpsc::UnboundedReceiver<Exchange>,
    listening: tokio::task::JoinHandle<()>,
}

/// A request that is open.
pub struct Exchange {
    pub method: String,
    pub target: String,
    pub headers: HashMap<String, String>,
    pub body: String,
    pub stream: TcpStream,
}

/// An event stream that is open.
pub struct Events {
    stream: TcpStream,
}

impl Server {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = mpsc::unbounded_channel();
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let sender = sender.clone();
                // One request per connection: every response closes its socket.
                tokio::spawn(async move {
                    if let Some(exchange) = read(stream).await {
                        let _ = sender.send(exchange);
                    }
                });
            }
        });
        Self { port, requests, listening }
    }

    /// Closes the port and returns it.
    pub async fn close(&mut self) -> u16 {
        self.listening.abort();
        let _ = (&mut self.listening).await;
        self.port
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn socket_url(&self, path: &str) -> String {
        format!("ws://127.0.0.1:{}{path}", self.port)
    }

    pub async fn next(&mut self) -> Exchange {
        timeout(HANG, self.requests.recv()).await.expect("timed out").expect("the server runs")
    }

    /// The next request, which must have this method and target.
    pub async fn expect(&mut self, method: &str, target: &str) -> Exchange {
        let exchange = self.next().await;
        assert_eq!(
            (exchange.method.as_str(), exchange.target.as_str()),
            (method, target),
            "{}",
            exchange.body
        );
        exchange
    }
}

/// Reads the next request on a socket.
pub async fn read(mut stream: TcpStream) -> Option<Exchange> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    assert!(!headers.contains_key("transfer-encoding"), "some servers do not support chunked requests");
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = bytes[head_end + 4..].to_vec();
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(body).unwrap();
    Some(Exchange { method, target, headers, body, stream })
}

impl Exchange {
    /// Whether the body contains a text.
    pub fn says(&self, text: &str) -> bool {
        self.body.contains(text)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Responds and closes the connection.
    pub async fn answer(self, status: u16, headers: &[(&str, &str)], body: &str) {
        let mut stream = self.stream;
        let length = body.len().to_string();
        let mut all = vec![("connection", "close"), ("content-length", &length)];
        all.extend_from_slice(headers);
        let _ = stream.write_all(format!("{}{body}", head(status, &all)).as_bytes()).await;
        let _ = stream.shutdown().await;
    }

    pub async fn json(self, body: &str) {
        self.answer(200, &[("content-type", "application/json")], body).await;
    }

    /// Responds with an event stream.
    pub async fn events(self) -> Events {
        self.events_with(&[]).await
    }

    pub async fn events_with(self, headers: &[(&str, &str)]) -> Events {
        let mut stream = self.stream;
        let mut all = vec![("connection", "close"), ("content-type", "text/event-stream; charset=utf-8")];
        all.extend_from_slice(headers);
        stream.write_all(head(200, &all).as_bytes()).await.unwrap();
        Events { stream }
    }
}

fn head(status: u16, headers: &[(&str, &str)]) -> String {
    let lines: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status} Status\r\n{}\r\n", lines.concat())
}

impl Events {
    pub async fn say(&mut self, message: &str) {
        self.raw(&format!("data: {message}\n\n")).await;
    }

    /// Sends raw bytes.
    pub async fn raw(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Ends the stream regularly.
    pub async fn end(mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Waits until the client has closed the connection.
    pub async fn gone(mut self) {
        let mut rest = Vec::new();
        let _ = timeout(HANG, self.stream.read_to_end(&mut rest)).await.expect("timed out");
    }
}
