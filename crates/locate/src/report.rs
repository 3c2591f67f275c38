//! An instruction line by line: what is said, and what is only pasted.
//!
//! Issues follow templates. Between the sentences that say what is wrong stand headings that are
//! the same in each issue, tables of versions, logs and stack traces. Their words are rare in code,
//! which would make them weigh most of all, so each line is told apart by its shape.
//!
//! ```text
//! Login fails after an hour                      title
//! ### Steps to reproduce                         left out
//! The session expires too early.                 prose
//!     at check (/app/src/session.ts:12:4)        frame
//! 2024-05-01 12:00:01 WARN session closed        log
//! ### Environment
//! - OS: Linux 6.1                                environment
//! ```

/// What a line of an instruction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    /// The first line, whatever it looks like.
    Title,
    Prose,
    /// Inside a fence, or a line of code outside of one.
    Code,
    /// A line that a program wrote while it ran.
    Log,
    /// A line of a stack trace.
    Frame,
    /// Which versions of what are installed.
    Environment,
}

/// A line that says something.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Line<'t> {
    pub(crate) zone: Zone,
    pub(crate) text: &'t str,
    /// How many lines its block of code has; one outside of blocks.
    pub(crate) block: usize,
}

/// What the lines after a heading are.
#[derive(Clone, Copy, PartialEq)]
enum Section {
    Open,
    Environment,
    Log,
}

/// The lines of an instruction that are not blank, fences, comments, or the same in each issue.
pub(crate) fn lines(text: &str) -> Vec<Line<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut section = Section::Open;
    // Where the block began, and what its lines are.
    let mut fence: Option<(usize, Zone)> = None;
    while let Some((line, after)) = next_line(rest) {
        rest = after;
        let line = line.trim();
        if fence.is_none() && line.starts_with("<!--") {
            // One that does not end hides nothing.
            if let Some(at) = line.find("-->").map(|at| &line[at + 3..]) {
                push(&mut found, at.trim(), &mut section);
            } else if let Some(at) = rest.find("-->") {
                rest = &rest[at + 3..];
            }
            continue;
        }
        if let Some(label) = fence_label(line) {
            match fence.take() {
                Some((from, _)) => close(&mut found, from),
                None => fence = Some((found.len(), block_zone(label, section))),
            }
            continue;
        }
        match fence {
            Some((_, zone)) if !line.is_empty() => {
                let zone = match zone {
                    _ if found.is_empty() => Zone::Title,
                    Zone::Code => code_zone(line),
                    zone => zone,
                };
                found.push(Line {
                    zone,
                    text: line,
                    block: 1,
                });
            }
            Some(_) => {}
            None => push(&mut found, line, &mut section),
        }
    }
    if let Some((from, _)) = fence {
        close(&mut found, from);
    }
    found
}

fn next_line(text: &str) -> Option<(&str, &str)> {
    match text.split_once('\n') {
        Some(both) => Some(both),
        None => (!text.is_empty()).then_some((text, "")),
    }
}

/// A line outside of blocks.
fn push<'t>(found: &mut Vec<Line<'t>>, line: &'t str, section: &mut Section) {
    if line.is_empty() {
        return;
    }
    let zone = if found.is_empty() {
        Zone::Title
    } else if let Some(heading) = heading(line) {
        *section = section_of(heading);
        if is_boilerplate(heading) {
            return;
        }
        Zone::Prose
    } else if is_boilerplate_line(line) {
        return;
    } else {
        match (*section, code_zone(line)) {
            (_, zone @ (Zone::Frame | Zone::Log)) => zone,
            (Section::Environment, _) => Zone::Environment,
            (Section::Log, _) => Zone::Log,
            _ if is_version_line(line) => Zone::Environment,
            _ if is_code_line(line) => Zone::Code,
            _ => Zone::Prose,
        }
    };
    found.push(Line {
        zone,
        text: line,
        block: 1,
    });
}

/// Tells the lines of a block, from a place on, how many they are.
fn close(found: &mut [Line], from: usize) {
    let lines = &mut found[from..];
    let count = lines.len();
    lines.iter_mut().for_each(|line| line.block = count);
}

/// The language of a fence that opens a block; of one that closes it, nothing.
fn fence_label(line: &str) -> Option<&str> {
    let label = line.strip_prefix("```").or(line.strip_prefix("~~~"));
    match label {
        // Code that is written in one line between fences.
        Some(label) if label.contains("```") => None,
        Some(label) => Some(label.trim_start_matches(['`', '~']).trim()),
        None if line == "<pre>" || line == "</pre>" => Some(""),
        None => None,
    }
}

fn block_zone(label: &str, section: Section) -> Zone {
    match section {
        _ if label.eq_ignore_ascii_case("log") => Zone::Log,
        Section::Environment => Zone::Environment,
        Section::Log => Zone::Log,
        Section::Open => Zone::Code,
    }
}

