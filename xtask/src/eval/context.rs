//! `cargo xtask eval context`: what a model would be shown, held against the change that followed.

use std::path::{Path, PathBuf};

use anyhow::Result;
use codespar_locate::{
    Companions, ContextBudget, ContextKind, ContextText, Excerpt, FileKind, Locator, ShownFile,
    companion_excerpt, spend, tree, worth_showing,
};

use super::{
    cases::{self, Case, Repositories},
    context_score::{self, Shown},
    fixes::{self, Fix},
    locate,
};

/// The limits that hold when nobody sets others.
const BUDGET: ContextBudget = ContextBudget {
    bytes: 80 * 1024,
    max_file_bytes: None,
};
/// Files that are ranked, as for a run of the dev agent.
const RANKED: usize = 500;
/// Files that a picker may name.
const MOST_PICKED: usize = 12;
/// The prompt that goes with every request.
const SYSTEM: &str = "crates/dev/src/prompts/generate.md";

/// Build the first request for real changes; print how much of it was needed.
///
/// For each case the request that the dev agent would send is built by the same code, at the commit
/// before the change: files within the budget, tests, project instructions, changelog, directories,
/// system prompt. No model is asked. Two ways of choosing files are measured:
///
/// picked: the files that the change touched are handed over, as by a picker that is always right
/// (in the order of the data). Measures what is read of them and the surroundings.
///
/// ranked: the lexical ranking alone chooses, and decides how many. Measures all of it.
///
/// useful bytes: of the bytes of files that are shown (files to change, tests, instructions,
/// changelog), the share in files that the change touched, summed over all cases.
/// hunks: of the changed places of the gold files (`git diff -U0`), the share whose old lines are
/// all shown; for inserted lines, one of the lines around the place. A gold file that is not shown
/// has no visible hunk.
/// cut: the same in gold files that are shown in part. cut files: the share of these files with all
/// hunks visible.
/// bytes: the mean size of system prompt and first message, without the answer.
///
/// The change is the commit that the case names, else the commit after it with the number of the
/// pull request in its message, else the first later commit on the main line that touches all gold
/// files. Places are counted only in files that are the same before the change and in the commit of
/// the case, and not in files that say in their first lines that they are generated. Cases without
/// such a commit are skipped and counted.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Directory of git repositories, each named `owner+name`
    #[arg(long, value_name = "DIR")]
    repos: PathBuf,
    /// Directory with the cases, as `*.jsonl`
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Only this data set
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// At most so many cases of each data set
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Only the picked files: no repository is indexed, which takes most of the time
    #[arg(long)]
    picked_only: bool,
    /// Print each hunk of a cut file that is not shown
    #[arg(long)]
    missed: bool,
}

/// There is no bar here: the figures are compared by whoever runs it.
pub(super) fn run(args: &Args, root: &Path) -> Result<()> {
    if cfg!(debug_assertions) {
        return locate::run_optimised(root);
    }
    let system = std::fs::read_to_string(root.join(SYSTEM))?;
    let repositories = Repositories::read(&args.repos)?;
    let (mut picked, mut ranked) = (Vec::new(), Vec::new());
    let mut skipped = 0;
    let cases = cases::chosen(
        cases::read(&args.data)?,
        args.dataset.as_deref(),
        args.limit,
    );
    for case in cases {
        let Some(repository) = repositories.of(&case.repo) else {
            eprintln!("skipped {}: no repository `{}`", case.id, case.repo);
            skipped += 1;
            continue;
        };
        let tried = try_case(&case, repository, args, system.len());
        match tried {
            Ok(Some(shown)) => {
                picked.push(shown.0);
                ranked.extend(shown.1);
            }
            Ok(None) => {
                eprintln!("skipped {}: its fix is not in the history", case.id);
                skipped += 1;
            }
            Err(error) => {
                eprintln!("skipped {}: {error:#}", case.id);
                skipped += 1;
            }
        }
    }
    println!("{}", context_score::report("picked", &picked));
    if !args.picked_only {
        println!("\n{}", context_score::report("ranked", &ranked));
    }
    if skipped > 0 {
        println!("\n{skipped} cases skipped");
    }
    Ok(())
}

fn try_case(
    case: &Case,
    repository: &Path,
    args: &Args,
    system: usize,
) -> Result<Option<(Shown, Option<Shown>)>> {
    let Some(fix) = fixes::of(case, repository)? else {
        return Ok(None);
    };
    let listed = fixes::git(
        repository,
        &["ls-tree", "-r", "--name-only", "-z", &case.commit],
    )?;
    let paths: Vec<String> = listed.split_terminator('\0').map(str::to_owned).collect();
    let mut building = Building {
        case,
        repository,
        fix: &fix,
        paths: &paths,
        system,
        prints_missed: args.missed,
    };
    let gold: Vec<String> = case.gold_files.iter().take(MOST_PICKED).cloned().collect();
    if args.picked_only {
        return Ok(Some((building.shown(&gold, &[])?, None)));
    }
    let cache = tempfile::tempdir()?;
    let locator = Locator::at_commit(repository, &case.commit, Some(cache.path()))?;
    let ranked = locator.rank(&case.instruction, RANKED);
    let worth = worth_showing(&ranked);
    let order: Vec<String> = ranked.into_iter().map(|file| file.path).collect();
    let picked = building.shown(&gold, &order)?;
    building.prints_missed = false;
    let ranked = building.shown(&order[..worth], &order)?;
    Ok(Some((picked, Some(ranked))))
}

