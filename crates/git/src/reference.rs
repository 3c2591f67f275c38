//! Names of branches.

/// Whether git would take this as the name of a branch: the rules of `git check-ref-format
/// --branch`, without the short forms (`@{-1}`).
pub fn is_branch_name(name: &str) -> bool {
    let bad_part = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    let bad_char = |c: char| c <= ' ' || c == '\u{7f}' || "~^:?*[\\".contains(c);
    !name.is_empty()
        && name != "HEAD"
        && !name.starts_with('-')
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(bad_char)
        && !name.split('/').any(bad_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_git_judges_them() {
        let names = [
            "main",
            "a/b",
            "feature/x-1",
            "ä",
            "a@b",
            "a.b",
            "-x",
            "a..b",
            "a~1",
            "a^",
            "a:b",
            "a b",
            "a\\b",
            "a[",
            "a?",
            "a*",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "a.",
            "@",
            "a@{1}",
            "",
            "a\u{7f}",
            "a\nb",
            "HEAD",
        ];
        for name in names {
            let status = std::process::Command::new("git")
                .args(["check-ref-format", "--branch", name])
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .status()
                .unwrap();
            assert_eq!(is_branch_name(name), status.success(), "{name:?}");
        }
    }
}
