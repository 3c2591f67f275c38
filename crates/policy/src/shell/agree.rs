//! Whether the grammar's tree and the plain reading agree on what separates what.
//!
//! The grammar is lenient: it recovers from text that it does not expect and sometimes joins or
//! splits words differently from bash. The tree is walked leaf by leaf, in the order of the text.
//! Each leaf must contain as many operators as the scan saw there, each comment must begin where
//! the scan saw one, and only blanks and line ends may lie between leaves. At the end both must
//! have seen the same number of operators and comments.

use tree_sitter::{Node, TreeCursor};

use super::scan::{Obstacle, Scan};

/// Kinds taken whole: what is in them is not structure.
const WHOLE: &[&str] = &[
    "string",
    "raw_string",
    "ansi_c_string",
    "translated_string",
    "heredoc_body",
    "expansion",
    "simple_expansion",
    "arithmetic_expansion",
];

/// Kinds whose parts may stand on lines of their own.
const ON_MANY_LINES: &[&str] = &[
    "program",
    "do_group",
    "if_statement",
    "elif_clause",
    "else_clause",
    "case_statement",
    "case_item",
    "compound_statement",
    "subshell",
    "while_statement",
    "for_statement",
];

const DISAGREEMENT: Obstacle = "it can be read in more than one way";

/// An obstacle, when they do not. `Ok` means that each operator and comment is at the same place in
/// both readings and that no word is glued to the next one.
pub(crate) fn agree(root: Node<'_>, text: &str, scan: &Scan) -> Result<(), Obstacle> {
    let mut check = Check {
        text: text.as_bytes(),
        scan,
        covered: 0,
        comments: 0,
        operators: 0,
    };
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        let leaf = WHOLE.contains(&node.kind()) || node.child_count() == 0;
        if leaf {
            check.leaf(node)?;
        } else {
            check.branch(node)?;
            if cursor.goto_first_child() {
                continue;
            }
        }
        if !advance(&mut cursor) {
            break;
        }
    }
    check.gap(text.len())?;
    let all_seen = check.comments == scan.comments.len() && check.operators == scan.operators.len();
    if all_seen { Ok(()) } else { Err(DISAGREEMENT) }
}

/// The next node in the order of the text, without going into the current one. `false` at the end
/// of the tree.
fn advance(cursor: &mut TreeCursor<'_>) -> bool {
    while !cursor.goto_next_sibling() {
        if !cursor.goto_parent() {
            return false;
        }
    }
    true
}

/// `comments` and `operators` count what has been matched so far; at the end they must equal the
/// lengths of the lists of the scan.
struct Check<'a> {
    text: &'a [u8],
    scan: &'a Scan,
    /// Everything before has been looked at.
    covered: usize,
    comments: usize,
    operators: usize,
}

impl<'a> Check<'a> {
    /// Checks what only neighbours show: glued words, and newlines inside a construct that has to
    /// stay on one line.
    fn branch(&self, node: Node<'_>) -> Result<(), Obstacle> {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node
            .children(&mut cursor)
            .filter(|child| !child.byte_range().is_empty())
            .collect();
        let apart = node.kind() == "concatenation"
            || children.windows(2).all(|pair| !are_glued(pair[0], pair[1]));
        check(apart)?;
        if ON_MANY_LINES.contains(&node.kind()) {
            return Ok(());
        }
        self.on_one_line(&children)
    }