struct Building<'a> {
    case: &'a Case,
    repository: &'a Path,
    fix: &'a Fix,
    paths: &'a [String],
    system: usize,
    prints_missed: bool,
}

impl Building<'_> {
    fn text(&self, path: &str) -> Option<String> {
        let name = format!("{}:{path}", self.case.commit);
        fixes::git(self.repository, &["cat-file", "blob", &name]).ok()
    }

    /// Builds the request for chosen files, and measures it.
    fn shown(&self, chosen: &[String], ranked: &[String]) -> Result<Shown> {
        let instruction = &self.case.instruction;
        let texts: Vec<(&str, String)> = chosen
            .iter()
            .filter_map(|path| Some((path.as_str(), self.text(path)?)))
            .collect();
        let pairs: Vec<(&str, &str)> = texts
            .iter()
            .map(|(path, text)| (*path, text.as_str()))
            .collect();
        let excerpts = spend(&pairs, instruction, BUDGET);
        let mut files: Vec<(String, ContextKind, Excerpt)> = Vec::new();
        for ((path, _), excerpt) in pairs.iter().zip(excerpts) {
            files.extend(excerpt.map(|one| ((*path).to_owned(), ContextKind::Source, one)));
        }
        let names: Vec<&str> = pairs.iter().map(|(path, _)| *path).collect();
        self.add_companions(&names, ranked, &mut files);
        let directories = tree(self.paths, &names);
        let context: Vec<ShownFile<'_>> = files
            .iter()
            .map(|(path, kind, excerpt)| ShownFile {
                path,
                text: &excerpt.text,
                kind: *kind,
                is_partial: excerpt.partial,
                is_redacted: false,
            })
            .collect();
        let request = ContextText {
            instruction,
            files: &context,
            tree: &directories,
            // Stands for the command of the project, which is about as long.
            verify: Some("python3 -m pytest -q"),
            left_out: &[],
        };
        Ok(self.measured(&files, self.system + request.to_string().len()))
    }

    fn add_companions(
        &self,
        chosen: &[&str],
        ranked: &[String],
        files: &mut Vec<(String, ContextKind, Excerpt)>,
    ) {
        let tests: Vec<String> = ranked
            .iter()
            .take(40)
            .filter(|path| FileKind::of(path) == FileKind::Test)
            .cloned()
            .collect();
        let companions = Companions::find(self.paths, chosen, &tests);
        let with = |kind| move |path| (path, kind);
        let rules = companions.rules.into_iter().map(with(ContextKind::Rules));
        let tests = companions.tests.into_iter().map(with(ContextKind::Test));
        let changelog = companions
            .changelog
            .into_iter()
            .map(with(ContextKind::Changelog));
        for (path, kind) in rules.chain(tests).chain(changelog) {
            if let Some(text) = self.text(&path) {
                let instruction = &self.case.instruction;
                let excerpt = companion_excerpt(kind, (&path, &text), instruction, BUDGET);
                files.push((path, kind, excerpt));
            }
        }
    }

    /// Whether a file says in its first lines that a program wrote it.
    fn is_generated(&self, path: &str) -> bool {
        let text = self.text(path).unwrap_or_default();
        let head = text.lines().take(5).collect::<String>().to_lowercase();
        [
            "generated by",
            "made by gnu bison",
            "do not edit",
            "@generated",
        ]
        .iter()
        .any(|mark| head.contains(mark))
    }

    fn measured(&self, files: &[(String, ContextKind, Excerpt)], request: usize) -> Shown {
        let mut shown = Shown {
            dataset: self.case.dataset.clone(),
            request,
            ..Shown::default()
        };
        for (path, _, excerpt) in files {
            shown.bytes += excerpt.text.len();
            if self.fix.touched.contains(path) {
                shown.useful += excerpt.text.len();
            }
        }
        let gold = self.case.gold_files.iter();
        for path in gold.filter(|path| !self.is_generated(path)) {
            let excerpt = files
                .iter()
                .find(|(known, ..)| known == path)
                .map(|(.., one)| one);
            let hunks = self.fix.hunks.iter().filter(|hunk| hunk.path == *path);
            let (mut all, mut visible) = (0, 0);
            for hunk in hunks {
                all += 1;
                let is_visible =
                    excerpt.is_some_and(|excerpt| hunk.is_visible(|line| excerpt.has_line(line)));
                visible += usize::from(is_visible);
                if !is_visible && self.prints_missed {
                    eprintln!(
                        "missed {} {path}:{}+{}",
                        self.case.id, hunk.line, hunk.count
                    );
                }
            }
            shown.hunks.add(all, visible);
            if all > 0 && excerpt.is_some_and(|excerpt| excerpt.partial) {
                shown.cut.add(all, visible);
                shown.cut_files.add(1, usize::from(visible == all));
            }
        }
        shown
    }
}
