mod streaming;

use super::*;
use crate::wrap::{self, Flow};

fn all_at_once(text: &str, columns: u16) -> Vec<OutputLine> {
    let mut stream = MarkdownStream::new(Theme::default());
    stream.push(text);
    stream.finish(columns)
}

fn texts(lines: &[OutputLine]) -> Vec<String> {
    lines.iter().map(|line| line.line.to_string()).collect()
}

fn shown(text: &str) -> Vec<String> {
    texts(&all_at_once(text, 80))
}

/// As it looks on a terminal.
fn screen(text: &str, columns: u16) -> String {
    let lines = all_at_once(text, columns);
    let rows = lines.iter().flat_map(|line| wrap::rows(line, columns));
    rows.map(|row| format!("{row}\n")).collect()
}

const ANSWER: &str = r#"# Why the parser fails

The lexer in `src/lexer.rs` treats **every** quote as an *opening* one, see
[the report](https://example.com/issues/12) and <https://example.com/docs>.

## What I changed
1. Read the whole token:
   ```rust
   fn next(&mut self) -> Option<Token> {
       self.peek()   // not `take`
   }
   ```
2. Tests, of which some are long enough that they have to go on in the next line:
   - [x] strings with quotes
   - [ ] raw strings, ~~also nested~~

> **Note:** this changes the behaviour of `next` for callers outside of this crate, too.
>
> - see the list

| File | Change | Lines |
|:-----|:-------|------:|
| `src/lexer.rs` | reads the whole token before it decides | 12 |
| `src/parser.rs` | none | 0 |

---

![diagram](img/flow.png)[^1]

[^1]: Drawn by hand.
"#;

#[test]
fn an_answer_at_80_columns() {
    insta::assert_snapshot!(screen(ANSWER, 80), @"
    Why the parser fails

    The lexer in src/lexer.rs treats every quote as an opening one, see the report
    (https://example.com/issues/12) and https://example.com/docs.

    What I changed
    1. Read the whole token:

     rust
    fn next(&mut self) -> Option<Token> {
        self.peek()   // not `take`
    }

    2. Tests, of which some are long enough that they have to go on in the next
       line:
       ☑ strings with quotes
       ☐ raw strings, also nested

    │ Note: this changes the behaviour of next for callers outside of this crate,
    │ too.
    │
    │ - see the list

    File          │ Change                                  │ Lines
    ──────────────┼─────────────────────────────────────────┼──────
    src/lexer.rs  │ reads the whole token before it decides │    12
    src/parser.rs │ none                                    │     0

    ────────────────────────────────────────────────────────────

    [image: diagram] (img/flow.png)[^1]

    [^1]: Drawn by hand.
    ");
}

#[test]
fn an_answer_at_40_columns() {
    insta::assert_snapshot!(screen(ANSWER, 40), @"
    Why the parser fails

    The lexer in src/lexer.rs treats every
    quote as an opening one, see the report
    (https://example.com/issues/12) and
    https://example.com/docs.

    What I changed
    1. Read the whole token:

     rust
    fn next(&mut self) -> Option<Token> {
        self.peek()   // not `take`
    }

    2. Tests, of which some are long enough
       that they have to go on in the next
       line:
       ☑ strings with quotes
       ☐ raw strings, also nested

    │ Note: this changes the behaviour of
    │ next for callers outside of this
    │ crate, too.
    │
    │ - see the list

    File          │ Change           │ Lines
    ──────────────┼──────────────────┼──────
    src/lexer.rs  │ reads the whole  │    12
                  │ token before it  │
                  │ decides          │
    ──────────────┼──────────────────┼──────
    src/parser.rs │ none             │     0

    ────────────────────────────────────────

    [image: diagram] (img/flow.png)[^1]

    [^1]: Drawn by hand.
    ");
}

#[test]
fn code_is_exactly_what_was_written() {
    let lines = all_at_once(
        "- x:\n  ```sh\n  a  && \\\n      b\n\n  ```\n    > done",
        10,
    );
    let whole: Vec<_> = lines
        .iter()
        .filter(|line| line.flow == Flow::Whole)
        .map(|line| line.line.to_string())
        .collect();
    assert_eq!(whole, ["", " sh", "a  && \\", "    b", "", ""]);
    assert_eq!(shown("    a\n\n      b\n\nc"), ["a", "", "  b", "", "c"]);
}

#[test]
fn targets_are_never_hidden() {
    assert_eq!(
        shown("[https://good.example](https://evil.example)"),
        ["https://good.example (https://evil.example)"]
    );
    assert_eq!(shown("<https://a.example>"), ["https://a.example"]);
    assert_eq!(shown("<me@a.example>"), ["me@a.example"]);
    assert_eq!(
        shown("[a][b]\n\n[b]: https://x.example"),
        ["[a][b]", "", "[b]: https://x.example"]
    );
    assert_eq!(shown("![](x.png)"), ["[image: ] (x.png)"]);
}

#[test]
fn nothing_in_a_text_is_obeyed() {
    let text =
        "a\u{1b}[2J &#27;[2J &#x202e; `\u{7}` [x](a&#27;b)\n\n```\u{1b}x\n\u{1b}c\n```\n<pre>\u{8}";
    let lines = shown(text).join("\n");
    assert!(!lines.contains(|c: char| c != '\n' && codespar_policy::is_unprintable(c)));
    assert!(
        lines.contains("\\u{1b}[2J \\u{1b}[2J \\u{202e} \\u{7}"),
        "{lines}"
    );
}

#[test]
fn html_breaks_and_escapes_are_text() {
    assert_eq!(
        shown("a<br>b &amp; \\*c\\*  \nd\\\ne"),
        ["a<br>b & *c*", "d", "e"]
    );
    assert_eq!(shown("<div>\n*x*\n</div>"), ["<div>", "*x*", "</div>"]);
    assert_eq!(
        shown("<pre>\na\n\n*b*\n</pre>\n*c*"),
        ["<pre>", "a", "", "*b*", "</pre>", "c"]
    );
}

#[test]
fn containers_nest_and_end_as_in_commonmark() {
    assert_eq!(
        shown("> a\nlazy\n> > b\n\nc"),
        ["│ a lazy", "│ │ b", "", "c"]
    );
    assert_eq!(
        shown("- a\n\n  b\n- c\n+ d"),
        ["- a", "", "  b", "- c", "- d"]
    );
    assert_eq!(
        shown("- - a\n  - b\n-\n- c"),
        ["- - a", "  - b", "-", "- c"]
    );
    assert_eq!(shown("a\n2. b\n1. c"), ["a 2. b", "1. c"]);
    assert_eq!(
        shown("- a\n===\n\n***\nb\n---"),
        ["- a ===", "", &"─".repeat(60), "", "b"]
    );
    assert_eq!(shown("1. [ ] a\n   1) b"), ["1. ☐ a", "     1) b"]);
    assert_eq!(
        shown("- [x] - [ ] a\n-     [x] b"),
        ["☑ - [ ] a", "", "-", "[x] b"]
    );
    assert_eq!(shown("a\nb | c \n-|-\n")[..3], ["a", "", "b │ c"]);
    let deep = ">".repeat(1_000);
    assert!(
        shown(&format!("{deep} a\n{deep} b"))
            .concat()
            .ends_with("> b")
    );
}
