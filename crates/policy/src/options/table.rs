//! Options that make a command write files or run other commands, by command.
//!
//! The tables list only what is dangerous and, where needed, the letters that take a value, so that
//! the value is not mistaken for more letters. They are read by `options/mod.rs`; nothing else
//! decides on them.
//!
//! To add a command, list every option that writes a file, runs a program or loads a configuration
//! that can do either. An option too many costs a question, a missing one is a hole.

/// What an option makes the command do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// It writes a file, or changes something else. The option itself has to be spelled out by a
    /// rule.
    Writes,
    /// It runs a command, or works with another configuration. The option has to be spelled out by
    /// a rule, with the word after it unless the value is attached with `=`.
    Runs,
}

use Act::{Runs, Writes};

/// The options of one command that matter.
#[derive(Debug)]
pub(super) struct Options {
    /// Its name; for git also the subcommand, `git grep`.
    pub(super) command: &'static str,
    /// Names after `--`; a beginning of one counts too, as programs accept it.
    pub(super) long: &'static [(&'static str, Act)],
    /// Letters after `-`, alone or among others.
    pub(super) short: &'static [(char, Act)],
    /// Letters that take the rest of the word as their value. Without them, a letter inside a value
    /// would be taken for an option.
    pub(super) valued: &'static str,
    /// Words that count as a whole: `-delete` of find.
    pub(super) words: &'static [(&'static str, Act)],
}

/// The base of all other tables.
const NONE: Options = Options {
    command: "",
    long: &[],
    short: &[],
    valued: "",
    words: &[],
};

/// Options of git that stand before the subcommand.
pub(super) const GIT_GLOBAL: Options = Options {
    command: "git",
    long: &[
        ("config-env", Runs),
        ("exec-path", Runs),
        ("git-dir", Runs),
        ("work-tree", Runs),
        ("namespace", Runs),
        ("super-prefix", Runs),
        ("bare", Runs),
        ("paginate", Runs),
    ],
    short: &[('c', Runs), ('C', Runs), ('p', Runs)],
    ..NONE
};

/// Options of every subcommand of git: most take those of `git diff`.
pub(super) const GIT: Options = Options {
    command: "git",
    long: &[
        ("output", Writes),
        ("ext-diff", Runs),
        ("textconv", Runs),
        ("open-files-in-pager", Runs),
        ("exec", Runs),
        ("extcmd", Runs),
        ("tool", Runs),
        ("upload-pack", Runs),
        ("receive-pack", Runs),
        ("config", Runs),
        ("template", Runs),
    ],
    ..NONE
};

/// Options that only one subcommand of git has. Short letters mean different things to different
/// subcommands: `-O` runs a pager in `git grep` and names an order file in `git diff`.
pub(super) const GIT_SUBCOMMANDS: &[Options] = &[
    Options {
        command: "grep",
        short: &[('O', Runs)],
        valued: "efABCm",
        ..NONE
    },
    Options {
        command: "archive",
        short: &[('o', Writes)],
        ..NONE
    },
    Options {
        command: "rebase",
        short: &[('x', Runs)],
        valued: "sXC",
        ..NONE
    },
    Options {
        command: "difftool",
        short: &[('x', Runs), ('t', Runs)],
        ..NONE
    },
    Options {
        command: "clone",
        short: &[('c', Runs), ('u', Runs)],
        valued: "bo",
        ..NONE
    },
    Options {
        command: "bisect",
        words: &[("run", Runs)],
        ..NONE
    },
    Options {
        command: "submodule",
        words: &[("foreach", Runs)],
        ..NONE
    },
];

