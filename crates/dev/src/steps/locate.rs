//! Locate: at most a handful of files, by name, by the picker, by the index, by search.
//!
//! The ways are tried in the order of how much they can be trusted: a path in the instruction, the
//! picker, the index. Each adds to the selection until it is full. If the picker answers, the index
//! is not used, since it knows less; without a clone the search of the forge takes its place. If
//! nothing is found at all, names that resemble the instruction's words are taken.

use std::collections::HashSet;

use codespar_locate::{FileKind, Locator, by_path, keywords, named_paths, worth_showing};
use codespar_protocol::counted;
use codespar_pulls::Forge;
use serde::{Deserialize, Serialize};

use super::{Base, blocking};
use crate::{Failure, images, picking, run::Run};

/// The whole tree is shown to the picker up to this many paths.
const WHOLE_TREE: usize = 4_000;
/// Lines of the overview of directories.
const OVERVIEW_LINES: usize = 200;
/// Beyond it, the best this many.
const SHORTLIST: usize = 500;

/// A file and how it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LocatedFile {
    pub(crate) path: String,
    /// `named`, `picked`, `lexical`, `search` or `tree`. Shown to the user, and `named` and
    /// `picked` count as wanted for the choice of the engine.
    pub(crate) by: String,
}

/// The files that are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Located {
    pub(crate) files: Vec<LocatedFile>,
    /// Files that the instruction names and that cannot be shown, with the reason.
    #[serde(default)]
    pub(crate) unreadable: Vec<(String, String)>,
    /// Tests that the instruction may be about, the best first.
    #[serde(default)]
    pub(crate) tests: Vec<String>,
}

impl Located {
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.path.as_str())
    }

    fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == path)
    }
}

/// Finds files that can be shown: one that is binary or cannot be read takes no place from another.
struct Selection<'a> {
    run: &'a Run,
    base: &'a Base,
    most: usize,
    located: Located,
    /// Looked at already, and not usable.
    rejected: HashSet<String>,
}

impl Selection<'_> {
    fn is_full(&self) -> bool {
        self.located.files.len() >= self.most
    }

    /// Adds files that are not there yet, up to the limit. `paths` are in the order of preference.
    /// Each is read to see whether it is text, which is cheap with a clone and one request without.
    async fn add(
        &mut self,
        paths: impl IntoIterator<Item = String>,
        by: &str,
    ) -> Result<(), Failure> {
        for path in paths {
            if self.is_full() {
                return Ok(());
            }
            if self.located.has(&path) || self.rejected.contains(&path) {
                continue;
            }
            match self.run.file_text(self.base, &path).await? {
                Ok(_) => self.located.files.push(LocatedFile {
                    path,
                    by: by.to_owned(),
                }),
                Err(reason) => {
                    if by == NAMED {
                        let told = (path.clone(), reason);
                        self.located.unreadable.push(told);
                    }
                    self.rejected.insert(path);
                }
            }
        }
        Ok(())
    }
}

/// Files that are looked at when the budget decides how many are shown.
const MOST_AUTO: usize = 12;
/// Files that are shown where nothing but their names, or a search, speaks for them.
const MOST_UNSURE: usize = 5;
/// Tests that are remembered, among so many of the best files.
const MOST_TESTS: (usize, usize) = (3, 40);
/// Files of the tree that may turn out to be unreadable before the search is given up.
const SPARE: usize = 20;
/// How a file of the instruction was found.
const NAMED: &str = "named";

/// What is known of the tree without a model.
struct Survey {
    paths: Vec<String>,
    /// Best first.
    ranked: Vec<String>,
    /// How many of them are worth showing when nothing else is known.
    worth: usize,
    /// How they were ranked.
    by: &'static str,
    /// Directories, for a picker that cannot see all paths.
    overview: String,
}

impl Survey {
    fn tests(&self) -> Vec<String> {
        let (most, among) = MOST_TESTS;
        let best = self.ranked.iter().take(among);
        best.filter(|path| FileKind::of(path) == FileKind::Test)
            .take(most)
            .cloned()
            .collect()
    }
}

impl Run {
    pub(crate) async fn locate(&self, base: &Base) -> Result<Located, Failure> {
        self.check_stop()?;
        if self.ledger.known::<Located>("locate")?.is_none() {
            self.say("locate", "🔍 Searching…");
        }
        let located: Located = self.ledger.once("locate", || self.find_files(base)).await?;
        let found: Vec<String> = located
            .files
            .iter()
            .map(|file| format!("\n   • {} ({})", file.path, file.by))
            .collect();
        self.say(
            "locate",
            &format!(
                "🔍 Found {}:{}",
                counted(found.len(), "relevant file"),
                found.concat()
            ),
        );
        for (path, reason) in &located.unreadable {
            self.say("locate", &format!("   {path} is not shown: {reason}"));
        }
        Ok(located)
    }

