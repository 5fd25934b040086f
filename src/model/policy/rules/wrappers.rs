//! Programs that run the command in their arguments, and options that make a harmless program run or write something.

use super::shell::{self, Command, Line, Word};
use crate::model::policy::command::{SHELLS, is_plain_environment};

/// Maximum number of lines in lines: `sh -c "sh -c …"`.
const MAX_LINES_INSIDE: usize = 4;

/// Programs that run their arguments: options with and without a value, and the number of words before the command.
const WRAPPERS: &[(&str, &str, &str, usize)] = &[
    ("timeout", "-k -s --kill-after --signal", "--preserve-status --foreground -v", 1),
    ("gtimeout", "-k -s --kill-after --signal", "--preserve-status --foreground -v", 1),
    ("nice", "-n --adjustment", "", 0),
    ("nohup", "", "", 0),
    ("setsid", "", "-f -w --fork --wait", 0),
    ("stdbuf", "-i -o -e --input --output --error", "", 0),
    ("ionice", "-c -n --class --classdata", "-t", 0),
    ("time", "", "-p", 0),
    ("command", "", "-p", 0),
    ("builtin", "", "", 0),
    ("exec", "-a", "-c -l", 0),
    ("noglob", "", "", 0),
    ("nocorrect", "", "", 0),
    ("busybox", "", "", 0),
    ("toybox", "", "", 0),
    ("flock", "-w -E", "-n -s -x -e -u -o", 1),
    ("env", "-u --unset", "-i - -0 --ignore-environment", 0),
    ("sudo", "-u -g --user --group", "-n -E -H -b -k", 0),
    ("doas", "-u", "-n", 0),
    (
        "xargs",
        "-n -P -L -d -s -E -I --max-args --max-procs --delimiter --max-lines",
        "-0 -r -t -x --null --no-run-if-empty --verbose",
        0,
    ),
];

/// Programs that change what later commands do, or that run text that is not parsed here, or with the rights of another
/// user: only a rule without `*` allows them.
const ONLY_EXACT: &str = "sudo doas su pkexec runuser chroot unshare nsenter systemd-run source . trap \
    alias unalias set shopt enable hash let read mapfile readarray getopts export declare typeset local \
    readonly unset bind complete compgen jobs fc coproc eval setopt unsetopt zmodload autoload functions \
    watch parallel script at batch crontab ssh mosh rsh tmux screen strace ltrace valgrind entr expect \
    ld.so dd select function repeat foreach then do else if while until for case emulate test [ vared \
    print bindkey zle sched rlwrap socat nc ncat telnet ed ex vi vim nvim view emacs nano gdb lldb sqlite3 \
    psql mysql osascript launchctl systemctl";

/// Programs that run code in their arguments: `*` stands only for what follows a file, script or task in the rule.
const INTERPRETERS: &str = "sed gsed awk gawk mawk nawk perl python python2 python3 ruby node nodejs deno \
    bun php lua luajit tclsh Rscript R julia ghci elixir erl scala groovy jshell java swift dart pwsh \
    powershell sh bash dash zsh ksh mksh ash fish csh tcsh nu npx bunx pnpx uvx pipx npm pnpm yarn docker \
    podman kubectl mise devbox nix nix-shell poetry uv rye hatch tox nox make gmake just task ninja cmake \
    gradle gradlew mvn ant rake bundle gem pip pip3 brew gh direnv asdf cargo go git helm terraform \
    ansible vagrant dotnet composer mix lein sbt stack";

