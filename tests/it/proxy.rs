//! An agent that is reachable only through a proxy from the environment.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use parlor::core::SessionPhase;

use super::remote::{Server, spec};
use super::rig::Rig;

/// The environment is per process, so the test runs itself in another process.
const INSIDE: &str = "PARLOR_TEST_BEHIND_PROXY";

/// A proxy that resolves one host, without tunnels. Records the heads of requests.
fn proxy(server: u16) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let saved = Arc::clone(&heads);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let saved = Arc::clone(&saved);
            thread::spawn(move || pass(stream, server, &saved));
        }
    });
    (port, heads)
}

fn pass(mut client: TcpStream, server: u16, heads: &Mutex<Vec<String>>) {
    let mut bytes = vec![0; 64 << 10];
    let Ok(count) = client.read(&mut bytes) else { return };
    let head = String::from_utf8_lossy(&bytes[..count]).into_owned();
    let is_tunnel = head.starts_with("CONNECT ");
    heads.lock().unwrap().push(head);
    if is_tunnel {
        let _ = client.write_all(b"HTTP/1.1 407 Sign in\r\ncontent-length: 0\r\n\r\n");
        return;
    }
    let Ok(mut remote) = TcpStream::connect(("127.0.0.1", server)) else { return };
    if remote.write_all(&bytes[..count]).is_err() {
        return;
    }
    let (mut back, mut to_client) = (remote.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || {
        let _ = std::io::copy(&mut back, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let _ = std::io::copy(&mut client, &mut remote);
    let _ = remote.shutdown(Shutdown::Both);
}

#[test]
fn an_agent_is_reached_through_a_proxy() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let server = Server::with(&["--http", "0"]);
    let (port, heads) = proxy(server.port);
    let address = format!("http://me:hush@127.0.0.1:{port}");
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "it::proxy::an_agent_is_reached_through_a_proxy", "--nocapture"]).env(INSIDE, "1");
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] {
        child.env(name, &address);
    }
    for name in ["ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "REQUEST_METHOD"] {
        child.env_remove(name);
    }
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let heads = heads.lock().unwrap().join("\n").to_lowercase();
    for expected in [
        "post http://agent.example/acp http/1.1",
        "get http://agent.example/acp http/1.1",
        "upgrade: websocket",
        "connect agent.example:443",
        "proxy-authorization: basic",
    ] {
        assert!(heads.contains(expected), "{expected} is missing:\n{heads}");
    }
}

/// Only the proxy can resolve the host.
fn inside() {
    let folder = tempfile::tempdir().unwrap();
    for scheme in ["http", "ws"] {
        let mut rig = Rig::start(folder.path(), spec(&format!("{scheme}://agent.example/acp")));
        rig.wait_ready();
        rig.ask("good morning");
        assert!(rig.text().contains("agent: heard good"), "{}", rig.text());
    }
    for scheme in ["https", "wss"] {
        let mut rig = Rig::start(folder.path(), spec(&format!("{scheme}://agent.example/acp")));
        rig.wait_text("The proxy for agent.example rejected the connection");
        assert!(!rig.text().contains("hush"), "{}", rig.text());
        assert!(matches!(rig.session().phase, SessionPhase::Ended { .. }));
    }
}
