//! Commands that run whatever text they are given: shells and interpreters.
//!
//! The one list of them. Rules that forbid look into what a shell is handed; rules that are offered
//! never end in a wildcard behind one of these names, since such a rule would allow everything. So
//! a name that is missing here makes both weaker, and one too many only costs a question more.

use super::base_name;

/// What `-c` hands a command line to.
const SHELLS: &[&str] = &[
    "sh", "bash", "zsh", "dash", "ksh", "mksh", "pdksh", "oksh", "yash", "ash", "fish", "rbash",
    "rksh", "rzsh", "csh", "tcsh", "elvish", "xonsh",
];

/// What runs a program in a language of its own, from a file, an argument or its input. Package
/// managers that run files as well (`bun`, `deno`) are among them.
const INTERPRETERS: &[&str] = &[
    "python",
    "pypy",
    "ipython",
    "node",
    "nodejs",
    "deno",
    "bun",
    "tsx",
    "ts-node",
    "perl",
    "ruby",
    "irb",
    "jruby",
    "php",
    "php-cgi",
    "lua",
    "luajit",
    "tclsh",
    "wish",
    "expect",
    "Rscript",
    "R",
    "julia",
    "guile",
    "scheme",
    "racket",
    "sbcl",
    "clisp",
    "emacs",
    "elixir",
    "iex",
    "erl",
    "escript",
    "groovy",
    "scala",
    "kotlin",
    "jshell",
    "java",
    "ghci",
    "runghc",
    "runhaskell",
    "ocaml",
    "swipl",
    "gjs",
    "qjs",
    "pwsh",
    "powershell",
    "cmd",
    "osascript",
    "psql",
    "mysql",
    "mariadb",
    "sqlite",
    "duckdb",
    "xargs",
    "parallel",
    "bc",
    "m4",
    "gnuplot",
    "nu",
    "octave",
    "nix-shell",
];

/// The name of a program without the version that distributions add: `python3.12`, `lua5.4`.
fn without_version(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

fn is_in(list: &[&str], command: &str) -> bool {
    let name = base_name(command);
    list.contains(&name) || list.contains(&without_version(name))
}

/// Whether the command is a shell.
pub(crate) fn is_shell(command: &str) -> bool {
    is_in(SHELLS, command)
}

/// Whether the command runs what it is given, as a shell or as an interpreter.
pub(crate) fn is_interpreter(command: &str) -> bool {
    is_shell(command) || is_in(INTERPRETERS, command)
}

#[cfg(test)]
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    SHELLS.iter().chain(INTERPRETERS).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_paths_do_not_hide_an_interpreter() {
        for name in ["/usr/bin/python3.12", "lua5.4", "ksh93", "bash.exe", "php8"] {
            assert!(is_interpreter(name), "{name}");
        }
        assert!(is_shell("/bin/mksh") && !is_shell("python3"));
        for name in ["ls", "git", "cargo", "notebook", "3.4", ""] {
            assert!(!is_interpreter(name), "{name}");
        }
    }
}
