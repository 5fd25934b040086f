//! Serves an agent with stdin and stdout over the transports of other servers.
//!
//! A local server in the form of one agent's own ([`Shape`]), with a process for each connection. When the process
//! ends, the connection is closed like by that server. Messages are forwarded unchanged.

use std::collections::HashMap;
use std::ffi::OsString;
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as Lock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{Mutex, mpsc, oneshot};

#[path = "bridge/socket.rs"]
mod socket;

/// The transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// elephant.ai: `POST /acp/rpc` and `GET /acp/sse`, both with a client id.
    RpcSse,
    /// `ZeptoClaw`: the response in the POST, as JSON, or for a prompt as an event stream.
    Post,
    /// `OpenOxide`: POST and an event stream at one URL.
    PostSse,
    /// Like `PostSse`; event names are those of the stream.
    NamedEvents,
    /// Like `PostSse`; the POST of a request stays open until its response, which is sent in it.
    HeldPosts,
    /// WebSocket.
    Socket,
    /// Banjo's daemon: a WebSocket that is not read from a prompt to its response.
    DeafSocket,
    /// Streamable HTTP with one stream for all sessions, as on some servers.
    OneStream,
}

/// Maximum request size of `ZeptoClaw` in bytes.
const MAX_REQUEST_BYTES: usize = 118_784;

/// A running server. Dropping it stops it and its agents.
pub struct Bridge {
    port: u16,
    server: Arc<ServerState>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct ServerState {
    shape: Shape,
    command: Vec<OsString>,
    token: Option<String>,
    agents: Lock<HashMap<String, Arc<Agent>>>,
    /// Whether the next request gets 503, like from a gateway whose server is down.
    is_down: AtomicBool,
    connections: AtomicUsize,
    client_closes: AtomicUsize,
}

struct Agent {
    stdin: Mutex<ChildStdin>,
    said: Mutex<mpsc::UnboundedReceiver<String>>,
    /// Open POSTs, by the id of their request.
    waiting: Arc<Lock<HashMap<String, oneshot::Sender<String>>>>,
    _child: Child,
}

struct Request {
    method: String,
    path: String,
    query: String,
    headers: HashMap<String, String>,
    body: String,
}

/// What happens with the socket after a request.
enum After {
    Keep,
    Cut,
}

impl Bridge {
    /// Starts a server at a free port; `command` starts the agent.
    pub fn start(shape: Shape, command: Vec<OsString>, token: Option<&str>) -> Self {
        Self::at(0, shape, command, token)
    }

    /// Starts a server at a port.
    pub fn at(port: u16, shape: Shape, command: Vec<OsString>, token: Option<&str>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Arc::new(ServerState {
            shape,
            command,
            token: token.map(str::to_owned),
            agents: Lock::default(),
            is_down: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            client_closes: AtomicUsize::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&server);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    () = accept_all(listener, &served) => {}
                    _ = stopped => {}
                }
                served.agents.lock().unwrap().clear();
            });
        });
        Self { port, server, stop: Some(stop), thread: Some(thread) }
    }

    /// The URL in the form that users enter.
    pub fn url(&self) -> String {
        let (scheme, path) = match self.server.shape {
            Shape::RpcSse => ("http", "/acp/rpc"),
            Shape::Socket | Shape::DeafSocket => ("ws", "/acp"),
            Shape::Post | Shape::PostSse | Shape::NamedEvents | Shape::HeldPosts | Shape::OneStream => {
                ("http", "/acp")
            }
        };
        format!("{scheme}://127.0.0.1:{}{path}", self.port)
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.server.connections.load(Ordering::SeqCst)
    }

    /// Waits until a connection was ended by the client; returns whether there was one.
    pub fn is_closed_by_client(&self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.server.client_closes.load(Ordering::SeqCst) == 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.server.client_closes.load(Ordering::SeqCst) > 0
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept_all(listener: tokio::net::TcpListener, server: &Arc<ServerState>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let server = Arc::clone(server);
        tokio::spawn(async move {
            while let Some(request) = read(&mut stream).await {
                if request.headers.contains_key("upgrade") {
                    return socket::serve(&server, request, stream).await;
                }
                if matches!(server.serve(&request, &mut stream).await, After::Cut) {
                    return;
                }
            }
        });
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).ok()?;
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(Some(0), |length| length.parse().ok())?;
    let mut body = bytes[head_end + 4..].to_vec();
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    Some(Request { method, path, query, headers, body: String::from_utf8(body).ok()? })
}