    /// To the shell, an unquoted new line ends a command; the grammar may read on over it.
    fn on_one_line(&self, children: &[Node<'_>]) -> Result<(), Obstacle> {
        let mut after_operator = false;
        let mut end = None;
        for child in children {
            let from = end.unwrap_or(child.start_byte());
            let text_begins = child.kind() == "heredoc_body";
            let newlines = self.newlines_in(from, child.start_byte());
            if newlines > usize::from(text_begins) && !after_operator {
                return Err(DISAGREEMENT);
            }
            end = Some(child.end_byte());
            if child.kind() != "comment" {
                after_operator = matches!(child.kind(), "&&" | "||" | "|" | "|&");
            }
        }
        Ok(())
    }

    fn newlines_in(&self, from: usize, to: usize) -> usize {
        let newline = |at: &&usize| self.text[**at] == b'\n';
        self.operators_in(from, to).iter().filter(newline).count()
    }

    /// Named leaves contain no operators. Keywords and braces must stand alone, since `{ls` and
    /// `fi2` are ordinary words to a shell. An operator must consist of as many characters as the
    /// scan counted.
    fn leaf(&mut self, node: Node<'_>) -> Result<(), Obstacle> {
        let range = node.byte_range();
        // The empty pieces that the grammar puts around here-documents say nothing.
        if range.is_empty() && !node.is_missing() {
            return Ok(());
        }
        if range.start < self.covered {
            return Err(DISAGREEMENT);
        }
        self.gap(range.start)?;
        let inside = self.operators_in(range.start, range.end).len();
        self.operators += inside;
        self.covered = range.end;
        match node.kind() {
            "comment" => {
                let expected = self.scan.comments.get(self.comments);
                self.comments += 1;
                check(expected == Some(&range.start) && inside == 0)
            }
            "heredoc_body" => check(
                inside == 0
                    && self
                        .scan
                        .heredoc
                        .is_some_and(|(begin, end)| (begin, end) == (range.start, range.end)),
            ),
            "heredoc_end" => check(inside == 0 && self.scan.heredoc.is_some()),
            // A descriptor right after a word is the end of that word.
            "file_descriptor" => check(
                inside == 0
                    && self.stands_alone(range.start, range.start)
                    && self.text[range].iter().all(u8::is_ascii_digit),
            ),
            _ if node.is_named() => check(inside == 0),
            "{" | "}" | "!" | "[[" | "]]" | "[" | "]" => {
                check(inside == 0 && self.stands_alone(range.start, range.end))
            }
            kind if kind.bytes().all(|byte| byte.is_ascii_lowercase()) => {
                check(inside == 0 && self.stands_alone(range.start, range.end))
            }
            kind => {
                let structural = |byte: u8| b";&|<>()\n".contains(&byte);
                let expected = kind.bytes().filter(|byte| structural(*byte)).count();
                check(inside == expected)
            }
        }
    }

    /// Whether blanks or operators, or nothing, are on both sides.
    fn stands_alone(&self, from: usize, to: usize) -> bool {
        let apart = |byte: Option<&u8>| byte.is_none_or(|byte| b" \t\n;&|<>()".contains(byte));
        let before = from.checked_sub(1).and_then(|at| self.text.get(at));
        apart(before) && (from == to || apart(self.text.get(to)))
    }

    /// Between leaves there are only blanks, ends of lines, and ends of lines that go on.
    fn gap(&mut self, to: usize) -> Result<(), Obstacle> {
        let gap = &self.text[self.covered..to];
        let newlines = self.operators_in(self.covered, to);
        self.operators += newlines.len();
        let plain = newlines.iter().all(|at| self.text[*at] == b'\n');
        let mut bytes = gap.iter();
        while let Some(byte) = bytes.next() {
            let fine = match byte {
                b' ' | b'\t' | b'\n' => true,
                b'\\' => bytes.next() == Some(&b'\n'),
                _ => false,
            };
            if !fine {
                return Err(DISAGREEMENT);
            }
        }
        self.covered = to;
        check(plain)
    }

    /// From `from` up to but without `to`.
    fn operators_in(&self, from: usize, to: usize) -> &'a [usize] {
        let operators: &'a [usize] = &self.scan.operators;
        let begin = operators.partition_point(|at| *at < from);
        let end = operators.partition_point(|at| *at < to);
        &operators[begin..end]
    }
}

/// Two words without a blank between them are one word to the shell.
fn are_glued(one: Node<'_>, next: Node<'_>) -> bool {
    let is_word = |node: Node<'_>| {
        node.is_named()
            && !matches!(
                node.kind(),
                "file_descriptor"
                    | "file_redirect"
                    | "heredoc_redirect"
                    | "herestring_redirect"
                    | "heredoc_start"
                    | "heredoc_body"
                    | "heredoc_end"
                    | "comment"
            )
    };
    is_word(one) && is_word(next) && one.end_byte() == next.start_byte()
}

fn check(holds: bool) -> Result<(), Obstacle> {
    if holds { Ok(()) } else { Err(DISAGREEMENT) }
}
