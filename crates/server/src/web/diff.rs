//! Changes in colour. Signs say it, too.
//!
//! A diff is shown as rows of text with a sign, not as a table or an image, so that it can be read
//! aloud, copied and searched. It is bounded as a whole: a change of a hundred thousand lines is no
//! page. Characters that do not print are made visible before anything is laid out, since a diff is
//! where somebody would hide them.

use std::collections::HashMap;

use codespar_pulls::{DiffFile, LineKind, parse_diff};
use maud::{Markup, html};

use super::{markdown, text};

/// Lines of one diff that are shown.
const MOST_LINES: usize = 20_000;

/// A remark on a line of the new file.
pub(super) struct Remark {
    pub(super) author: String,
    pub(super) body: String,
}

/// Remarks by path and line.
pub(super) type Remarks = HashMap<(String, u32), Vec<Remark>>;

/// A unified diff: the list of its files, then each with its remarks below their lines.
pub(super) fn unified(diff: &str, remarks: &Remarks) -> Markup {
    let diff = codespar_runtime::printable(diff);
    let files = parse_diff(&diff);
    let mut left = MOST_LINES;
    html! {
        @if files.is_empty() { p.empty { "No changes." } }
        @if files.len() > 1 {
            nav.files aria-label="Changed files" {
                ul {
                    @for (index, file) in files.iter().enumerate() {
                        li {
                            a href={ "#file-" (index) } { (file.path) }
                            " " (lines_changed(file))
                        }
                    }
                }
            }
        }
        @for (index, file) in files.iter().enumerate() {
            (one_file(index, file, remarks, &mut left))
        }
    }
}

/// Of the whole file, also where only a part of it is shown.
fn lines_changed(file: &DiffFile) -> Markup {
    html! {
        span.lines {
            span.plus { "+" (file.added) } " " span.minus { "−" (file.removed) }
        }
    }
}

/// Open, so that a search of the browser finds what is in it. `left` is what may still be shown of
/// the whole diff.
fn one_file(index: usize, file: &DiffFile, remarks: &Remarks, left: &mut usize) -> Markup {
    html! {
        details.file id={ "file-" (index) } open {
            summary { span.path { (file.path) } " " (lines_changed(file)) }
            div.diff tabindex="0" role="region" aria-label={ "Changes of " (file.path) } {
                @if file.hunks.is_empty() { p.note { "No text to show." } }
                @for hunk in &file.hunks {
                    div.hunk { "@@ " (hunk.section) }
                    @for line in &hunk.lines {
                        @if take(left) {
                            (one_line(line.kind, Some(line.at), &line.text))
                            @if line.kind != LineKind::Removed {
                                @for remark in remarks
                                    .get(&(file.path.clone(), line.at))
                                    .into_iter()
                                    .flatten()
                                {
                                    div.remark { b { (remark.author) } (markdown::render(&remark.body)) }
                                }
                            }
                        }
                    }
                }
                @if *left == 0 { p.note { "The rest of the diff is not shown." } }
            }
        }
    }
}

/// Counts a line, if there is room for one.
fn take(left: &mut usize) -> bool {
    let is_left = *left > 0;
    *left = left.saturating_sub(1);
    is_left
}

/// Removed lines have no number: it would be one of the old file beside those of the new.
fn one_line(kind: LineKind, number: Option<u32>, content: &str) -> Markup {
    let (class, sign) = match kind {
        LineKind::Same => ("l", " "),
        LineKind::Added => ("l add", "+"),
        LineKind::Removed => ("l del", "-"),
    };
    let number = number.filter(|_| kind != LineKind::Removed);
    html! {
        div class=(class) {
            span.n { @if let Some(number) = number { (number) } }
            span.s { (sign) }
            code { (text::shortened(content, 2_000)) }
        }
    }
}

/// A text and what replaces it.
pub(super) fn replacement(old: &str, new: &str) -> Markup {
    const MOST: usize = 400;
    let (old, new) = (
        codespar_runtime::printable(old),
        codespar_runtime::printable(new),
    );
    html! {
        div.diff.short tabindex="0" role="region" aria-label="Change" {
            @for line in old.lines().take(MOST) { (one_line(LineKind::Removed, None, line)) }
            @for line in new.lines().take(MOST) { (one_line(LineKind::Added, None, line)) }
            @if old.lines().count().max(new.lines().count()) > MOST {
                p.note { "The rest is not shown." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/<b>x.rs b/<b>x.rs\n--- a/<b>x.rs\n+++ b/<b>x.rs\n\
                        @@ -1,2 +1,2 @@ fn <i>\n same\n-old <script>\n+new \u{202e}<script>\n";

    #[test]
    fn names_and_lines_are_text() {
        let mut remarks = Remarks::new();
        let remark = Remark {
            author: "<u>eve".to_owned(),
            body: "<script>alert(1)</script>".to_owned(),
        };
        remarks.insert(("<b>x.rs".to_owned(), 2), vec![remark]);
        let shown = unified(DIFF, &remarks).into_string();
        for element in ["<script", "<b>x", "<i>", "<u>"] {
            assert!(!shown.contains(element), "{element}: {shown}");
        }
        assert!(shown.contains("&lt;b&gt;x.rs"), "{shown}");
        assert!(shown.contains("\\u{202e}"), "{shown}");
        assert!(shown.contains("class=\"remark\""), "{shown}");
        assert!(shown.contains("class=\"l add\""), "{shown}");
    }
}
