//! Tests of the registry, with a server on this machine, hostile indexes and hostile archives.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;

use super::install::{npm_command, with_scripts};
use super::*;
use crate::host::os::fixtures;
use crate::model::{SourceKind, content_hash};

/// A server with these files; it answers 304 to a known tag, and counts the bodies that it sent.
struct Server {
    url: String,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    sent: Arc<Mutex<usize>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (files, sent) =
            (Arc::<Mutex<BTreeMap<String, Vec<u8>>>>::default(), Arc::<Mutex<usize>>::default());
        let (own, count) = (Arc::clone(&files), Arc::clone(&sent));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let _ = serve(stream, &own, &count);
            }
        });
        Self { url, files, sent }
    }

    fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.files.lock().unwrap().insert(path.to_owned(), content.into());
    }

    fn put_index(&self, agents: &Value) {
        self.put("/registry.json", json!({"version": "1.0.0", "agents": agents}).to_string());
    }

    fn registry(&self, data_dir: &Path) -> Registry {
        Registry::new(data_dir, &format!("{}/registry.json", self.url))
    }
}

fn serve(
    mut stream: TcpStream,
    files: &Mutex<BTreeMap<String, Vec<u8>>>,
    sent: &Mutex<usize>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines().map_while(Result::ok);
    let path = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
    let known = lines.take_while(|line| !line.is_empty()).find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("if-none-match").then(|| value.to_owned())
    });
    let Some(content) = files.lock().unwrap().get(&path).cloned() else {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    let tag = format!("\"{}\"", content.len());
    if known == Some(tag.clone()) {
        return stream.write_all(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n");
    }
    *sent.lock().unwrap() += 1;
    let head = format!(
        "HTTP/1.1 200 OK\r\nETag: {tag}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        content.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&content)
}

fn tar_gz(build: impl FnOnce(&mut tar::Builder<GzEncoder<Vec<u8>>>)) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    build(&mut builder);
    builder.into_inner().unwrap().finish().unwrap()
}

/// A header whose name is not checked by the builder.
fn header(name: &str, kind: tar::EntryType, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o4755);
    header.set_size(size);
    header.set_cksum();
    header
}

fn program() -> Vec<u8> {
    tar_gz(|builder| {
        builder.append(&header("./bin/agent", tar::EntryType::Regular, 9), &b"#!/bin/sh"[..]).unwrap();
    })
}

fn system() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    format!("{system}-{}", std::env::consts::ARCH)
}

fn archive_agent(version: &str, url: &str, sum: Option<&str>) -> Value {
    let mut way = json!({"archive": url, "cmd": "./bin/agent", "args": ["acp"]});
    if let Some(sum) = sum {
        way["sha256"] = sum.into();
    }
    json!({"id": "own", "name": "Own", "version": version, "description": "", "distribution": {"binary": {system(): way}}})
}

fn install(registry: &Registry, id: &str) -> Result<(InstalledAgent, Vec<String>), String> {
    let index = registry.index();
    let agent = index.agents.iter().find(|agent| agent.id == id).expect("the agent is listed");
    registry.install(agent, &[], &Stop::default(), &|_| {})
}

#[test]
fn the_built_in_index_is_valid() {
    let index = fetch::built_in();
    assert!(index.agents.len() >= 10 && index.origin.starts_with("built-in list of 20"), "{}", index.origin);
    for agent in &index.agents {
        assert!(agent.source.is_some() && !agent.description.is_empty(), "{agent:?}");
    }
}

#[test]
fn the_index_is_fetched_once_and_kept() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let registry = server.registry(folder.path());
    assert!(registry.index().origin.starts_with("built-in"));
    assert!(registry.refresh().unwrap_err().contains("404"));
    server.put("/registry.json", "<html>");
    assert!(registry.refresh().unwrap_err().contains("is not a registry"));
    server.put_index(&json!([archive_agent("1.0.0", "https://example.org/a.tgz", None)]));
    assert_eq!(registry.refresh().unwrap().agents.len(), 1);
    assert_eq!(registry.refresh().unwrap().agents.len(), 1);
    assert_eq!(*server.sent.lock().unwrap(), 2, "it has not changed");
    assert!(registry.index().origin.starts_with("registry of "));
    let gone = Registry::new(folder.path(), "http://127.0.0.1:9/registry.json");
    assert!(gone.refresh().unwrap_err().contains("HTTPS_PROXY"));
    assert!(gone.index().origin.starts_with("built-in"), "another registry has another index");
    assert!(Registry::new(folder.path(), "http://example.org/").refresh().unwrap_err().contains("https://"));
}