/// Options, and other words, that `*` does not stand for: program, letters of short options, long options, words.
const OPTIONS: &[(&str, &str, &str, &str)] = &[
    (
        "git",
        "cCxOo",
        "exec-path git-dir work-tree config-env exec upload-pack receive-pack output textconv \
         open-files-in-pager ext-diff template extcmd separate-git-dir config no-index file",
        "",
    ),
    ("find", "", "", "-delete -fprint -fprint0 -fprintf -fls -ok -okdir -files0-from"),
    ("fd", "xX", "exec exec-batch", ""),
    ("fdfind", "xX", "exec exec-batch", ""),
    ("rg", "z", "pre hostname-bin search-zip", ""),
    ("bat", "", "pager config-file", "cache"),
    ("sort", "oTS", "output compress-program temporary-directory files0-from", ""),
    ("tree", "o", "output", ""),
    ("less", "oOkP", "lesskey-file lesskey-src lesskey-content log-file", "+"),
    ("man", "PHC", "pager html config-file", ""),
    (
        "tar",
        "IFTCPi",
        "to-command use-compress-program checkpoint-action info-script new-volume-script rsh-command \
         rmt-command absolute-names directory files-from",
        "",
    ),
    ("zip", "TO", "unzip-command test output-file", ""),
    ("rsync", "eMT", "rsh rsync-path remote-option daemon write-batch temp-dir", ""),
    ("scp", "SoFD", "", ""),
    ("sftp", "SoFDb", "", ""),
    (
        "curl",
        "oOKTJDcEF",
        "output output-dir remote-name remote-name-all config upload-file dump-header cookie-jar trace \
         trace-ascii stderr engine etag-save lib remote-header-name hsts alt-svc",
        "",
    ),
    (
        "wget",
        "OPoaei",
        "output-document directory-prefix execute use-askpass config post-file body-file output-file",
        "",
    ),
    ("sed", "eifEs", "expression file in-place separate", ""),
    ("gsed", "eifEs", "expression file in-place separate", ""),
    ("awk", "fivleEdop", "file include load source exec dump-variables pretty-print", ""),
    ("gawk", "fivleEdop", "file include load source exec dump-variables pretty-print", ""),
    ("cargo", "CZ", "config manifest-path target-dir out-dir artifact-dir root", "+"),
    ("go", "Co", "", "-exec -toolexec -vettool -overlay -modfile -o -w -ldflags -gcflags"),
    ("make", "fCEIo", "eval file makefile directory include-dir", "="),
    ("gmake", "fCEIo", "eval file makefile directory include-dir", "="),
    ("npm", "C", "prefix script-shell node-options globalconfig userconfig", ""),
    ("pytest", "pco", "rootdir confcutdir override-ini basetemp config-file", ""),
    ("gcc", "Bo", "specs plugin", "-wrapper -specs -fplugin @"),
    ("cc", "Bo", "specs plugin", "-wrapper -specs -fplugin @"),
    ("clang", "Bo", "specs plugin", "-Xclang -fplugin -load @"),
    ("rustc", "CLZo", "codegen sysroot out-dir", "@"),
    ("split", "", "filter", ""),
    ("printf", "v", "", ""),
    ("date", "s", "set", ""),
    ("hostname", "F", "file", ""),
    ("diff", "", "output to-file", ""),
    ("jq", "fL", "from-file", ""),
    ("yq", "i", "inplace in-place", ""),
    ("prettier", "", "plugin config write", ""),
    ("eslint", "c", "config rulesdir resolve-plugins-relative-to output-file fix", ""),
    ("black", "", "config", ""),
    ("cmake", "PE", "build", "-P -E"),
];

/// The name of a program, without its folder.
pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether only a rule without `*` allows a program.
pub(super) fn needs_exact_rule(program: &str) -> bool {
    ONLY_EXACT.split(' ').any(|name| name == program)
}

/// Whether a `*` for the first operand of a program would stand for code.
pub(super) fn runs_arguments(program: &str) -> bool {
    INTERPRETERS.split(' ').any(|name| name == program)
}