/// The other commands. Commands whose arguments are programs of their own (`sed`, `awk`), or whose
/// second file is written (`uniq`, `xxd`), have code in `options` instead.
pub(super) const COMMANDS: &[Options] = &[
    Options {
        command: "find",
        words: &[
            ("-exec", Runs),
            ("-execdir", Runs),
            ("-ok", Runs),
            ("-okdir", Runs),
            ("-delete", Writes),
            ("-fprint", Writes),
            ("-fprint0", Writes),
            ("-fprintf", Writes),
            ("-fls", Writes),
        ],
        ..NONE
    },
    Options {
        command: "fd",
        long: &[("exec", Runs), ("exec-batch", Runs)],
        short: &[('x', Runs), ('X', Runs)],
        valued: "dtEeScj",
        ..NONE
    },
    Options {
        command: "fdfind",
        long: &[("exec", Runs), ("exec-batch", Runs)],
        short: &[('x', Runs), ('X', Runs)],
        valued: "dtEeScj",
        ..NONE
    },
    Options {
        command: "sort",
        long: &[("output", Writes), ("compress-program", Runs)],
        short: &[('o', Writes)],
        valued: "kStT",
        ..NONE
    },
    Options {
        command: "shuf",
        long: &[("output", Writes)],
        short: &[('o', Writes)],
        valued: "in",
        ..NONE
    },
    Options {
        command: "iconv",
        long: &[("output", Writes)],
        short: &[('o', Writes)],
        valued: "ft",
        ..NONE
    },
    Options {
        command: "rg",
        long: &[("pre", Runs), ("hostname-bin", Runs)],
        ..NONE
    },
    Options {
        command: "ag",
        long: &[("pager", Runs)],
        ..NONE
    },
    Options {
        command: "ack",
        long: &[("pager", Runs)],
        ..NONE
    },
    Options {
        command: "bat",
        long: &[("pager", Runs)],
        ..NONE
    },
    Options {
        command: "fzf",
        long: &[("preview", Runs), ("bind", Runs), ("listen", Runs)],
        ..NONE
    },
    Options {
        command: "tar",
        long: &[
            ("to-command", Runs),
            ("checkpoint-action", Runs),
            ("use-compress-program", Runs),
            ("info-script", Runs),
            ("new-volume-script", Runs),
            ("rsh-command", Runs),
            ("rmt-command", Runs),
        ],
        short: &[('I', Runs), ('F', Runs)],
        ..NONE
    },
    Options {
        command: "zip",
        long: &[("unzip-command", Runs)],
        words: &[("-TT", Runs)],
        ..NONE
    },
    Options {
        command: "rsync",
        long: &[("rsh", Runs), ("rsync-path", Runs)],
        short: &[('e', Runs)],
        valued: "fBTM",
        ..NONE
    },
    Options {
        command: "tree",
        short: &[('o', Writes), ('R', Writes)],
        valued: "LPIHT",
        ..NONE
    },
    Options {
        command: "date",
        long: &[("set", Writes)],
        short: &[('s', Writes)],
        valued: "dfrI",
        ..NONE
    },
    Options {
        command: "file",
        long: &[("compile", Writes)],
        short: &[('C', Writes)],
        valued: "mfFeP",
        ..NONE
    },
    Options {
        command: "diff",
        long: &[("output", Writes)],
        ..NONE
    },
    Options {
        command: "yq",
        long: &[("inplace", Writes), ("split-exp", Writes)],
        short: &[('i', Writes), ('s', Writes)],
        ..NONE
    },
    Options {
        command: "less",
        long: &[
            ("log-file", Writes),
            ("LOG-FILE", Writes),
            ("lesskey-file", Runs),
            ("lesskey-src", Runs),
            ("lesskey-content", Runs),
        ],
        short: &[('o', Writes), ('O', Writes), ('k', Runs)],
        valued: "bhjptTxyz",
        ..NONE
    },
    Options {
        command: "man",
        long: &[("pager", Runs), ("html", Runs), ("config-file", Runs)],
        short: &[('P', Runs), ('H', Runs), ('C', Runs)],
        valued: "MrpsSe",
        ..NONE
    },
    Options {
        command: "curl",
        long: &[
            ("output", Writes),
            ("output-dir", Writes),
            ("remote-name", Writes),
            ("remote-name-all", Writes),
            ("config", Runs),
            ("upload-file", Writes),
            ("dump-header", Writes),
            ("cookie-jar", Writes),
            ("etag-save", Writes),
            ("hsts", Writes),
            ("alt-svc", Writes),
            ("libcurl", Writes),
            ("stderr", Writes),
            ("trace", Writes),
            ("trace-ascii", Writes),
        ],
        short: &[
            ('o', Writes),
            ('O', Writes),
            ('K', Runs),
            ('T', Writes),
            ('D', Writes),
            ('c', Writes),
        ],
        valued: "AbCdeEFHmPQrtuUwxXyYz",
        ..NONE
    },
    Options {
        command: "go",
        words: &[
            ("-exec", Runs),
            ("--exec", Runs),
            ("-toolexec", Runs),
            ("--toolexec", Runs),
            ("-vettool", Runs),
            ("--vettool", Runs),
        ],
        ..NONE
    },
    Options {
        command: "env",
        long: &[("split-string", Runs)],
        short: &[('S', Runs)],
        valued: "uC",
        ..NONE
    },
    Options {
        command: "time",
        long: &[("output", Writes)],
        short: &[('o', Writes)],
        valued: "f",
        ..NONE
    },
    Options {
        command: "strace",
        long: &[("output", Writes)],
        short: &[('o', Writes)],
        valued: "abeEIkpPsSuUX",
        ..NONE
    },
];

/// Long options that are complete although they are the beginning of one in the tables. `--text` is
/// an option of `git log` and would otherwise count as an abbreviation of `--textconv`.
pub(super) const COMPLETE: &[(&str, &str)] =
    &[("git", "text"), ("curl", "cookie"), ("tar", "checkpoint")];

/// Commands that run the command in their arguments: the letters of their options that take a value
/// of their own, and how many words stand before the command. `timeout` takes its duration before
/// the command, hence 1. A wrapper that is missing here is taken for a command like any other, so a
/// rule for it would permit whatever it runs.
pub(super) const WRAPPERS: &[(&str, &str, usize)] = &[
    ("sudo", "ugpChrtTUD", 0),
    ("doas", "uC", 0),
    ("env", "uCS", 0),
    ("nice", "n", 0),
    ("ionice", "cnpPu", 0),
    ("chrt", "TPD", 1),
    ("taskset", "", 1),
    ("nohup", "", 0),
    ("time", "fo", 0),
    ("timeout", "ks", 1),
    ("stdbuf", "ioe", 0),
    ("command", "", 0),
    ("builtin", "", 0),
    ("exec", "a", 0),
    ("xargs", "ILnPsdaE", 0),
    ("parallel", "jNnLIaS", 0),
    ("watch", "n", 0),
    ("setsid", "", 0),
    ("setarch", "", 1),
    ("unshare", "SGR", 0),
    ("nsenter", "tSG", 0),
    ("chroot", "", 1),
    ("strace", "abeEIkopPsSuUX", 0),
    ("ltrace", "aAeFlnopsuw", 0),
    ("flock", "wE", 1),
    ("busybox", "", 0),
    ("toybox", "", 0),
    ("caffeinate", "tw", 0),
    ("entr", "", 0),
    ("unbuffer", "", 0),
    ("fakeroot", "libfs", 0),
    ("runuser", "ugG", 0),
    ("setpriv", "", 0),
    ("npx", "pc", 0),
    ("bunx", "", 0),
    ("uvx", "", 0),
];