#[test]
fn hostile_entries_of_an_index_are_not_used() {
    let read = |agent: Value| index::read(&json!({"agents": [agent]}).to_string()).unwrap();
    let named = |id: &str, version: &str| read(json!({"id": id, "version": version, "distribution": {}}));
    assert_eq!(named("a-1", "1.0.0-rc.1").len(), 1);
    for (id, version) in
        [("../x", "1"), ("A", "1"), ("", "1"), ("a", ".."), ("a", "1/2"), ("a", "-1"), ("a", "")]
    {
        assert!(named(id, version).is_empty(), "{id} {version}");
    }
    let package = |way: &str, package: &str, more: Value| {
        let mut entry = json!({"package": package});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read(json!({"id": "a", "version": "1", "distribution": {way: entry}}))[0].source.clone()
    };
    assert_eq!(package("npx", "@a/b-c@1.2.3", json!({})).unwrap().kind, SourceKind::Npm);
    assert_eq!(package("uvx", "b_c==1.2.3", json!({"cmd": "b"})).unwrap().command.as_deref(), Some("b"));
    for from in [
        "git+https://example.org/a",
        "https://example.org/a.tgz",
        "file:../a",
        "./a",
        "../a",
        "/tmp/a",
        "a b",
        "--prefix=/tmp",
        "-g",
        "a@file:x",
        "a@../x",
        "@a",
        "a/b",
        "npm:a",
        "",
    ] {
        assert_eq!(package("npx", from, json!({})), None, "{from}");
        assert_eq!(package("uvx", from, json!({})), None, "{from}");
    }
    for more in [
        json!({"cmd": "../../bin/sh"}),
        json!({"cmd": "-c"}),
        json!({"env": {"NODE_OPTIONS": "--require /tmp/x"}}),
        json!({"env": {"A=B": "x"}}),
        json!({"env": {"A": 1}}),
        json!({"args": [1]}),
    ] {
        assert_eq!(package("npx", "a@1", more.clone()), None, "{more}");
    }
    let env = json!({"API_REGION": "eu", "API_MODE": "a b"});
    let agent =
        read(json!({"id": "a", "version": "1", "distribution": {"npx": {"package": "a@1", "env": env}}}));
    let plan = agent[0].plan(Path::new("/agents")).join("\n");
    assert!(plan.contains("API_REGION=eu\n") && plan.ends_with("API_MODE=a b"), "{plan}");
    let archive = |url: &str, cmd: &str| {
        let way = json!({system(): {"archive": url, "cmd": cmd}});
        read(json!({"id": "a", "version": "1", "distribution": {"binary": way}}))[0].source.clone()
    };
    assert!(archive("https://example.org/a.zip", "./bin/a").is_some());
    for (url, cmd) in [
        ("http://example.org/a.zip", "a"),
        ("file:///etc/passwd", "a"),
        ("https://example.org/a.zip", "../a"),
        ("https://example.org/a.zip", "/bin/sh"),
        ("https://example.org/a.zip", ""),
        ("https://example.org/a b", "a"),
    ] {
        assert_eq!(archive(url, cmd), None, "{url} {cmd}");
    }
}

#[test]
fn an_archive_is_installed_updated_and_removed() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let registry = server.registry(folder.path());
    let url = format!("{}/agent.tar.gz", server.url);
    server.put("/agent.tar.gz", program());
    server.put_index(&json!([archive_agent("1.0.0", &url, Some(&content_hash(&program())))]));
    registry.refresh().unwrap();
    let (first, skipped) = install(&registry, "own").unwrap();
    assert!(skipped.is_empty() && first.command.ends_with("own/1.0.0/bin/agent") && first.args == ["acp"]);
    let mode = fixtures::mode(&first.command);
    assert_eq!(mode & 0o7777, 0o755, "without set-user-id");
    assert_eq!(registry.note_start("own", true), None);

    // A version that does not start is replaced by the one before.
    server.put_index(&json!([archive_agent("1.1.0", &url, None)]));
    registry.refresh().unwrap();
    assert_eq!(install(&registry, "own").unwrap().0.version, "1.1.0");
    assert!(first.command.exists(), "it is kept until the new one has started");
    let message = registry.note_start("own", false).expect("a message");
    assert!(message.contains("1.1.0 did not start") && message.contains("1.0.0"), "{message}");
    assert_eq!(registry.installed()[0].version, "1.0.0");
    assert!(!registry.agents_dir().join("own/1.1.0").exists());
    assert_eq!(registry.note_start("own", false), None, "it has worked before");

    assert!(registry.remove("other").unwrap_err().contains("not installed"));
    registry.remove("own").unwrap();
    assert!(registry.installed().is_empty());
    let mut left: Vec<_> =
        std::fs::read_dir(registry.agents_dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["installed.json", "registry.json"]);
}