async fn answer(stream: &mut TcpStream, status: u16, headers: &str, body: &str) -> After {
    let head = format!("HTTP/1.1 {status} Status\r\n{headers}content-length: {}\r\n\r\n", body.len());
    match stream.write_all(format!("{head}{body}").as_bytes()).await {
        Ok(()) => After::Keep,
        Err(_) => After::Cut,
    }
}

async fn begin_events(stream: &mut TcpStream) -> Option<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.ok()?;
    event(stream, ": connected\n\n").await
}

async fn event(stream: &mut TcpStream, text: &str) -> Option<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await.ok()
}

fn message_of(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_default()
}

fn is_request(message: &Value) -> bool {
    message.get("method").is_some() && message.get("id").is_some()
}

impl ServerState {
    /// The agent of a connection, which is started if necessary.
    fn agent(&self, connection: &str) -> Arc<Agent> {
        let mut agents = self.agents.lock().unwrap();
        if let Some(agent) = agents.get(connection) {
            return Arc::clone(agent);
        }
        let agent = Arc::new(Agent::start(&self.command));
        self.connections.fetch_add(1, Ordering::SeqCst);
        agents.insert(connection.to_owned(), Arc::clone(&agent));
        agent
    }

    fn known(&self, connection: &str) -> Option<Arc<Agent>> {
        self.agents.lock().unwrap().get(connection).cloned()
    }

    fn forget(&self, connection: &str) {
        self.agents.lock().unwrap().remove(connection);
    }

    async fn serve(&self, request: &Request, stream: &mut TcpStream) -> After {
        if self.is_down.swap(false, Ordering::SeqCst) {
            return answer(stream, 503, "", "the server is away").await;
        }
        if let Some(token) = &self.token
            && request.headers.get("authorization") != Some(&format!("Bearer {token}"))
        {
            return answer(stream, 401, "", "").await;
        }
        match self.shape {
            Shape::RpcSse => self.rpc_sse(request, stream).await,
            Shape::Post => self.post(request, stream).await,
            Shape::PostSse | Shape::NamedEvents | Shape::HeldPosts => self.post_sse(request, stream).await,
            Shape::OneStream => self.one_stream(request, stream).await,
            Shape::Socket | Shape::DeafSocket => answer(stream, 426, "", "").await,
        }
    }

