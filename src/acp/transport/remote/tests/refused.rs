//! Rejected connections and their error messages.

use tokio::io::AsyncWriteExt as _;

use super::server::Server;
use super::{INITIALIZE, INITIALIZED, Peer, at, request};
use crate::model::{CloseReason, Remote, TokenSource};

/// Cargo sets this variable for every test.
fn with_token(remote: Remote) -> Remote {
    Remote { token: Some(TokenSource::Env("CARGO_PKG_NAME".to_owned())), ..remote }
}

async fn refusal(peer: &mut Peer) -> String {
    match peer.end().await {
        CloseReason::Refused { error } => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_missing_or_rejected_token_is_reported() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/acp", None);
    let post = server.expect("POST", "/acp").await;
    assert_eq!(post.header("authorization"), None);
    post.answer(401, &[], "").await;
    assert!(refusal(&mut peer).await.contains("requires a token (401)"));

    let mut peer = Peer::connect(with_token(at(&server, "/acp")));
    peer.say(INITIALIZE);
    let post = server.expect("POST", "/acp").await;
    assert_eq!(post.header("authorization"), Some("Bearer parlor"));
    post.answer(401, &[], "").await;
    let error = refusal(&mut peer).await;
    assert!(error.contains("rejected the token from the variable CARGO_PKG_NAME"), "{error}");

    let mut peer = Peer::connect(with_token(at(&server, "/acp")));
    peer.say(INITIALIZE);
    server.expect("POST", "/acp").await.answer(403, &[], "").await;
    assert!(refusal(&mut peer).await.contains("denied access (403)"));
}

#[tokio::test]
async fn a_rejected_token_is_fetched_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "old").unwrap();
    let mut server = Server::start().await;
    let remote = Remote { token: Some(TokenSource::File(file.clone())), ..at(&server, "/acp") };
    let mut peer = Peer::connect(remote);
    peer.say(INITIALIZE);
    let post = server.expect("POST", "/acp").await;
    assert_eq!(post.header("authorization"), Some("Bearer old"));
    std::fs::write(&file, "new\n").unwrap();
    post.answer(401, &[], "").await;
    let post = server.expect("POST", "/acp").await;
    assert_eq!(post.header("authorization"), Some("Bearer new"));
    post.json(INITIALIZED).await;
    assert_eq!(peer.hear().await, INITIALIZED);
    peer.say(&request(2, "session/new", "{}"));
    assert_eq!(server.next().await.header("authorization"), Some("Bearer new"));
}

#[tokio::test]
async fn a_missing_token_is_reported_before_anything_is_sent() {
    let server = Server::start().await;
    let token = Some(TokenSource::Env("NO_SUCH_VARIABLE_ANYWHERE".to_owned()));
    let mut peer = Peer::connect(Remote { token, ..at(&server, "/acp") });
    assert!(refusal(&mut peer).await.contains("NO_SUCH_VARIABLE_ANYWHERE is not set"));
}

#[tokio::test]
async fn redirects_to_another_server_are_not_followed() {
    let mut server = Server::start().await;
    let mut other = Server::start().await;
    let mut peer = Peer::connect(with_token(at(&server, "/acp")));
    peer.say(INITIALIZE);
    let location = other.url("/acp?key=hush");
    server.expect("POST", "/acp").await.answer(307, &[("location", &location)], "").await;
    let error = refusal(&mut peer).await;
    assert!(error.contains(&format!("redirects to {} (307)", other.url("/acp"))), "{error}");
    assert!(!error.contains("hush"), "{error}");
    tokio::select! {
        biased;
        _ = other.next() => panic!("a request to the other server"),
        () = tokio::task::yield_now() => {}
    }
}

#[tokio::test]
async fn redirects_within_the_server_repeat_the_message() {
    let mut server = Server::start().await;
    let mut peer = Peer::connect(with_token(at(&server, "/acp")));
    peer.say(INITIALIZE);
    server.expect("POST", "/acp").await.answer(308, &[("location", "/acp/")], "").await;
    let post = server.expect("POST", "/acp/").await;
    assert!(post.says("initialize"));
    assert_eq!(post.header("authorization"), Some("Bearer parlor"));
    post.json(INITIALIZED).await;
    assert_eq!(peer.hear().await, INITIALIZED);
}

#[tokio::test]
async fn an_unreachable_server_is_a_temporary_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for scheme in ["http", "ws"] {
        let mut peer =
            Peer::connect(Remote { url: format!("{scheme}://{address}/acp"), ..Remote::default() });
        peer.say(INITIALIZE);
        let CloseReason::Unreachable { error } = peer.end().await else { panic!() };
        assert!(error.contains(&format!("{address} refused the connection")), "{error}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_reported() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut peer = Peer::connect(Remote { url: format!("https://{address}/acp"), ..Remote::default() });
    peer.say(INITIALIZE);
    let (mut stream, _) = listener.accept().await.unwrap();
    stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    let error = refusal(&mut peer).await;
    assert!(error.contains("does not use TLS"), "{error}");
}

#[tokio::test]
async fn an_unknown_certificate_is_rejected_before_anything_is_sent() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    for scheme in ["https", "wss"] {
        let url = format!("{scheme}://localhost:{port}/acp");
        let mut peer = Peer::connect(with_token(Remote { url, ..Remote::default() }));
        peer.say(INITIALIZE);
        let (stream, _) = listener.accept().await.unwrap();
        assert!(acceptor.accept(stream).await.is_err(), "the client must close the connection");
        let error = refusal(&mut peer).await;
        assert!(error.contains("an unknown authority"), "{error}");
    }
}

#[tokio::test]
async fn the_log_does_not_contain_the_token() {
    let mut server = Server::start().await;
    let mut peer = Peer::connect(with_token(at(&server, "/acp?key=hush")));
    peer.say(INITIALIZE);
    server.expect("POST", "/acp?key=hush").await.json(INITIALIZED).await;
    peer.hear().await;
    let log = peer.log();
    assert!(!log.contains("Bearer") && !log.contains("hush"), "{log}");
}

#[tokio::test]
async fn compressed_responses_and_redirect_loops_are_reported() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/acp", None);
    let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
    server.expect("POST", "/acp").await.answer(200, &headers, "").await;
    assert!(refusal(&mut peer).await.contains("compressed its response"));

    let mut peer = Peer::to(&server, "/acp", None);
    let error = loop {
        tokio::select! {
            error = refusal(&mut peer) => break error,
            exchange = server.next() => exchange.answer(307, &[("location", "/acp")], "").await,
        }
    };
    assert!(error.contains("redirects in a loop (307)"), "{error}");
}