/// Whether `*` must not stand for this argument of a program.
pub(super) fn is_risky(program: &str, word: &Word) -> bool {
    let Some((_, letters, longs, words)) = OPTIONS.iter().find(|options| options.0 == program) else {
        return false;
    };
    let text = word.text.as_str();
    if !word.is_known && (text.is_empty() || word.can_split || text.starts_with('-')) {
        // A part that is split off may be an option; the start of a name of a file cannot.
        let is_path = !text.is_empty() && !text.starts_with('-') && text.contains('/');
        return !is_path || word.can_split && text.contains('$');
    }
    let is_listed = words.split_whitespace().any(|listed| match listed {
        "=" => text.contains('='),
        "+" | "@" => text.starts_with(listed),
        listed => text == listed || text.strip_prefix(listed).is_some_and(|rest| rest.starts_with('=')),
    });
    if is_listed || program == "git" && text.contains("::") {
        return true;
    }
    if let Some(long) = text.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or_default();
        // Unambiguous starts of names are options too.
        return !name.is_empty()
            && longs.split_whitespace().any(|known| known.starts_with(name) || name.starts_with(known));
    }
    let short = text.strip_prefix('-');
    // The first argument of tar needs no dash.
    let short = short.or_else(|| (program == "tar" && !text.contains(['.', '/'])).then_some(text));
    short.is_some_and(|short| short.chars().any(|c| letters.contains(c)))
}

/// Whether an assignment before a command is harmless.
pub(super) fn is_plain_assignment(word: &Word) -> bool {
    let pair = word.as_known().and_then(|text| text.split_once('='));
    pair.is_some_and(|(name, value)| is_plain_environment(&[(name.to_owned(), value.to_owned())]))
}

/// A command of a line, or in another command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) command: Command,
    /// Whether a rule must allow it. What only runs another command needs no rule, but can be denied.
    pub(super) needs_rule: bool,
}

/// The commands of a line, with those that its commands run; and the line with all redirections.
pub(super) fn parts_of(line: &str) -> Result<(Vec<Part>, Line), String> {
    let (mut parts, mut whole) = (Vec::new(), Line::default());
    add_line(line, 0, &mut parts, &mut whole)?;
    Ok((parts, whole))
}

fn add_line(line: &str, depth: usize, parts: &mut Vec<Part>, whole: &mut Line) -> Result<(), String> {
    if depth > MAX_LINES_INSIDE {
        return Err("it is nested too deeply".to_owned());
    }
    let mut parsed = shell::parse(line)?;
    for command in parsed.commands.drain(..) {
        add_command(command, depth, parts, whole)?;
    }
    whole.redirects.append(&mut parsed.redirects);
    Ok(())
}