    async fn rpc_sse(&self, request: &Request, stream: &mut TcpStream) -> After {
        let Some(client) = request.query.strip_prefix("client_id=") else {
            return answer(stream, 400, "", "client_id is required").await;
        };
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/acp/sse") => self.stream(client, stream).await,
            ("POST", "/acp/rpc") => {
                self.agent(client).tell(&request.body).await;
                let is_answer = message_of(&request.body).get("method").is_none();
                answer(stream, if is_answer { 204 } else { 202 }, "", "").await
            }
            _ => answer(stream, 404, "", "").await,
        }
    }

    async fn post_sse(&self, request: &Request, stream: &mut TcpStream) -> After {
        match request.method.as_str() {
            "GET" => self.stream("", stream).await,
            "POST" => {
                let agent = self.agent("");
                let message = message_of(&request.body);
                if self.shape != Shape::HeldPosts || !is_request(&message) {
                    agent.tell(&request.body).await;
                    return answer(stream, 202, "", "").await;
                }
                let (sender, answered) = oneshot::channel();
                agent.waiting.lock().unwrap().insert(message["id"].to_string(), sender);
                agent.tell(&request.body).await;
                match answered.await {
                    Ok(line) => answer(stream, 200, "content-type: application/json\r\n", &line).await,
                    Err(_) => After::Cut,
                }
            }
            _ => answer(stream, 405, "", "").await,
        }
    }

    /// An event stream with all messages of the agent, until it ends; then the connection is closed abruptly.
    async fn stream(&self, connection: &str, stream: &mut TcpStream) -> After {
        let agent = self.agent(connection);
        if begin_events(stream).await.is_none() {
            return After::Cut;
        }
        let mut said = agent.said.lock().await;
        loop {
            let line = tokio::select! {
                line = said.recv() => line,
                _ = stream.read_u8() => return After::Cut,
            };
            let Some(line) = line else {
                self.is_down.store(self.shape != Shape::OneStream, Ordering::SeqCst);
                self.forget(connection);
                return After::Cut;
            };
            if event(stream, &self.as_event(&line)).await.is_none() {
                return After::Cut;
            }
        }
    }

    /// A message as an event.
    fn as_event(&self, line: &str) -> String {
        let message = message_of(line);
        match (message.get("method").and_then(Value::as_str), message.get("params")) {
            (Some(name), Some(params)) if self.shape == Shape::NamedEvents && !is_request(&message) => {
                format!("event: {name}\ndata: {params}\n\n")
            }
            _ => format!("data: {line}\n\n"),
        }
    }

    async fn post(&self, request: &Request, stream: &mut TcpStream) -> After {
        if request.method != "POST" || !request.query.is_empty() {
            return answer(stream, 405, "", "").await;
        }
        if request.body.len() > MAX_REQUEST_BYTES {
            return answer(stream, 413, "", "").await;
        }
        let message = message_of(&request.body);
        let agent = self.agent("");
        if !is_request(&message) {
            agent.tell(&request.body).await;
            return answer(stream, 204, "", "").await;
        }
        let mut said = agent.said.lock().await;
        agent.tell(&request.body).await;
        let is_stream = message["method"] == "session/prompt";
        if is_stream && begin_events(stream).await.is_none() {
            return After::Cut;
        }
        while let Some(line) = said.recv().await {
            let heard = message_of(&line);
            let is_answer = heard.get("method").is_none() && heard["id"] == message["id"];
            if is_stream && event(stream, &format!("data: {line}\n\n")).await.is_none() {
                return After::Cut;
            }
            match (is_answer, is_stream) {
                (true, true) => {
                    let end = stream.write_all(b"0\r\n\r\n").await;
                    return if end.is_ok() { After::Keep } else { After::Cut };
                }
                (true, false) => {
                    return answer(stream, 200, "content-type: application/json\r\n", &line).await;
                }
                // Without a stream it is discarded.
                (false, _) => {}
            }
        }
        self.forget("");
        After::Cut
    }

    async fn one_stream(&self, request: &Request, stream: &mut TcpStream) -> After {
        let message = message_of(&request.body);
        let Some(connection) = request.headers.get("acp-connection-id") else {
            if request.method != "POST" || message["method"] != "initialize" {
                return answer(stream, 400, "", "").await;
            }
            let connection = format!("c{}", self.connections.load(Ordering::SeqCst));
            let agent = self.agent(&connection);
            agent.tell(&request.body).await;
            let Some(line) = agent.said.lock().await.recv().await else { return After::Cut };
            let headers = format!("content-type: application/json\r\nacp-connection-id: {connection}\r\n");
            return answer(stream, 200, &headers, &line).await;
        };
        let Some(agent) = self.known(connection) else { return answer(stream, 404, "", "").await };
        match request.method.as_str() {
            "GET" if request.headers.contains_key("acp-session-id") => answer(stream, 404, "", "").await,
            "GET" => self.stream(connection, stream).await,
            "POST" => {
                agent.tell(&request.body).await;
                answer(stream, 202, "", "").await
            }
            _ => {
                self.client_closes.fetch_add(1, Ordering::SeqCst);
                self.forget(connection);
                answer(stream, 202, "", "").await
            }
        }
    }
}

impl Agent {
    #[allow(clippy::disallowed_methods, reason = "the bridge is a program of its own")]
    fn start(command: &[OsString]) -> Self {
        let (program, args) = command.split_first().unwrap();
        let mut process = Command::new(program);
        process.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = process.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, said) = mpsc::unbounded_channel();
        let waiting: Arc<Lock<HashMap<String, oneshot::Sender<String>>>> = Arc::default();
        let posts = Arc::clone(&waiting);
        tokio::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                // Only messages are forwarded.
                if !line.starts_with(['{', '[']) {
                    continue;
                }
                let message = message_of(&line);
                let is_answer = message.get("method").is_none();
                let post =
                    if is_answer { posts.lock().unwrap().remove(&message["id"].to_string()) } else { None };
                match post {
                    // The client may have closed the POST.
                    Some(post) => drop(post.send(line)),
                    None if sender.send(line).is_err() => break,
                    None => {}
                }
            }
            posts.lock().unwrap().clear();
        });
        Self { stdin: Mutex::new(stdin), said: Mutex::new(said), waiting, _child: child }
    }

    /// Sends a message to the agent; ignored if it has ended.
    async fn tell(&self, message: &str) {
        let mut stdin = self.stdin.lock().await;
        let _ = stdin.write_all(format!("{message}\n").as_bytes()).await;
        let _ = stdin.flush().await;
    }
}