fn code_zone(line: &str) -> Zone {
    if is_frame(line) {
        Zone::Frame
    } else if is_log(line) {
        Zone::Log
    } else {
        Zone::Code
    }
}

/// `## Heading`, or a line that is bold as a whole.
fn heading(line: &str) -> Option<&str> {
    let inner = line.trim_start_matches('#');
    if inner.len() < line.len() && inner.starts_with(' ') {
        return Some(inner.trim());
    }
    let bold = line.strip_prefix("**")?.trim_end_matches(':');
    let bold = bold.strip_suffix("**")?;
    (!bold.contains("**")).then_some(bold)
}

/// The words of headings that are the same in each issue. Sorted.
#[rustfmt::skip]
const TEMPLATE: &[&str] = &[
    "a", "about", "actual", "additional", "and", "any", "anything", "are", "behavior", "behaviour",
    "bug", "can", "checklist", "code", "context", "current", "describe", "description", "details",
    "did", "do", "does", "else", "environment", "example", "expect", "expectation",
    "expectations", "expected", "feature", "happen", "happened", "happens", "have", "how", "i",
    "info", "information", "instead", "is", "issue", "it", "log", "logs", "minimal", "motivation",
    "my", "note", "notes", "observed", "of", "or", "other", "output", "possible", "problem",
    "proposal", "question", "relevant", "repro", "reproduce", "reproducer", "reproducible",
    "reproduction", "request", "result", "results", "sample", "screenshot", "screenshots", "see",
    "should", "snippet", "solution", "steps", "suggested", "summary", "system", "the", "this",
    "to", "version", "versions", "was", "what", "when", "workaround", "would", "you", "your",
];
/// Words of headings below which versions are listed.
const SETUP: &[&str] = &[
    "environment",
    "version",
    "versions",
    "platform",
    "os",
    "operating",
    "browser",
];
/// Words of headings below which output is pasted.
const OUTPUT: &[&str] = &["log", "logs", "screenshots", "screenshot"];

fn words_of(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
}

fn is_boilerplate(heading: &str) -> bool {
    words_of(heading).all(|word| TEMPLATE.binary_search(&word.as_str()).is_ok())
}

/// A heading that asks for versions or output has few words of its own.
fn section_of(heading: &str) -> Section {
    let has = |list: &[&str]| words_of(heading).any(|word| list.contains(&word.as_str()));
    match words_of(heading).count() {
        1..=8 if has(SETUP) => Section::Environment,
        1..=4 if has(OUTPUT) => Section::Log,
        _ => Section::Open,
    }
}

/// Boxes to tick, and fields of a form that were left empty.
fn is_boilerplate_line(line: &str) -> bool {
    let item = line.trim_start_matches(['-', '*', ' ']);
    let is_box = item.starts_with("[ ]") || item.starts_with("[x]") || item.starts_with("[X]");
    is_box
        || line == "_No response_"
        || line
            .chars()
            .all(|c| matches!(c, '-' | '=' | '*' | '_' | '|' | ' ' | ':'))
}

/// `PHP version: 7.4.3`, `numpy==1.2`, `| Node | 16.13 |`: short, with the number of a version and
/// little else.
fn is_version_line(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.len() > 10 {
        return false;
    }
    let is_version = |word: &&str| {
        let word = word.trim_start_matches(|c: char| !c.is_ascii_digit());
        let mut numbers = word.split('.');
        let is_number = |text: Option<&str>| {
            text.is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit()))
        };
        is_number(numbers.next()) && is_number(numbers.next())
    };
    let versions = words.iter().filter(|word| is_version(word)).count();
    let says = words
        .iter()
        .any(|word| word.to_ascii_lowercase().contains("version"));
    let is_field = line.contains(": ") || line.contains("==") || line.starts_with('|');
    versions > 0 && (says || is_field && words.len() <= 6 || versions * 2 >= words.len())
}

/// Code that is pasted without a fence: a prompt, or a line that ends like a statement.
fn is_code_line(line: &str) -> bool {
    line.starts_with(">>>")
        || line.starts_with("$ ")
        || line.starts_with("import ")
        || line.starts_with("#include")
        || (line.starts_with("from ") && line.contains(" import "))
        || line.ends_with([';', '{', '}'])
}

/// A line of a stack trace in one of the usual forms.
pub(crate) fn is_frame(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '>', '|', '\t']);
    if let Some(call) = line.strip_prefix("at ") {
        return call.ends_with(')') || ends_with_line(call);
    }
    if let Some(number) = line.strip_prefix('#') {
        let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
        // `#12 is the same` is about an issue.
        let is_numbered = (1..3).contains(&(number.len() - rest.len())) && rest.starts_with(' ');
        return is_numbered && (rest.contains("0x") || rest.contains(": ") || rest.ends_with(')'));
    }
    let ruby = line.strip_prefix("from ").unwrap_or(line);
    line.starts_with("File \"")
        || line.starts_with("Traceback (most recent")
        || ruby.contains(":in `")
        || ruby.contains(":in '")
        || line.contains("site-packages/")
        || line.contains(" +0x")
        || is_go_or_pytest(line)
}

