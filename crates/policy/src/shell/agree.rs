//! Whether the grammar's tree and the plain reading agree on what separates what.

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

/// Kinds that end where the line ends.
const ON_ONE_LINE: &[&str] = &[
    "command",
    "file_redirect",
    "test_command",
    "variable_assignment",
    "declaration_command",
    "unset_command",
];

const DISAGREEMENT: Obstacle = "it can be read in more than one way";

/// An obstacle, when they do not.
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

fn advance(cursor: &mut TreeCursor<'_>) -> bool {
    while !cursor.goto_next_sibling() {
        if !cursor.goto_parent() {
            return false;
        }
    }
    true
}

struct Check<'a> {
    text: &'a [u8],
    scan: &'a Scan,
    /// Everything before has been looked at.
    covered: usize,
    comments: usize,
    operators: usize,
}

impl<'a> Check<'a> {
    fn branch(&self, node: Node<'_>) -> Result<(), Obstacle> {
        let range = node.byte_range();
        let broken = ON_ONE_LINE.contains(&node.kind())
            && self
                .operators_in(range.start, range.end)
                .iter()
                .any(|at| self.text[*at] == b'\n');
        if broken { Err(DISAGREEMENT) } else { Ok(()) }
    }

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
            _ if node.is_named() => check(inside == 0),
            kind => {
                let structural = |byte: u8| b";&|<>()\n".contains(&byte);
                let expected = kind.bytes().filter(|byte| structural(*byte)).count();
                check(inside == expected)
            }
        }
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

    fn operators_in(&self, from: usize, to: usize) -> &'a [usize] {
        let operators: &'a [usize] = &self.scan.operators;
        let begin = operators.partition_point(|at| *at < from);
        let end = operators.partition_point(|at| *at < to);
        &operators[begin..end]
    }
}

fn check(holds: bool) -> Result<(), Obstacle> {
    if holds { Ok(()) } else { Err(DISAGREEMENT) }
}
