//! A pull request as people write it: `PR #42`, `PR 42`, `#42`, `42`, `owner/repo#42`, a URL.

use url::Url;

use super::options::is_repository;

/// Words that may stand before the number.
const PREFIXES: [&str; 4] = ["pr", "pull", "request", "pull-request"];

/// Which pull request is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRef {
    pub number: u64,
    /// `owner/repo`, if the text names one.
    pub repository: Option<String>,
    /// Of a URL: `https://github.com`. The surface checks that it is the server it works with.
    pub server: Option<String>,
}

impl PullRef {
    /// Reads one from the words of a command line, which may be split or quoted in any way: all
    /// words are used, and `rest` gets those after it.
    pub fn from_words(words: &[String]) -> Result<(Self, Vec<String>), String> {
        let joined = words.join(" ");
        let words: Vec<&str> = joined.split_whitespace().collect();
        let (pull, rest) = Self::take(&words)?;
        Ok((pull, rest.iter().map(|word| (*word).to_owned()).collect()))
    }

    /// Reads one from the first words; what follows it is returned.
    pub(super) fn take<'a>(words: &'a [&'a str]) -> Result<(Self, &'a [&'a str]), String> {
        let is_prefix = |word: &&&str| PREFIXES.contains(&word.to_lowercase().as_str());
        let skipped = words.iter().take_while(is_prefix).count();
        let Some(word) = words.get(skipped) else {
            return Err(
                "the number of the pull request is missing (a shell takes an unquoted `#1` for a \
                 comment: write 1 or '#1')"
                    .to_owned(),
            );
        };
        let pull = Self::read(word)
            .ok_or_else(|| format!("`{word}` is not the number or the URL of a pull request"))?;
        Ok((pull, &words[skipped + 1..]))
    }

    fn read(word: &str) -> Option<Self> {
        // As some chats send links.
        let word = word
            .trim_start_matches('<')
            .trim_end_matches(['>', ',', '.', ';']);
        if word.contains("://") {
            return Self::from_url(word);
        }
        let (before, digits) = word.split_once('#').unwrap_or(("", word));
        let number = number(digits)?;
        let repository = match before {
            "" => None,
            prefix if PREFIXES.contains(&prefix.to_lowercase().as_str()) => None,
            repository if is_repository(repository) => Some(repository.to_owned()),
            _ => return None,
        };
        Some(Self {
            number,
            repository,
            server: None,
        })
    }

    /// Also of one of its pages, such as `/files`.
    fn from_url(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        if !matches!(url.scheme(), "http" | "https") || url.cannot_be_a_base() {
            return None;
        }
        let mut segments = url.path_segments()?;
        let (owner, name) = (segments.next()?, segments.next()?);
        if !matches!(segments.next()?, "pull" | "pulls") {
            return None;
        }
        let number = number(segments.next()?)?;
        let repository = format!("{owner}/{name}");
        is_repository(&repository).then(|| Self {
            number,
            repository: Some(repository),
            server: Some(url.origin().ascii_serialization()),
        })
    }
}

/// Not zero, and digits only: `+1` is no number here.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        .then(|| digits.parse().ok())
        .flatten()
        .filter(|n| *n > 0)
}

/// Whether the text begins like a pull request, so that what is wrong with it is a mistake and not
/// a sentence.
pub(super) fn looks_like_one(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    let word = word.trim_start_matches('<').to_lowercase();
    let before = word.split_once('#').map(|(before, _)| before);
    word.starts_with(|c: char| c.is_ascii_digit() || c == '#')
        || word.contains("://")
        || matches!(word.as_str(), "pr" | "pull" | "pull-request" | "in")
        || before.is_some_and(|before| is_repository(before) || PREFIXES.contains(&before))
}
