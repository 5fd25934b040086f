//! What an agent in a sandbox may write, must not read, and must not change, beside the folders of its session.
//!
//! Paths are relative to the home folder unless they start with `/`. An entry `*` at the end of a name stands for any
//! rest of the name.

/// Caches and stores of packages. None has programs that a shell finds by name.
pub const CACHES: &[(&str, &str)] = &[
    (".cache", "caches of most tools"),
    ("Library/Caches", "the same on macOS"),
    ("Library/pnpm/store", "downloaded packages of pnpm on macOS"),
    (".cargo/registry", "downloaded crates; cargo locks it also for reading"),
    (".cargo/git", "crates from git"),
    (".cargo/.package-cache", "the lock of cargo"),
    (".cargo/.package-cache-mutate", "the lock of cargo"),
    (".cargo/.global-cache", "when cargo used which crate"),
    (".npm", "downloaded packages, logs of npm, packages of npx"),
    (".local/share/pnpm/store", "downloaded packages of pnpm"),
    (".yarn/berry", "downloaded packages of yarn"),
    (".bun/install/cache", "downloaded packages of bun"),
    (".gradle", "daemon, downloads and wrapper of Gradle"),
    (".m2/repository", "downloaded artifacts of Maven"),
    (".ivy2/cache", "downloaded artifacts of sbt"),
    (".nuget/packages", "downloaded packages of .NET"),
    ("go/pkg", "downloaded modules of Go"),
    (".pub-cache/hosted", "downloaded packages of Dart"),
    (".composer/cache", "downloaded packages of PHP"),
];

/// Devices that programs expect. No disks, and nothing of other hardware. The terminal is added for a program that it is the
/// input of.
pub const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/ptmx", PSEUDO_TERMINALS];

pub const PSEUDO_TERMINALS: &str = "/dev/pts";

/// The terminal of a process: parlor's, unless it has its own.
pub const TERMINAL: &str = "/dev/tty";

/// Temporary folders, also shared memory; `$TMPDIR` is added.
pub const TEMPORARY: &[&str] = &["/tmp", "/var/tmp", "/dev/shm", "/private/var/folders"];

/// The folders and files in which agents keep their state: the agent may write its own, and must not read those of
/// others. The names are those of the agent or of its program. A variable of `STATE_VARIABLES` replaces the folders.
pub const AGENTS: &[(&[&str], &[&str])] = &[
    (&["claude", "claude-agent-acp", "claude-code-acp"], &[".claude", ".claude.json", ".config/claude"]),
    (&["codex", "codex-acp"], &[".codex"]),
    (&["gemini"], &[".gemini"]),
    (&["copilot", "copilot-ls", "copilot-language-server"], &[".copilot", ".config/github-copilot"]),
    (&["cursor", "cursor-agent"], &[".cursor", ".config/cursor"]),
    (&["opencode"], &[".local/share/opencode", ".local/state/opencode"]),
    (&["goose"], &[".config/goose", ".local/share/goose", ".local/state/goose"]),
    (&["qwen"], &[".qwen"]),
    (&["kimi"], &[".kimi"]),
    (&["vibe", "vibe-acp"], &[".vibe"]),
    (&["amp", "amp-acp"], &[".config/amp", ".local/share/amp"]),
    (&["auggie"], &[".augment"]),
    (&["cline"], &[".cline"]),
    (&["codebuddy"], &[".codebuddy"]),
    (&["droid"], &[".factory"]),
    (&["fast-agent", "fast-agent-acp"], &[".fast-agent"]),
    (&["hermes"], &[".hermes"]),
    (&["junie"], &[".junie"]),
    (&["kilo"], &[".config/kilo", ".local/share/kilo", ".local/state/kilo"]),
    (&["kiro", "kiro-cli"], &[".kiro", ".local/share/kiro-cli"]),
    (&["openhands"], &[".openhands"]),
    (&["openoxide"], &[".openoxide"]),
    (&["pi", "pi-acp"], &[".pi"]),
    (&["qoder", "qodercli"], &[".qoder"]),
    (&["stakpak"], &[".stakpak"]),
    (&["zeptoclaw"], &[".zeptoclaw"]),
    // The built-in one, whose folder is in parlor's.
    (&["demo"], &[]),
];

/// Folders of many programs, which no variable opens as the state of one.
pub const WIDE: &[&str] = &[
    ".config",
    ".cache",
    ".local/bin",
    ".local/share",
    ".local/state",
    "bin",
    "Library/Application Support",
    "Library/Caches",
];

/// Files in the state folder of an agent, or in its subfolder `agent`, that run programs or instruct the agent in later
/// sessions, which may have no sandbox.
pub const AGENT_SETTINGS: &[&str] = &[
    "settings.json",
    "settings.local.json",
    "config.toml",
    "config.yaml",
    "mcp.json",
    "mcp-config.json",
    "hooks.json",
    "hooks",
    "agents",
    "bin",
    "commands",
    "extensions",
    "local",
    "plugins",
    "prompts",
    "rules",
    "skills",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    "QWEN.md",
];