#[test]
fn the_former_version_survives_an_interrupted_installation() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("1.0");
    let write = |folder: &Path, text: &str| {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("agent"), text).unwrap();
    };
    // What a parlor leaves that is killed meanwhile.
    write(&dir.path().join(".former-1.0"), "good");
    write(&folder, "half");
    let failed: Result<(), String> = install::replacing(&folder, |folder| {
        assert!(!folder.exists());
        Err("no network".to_owned())
    });
    assert!(failed.is_err());
    assert_eq!(std::fs::read_to_string(folder.join("agent")).unwrap(), "good");
    install::replacing(&folder, |folder| {
        write(folder, "new");
        Ok(())
    })
    .unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("agent")).unwrap(), "new");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn an_archive_with_bzip2_is_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let mut builder = tar::Builder::new(bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast()));
    builder.append(&header("./bin/agent", tar::EntryType::Regular, 9), &b"#!/bin/sh"[..]).unwrap();
    let archive = folder.path().join("archive");
    std::fs::write(&archive, builder.into_inner().unwrap().finish().unwrap()).unwrap();
    let to = folder.path().join("to");
    std::fs::create_dir(&to).unwrap();
    unpack::unpack(&archive, "https://h/agent.tar.bz2?x=1", &to, "agent").unwrap();
    assert_eq!(std::fs::read(to.join("bin/agent")).unwrap(), b"#!/bin/sh");
    std::fs::write(&archive, "nonsense").unwrap();
    assert!(unpack::unpack(&archive, "https://h/agent.tbz2", &to, "agent").is_err());
}

#[test]
fn a_failed_installation_leaves_nothing() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let registry = server.registry(folder.path());
    let url = format!("{}/agent.tar.gz", server.url);
    server.put("/agent.tar.gz", program());
    let wrong = "0".repeat(64);
    for (agent, expected) in [
        (archive_agent("1.0.0", &url, Some(&wrong)), "does not have the checksum"),
        (archive_agent("1.0.0", &format!("{}/none.tgz", server.url), None), "404"),
    ] {
        server.put_index(&json!([agent]));
        registry.refresh().unwrap();
        let error = install(&registry, "own").unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert!(!registry.agents_dir().join("own").exists() && registry.installed().is_empty());
    }
    server.put_index(&json!([archive_agent("1.0.0", &url, None)]));
    let index = registry.refresh().unwrap();
    let own = install(&registry, "own").unwrap().0;
    server.put("/agent.tar.gz", "nonsense");
    assert!(install(&registry, "own").unwrap_err().contains("damaged"));
    assert!(own.command.exists(), "the installed one stays");
    server.put("/agent.tar.gz", program());
    install(&registry, "own").unwrap();
    let left = std::fs::read_dir(registry.agents_dir().join("own")).unwrap();
    assert_eq!(left.count(), 1);
    registry.remove("own").unwrap();
    let stop = Stop::default();
    stop.set();
    assert_eq!(registry.install(&index.agents[0], &[], &stop, &|_| {}), Err(CANCELLED.to_owned()));
    assert!(!registry.agents_dir().join("own").exists());
}

#[test]
fn an_agent_that_another_parlor_installs_meanwhile_is_kept() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let registry = server.registry(folder.path());
    let url = format!("{}/agent.tar.gz", server.url);
    server.put("/agent.tar.gz", program());
    let mut other = archive_agent("1.0.0", &url, None);
    other["id"] = "other".into();
    server.put_index(&json!([archive_agent("1.0.0", &url, None), other]));
    let index = registry.refresh().unwrap();
    let meanwhile = |_| drop(install(&registry, "other").unwrap());
    registry.install(&index.agents[0], &[], &Stop::default(), &meanwhile).unwrap();
    let ids: Vec<String> = registry.installed().into_iter().map(|agent| agent.id).collect();
    assert_eq!(ids, ["other", "own"]);
}