/// `/go/src/tree.go:446`, `src/main.py:12: in run`: a path with its line, and little more.
fn is_go_or_pytest(line: &str) -> bool {
    let Some((path, rest)) = line.split_once(':') else {
        return false;
    };
    let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_place = digits.len() < rest.len() && path.contains('/') && !path.contains(' ');
    is_place && (digits.is_empty() || digits.starts_with(": in "))
}

fn ends_with_line(text: &str) -> bool {
    let before = text.trim_end_matches(|c: char| c.is_ascii_digit());
    before.len() < text.len() && before.ends_with(':')
}

/// A line that begins with a time or the level of a message.
pub(crate) fn is_log(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '>', '|', '[', '(']);
    let Some(first) = line.split([' ', ']', '|', ':']).next() else {
        return false;
    };
    let level = matches!(
        first,
        "INFO" | "WARN" | "WARNING" | "ERROR" | "DEBUG" | "TRACE" | "FATAL" | "ERR!"
    );
    level || line.starts_with("npm ERR!") || begins_with_time(line)
}

/// `2024-05-01`, `12:00:01`, `05/01/2024`.
fn begins_with_time(line: &str) -> bool {
    let mut digits = 0;
    let mut groups = 0;
    let mut separator = None;
    for c in line.chars().take(19) {
        match c {
            '0'..='9' => digits += 1,
            '-' | ':' | '/' if (digits == 2 || digits == 4) && separator.unwrap_or(c) == c => {
                separator = Some(c);
                groups += 1;
                digits = 0;
            }
            _ => break,
        }
    }
    groups >= 2 && (digits == 2 || digits == 4)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn zones(text: &str) -> Vec<(Zone, &str)> {
        lines(text)
            .iter()
            .map(|line| (line.zone, line.text))
            .collect()
    }

    #[test]
    fn an_issue_is_told_apart_from_its_template() {
        let issue = "\
Login fails after an hour
<!-- Please search
     the existing issues first. -->
### Describe the bug
The session expires too early.
- [x] I searched the existing issues
### Steps to reproduce
```js
login(user)
```
### Possible fix in the session store
_No response_
### Environment
- OS: Linux
```
node 16
```
**Relevant log output**
closed by peer
";
        assert_eq!(
            zones(issue),
            [
                (Zone::Title, "Login fails after an hour"),
                (Zone::Prose, "The session expires too early."),
                (Zone::Code, "login(user)"),
                (Zone::Prose, "### Possible fix in the session store"),
                (Zone::Environment, "- OS: Linux"),
                (Zone::Environment, "node 16"),
                (Zone::Log, "closed by peer"),
            ]
        );
    }

    #[test]
    fn lines_of_traces_logs_and_versions_are_known_by_their_shape() {
        for (line, zone) in [
            ("File \"/app/query.py\", line 3, in run", Zone::Frame),
            ("at check (/app/src/session.ts:12:4)", Zone::Frame),
            ("at com.google.Gson.toJson(Gson.java:669)", Zone::Frame),
            ("/go/pkg/mod/gin@v1.7.1/tree.go:446 +0x1105", Zone::Frame),
            ("from lib/fluent/router.rb:96:in `emit'", Zone::Frame),
            ("#0 /app/src/Store.php(12): Store->get()", Zone::Frame),
            ("src/main.py:12: in run", Zone::Frame),
            ("2024-05-01 12:00:01 opened src/session.ts", Zone::Log),
            ("[12:00:01] opened", Zone::Log),
            ("WARN src/session.ts is slow", Zone::Log),
            ("PHP version: 7.4.3", Zone::Environment),
            ("| Node | 16.13.0 |", Zone::Environment),
            (">>> import login", Zone::Code),
            ("at first it works", Zone::Prose),
            ("#12 is about the same thing, see there", Zone::Prose),
            ("it needs at least 3.5 seconds to log in here", Zone::Prose),
        ] {
            let text = format!("title\n{line}");
            assert_eq!(zones(&text)[1], (zone, line));
        }
    }

    #[test]
    fn a_comment_or_a_fence_that_does_not_end_hides_nothing() {
        assert_eq!(zones("title\n<!-- note\nmore").last().unwrap().1, "more");
        assert_eq!(lines("title\n```\na\nb").last().unwrap().block, 2);
    }

    #[test]
    fn the_lists_are_in_order_so_that_they_can_be_searched() {
        assert!(TEMPLATE.is_sorted());
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_its_first_line_is_the_title(text in "[\\PC\n`#<!>-]*") {
            let lines = lines(&text);
            let titles = lines.iter().filter(|line| line.zone == Zone::Title).count();
            prop_assert_eq!(titles, usize::from(!lines.is_empty()));
        }
    }
}