/// Files in caches that shells, git or builds execute.
pub const CACHED_PROGRAMS: &[(&str, &str)] = &[
    (".cache/p10k-instant-prompt*", "zsh runs it"),
    (".cache/p10k-*", "zsh runs it"),
    (".cache/gitstatus", "zsh runs it"),
    (".cache/starship", "shells run it"),
    (".cache/oh-my-zsh", "zsh runs it"),
    (".cache/pre-commit", "git runs it as a hook"),
    (".gradle/init.d", "each build of Gradle runs it"),
    (".gradle/init.gradle", "each build of Gradle runs it"),
    (".gradle/init.gradle.kts", "each build of Gradle runs it"),
    (".gradle/gradle.properties", "it has options of each build"),
];

/// Files and folders with secrets, except for those in [`READABLE`].
pub const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".config/git/credentials",
    ".docker/config.json",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".git-credentials",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".pypirc",
    ".vault-token",
    ".terraform.d/credentials.tfrc.json",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    // Browsers and mail.
    ".mozilla",
    ".thunderbird",
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/google-chrome",
    ".config/microsoft-edge",
    ".config/vivaldi",
    "snap/firefox",
    "snap/chromium",
    ".var/app",
    // The same on macOS.
    "Library/Application Support/Arc",
    "Library/Application Support/BraveSoftware",
    "Library/Application Support/Chromium",
    "Library/Application Support/Firefox",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Microsoft Edge",
    "Library/Application Support/Vivaldi",
    "Library/Cookies",
    "Library/Keychains",
    "Library/Mail",
    "Library/Messages",
    "Library/Safari",
    "Library/Thunderbird",
    // Command histories.
    ".bash_history",
    ".zsh_history",
    ".zsh_sessions",
    ".local/share/fish/fish_history",
    ".node_repl_history",
    ".python_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
];

/// What is not secret in a secret folder: ssh needs it, with the keys in an agent.
pub const READABLE: &[&str] = &[".ssh/config", ".ssh/known_hosts", ".ssh/*.pub"];

/// Sockets of programs that run commands for whoever connects. `$XDG_RUNTIME_DIR` is added, without the agents of ssh and
/// gpg.
pub const WAYS_OUT: &[&str] = &[
    "/run/user/*",
    "/run/docker.sock",
    "/run/containerd",
    "/run/crio",
    "/run/podman",
    "/run/snapd.socket",
    "/run/snapd-snap.socket",
    "/run/libvirt",
    "/run/incus",
    "/run/lxd",
    "/var/lib/incus/unix.socket",
    "/var/lib/lxd/unix.socket",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/run/screen",
    "/run/tmux",
    "/tmp/tmux-*",
    "/tmp/screen*",
    "/tmp/uscreens",
    "/tmp/zellij-*",
    "/tmp/.X11-unix",
    "/tmp/.ICE-unix",
    "/tmp/emacs*",
    "/tmp/nvim.*",
    "/tmp/kitty-*",
    "/tmp/mykitty*",
    "/tmp/vscode-ipc-*",
    "/tmp/vscode-git-*",
    "/tmp/podman-run-*",
    "/tmp/dbus-*",
    ".docker/run",
    ".docker/desktop",
    ".colima",
    ".orbstack/run",
    "Library/Containers/com.docker.docker/Data",
    "/var/run/docker.sock",
    ".screen",
    ".emacs.d/server",
];

/// Entries of a git directory that are or name programs, or that point to other git directories.
pub const GIT_PROGRAMS: &[&str] = &["config", "config.worktree", "hooks", "commondir", "gitdir"];

/// Hooks that git runs. Source: githooks(5).
pub const GIT_HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "prepare-commit-msg",
    "reference-transaction",
    "sendemail-validate",
];

/// Files in folders at the top of a session's folder that tools run or obey.
pub const SETTINGS: &[&str] = &[
    ".cargo/config",
    ".cargo/config.toml",
    ".hg/hgrc",
    ".idea/workspace.xml",
    ".vscode/extensions.json",
    ".vscode/launch.json",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    ".zed/settings.json",
    ".zed/tasks.json",
];

/// Names that the policy protects but that an agent may write in a sandbox: the output of package managers, what runs on
/// other machines only, and what git itself replaces in a checkout.
pub const WRITABLE_NAMES: &[&str] = &[
    "node_modules",
    ".venv",
    "venv",
    "site-packages",
    ".yarn",
    ".bundle",
    ".github",
    ".circleci",
    ".gitlab-ci.yml",
    ".gitattributes",
    ".gitmodules",
    "rust-toolchain",
    "rust-toolchain.toml",
    ".npmrc",
];