fn add_command(
    command: Command,
    depth: usize,
    parts: &mut Vec<Part>,
    whole: &mut Line,
) -> Result<(), String> {
    if depth > MAX_LINES_INSIDE {
        return Err("it is nested too deeply".to_owned());
    }
    let Some(program) = command.words.first() else {
        parts.push(Part { command, needs_rule: true });
        return Ok(());
    };
    let Some(program) = program.as_known() else {
        return Err("the name of a program is not known".to_owned());
    };
    let name = base_name(program);
    // Another file may have the name of a program that is known.
    let is_known = matches!(program.strip_suffix(name), Some("" | "/bin/" | "/usr/bin/"));
    let not_understood = || format!("the arguments of {name} are not understood");
    if (SHELLS.contains(&name) || name == "eval") && !command.assignments.iter().all(is_plain_assignment) {
        return Err("a shell is given variables".to_owned());
    }
    let mut push = |command: &Command, needs_rule| parts.push(Part { command: command.clone(), needs_rule });
    if SHELLS.contains(&name) || name == "eval" {
        let args = command.words.get(1..).unwrap_or_default();
        let flags = args.first().and_then(Word::as_known).unwrap_or_default();
        let line = if name == "eval" {
            let words: Option<Vec<&str>> = args.iter().map(Word::as_known).collect();
            Some(words.ok_or_else(not_understood)?.join(" "))
        } else if flags.starts_with('-')
            && flags.ends_with('c')
            && flags.chars().skip(1).all(|c| "eluxc".contains(c))
        {
            let line = args.get(1).and_then(Word::as_known);
            Some(line.ok_or_else(not_understood)?.to_owned())
        } else if args
            .iter()
            .any(|word| !word.is_known || word.text.starts_with(['-', '+']) && word.text.contains('c'))
        {
            return Err(not_understood());
        } else {
            None
        };
        push(&command, line.is_none() || !is_known);
        return line.map_or(Ok(()), |line| add_line(&line, depth + 1, parts, whole));
    }
    if name == "find" {
        push(&command, true);
        let mut words = command.words.iter();
        while let Some(word) = words.next() {
            if matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
                let inner = words.by_ref().take_while(|word| !matches!(word.text.as_str(), ";" | "+"));
                let words: Vec<Word> = inner.map(|word| unknown_if_contains(word, "{}")).collect();
                add_inner(&command, Vec::new(), words, depth, parts, whole)?;
            }
        }
        return Ok(());
    }
    let Some((_, valued, flags, operands)) = WRAPPERS.iter().find(|wrapper| wrapper.0 == name) else {
        push(&command, true);
        return Ok(());
    };
    let is_exact = needs_exact_rule(name);
    push(&command, is_exact || !is_known);
    let first = parts.len();
    let (mut assignments, mut words, mut left) = (Vec::new(), Vec::new(), *operands);
    let (mut replaced, mut rest) = (None, command.words.iter().skip(1));
    let mut takes_options = true;
    while let Some(word) = rest.next() {
        let text = word.as_known();
        let is_option = takes_options && word.text.starts_with('-');
        if is_option && text == Some("--") {
            takes_options = false;
        } else if is_option {
            let text = text.ok_or_else(not_understood)?;
            let attached = |option: &&str| {
                text.strip_prefix(*option)
                    .is_some_and(|rest| rest.starts_with('=') || !option.starts_with("--"))
            };
            if valued.split(' ').any(|option| option == text) {
                let value = rest.next().and_then(Word::as_known).ok_or_else(not_understood)?;
                replaced = (name == "xargs" && text == "-I").then(|| value.to_owned()).or(replaced);
            } else if let Some(option) = valued.split(' ').filter(|option| !option.is_empty()).find(attached)
            {
                let value = text.strip_prefix(option).unwrap_or_default();
                replaced = (name == "xargs" && option == "-I").then(|| value.to_owned()).or(replaced);
            } else if !flags.split(' ').any(|flag| flag == text) {
                return Err(not_understood());
            }
        } else if left > 0 {
            left -= 1;
            takes_options &= !word.can_split;
            if word.can_split {
                return Err(not_understood());
            }
        } else if matches!(name, "env" | "sudo") && words.is_empty() && word.text.contains('=') {
            takes_options = false;
            assignments.push(word.clone());
        } else {
            words.push(word.clone());
            words.extend(rest.by_ref().cloned());
        }
    }
    if name == "xargs" {
        match replaced {
            Some(text) => words = words.iter().map(|word| unknown_if_contains(word, &text)).collect(),
            None if words.is_empty() => {}
            None => words.push(Word::unknown(true)),
        }
    }
    if words.is_empty() {
        // It runs nothing else: the rules are about the wrapper.
        parts.iter_mut().skip(first - 1).for_each(|part| part.needs_rule = true);
        return Ok(());
    }
    add_inner(&command, assignments, words, depth, parts, whole)?;
    // The rule for `sudo` itself names the command.
    parts.iter_mut().skip(first).filter(|_| is_exact).for_each(|part| part.needs_rule = false);
    Ok(())
}

fn add_inner(
    outer: &Command,
    assignments: Vec<Word>,
    words: Vec<Word>,
    depth: usize,
    parts: &mut Vec<Part>,
    whole: &mut Line,
) -> Result<(), String> {
    let shown = |word: &Word| if word.is_known { word.text.clone() } else { format!("{}…", word.text) };
    let text = assignments.iter().chain(&words).map(shown).collect::<Vec<_>>().join(" ");
    let assignments = outer.assignments.iter().cloned().chain(assignments).collect();
    add_command(Command { assignments, words, text }, depth + 1, parts, whole)
}

fn unknown_if_contains(word: &Word, text: &str) -> Word {
    match word.text.split_once(text) {
        Some((start, _)) if !text.is_empty() => {
            Word { text: start.to_owned(), is_known: false, ..word.clone() }
        }
        _ => word.clone(),
    }
}