#[test]
fn hostile_archives_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |entry: &'static str| {
        tar_gz(move |builder| builder.append(&header(entry, tar::EntryType::Regular, 2), &b"hi"[..]).unwrap())
    };
    let kind = |kind| tar_gz(move |builder| builder.append(&header("x", kind, 0), &b""[..]).unwrap());
    let zipped = |name: &str| {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(b"hi").unwrap();
        zip.finish().unwrap().into_inner()
    };
    let linked = {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        zip.add_symlink("x", "/etc/passwd", SimpleFileOptions::default()).unwrap();
        zip.finish().unwrap().into_inner()
    };
    let twice = tar_gz(|builder| {
        for _ in 0..2 {
            builder.append(&header("x", tar::EntryType::Regular, 2), &b"hi"[..]).unwrap();
        }
    });
    for (archive, name, expected) in [
        (file("../x"), "a.tar.gz", "outside"),
        (file("/x"), "a.tgz", "outside"),
        (file("a/../../x"), "a.tgz", "outside"),
        (kind(tar::EntryType::Symlink), "a.tgz", "link"),
        (kind(tar::EntryType::Link), "a.tgz", "link"),
        (kind(tar::EntryType::Char), "a.tgz", "device"),
        (twice, "a.tgz", "exists"),
        (zipped("../x"), "a.zip", "outside"),
        (zipped("/x"), "a.zip", "outside"),
        (linked, "a.zip", "link"),
        (b"nonsense".to_vec(), "a.zip", "damaged"),
        (b"nonsense".to_vec(), "a.tgz", "damaged"),
        (b"nonsense".to_vec(), "a.tar.xz", "not supported"),
    ] {
        let place = folder.path().join("in");
        std::fs::create_dir_all(&place).unwrap();
        let path = folder.path().join("archive");
        std::fs::write(&path, archive).unwrap();
        let url = format!("https://example.org/{name}?x=1");
        let error = unpack::unpack(&path, &url, &place, "agent").unwrap_err();
        assert!(error.contains(expected), "{name}: {error}");
        std::fs::remove_dir_all(&place).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing outside");
    }
    let place = folder.path().join("in");
    std::fs::create_dir_all(&place).unwrap();
    let path = folder.path().join("archive");
    std::fs::write(&path, zipped("a/b")).unwrap();
    unpack::unpack(&path, "https://example.org/a.zip", &place, "agent").unwrap();
    assert_eq!(std::fs::read(place.join("a/b")).unwrap(), b"hi");
    unpack::unpack(&path, "https://example.org/agent", &place, "agent").unwrap();
    assert!(place.join("agent").exists(), "a program without an archive");
}

#[test]
fn the_command_and_the_scripts_of_a_package_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("node_modules/@a/agent");
    std::fs::create_dir_all(&package).unwrap();
    for (bin, expected) in [
        (json!("x.js"), Ok("agent")),
        (json!({"other": "x.js"}), Ok("other")),
        (json!({"other": "x.js", "agent": "y.js"}), Ok("agent")),
        (json!({"one": "x.js", "two": "y.js"}), Err("several commands")),
        (json!({}), Err("no command")),
    ] {
        std::fs::write(package.join("package.json"), json!({"bin": bin}).to_string()).unwrap();
        let found = npm_command(folder.path(), "@a/agent");
        match expected {
            Ok(name) => assert_eq!(found.as_deref(), Ok(name)),
            Err(part) => assert!(found.unwrap_err().contains(part)),
        }
    }
    let lock = json!({"packages": {
        "node_modules/@a/agent": {"hasInstallScript": true},
        "node_modules/@a/agent/node_modules/b": {"hasInstallScript": true},
        "node_modules/c": {"hasInstallScript": true, "optional": true},
        "node_modules/d": {}}});
    std::fs::write(folder.path().join("node_modules/.package-lock.json"), lock.to_string()).unwrap();
    assert_eq!(with_scripts(folder.path()), ["@a/agent", "b"]);
}
