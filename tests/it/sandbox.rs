//! Programs in the sandbox that try to get out of it, and programs that must work in it.
//!
//! Each line is run by a shell, also without the sandbox, where all of them work: a line that fails for another reason
//! shows nothing. As root, all is done again as an ordinary user.

use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::{NamedTempFile, TempDir};

/// The ordinary user, if the tests run as root.
const USER: u32 = 1000;

enum Line {
    /// Fails in the sandbox.
    Fails(&'static str),
    /// Fails in the sandbox; it does not work without it either, or would harm.
    OnlyFails(&'static str),
    Works(&'static str),
}

use Line::{Fails, OnlyFails, Works};

/// `$W` is the session's folder, `$OUT` a folder outside, `$VICTIM` a process outside.
const LINES: &[Line] = &[
    // Writing.
    Fails("echo x >$OUT/new"),
    Fails("echo x >$HOME/new"),
    Fails("echo x >>$HOME/.bashrc"),
    Fails("mkdir $HOME/.config/autostart"),
    Fails("ln -s $OUT link && echo x >link/new"),
    Fails("ln -s $OUT/mine link && echo x >>link"),
    Fails("echo x >/proc/self/root$OUT/new"),
    Fails("echo x >/proc/self/cwd/../../outside/new"),
    Fails("cd $OUT && echo x >new"),
    Fails("mv $OUT/mine . && echo x >>mine"),
    Fails("echo x >a && mv a $OUT/"),
    Fails("ln $OUT/mine here && echo x >>here"),
    Fails("echo x >a && ln a $OUT/a"),
    Fails("rm $OUT/mine"),
    Fails("truncate -s 0 $OUT/mine"),
    Fails("setsid sh -c '(sleep 0.3; echo x >$OUT/late) &' && sleep 0.8 && test -e $OUT/late"),
    OnlyFails(": >>/proc/sys/kernel/core_pattern"),
    OnlyFails("echo x >/etc/new"),
    // Secrets.
    Fails("cat $HOME/.ssh/id_rsa"),
    Fails("cat /proc/self/root$HOME/.ssh/id_rsa"),
    Fails("ln -s $HOME/.ssh keys && cat keys/id_rsa"),
    Fails("ln $HOME/.ssh/id_rsa key && cat key"),
    Fails("mv $HOME/.ssh keys && cat keys/id_rsa"),
    Fails("cat $HOME/to_ssh/id_rsa"),
    Fails("cat $HOME/.aws/credentials"),
    Fails("cat $HOME/.bash_history"),
    Fails("cat $HOME/.codex/auth.json"),
    Fails("cat $HOME/.local/share/parlor/record.db"),
    Fails("cat <&9"),
    // Other processes.
    Fails("cat /proc/$VICTIM/environ"),
    Fails("cat /proc/$VICTIM/root$HOME/.ssh/known_hosts"),
    Fails("echo x >/proc/$VICTIM/root$W/.git/hooks/post-commit"),
    Fails("exec 3</proc/$VICTIM/mem"),
    Fails("kill -0 $VICTIM"),
    Fails("kill -USR1 $VICTIM"),
    Fails("perl -e 'exit(syscall($ENV{PTRACE}, 16, int($ENV{VICTIM}), 0, 0) == 0 ? 0 : 1)'"),
    // Git.
    Fails("echo x >.git/hooks/post-commit"),
    Fails("rm -rf .git/hooks && mkdir .git/hooks && echo x >.git/hooks/post-commit"),
    Fails("mv .git/hooks .git/old && mkdir .git/hooks"),
    Fails("mv .git old && cp -r old .git && echo x >.git/hooks/post-commit"),
    Fails("cp -r .git copy && rm -rf .git && mv copy .git && echo x >.git/hooks/post-commit"),
    Fails("git config core.fsmonitor ./program"),
    Fails("git config core.hooksPath ."),
    Fails("echo x >.git/new && mv .git/new .git/config"),
    Fails("echo x >>.git/worktrees/linked/commondir"),
    Fails("echo x >.git/modules/sub/hooks/post-commit"),
    Fails("mv .git/modules old && cp -r old .git/modules && echo x >.git/modules/sub/hooks/a"),
    Fails("git config -f .git/modules/sub/config core.fsmonitor ./program"),
    Fails("echo x >included/config"),
    // Settings of programs.
    Fails("echo x >>.envrc"),
    Fails("rm .envrc"),
    Fails("echo x >.vscode/tasks.json"),
    Fails("mv .vscode old && mkdir .vscode"),
    Fails("rm .idea && mkdir .idea"),
    Fails("echo x >ideas/workspace.xml"),
    Fails("echo x >.mcp.json"),
    Fails("echo x >$HOME/.claude/settings.json"),
    Fails("mv $HOME/.claude/hooks $HOME/.claude/old"),
    Fails("echo x >$HOME/.claude/hooks/new"),
    Fails("echo x >$HOME/.cache/p10k-instant-prompt-user.zsh"),
    // Mounts.
    Fails("unshare -Urm mount -t tmpfs none $W"),
    OnlyFails("unshare -Urm sh -c 'umount .git/hooks && echo x >.git/hooks/a'"),
    OnlyFails("unshare -Urm sh -c 'mount -o remount,bind,rw .git/hooks && echo x >.git/hooks/a'"),
    OnlyFails("unshare -Ur sh -c 'echo x >$OUT/new'"),
    OnlyFails("umount .git/hooks"),
    OnlyFails("nsenter -t $VICTIM -m true"),
    // Terminals.
    OnlyFails("exec 3<>/dev/tty"),
    Fails("ls /dev/pts | grep '[0-9]'"),
    Fails("test \"$(readlink /proc/self/ns/mnt)\" = \"$(readlink /proc/$VICTIM/ns/mnt)\""),
    // Sockets.
    Fails(
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack(\"Sa*\", AF_UNIX, \"\\0$ENV{ABSTRACT}\")) or exit 1'",
    ),
    Fails(
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un(\"$ENV{XDG_RUNTIME_DIR}/docker.sock\")) or exit 1'",
    ),
    Fails(
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un(\"$ENV{TMUX_FOLDER}/default\")) or exit 1'",
    ),
    Fails(
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un($ENV{EDITOR_SOCKET})) or exit 1'",
    ),
    Fails("rm $XDG_RUNTIME_DIR/docker.sock"),
    // What must work.
    Works("echo x >new && cat new && rm new"),
    Works("mkdir -p a/b && mv a c && ln -s c d && ln .gitignore e"),
    Works("mktemp && echo x >$(mktemp -d)/x && echo x >/dev/null"),
    Works("echo x >/dev/stderr"),
    Works("echo x >/dev/shm/parlor-$$ && rm /dev/shm/parlor-$$"),
    Works("cat $HOME/.ssh/known_hosts $HOME/.ssh/id_rsa.pub $HOME/readable $OUT/mine /etc/passwd"),
    Works("ls $HOME $HOME/.config /dev /run"),
    Works("echo x >$HOME/.cache/new && echo x >$HOME/.claude/session.json && cat $HOME/.claude/session.json"),
    Works("test \"$XDG_CACHE_HOME\" = \"$OUT\" && test -z \"$REMOVED\""),
    Works("sleep 5 & kill $! && ! wait $!"),
    Works("git init -q other && cd other && echo x >a && git add a && git commit -qm x"),
    Works("echo x >a && git add a && git commit -qm x && git status"),
    Works("echo x >>tracked && git stash && git stash pop && git commit -qam x"),
    Works(
        "git checkout -qb topic && echo x >a && git add a && git commit -qm x && git checkout -q - && git merge -q topic",
    ),
    Works("cd $HOME/linked && echo x >a && git add a && git commit -qm x && git stash list"),
    Works(
        "git gc -q && git worktree add -q $W/inner && cd inner && echo x >a && git add a && git commit -qm x",
    ),
    Works(
        "mkdir -p crate/src && cd crate && echo 'fn main() {}' >src/main.rs && printf '[package]\\nname=\"a\"\\nedition=\"2021\"\\n[workspace]\\n' >Cargo.toml && cargo build -q && target/debug/a",
    ),
    Works("mkdir p && cd p && npm init -y && node -e 'require(\"fs\").writeFileSync(\"a\", \"b\")' && cat a"),
    Works("script -qec 'tty && echo x' /dev/null </dev/null"),
    Works("ssh-add -l"),
    Works("cc -x c -o a - <<<'int main(void) { return 0; }' && ./a"),
    Works("timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT'"),
];

/// A home folder with a repository, secrets and sockets, and a process outside of the sandbox.
struct Fixture {
    base: TempDir,
    user: Option<u32>,
    others: Vec<Child>,
    victim: u32,
    tmux: TempDir,
    editor: NamedTempFile<UnixListener>,
    _sockets: Vec<UnixListener>,
    abstract_name: String,
    tcp: std::net::TcpListener,
}

impl Fixture {
    fn new(user: Option<u32>) -> Self {
        let base = base();
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let at = |path: &str| base.path().join(path);
        let write = |path: &str| {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), "x\n").unwrap();
        };
        let files = [
            ".bashrc",
            ".bash_history",
            ".ssh/id_rsa",
            ".ssh/id_rsa.pub",
            ".ssh/known_hosts",
            ".aws/credentials",
            ".codex/auth.json",
            ".local/share/parlor/record.db",
            ".claude/settings.json",
            ".claude/hooks/hook",
            ".cache/p10k-instant-prompt-user.zsh",
            ".config/some/file",
            "readable",
            "work/.envrc",
            "work/.mcp.json",
            "work/.vscode/tasks.json",
            "work/ideas/workspace.xml",
            "work/included/config",
            "work/.gitignore",
        ];
        for file in files {
            write(&format!("home/{file}"));
        }
        write("outside/mine");
        write("outside/inherited");
        fs::create_dir_all(at("run")).unwrap();
        symlink("ideas", at("home").join("work/.idea")).unwrap();
        symlink(".ssh", at("home/to_ssh")).unwrap();
        let tmux = tempfile::Builder::new().prefix("tmux-parlor").tempdir_in("/tmp").unwrap();
        fs::set_permissions(tmux.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let editor = tempfile::Builder::new()
            .prefix("vscode-ipc-")
            .make_in("/tmp", |path| UnixListener::bind(path))
            .unwrap();
        let abstract_name = format!("parlor-{}", base.path().file_name().unwrap().display());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let paths = [at("run/docker.sock"), tmux.path().join("default")];
        let mut sockets = vec![UnixListener::bind_addr(&address).unwrap()];
        for path in &paths {
            sockets.push(UnixListener::bind(path).unwrap());
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        }
        fs::set_permissions(editor.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut fixture = Self {
            base,
            user,
            others: Vec::new(),
            victim: 0,
            tmux,
            editor,
            _sockets: sockets,
            abstract_name,
            tcp,
        };
        fixture.give_to_user();
        let made = fixture.shell(
            "git init -q . && echo x >tracked && git add tracked && git commit -qm x && \
             printf '[include]\\n\\tpath = ../included/config\\n' >>.git/config && : >included/config && \
             git worktree add -q $HOME/linked 2>/dev/null && mkdir .git/modules && git init -q --separate-git-dir=.git/modules/sub sub && \
             mkdir -p .git/hooks .git/modules/sub/hooks && ssh-keygen -q -t ed25519 -N '' -f $HOME/other_key && \
             eval $(ssh-agent -a $XDG_RUNTIME_DIR/agent) >/dev/null && ssh-add -q $HOME/other_key && rm $HOME/other_key && \
             echo $SSH_AGENT_PID >$HOME/agent.pid",
            None,
        );
        assert!(made.0, "{}", made.1);
        let mut victim = fixture.command("sleep");
        let victim = victim.arg("1000").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        fixture.victim = victim.id();
        // Has a pseudo terminal.
        let mut other = fixture.command("script");
        other.args(["-qc", "sleep 1000", "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::null());
        fixture.others.push(other.spawn().unwrap());
        while fs::read_dir("/dev/pts").unwrap().count() < 2 {
            std::thread::yield_now();
        }
        let name = format!("/proc/{}/comm", fixture.victim);
        while fs::read_to_string(&name).unwrap().trim() != "sleep" {
            std::thread::yield_now();
        }
        fixture.others.push(victim);
        fixture
    }

    fn at(&self, path: &str) -> PathBuf {
        self.base.path().join(path)
    }

    fn give_to_user(&self) {
        fn give(path: &Path, user: u32) {
            std::os::unix::fs::lchown(path, Some(user), Some(user)).unwrap();
            if path.is_dir() && !path.is_symlink() {
                for entry in fs::read_dir(path).unwrap() {
                    give(&entry.unwrap().path(), user);
                }
            }
        }
        if let Some(user) = self.user {
            give(self.base.path(), user);
            chown(self.tmux.path(), Some(user), Some(user)).unwrap();
        }
    }

    /// A command in the session's folder, as the user of the fixture.
    fn command(&self, program: &str) -> Command {
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args([format!("--reuid={user}"), format!("--regid={user}")]).arg("--clear-groups");
                command.arg(program);
                command
            }
            None => Command::new(program),
        };
        let identity = [("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b"), ("GIT_COMMITTER_NAME", "a")];
        command.envs(identity).env("GIT_COMMITTER_EMAIL", "a@b").env("GIT_CONFIG_NOSYSTEM", "1");
        let real_home = std::env::var("HOME").unwrap_or_default();
        if std::env::var_os("RUSTUP_HOME").is_none() {
            command.env("RUSTUP_HOME", format!("{real_home}/.rustup"));
        }
        for name in
            ["CARGO_HOME", "CARGO_TARGET_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR", "RUSTFLAGS"]
        {
            command.env_remove(name);
        }
        command
            .current_dir(self.at("home/work"))
            .env("HOME", self.at("home"))
            .env("W", self.at("home/work"))
            .env("OUT", self.at("outside"))
            .env("VICTIM", self.victim.to_string())
            .env("XDG_RUNTIME_DIR", self.at("run"))
            .env("SSH_AUTH_SOCK", self.at("run/agent"))
            .env("TMUX_FOLDER", self.tmux.path())
            .env("EDITOR_SOCKET", self.editor.path())
            .env("ABSTRACT", &self.abstract_name)
            .env("PORT", self.tcp.local_addr().unwrap().port().to_string())
            .env("PTRACE", if cfg!(target_arch = "x86_64") { "101" } else { "117" })
            .env(
                "RUSTUP_TOOLCHAIN",
                std::env::var("RUSTUP_TOOLCHAIN").unwrap_or_else(|_| "stable".to_owned()),
            )
            .stdin(Stdio::null());
        command
    }

    /// Runs a line, in the sandbox if it has arguments for that. Returns whether it has worked, and its output.
    fn shell(&self, line: &str, more: Option<&[&str]>) -> (bool, String) {
        // Descriptor 9 is inherited.
        let inherit = format!("exec 9<{}; exec \"$@\"", self.at("outside/inherited").display());
        let mut command = self.command("bash");
        command.args(["-c", &inherit, "bash"]);
        if let Some(more) = more {
            command.args([
                env!("CARGO_BIN_EXE_parlor"),
                "__sandbox",
                "--mode",
                "required",
                "--name",
                "claude",
            ]);
            command.arg("--folder").arg(self.at("home/work")).arg("--folder").arg(self.at("home/linked"));
            command.arg("--own").arg(self.at("home/.local/share/parlor"));
            command.args(more).arg("--").env("REMOVED", "x").env("PARLOR_SANDBOX-REMOVED", "");
            // Variables that an agent chose do not widen the bounds.
            for name in ["XDG_CACHE_HOME", "TMPDIR"] {
                command.env(format!("PARLOR_SANDBOX+{name}"), self.at("outside"));
            }
            command.env("PARLOR_SANDBOX+TMPDIR", "/tmp").env("PARLOR_SANDBOX+LD_PRELOAD", "/nothing.so");
        } else {
            command.env("XDG_CACHE_HOME", self.at("outside"));
        }
        let output = command.args(["bash", "-c", line]).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (output.status.success(), text.concat())
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let agent = fs::read_to_string(self.at("home/agent.pid")).unwrap_or_default();
        let _ = Command::new("kill").arg(agent.trim()).status();
        for child in &mut self.others {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A folder that is not in a temporary folder, which a sandbox can write.
fn base() -> TempDir {
    let home = std::env::var("HOME").unwrap_or_default();
    let folders = [env!("CARGO_TARGET_TMPDIR"), "/srv", "/opt", &home];
    let mut outside =
        folders.into_iter().filter(|folder| !folder.starts_with("/tmp") && !folder.starts_with("/var/tmp"));
    outside.find_map(|folder| tempfile::tempdir_in(folder).ok()).unwrap()
}

/// The users to test as. Prints why there are none.
#[expect(clippy::print_stdout, reason = "a test that shows nothing says so")]
fn users() -> Vec<Option<u32>> {
    let wanted = ["__sandbox", "--mode", "required", "--"];
    let tried = Command::new(env!("CARGO_BIN_EXE_parlor")).args(wanted).output().unwrap();
    if !tried.status.success() {
        println!("not tested: {}", String::from_utf8_lossy(&tried.stderr));
        return Vec::new();
    }
    let is_root = fs::metadata("/proc/self").is_ok_and(|facts| {
        use std::os::unix::fs::MetadataExt as _;
        facts.uid() == 0
    });
    if is_root { vec![None, Some(USER)] } else { vec![None] }
}

#[test]
fn no_line_escapes_and_builds_work() {
    let mut wrong = Vec::new();
    for user in users() {
        for line in LINES {
            let (line, works_outside, works_inside) = match line {
                Fails(line) => (*line, Some(true), false),
                OnlyFails(line) => (*line, None, false),
                Works(line) => (*line, Some(true), true),
            };
            if works_outside.is_some() {
                let (has_worked, output) = Fixture::new(user).shell(line, None);
                if !has_worked && works_inside {
                    println!("not tested as {user:?}, does not work here: {line}\n{output}");
                    continue;
                }
                if !has_worked {
                    wrong.push(format!("as {user:?}, shows nothing: {line}\n{output}"));
                }
            }
            let (has_worked, output) = Fixture::new(user).shell(line, Some(&[]));
            if has_worked != works_inside {
                wrong.push(format!("as {user:?}, expected {works_inside}: {line}\n{output}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_named_ports_folders_and_secrets_are_opened() {
    for user in users() {
        let fixture = Fixture::new(user);
        let port = fixture.tcp.local_addr().unwrap().port();
        let connect = "timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT'";
        let other = if port == 443 { "444" } else { "443" };
        let (outside, secret) = (fixture.at("outside"), fixture.at("home/.aws"));
        let (outside, secret) = (outside.to_str().unwrap(), secret.to_str().unwrap());
        std::os::unix::fs::symlink(outside, fixture.at("link")).unwrap();
        let link = fixture.at("link");
        let (link, above) = (link.to_str().unwrap(), fixture.at("home"));
        let above = above.to_str().unwrap();
        let port = port.to_string();
        let cases: &[(&str, &[&str], bool)] = &[
            (connect, &["--ports", &port], true),
            (connect, &["--ports", other], false),
            (connect, &["--ports", ""], false),
            ("echo x >$OUT/new", &["--write", outside], true),
            ("echo x >$OUT/new", &["--granted-write", outside], true),
            ("echo x >$OUT/new", &["--granted-write", link], false),
            ("cat $HOME/.aws/credentials", &["--granted-read", secret], false),
            ("cat $HOME/.aws/credentials", &["--granted-read", above], false),
            ("cat $HOME/.aws/credentials", &["--read", secret], true),
            ("cat $HOME/.ssh/id_rsa", &["--read", secret], false),
        ];
        for (line, more, works) in cases {
            let (has_worked, output) = fixture.shell(line, Some(more));
            assert_eq!(has_worked, *works, "as {user:?}: {line} {more:?}\n{output}");
        }
    }
}

#[test]
fn a_variable_of_the_user_opens_another_state_folder() {
    let parlor = env!("CARGO_BIN_EXE_parlor");
    for user in users() {
        let fixture = Fixture::new(user);
        fs::create_dir(fixture.at("other")).unwrap();
        fs::write(fixture.at("other/mine"), "").unwrap();
        fixture.give_to_user();
        let other = fixture.at("other");
        let other = other.to_str().unwrap();
        symlink(other, fixture.at("link")).unwrap();
        let both = "echo x >$F/new && ! (echo x >$HOME/.claude/session.json) 2>/dev/null";
        let usual = "! (echo x >$F/new) 2>/dev/null && echo x >$HOME/.claude/session.json";
        let cases = [
            ("CLAUDE_CONFIG_DIR=$F", other, both, true),
            ("CLAUDE_CONFIG_DIR=relative", other, usual, true),
            ("CLAUDE_CONFIG_DIR=$F/missing", other, usual, false),
            ("CLAUDE_CONFIG_DIR=${F%/*}/link", other, usual, false),
            ("CLAUDE_CONFIG_DIR=$HOME", "$HOME", usual, false),
            ("CLAUDE_CONFIG_DIR=$HOME/.config", "$HOME/.config", usual, false),
            ("CLAUDE_CONFIG_DIR=$HOME/.ssh", "$HOME/.ssh", usual, false),
            ("CLAUDE_CONFIG_DIR=$HOME/.local/share/parlor", "$HOME/.local/share/parlor", usual, false),
            ("CLAUDE_CONFIG_DIR=/etc", "/etc", usual, false),
            ("PARLOR_SANDBOX+CLAUDE_CONFIG_DIR=$F", other, usual, true),
            ("CODEX_HOME=$F", other, "! cat $F/mine", true),
        ];
        for (pair, folder, line, is_opened) in cases {
            let enter = format!(
                "{parlor} __sandbox --mode required --name claude --folder $W --own $HOME/.local/share/parlor"
            );
            let run = format!("export F={folder}; env \"{pair}\" {enter} -- sh -c '{line}'");
            let (has_worked, text) = fixture.shell(&run, None);
            assert!(has_worked, "as {user:?}: {pair}\n{text}");
            let (_, notice) = fixture.shell(&format!("F={folder}; env \"{pair}\" {enter} --"), None);
            assert_eq!(!notice.contains("Not opened"), is_opened, "{pair}: {notice}");
        }
        let configured = ["--state", &format!("CLAUDE_CONFIG_DIR={other}")];
        let (has_worked, text) = fixture.shell(&format!("echo x >{other}/new"), Some(&configured));
        assert!(has_worked, "as {user:?}: {text}");
    }
}

#[test]
fn the_demo_agent_gets_its_folder_at_its_first_start() {
    for user in users() {
        let fixture = Fixture::new(user);
        let parlor = env!("CARGO_BIN_EXE_parlor");
        let start = |name: &str, folder: &str| {
            let line = format!(
                "D=$HOME/own/{folder}; mkdir -p $HOME/own; env PARLOR_DEMO_DIR=$D {parlor} __sandbox --mode required --name {name} --folder $W \
                 --own $HOME/own -- sh -c 'echo x >$0/new' $D"
            );
            fixture.shell(&line, None)
        };
        assert!(!start("claude", "demo").0, "another agent");
        assert!(!start("demo", "other").0, "another folder");
        let (has_worked, text) = start("demo", "demo");
        assert!(has_worked, "as {user:?}: {text}");
    }
}

#[test]
fn what_cannot_be_enforced_is_said_or_an_error_with_advice() {
    let parlor = env!("CARGO_BIN_EXE_parlor");
    for user in users() {
        let fixture = Fixture::new(user);
        // No mounts can be made in a sandbox.
        let nested = |mode: &str| fixture.shell(&format!("{parlor} __sandbox --mode {mode} --"), Some(&[]));
        let (has_worked, text) = nested("required");
        assert!(!has_worked && text.contains("--sandbox=off"), "{text}");
        let (has_worked, text) = nested("workspace");
        assert!(has_worked && text.contains("Not enforced here: no "), "{text}");
        let unknown = format!("{parlor} __sandbox --mode workspace --write /nothing/here --");
        let (has_worked, text) = fixture.shell(&unknown, None);
        assert!(has_worked && text.contains("symbolic link: /nothing/here."), "{text}");
        let (has_worked, text) = fixture.shell(&format!("{parlor} __sandbox --mode nonsense -- true"), None);
        assert!(!has_worked, "{text}");
        let missing = format!("{parlor} __sandbox --mode workspace -- /nothing/here; test $? = 126");
        let (has_worked, text) = fixture.shell(&missing, None);
        assert!(has_worked && text.contains("could not start /nothing/here"), "{text}");
        // Without namespaces, Landlock is left.
        let none = "unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"' sh";
        let folder = "--folder $W";
        let start =
            |mode: &str, line: &str| format!("{none} {parlor} __sandbox --mode {mode} {folder} -- {line}");
        let (has_worked, text) = fixture.shell(&start("required", "true"), None);
        assert!(!has_worked && text.contains("no user namespace"), "{text}");
        let (has_worked, text) = fixture.shell(&start("workspace", ""), None);
        assert!(has_worked && text.contains("Not enforced here: no user namespace"), "{text}");
        for (line, works) in
            [("echo x >$W/new", true), ("echo x >$HOME/new", false), ("cat $HOME/.ssh/id_rsa", false)]
        {
            let (has_worked, text) = fixture.shell(&start("workspace", &format!("sh -c '{line}'")), None);
            assert_eq!(has_worked, works, "{line}: {text}");
        }
        let notice = fixture.shell(&format!("{parlor} __sandbox --mode required --ports 443 --"), None);
        assert!(
            notice.0 && notice.1.contains("only to port 443.") && !notice.1.contains("Not"),
            "{notice:?}"
        );
    }
}
