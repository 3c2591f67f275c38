//! The words around the blocks, and the title that is made of them.

use super::fence::opening;

/// How long a title may be.
const TITLE_CHARS: usize = 72;
/// Headings that say nothing.
const EMPTY_WORDS: &[&str] = &["summary", "changes", "overview", "answer"];

/// The lines outside the blocks as one text, without fences that only held blocks and without the
/// gaps that the blocks left.
pub(super) fn clean(lines: &[&str]) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for line in lines {
        let line = line.trim_end();
        if line.is_empty() && kept.last().is_none_or(|last| last.is_empty()) {
            continue;
        }
        let before = kept.iter().rposition(|line| !line.is_empty());
        if let Some(before) = before
            && is_open(&kept[..=before])
            && opening(kept[before]).is_some_and(|fence| fence.is_closed_by(line))
        {
            kept.truncate(before);
            continue;
        }
        kept.push(line);
    }
    kept.join("\n").trim().to_owned()
}

/// Whether the last of these lines opens a fence, and does not close one.
pub(super) fn is_open(lines: &[&str]) -> bool {
    let mut open = None;
    for line in lines {
        open = match open {
            None => opening(line),
            Some(fence) if fence.is_closed_by(line) => None,
            still => still,
        };
    }
    open.is_some()
}

/// The first line that says something, plain and short.
pub(super) fn title(summary: &str) -> Option<String> {
    let mut lines = summary.lines().map(plain).filter(|line| !line.is_empty());
    let first = lines.next()?;
    let is_heading = EMPTY_WORDS.contains(&first.to_lowercase().as_str());
    let line = if is_heading {
        lines.next().unwrap_or(first)
    } else {
        first
    };
    Some(shortened(&line))
}

/// A line without Markdown. Empty for a fence. A full stop or colon at the end goes: it becomes a
/// title.
fn plain(line: &str) -> String {
    let mut line = line.trim();
    if opening(line).is_some() {
        return String::new();
    }
    line = line.trim_start_matches('#').trim_start();
    for bullet in ["- ", "* ", "+ ", "> "] {
        line = line.strip_prefix(bullet).unwrap_or(line).trim_start();
    }
    let text = without_links(line).replace("**", "").replace("~~", "");
    let text: String = without_stars(&text).replace('`', "");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.trim_end_matches(['.', ':']).trim().to_owned()
}

/// `[text](address)` becomes `text`.
fn without_links(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(open) = rest.find('[') {
        let link = rest[open + 1..].find("](").and_then(|middle| {
            let label = &rest[open + 1..open + 1 + middle];
            let after = &rest[open + 1 + middle + 2..];
            after.find(')').map(|close| (label, &after[close + 1..]))
        });
        let Some((label, after)) = link else { break };
        text.push_str(&rest[..open]);
        text.push_str(label);
        rest = after;
    }
    text + rest
}

/// Without stars of emphasis: those at the edge of a word, as long as they come in pairs.
fn without_stars(line: &str) -> String {
    let letters: Vec<char> = line.chars().collect();
    let is_gap =
        |at: Option<&char>| at.is_none_or(|c| c.is_whitespace() || c.is_ascii_punctuation());
    let edges: Vec<usize> = (0..letters.len())
        .filter(|&at| {
            let before = at.checked_sub(1).and_then(|at| letters.get(at));
            let after = letters.get(at + 1);
            letters[at] == '*' && (is_gap(before) != is_gap(after))
        })
        .collect();
    if edges.len() % 2 == 1 {
        return line.to_owned();
    }
    let kept = letters.iter().enumerate();
    kept.filter(|(at, _)| !edges.contains(at))
        .map(|(_, letter)| letter)
        .collect()
}

/// Between words where there is one to cut at.
fn shortened(line: &str) -> String {
    if line.chars().count() <= TITLE_CHARS {
        return line.to_owned();
    }
    let cut: String = line.chars().take(TITLE_CHARS - 1).collect();
    let at_word = line.chars().nth(TITLE_CHARS - 1) == Some(' ');
    let end = if at_word {
        cut.len()
    } else {
        cut.rfind(' ').unwrap_or(cut.len())
    };
    format!(
        "{}…",
        cut[..end].trim_end_matches([' ', ',', ';', '–', '—', '-'])
    )
}
