//! The attacks: TOML files in `redteam/`, each a list of cases.
//!
//! ```text
//! [[case]]
//! name = "a-command-cannot-write-outside"
//! breaks = [12]
//! bash = "echo x > @CANARY@"
//! ```
//!
//! `@REPO@`, `@HOME@`, `@STATE@`, `@OUTSIDE@`, `@CANARY@` and `@TMP@` stand for places of the
//! attack. A case is refused if it has no attack, two of them, or a name that exists.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::profile::Profile;

/// One attack: what is set up, what the attacker does, what must hold afterwards.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// The list it is in: the name of its file without the ending.
    #[serde(skip)]
    pub(super) list: String,
    /// Unique in all files; says what holds.
    pub(super) name: String,
    /// Numbers of the known breaks this one belongs to.
    #[serde(default)]
    pub(super) breaks: Vec<u32>,
    /// A shell script that prepares the repository, run outside any sandbox.
    #[serde(default)]
    pub(super) setup: String,
    /// The attack as one Bash call of the model, with permissions bypassed.
    pub(super) bash: Option<String>,
    /// The attack as a script of the model (the JSON of the test kit).
    pub(super) turns: Option<String>,
    /// The shell line that starts `codespar`; a plain headless run by default.
    pub(super) run: Option<String>,
    /// A shell line instead of `run` under which the attack must succeed, with the sandbox off: it
    /// shows that the attack does something.
    pub(super) control: Option<String>,
    /// Settings of the user, merged over those of the profile.
    #[serde(default)]
    pub(super) settings: Option<String>,
    /// A shell script that must succeed afterwards; by default only the canary is looked at.
    #[serde(default)]
    pub(super) holds: String,
    /// Where it runs; everywhere by default.
    #[serde(default)]
    pub(super) profiles: Vec<Profile>,
    /// Why the attack has no effect without a sandbox either (it cannot be shown that the sandbox
    /// stops it).
    pub(super) harmless_without_sandbox: Option<String>,
    /// Must not be tried without a sandbox: it would harm this machine.
    #[serde(default)]
    pub(super) harms_the_machine: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

impl Case {
    /// Whether it runs under this profile.
    pub(super) fn runs_under(&self, profile: Profile) -> bool {
        match profile {
            Profile::Unconfined => {
                (self.bash.is_some() || self.control.is_some())
                    && self.harmless_without_sandbox.is_none()
                    && !self.harms_the_machine
                    && (self.profiles.is_empty() || self.profiles.iter().any(|p| !p.is_root()))
            }
            _ => self.profiles.is_empty() || self.profiles.contains(&profile),
        }
    }

    /// Whether a word of the command line selects it.
    pub(super) fn is_meant_by(&self, word: &str) -> bool {
        let number = word.parse::<u32>().ok();
        self.name.contains(word)
            || self.list == word
            || number.is_some_and(|number| self.breaks.contains(&number))
    }

    /// Mistakes in the lists are found before anything is built.
    fn check(&self) -> Result<()> {
        let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(known) {
            bail!("`{}` is not a name of lower-case words with `-`", self.name);
        }
        if self.bash.is_some() && self.turns.is_some() {
            bail!("{}: `bash` and `turns` exclude each other", self.name);
        }
        if self.bash.is_none() && self.turns.is_none() && self.run.is_none() {
            bail!("{}: needs `bash`, `turns` or `run`", self.name);
        }
        Ok(())
    }
}

/// All cases of a directory, in order of file and place.
pub(super) fn load(directory: &Path) -> Result<Vec<Case>> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    let mut names = BTreeSet::new();
    for file in files {
        let shown = file.file_name().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(&file)?;
        let parsed: File = toml::from_str(&text).with_context(|| format!("redteam/{shown}"))?;
        for mut case in parsed.case {
            case.list = shown.trim_end_matches(".toml").to_owned();
            case.check().with_context(|| format!("redteam/{shown}"))?;
            if !names.insert(case.name.clone()) {
                bail!("redteam/{shown}: `{}` is there twice", case.name);
            }
            cases.push(case);
        }
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Case {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_case_without_an_attack_is_refused() {
        assert!(parse("name = 'x'").check().is_err());
        assert!(parse("name = 'x'\nbash = 'true'").check().is_ok());
        assert!(parse("name = 'X y'\nbash = 'true'").check().is_err());
        assert!(
            parse("name = 'x'\nbash = 'true'\nturns = '[]'")
                .check()
                .is_err()
        );
    }

    #[test]
    fn what_would_harm_the_machine_never_runs_unconfined() {
        let case = parse("name = 'x'\nbash = 'true'\nharms_the_machine = true");
        assert!(!case.runs_under(Profile::Unconfined));
        assert!(case.runs_under(Profile::LandlockRoot));
        let case = parse("name = 'x'\nbash = 'true'\nprofiles = ['bubblewrap-root']");
        assert!(!case.runs_under(Profile::Unconfined));
        assert!(!case.runs_under(Profile::Landlock));
    }

    #[test]
    fn the_list_of_the_repository_can_be_read() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        load(&own.parent().unwrap().join("redteam")).unwrap();
    }
}