    /// Where only the index decides, `worth_showing` limits the number: further files would be
    /// guesses and cost context. Named files count towards it.
    async fn find_files(&self, base: &Base) -> Result<Located, Failure> {
        let survey = match &self.link.clone {
            Some(_) => self.survey_clone(base).await?,
            None => self.survey_forge(base).await?,
        };
        let limit = self.order.limits.max_files.unwrap_or(MOST_AUTO);
        let mut selection = Selection {
            run: self,
            base,
            most: limit,
            located: Located {
                files: Vec::new(),
                unreadable: Vec::new(),
                tests: survey.tests(),
            },
            rejected: HashSet::new(),
        };
        let named = named_paths(&self.order.instruction, &survey.paths);
        let named: Vec<String> = named.into_iter().map(str::to_owned).collect();
        selection.add(named, NAMED).await?;
        let named = selection.located.files.len();
        if !selection.is_full() && !self.is_simulated() && self.order.has_picker() {
            let picked = self.pick(&survey).await?;
            let is_pick = |path: &String| selection.located.has(path);
            let has_answered = picked.iter().any(is_pick);
            selection.add(picked, "picked").await?;
            // Whoever read the instruction knows better than its words.
            if has_answered || selection.located.files.len() > named {
                return Ok(selection.located);
            }
        }
        selection.most = limit.min(named.max(survey.worth));
        selection.add(survey.ranked, survey.by).await?;
        if selection.located.files.is_empty() {
            selection.most = limit.min(MOST_UNSURE);
            let most = selection.most + selection.rejected.len() + SPARE;
            let rest = by_path(&self.order.instruction, &survey.paths, most);
            let rest: Vec<String> = rest.into_iter().map(str::to_owned).collect();
            selection.add(rest, "tree").await?;
        }
        Ok(selection.located)
    }

    /// The index of the clone at the commit.
    async fn survey_clone(&self, base: &Base) -> Result<Survey, Failure> {
        let clone = self.link.clone.clone().unwrap_or_default();
        let (commit, cache) = (base.commit.0.clone(), self.setup.dir.join("index"));
        let instruction = self.order.instruction.clone();
        blocking(move || {
            let locator = Locator::at_commit(&clone, &commit, Some(&cache))
                .map_err(|error| Failure::Broken(error.to_string()))?;
            let ranked = locator.rank(&instruction, SHORTLIST);
            Ok(Survey {
                worth: worth_showing(&ranked),
                paths: locator.paths().map(str::to_owned).collect(),
                ranked: ranked.into_iter().map(|file| file.path).collect(),
                by: "lexical",
                overview: locator.overview(OVERVIEW_LINES),
            })
        })
        .await
    }

    /// Without a clone: the forge's tree and its code search.
    async fn survey_forge(&self, base: &Base) -> Result<Survey, Failure> {
        let forge = &self.link.forge;
        let paths: Vec<String> = forge
            .tree(&base.commit)
            .await?
            .into_iter()
            .map(|entry| entry.path)
            .collect();
        let words = keywords(&self.order.instruction);
        // The search of a forge lags behind and has limits of its own; the tree is always there.
        let ranked = match forge.search(&words, MOST_AUTO).await {
            Ok(found) => found,
            Err(error) => {
                self.say("locate", &format!("   code search did not answer: {error}"));
                Vec::new()
            }
        };
        let ranked: Vec<String> = ranked
            .into_iter()
            .filter(|path| paths.contains(path))
            .collect();
        Ok(Survey {
            worth: MOST_UNSURE,
            overview: String::new(),
            ranked,
            by: "search",
            paths,
        })
    }

    /// Asks the picker. A picker that answers nonsense costs little; the index goes on without it.
    /// Beyond `WHOLE_TREE` paths it is shown the best `SHORTLIST`, and an overview of the
    /// directories. An outage of its model is no failure of the run; a stop and an exhausted budget
    /// are.
    async fn pick(&self, survey: &Survey) -> Result<Vec<String>, Failure> {
        let whole = survey.paths.len() <= WHOLE_TREE;
        let candidates = if whole {
            survey.paths.clone()
        } else {
            let rest = by_path(&self.order.instruction, &survey.paths, SHORTLIST);
            let mut seen = HashSet::new();
            let ranked = survey.ranked.iter().map(String::as_str).chain(rest);
            ranked
                .filter(|path| seen.insert(*path))
                .take(SHORTLIST)
                .map(str::to_owned)
                .collect()
        };
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        let overview = (!whole).then_some(survey.overview.as_str());
        let message = picking::message(
            &self.order.instruction,
            &candidates,
            overview,
            images::blocks(&self.order.images)?,
        );
        let system = picking::system(self.order.limits.max_files.unwrap_or(MOST_AUTO));
        let asked = match self
            .ask("pick", &self.order.picker_model, &system, vec![message])
            .await
        {
            Ok(asked) => asked,
            Err(failure @ (Failure::Model(_) | Failure::Refused(_))) => {
                self.say(
                    "locate",
                    &format!("   the picker did not answer: {failure}"),
                );
                return Ok(Vec::new());
            }
            Err(other) => return Err(other),
        };
        let mut picked = picking::paths(&asked.text);
        picked.retain(|path| survey.paths.contains(path));
        Ok(picked)
    }
}
