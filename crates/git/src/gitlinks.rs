//! The submodules that a commit names, as its tree and its `.gitmodules` say. All of it is data of a
//! repository that may be hostile.

use crate::{Git, GitError, GitLimits, zero_separated};

/// The mode of a submodule in a tree.
const MODE: &str = "160000";
/// A larger `.gitmodules` is not read.
const MOST_SETTINGS: usize = 1 << 20;

/// A submodule of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gitlink {
    /// Where its files belong. Git keeps names such as `..` out of trees that it writes out.
    pub(crate) path: String,
    /// What is wanted of it.
    pub(crate) commit: String,
    /// What `.gitmodules` calls it; the path where it says nothing.
    pub(crate) name: String,
    /// Where `.gitmodules` says that it is.
    pub(crate) url: Option<String>,
}

impl Git {
    /// Those of a commit, not of their own ones.
    pub(crate) fn gitlinks(&self, commit: &str) -> Result<Vec<Gitlink>, GitError> {
        let listed = self.run(["ls-tree", "-r", "-z", "--full-tree", commit])?;
        let found: Vec<(&str, &str)> = zero_separated(&listed.out)
            .filter_map(|line| {
                let (about, path) = std::str::from_utf8(line).ok()?.split_once('\t')?;
                let mut about = about.split(' ');
                let is_module = about.next() == Some(MODE);
                let object = about.nth(1)?;
                is_module.then_some((path, object))
            })
            .collect();
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let settings = self.module_settings(commit);
        let named = |path: &str| {
            let mut paths = settings.iter().filter(|(_, key, _)| key == "path");
            paths.find(|(_, _, value)| value == path)
        };
        let links = found.into_iter().map(|(path, commit)| {
            let name = named(path).map(|(name, _, _)| name.as_str());
            let mut urls = settings.iter().filter(|(_, key, _)| key == "url");
            let url = urls.find(|(of, _, _)| Some(of.as_str()) == name);
            Gitlink {
                path: path.to_owned(),
                commit: commit.to_owned(),
                name: name.unwrap_or(path).to_owned(),
                url: url.map(|(_, _, url)| url.clone()),
            }
        });
        Ok(links.collect())
    }

    /// Name, key and value of each entry. A file that cannot be read says nothing.
    fn module_settings(&self, commit: &str) -> Vec<(String, String, String)> {
        let blob = format!("{commit}:.gitmodules");
        let limits = GitLimits {
            bytes: MOST_SETTINGS,
            ..GitLimits::default()
        };
        let call = self.call(["config", "--blob", &blob, "--list", "-z"]);
        let output = call
            .limits(limits)
            .run()
            .and_then(|output| output.checked());
        let output = output.map(|output| output.out).unwrap_or_default();
        zero_separated(&output)
            .filter_map(|entry| {
                let (key, value) = std::str::from_utf8(entry).ok()?.split_once('\n')?;
                let (name, key) = key.strip_prefix("submodule.")?.rsplit_once('.')?;
                Some((name.to_owned(), key.to_owned(), value.to_owned()))
            })
            .collect()
    }
}
