//! Figures about the code itself: sizes, names, documentation, dependencies.
//!
//! Read from the sources as text, without a compiler. The bars are limits that the project has set
//! itself; with `--check` a missed one fails. Tests are left out of all figures, since long lists
//! of cases are no defect.

mod source;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::metadata::{Metadata, Package};
use source::Source;

/// Measure the code: sizes of files and functions, names, documentation, dependencies.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Fail if a bar is missed
    #[arg(long)]
    check: bool,
    /// List what misses a bar, at most so many of each
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    list: usize,
}

impl Args {
    /// A missed bar is a failure.
    pub(crate) fn for_tests() -> Self {
        Self {
            check: true,
            list: 10,
        }
    }
}

/// Crates that put the others together and may depend on any number of them.
const COMPOSERS: [&str; 3] = ["codespar", "codespar-runtime", "xtask"];

/// A figure, what it may be, and what to look at if it is missed. `culprits` are listed only if the
/// bar is missed.
struct Figure {
    what: &'static str,
    found: f64,
    bar: Bar,
    culprits: Vec<String>,
}

/// Values at the bar hold.
#[derive(Clone, Copy)]
enum Bar {
    AtMost(f64),
    AtLeast(f64),
    /// Only told.
    None,
}

impl Bar {
    fn is_held(self, found: f64) -> bool {
        match self {
            Self::AtMost(most) => found <= most,
            Self::AtLeast(least) => found >= least,
            Self::None => true,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtMost(most) => format!("≤ {most}"),
            Self::AtLeast(least) => format!("≥ {least}"),
            Self::None => "–".to_owned(),
        }
    }
}

/// The table is markdown, so that it can be copied into a document as it is.
pub(crate) fn run(args: &Args, root: &Path) -> Result<()> {
    let metadata = Metadata::read(root)?;
    let mut sources = Vec::new();
    for package in metadata.members() {
        read_below(&directory(package)?.join("src"), root, &mut sources)?;
    }
    let mut figures = sizes(&sources);
    figures.extend(texts(&sources));
    figures.push(internal_dependencies(&metadata));
    figures.push(Figure {
        what: "packages in Cargo.lock",
        found: float(packages_in_lock(root)?),
        bar: Bar::None,
        culprits: Vec::new(),
    });
    println!("| figure | bar | found | |\n|---|---|---|---|");
    for figure in &figures {
        let found = (figure.found * 100.0).round() / 100.0;
        let verdict = match (figure.bar, figure.bar.is_held(figure.found)) {
            (Bar::None, _) => "",
            (_, true) => "held",
            (_, false) => "**missed**",
        };
        println!(
            "| {} | {} | {found} | {verdict} |",
            figure.what,
            figure.bar.text()
        );
    }
    let missed: Vec<&Figure> = figures
        .iter()
        .filter(|figure| !figure.bar.is_held(figure.found))
        .collect();
    for figure in &missed {
        println!("\n{}:", figure.what);
        for culprit in figure.culprits.iter().take(args.list) {
            println!("- {culprit}");
        }
        if let more @ 1.. = figure.culprits.len().saturating_sub(args.list) {
            println!("- and {more} more");
        }
    }
    if args.check && !missed.is_empty() {
        bail!("{} of {} bars are missed", missed.len(), figures.len());
    }
    Ok(())
}

/// Longest first: percentiles are read from the front, and the culprits are the beginning of the
/// list.
fn sizes(sources: &[Source]) -> Vec<Figure> {
    let mut files: Vec<(usize, String)> = sources
        .iter()
        .map(|source| (source.lines, source.path.display().to_string()))
        .collect();
    let mut functions: Vec<(usize, String)> = sources
        .iter()
        .flat_map(|source| {
            let place = move |line| format!("{}:{line}", source.path.display());
            let named = move |one: &source::Function| format!("{} ({})", place(one.line), one.name);
            source
                .functions
                .iter()
                .map(move |one| (one.lines, named(one)))
        })
        .collect();
    files.sort_by(|a, b| b.cmp(a));
    functions.sort_by(|a, b| b.cmp(a));
    vec![
        part("lines of a file, median", &files, 50, 180.0),
        part("lines of a file, 90 %", &files, 90, 400.0),
        part("lines of a file, longest", &files, 100, 500.0),
        part("lines of a function, 95 %", &functions, 95, 37.0),
        part("lines of a function, longest", &functions, 100, 80.0),
    ]
}

