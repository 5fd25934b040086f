//! TLS with the official server: a configured CA file, HTTP/2, WebSocket.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parlor::core::SessionPhase;
use parlor::model::{Action, AgentSpec};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::remote::{Server, spec};
use super::rig::Rig;

/// A private CA, and a server with a certificate of it.
struct Company {
    folder: tempfile::TempDir,
}

impl Company {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut root = CertificateParams::new(Vec::new()).unwrap();
        root.distinguished_name.push(DnType::CommonName, name);
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root_key = KeyPair::generate().unwrap();
        let own = root.self_signed(&root_key).unwrap();
        let issuer = Issuer::new(root, root_key);
        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let server = server.signed_by(&key, &issuer).unwrap();
        let body = STANDARD.encode(own.der());
        let pem =
            format!("The company's root\n-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
        fs::write(folder.path().join("root.pem"), pem).unwrap();
        fs::write(folder.path().join("server.der"), server.der()).unwrap();
        fs::write(folder.path().join("key.der"), key.serialize_der()).unwrap();
        Self { folder }
    }

    /// A server with the CA's own certificate, as openssl creates it by default.
    fn vouching_for_itself() -> Self {
        let company = Self::new("Itself");
        let mut own = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        fs::write(company.file("server.der"), own.self_signed(&key).unwrap().der()).unwrap();
        fs::write(company.file("key.der"), key.serialize_der()).unwrap();
        company
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn server(&self) -> Server {
        let (certificate, key) = (self.file("server.der"), self.file("key.der"));
        Server::with(&["--http", "0", certificate.to_str().unwrap(), key.to_str().unwrap()])
    }
}

fn trusting(url: &str, file: Option<&Path>) -> AgentSpec {
    let mut spec = spec(url);
    spec.remote.as_mut().unwrap().ca_file = file.map(Path::to_owned);
    spec
}

#[test]
fn a_turn_over_tls_with_a_configured_authority() {
    let company = Company::new("One");
    for (scheme, protocol) in [("https", "h2"), ("wss", "http/1.1")] {
        let server = company.server();
        let url = format!("{scheme}://localhost:{}/acp", server.port);
        let mut rig = Rig::start(company.folder.path(), trusting(&url, Some(&company.file("root.pem"))));
        rig.wait_ready();
        rig.ask("updates");
        assert!(rig.text().contains("diff /a.txt"), "{}", rig.text());
        rig.prompt("permission");
        rig.wait_ask();
        rig.act(Action::Choose(1));
        rig.wait_text(r#""optionId":"yes""#);
        rig.wait_idle();
        rig.prompt("wait");
        rig.wait("a running turn", |state| state.sessions[&state.active].turn.is_running());
        rig.act(Action::Escape);
        rig.wait_idle();
        rig.ask("again");
        assert!(rig.text().contains("heard again"), "{}", rig.text());
        assert_eq!(rig.state.anomaly_count, 0, "{scheme}");
        drop(rig);
        let output = server.output();
        assert!(!output.is_empty() && output.lines().all(|line| line == protocol), "{scheme}: {output:?}");
        if protocol == "h2" {
            assert_eq!(output.lines().count(), 1, "all streams share one connection");
        }
    }
}

#[test]
fn another_authority_is_rejected_and_a_missing_ca_file_is_reported() {
    let (company, other, namesake) = (Company::new("One"), Company::new("Two"), Company::new("One"));
    let server = company.server();
    let url = format!("https://localhost:{}/acp", server.port);
    let (wrong, same_name) = (other.file("root.pem"), namesake.file("root.pem"));
    let missing = other.file("nothing.pem");
    for (file, expected) in [
        (None, "`ca_file` of this agent"),
        (Some(&wrong), "an unknown authority"),
        (Some(&same_name), "an unknown authority"),
        (Some(&missing), "cannot be read"),
    ] {
        let mut rig = Rig::start(company.folder.path(), trusting(&url, file.map(PathBuf::as_path)));
        rig.wait_text(expected);
        assert!(matches!(rig.session().phase, SessionPhase::Ended { .. }));
    }
    assert_eq!(server.output(), "", "no connection was accepted");
}

#[test]
fn a_ca_certificate_is_distinguished_from_an_unknown_authority() {
    let company = Company::vouching_for_itself();
    let server = company.server();
    let url = format!("https://localhost:{}/acp", server.port);
    let mut rig = Rig::start(company.folder.path(), trusting(&url, None));
    rig.wait_text("basicConstraints CA:FALSE");
    assert!(!rig.text().contains("OtherError"), "{}", rig.text());
    assert_eq!(server.output(), "", "no connection was accepted");
}
