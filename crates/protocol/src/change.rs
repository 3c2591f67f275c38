//! A set of changes to the files of a repository: what one commit does.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A file's place in a repository: relative, with forward slashes, inside, and never in `.git`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepoPath(String);

/// Why a text is no path of a repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` {reason}")]
pub struct BadPath {
    /// The text.
    pub path: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl RepoPath {
    /// Checks a text. `./` before it is dropped.
    pub fn new(text: &str) -> Result<Self, BadPath> {
        let bad = |reason| BadPath {
            path: text.to_owned(),
            reason,
        };
        let path = text.strip_prefix("./").unwrap_or(text);
        if path.is_empty() {
            return Err(bad("is empty"));
        }
        if path.starts_with('/') || path.starts_with('~') || has_drive(path) {
            return Err(bad("is not relative to the repository"));
        }
        if path.contains('\\') {
            return Err(bad("has backslashes; paths are written with `/`"));
        }
        if path.chars().any(|c| c.is_control()) {
            return Err(bad("has control characters"));
        }
        for part in path.split('/') {
            if part.is_empty() {
                return Err(bad("has an empty part"));
            }
            if part == ".." {
                return Err(bad("leaves the repository"));
            }
            if part == "." {
                return Err(bad("has a `.` in the middle"));
            }
            if is_dot_git(part) {
                return Err(bad("is in the repository's own `.git`"));
            }
        }
        Ok(Self(path.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

/// `C:` and the like.
fn has_drive(path: &str) -> bool {
    let mut letters = path.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic()) && letters.next() == Some(':')
}

/// Also as file systems that fold names would read it: case, trailing dots and spaces, the short
/// name, characters that are left out.
fn is_dot_git(part: &str) -> bool {
    let folded: String = part
        .chars()
        .filter(|c| !matches!(*c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'))
        .flat_map(char::to_lowercase)
        .collect();
    let stem = folded.split(':').next().unwrap_or(&folded);
    matches!(stem.trim_end_matches(['.', ' ']), ".git" | "git~1")
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for RepoPath {
    type Err = BadPath;
    fn from_str(text: &str) -> Result<Self, BadPath> {
        Self::new(text)
    }
}

impl Serialize for RepoPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RepoPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).map_err(D::Error::custom)
    }
}

/// What kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileMode {
    /// A file.
    Regular,
    /// A file that can be run.
    Executable,
    /// A link; its content is where it points.
    Symlink,
}

impl FileMode {
    /// As git writes it.
    pub const fn as_git(self) -> &'static str {
        match self {
            Self::Regular => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
        }
    }

    /// From git's digits; `None` for directories and submodules.
    pub fn from_git(digits: &str) -> Option<Self> {
        match digits {
            "100644" | "100664" => Some(Self::Regular),
            "100755" => Some(Self::Executable),
            "120000" => Some(Self::Symlink),
            _ => None,
        }
    }
}

/// Bytes of a file; text in JSON where they are text.
#[derive(Clone, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum BytesForm {
    Text(String),
    Raw { bytes: Vec<u8> },
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => BytesForm::Raw {
                bytes: self.0.clone(),
            }
            .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match BytesForm::deserialize(deserializer)? {
            BytesForm::Text(text) => Self(text.into_bytes()),
            BytesForm::Raw { bytes } => Self(bytes),
        })
    }
}

/// What happens to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum FileChange {
    /// It is new.
    Added {
        path: RepoPath,
        /// All of it.
        content: Bytes,
        /// What kind.
        mode: FileMode,
    },
    /// It has other content.
    Modified {
        path: RepoPath,
        /// All of it, afterwards.
        content: Bytes,
        /// What kind; as before.
        mode: FileMode,
    },
    /// It goes.
    Deleted {
        /// Where it was.
        path: RepoPath,
    },
    /// It has another name, and perhaps other content.
    Moved {
        /// Where it was.
        from: RepoPath,
        to: RepoPath,
        /// All of it, afterwards.
        content: Bytes,
        /// What kind; as before.
        mode: FileMode,
    },
}

impl FileChange {
    /// Where the file is afterwards, or was.
    pub fn path(&self) -> &RepoPath {
        match self {
            Self::Added { path, .. } | Self::Modified { path, .. } | Self::Deleted { path } => path,
            Self::Moved { to, .. } => to,
        }
    }

    /// `new`, `modified`, `deleted` or `moved`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Added { .. } => "new",
            Self::Modified { .. } => "modified",
            Self::Deleted { .. } => "deleted",
            Self::Moved { .. } => "moved",
        }
    }

    /// The file afterwards; `None` when it goes.
    pub fn after(&self) -> Option<(&RepoPath, &Bytes, FileMode)> {
        match self {
            Self::Added {
                path,
                content,
                mode,
            }
            | Self::Modified {
                path,
                content,
                mode,
            } => Some((path, content, *mode)),
            Self::Moved {
                to, content, mode, ..
            } => Some((to, content, *mode)),
            Self::Deleted { .. } => None,
        }
    }

    /// The name that is gone afterwards, if one is.
    pub fn gone(&self) -> Option<&RepoPath> {
        match self {
            Self::Deleted { path } => Some(path),
            Self::Moved { from, .. } => Some(from),
            Self::Added { .. } | Self::Modified { .. } => None,
        }
    }
}

/// What one commit does. No path is in it twice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChangeSet(pub Vec<FileChange>);

impl ChangeSet {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_repository_are_refused_by_reason() {
        for (path, reason) in [
            ("../../etc/x", "leaves the repository"),
            ("a/../b", "leaves the repository"),
            ("/etc/passwd", "is not relative to the repository"),
            ("~/x", "is not relative to the repository"),
            ("C:/x", "is not relative to the repository"),
            ("a\\b", "has backslashes; paths are written with `/`"),
            (".git/config", "is in the repository's own `.git`"),
            ("sub/.GIT/hooks/x", "is in the repository's own `.git`"),
            (".git./x", "is in the repository's own `.git`"),
            ("git~1/x", "is in the repository's own `.git`"),
            (".g\u{200d}it/x", "is in the repository's own `.git`"),
            (
                ".git::$INDEX_ALLOCATION/x",
                "is in the repository's own `.git`",
            ),
            ("", "is empty"),
            ("a//b", "has an empty part"),
            ("a/", "has an empty part"),
            ("a/./b", "has a `.` in the middle"),
            ("a\nb", "has control characters"),
        ] {
            let bad = RepoPath::new(path).unwrap_err();
            assert_eq!(bad.reason, reason, "{path}");
        }
        for path in [
            "a",
            ".github/workflows/x.yml",
            ".gitignore",
            "a b/ü.rs",
            "x..y",
        ] {
            assert_eq!(RepoPath::new(path).unwrap().as_str(), path);
        }
        assert_eq!(RepoPath::new("./a/b").unwrap().as_str(), "a/b");
    }

    #[test]
    fn bytes_survive_json_whether_text_or_not() {
        for bytes in [b"a\r\n".to_vec(), vec![0xff, 0x00, 0x41]] {
            let json = serde_json::to_string(&Bytes(bytes.clone())).unwrap();
            assert_eq!(serde_json::from_str::<Bytes>(&json).unwrap(), Bytes(bytes));
        }
    }
}