/// The size that so many of a hundred do not pass; `sorted` begins with the largest. 100 means the
/// largest of all.
fn part(what: &'static str, sorted: &[(usize, String)], percent: usize, most: f64) -> Figure {
    let place = sorted.len() * (100 - percent) / 100;
    let found = sorted.get(place).map_or(0, |(lines, _)| *lines);
    let longer = sorted.iter().filter(|(lines, _)| float(*lines) > most);
    Figure {
        what,
        found: float(found),
        bar: Bar::AtMost(most),
        culprits: longer
            .map(|(lines, name)| format!("{name}: {lines}"))
            .collect(),
    }
}

/// A type name that several crates define is counted once, with all its places. The ratio of
/// documentation is that of all sources together, not a mean over files.
fn texts(sources: &[Source]) -> Vec<Figure> {
    let sum = |of: fn(&Source) -> usize| float(sources.iter().map(of).sum());
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for source in sources {
        for name in &source.names {
            let place = source.path.display().to_string();
            places.entry(name).or_default().push(place);
        }
    }
    places.retain(|_, places| places.len() > 1);
    let repeated = places
        .iter()
        .map(|(name, at)| format!("{name}: {}", at.join(", ")));
    let fillers: Vec<String> = sources
        .iter()
        .flat_map(|source| {
            let at = source.path.display();
            let named = move |filler: &String| format!("{at}: {filler}");
            source.fillers.iter().map(named)
        })
        .collect();
    vec![
        Figure {
            what: "names of public types that mean several things",
            found: float(places.len()),
            bar: Bar::AtMost(0.0),
            culprits: repeated.collect(),
        },
        Figure {
            what: "lines of documentation for one of code",
            found: sum(|source| source.docs) / sum(|source| source.code).max(1.0),
            bar: Bar::AtLeast(0.15),
            culprits: Vec::new(),
        },
        Figure {
            what: "doc comments that only repeat a name",
            found: float(fillers.len()),
            bar: Bar::AtMost(0.0),
            culprits: fillers,
        },
    ]
}

/// Usual dependencies on crates of the workspace; those for tests do not count. Crates that compose
/// others are left out.
fn internal_dependencies(metadata: &Metadata) -> Figure {
    let count = |package: &Package| {
        let used = package.dependencies.iter();
        let internal = used.filter(|one| one.name.starts_with("codespar") && one.kind.is_none());
        internal.count()
    };
    let mut counts: Vec<(usize, String)> = metadata
        .members()
        .filter(|package| !COMPOSERS.contains(&package.name.as_str()))
        .map(|package| (count(package), package.name.clone()))
        .collect();
    counts.sort_by(|a, b| b.cmp(a));
    part("crates that one crate depends on, most", &counts, 100, 6.0)
}

/// Shown without a bar: it is a consequence and not a goal.
fn packages_in_lock(root: &Path) -> Result<usize> {
    let text = fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    Ok(text.lines().filter(|line| *line == "[[package]]").count())
}

/// Where `Cargo.toml` is.
fn directory(package: &Package) -> Result<&Path> {
    let parent = package.manifest_path.parent();
    parent.with_context(|| format!("{} has no directory", package.name))
}

/// Sources below a directory, without those of tests. A file or directory named `tests` is one of
/// tests.
fn read_below(directory: &Path, root: &Path, sources: &mut Vec<Source>) -> Result<()> {
    let mut entries: Vec<PathBuf> = fs::read_dir(directory)
        .with_context(|| format!("cannot list {}", directory.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    entries.sort();
    for path in entries {
        let is_test = path.file_stem().is_some_and(|name| name == "tests");
        if is_test {
            continue;
        }
        if path.is_dir() {
            read_below(&path, root, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            sources.push(Source::read(path.strip_prefix(root)?, &text));
        }
    }
    Ok(())
}

/// Counts of files and lines are far below what a float cannot tell apart.
#[allow(clippy::cast_precision_loss)]
fn float(count: usize) -> f64 {
    count as f64
}
