//! From the grammar's tree to simple commands and redirections.
//!
//! The walk visits every named node. Known kinds become parts, redirections and inputs; kinds that
//! [`obstacle`] accepts are passed through; every other kind hinders the analysis. A new construct
//! of the grammar is thus refused until it has been considered.
//!
//! Where the tree has errors, what was recognised is kept for rules that forbid, and the script is
//! marked as doubtful.

use std::{
    cell::{Cell, RefCell},
    ops::ControlFlow,
};

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use super::{Direction, Part, Redirect, Script, agree::agree, scan::scan, words};

/// Nested deeper than this is not analysed. The walk is recursive; the limit protects the stack.
const DEEPEST: usize = 100;

/// Parsing is given up after reading this often from the text: ordinary commands need a few
/// reads, while tangles that take quadratic time go back and read again and again.
const MOST_READS: u32 = 1_000;

thread_local! {
    // A parser is costly enough to keep and cannot be shared between threads.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// Reads the text into the script. A text that the scan refuses is hindered but not doubtful, since
/// the tree has no errors then. Disagreement between the readings makes the parts themselves
/// doubtful.
pub(crate) fn read(text: &str, script: &mut Script) {
    let Some(tree) = parse(text) else {
        script.doubt("it is too tangled to be parsed");
        return;
    };
    let root = tree.root_node();
    let mut walk = Walk { text, script };
    walk.visit(root, 0);
    if root.has_error() {
        script.doubt("it cannot be parsed as a shell command");
        return;
    }
    let agreed = scan(text).map(|found| agree(root, text, &found));
    match agreed {
        Ok(Ok(())) => {}
        Ok(Err(obstacle)) => script.doubt(obstacle),
        Err(obstacle) => script.hinder(obstacle),
    }
}

/// `None` when the parser was stopped or could not be set up. The work is counted in reads of the
/// input and not in time, so that the same text always gives the same result.
fn parse(text: &str) -> Option<Tree> {
    PARSER.with_borrow_mut(|slot| {
        if slot.is_none() {
            let mut parser = Parser::new();
            parser
                .set_language(&tree_sitter_bash::LANGUAGE.into())
                .ok()?;
            *slot = Some(parser);
        }
        let parser = slot.as_mut()?;
        let bytes: Vec<u8> = text.bytes().map(plain).collect();
        let reads = Cell::new(0_u32);
        let mut watch = |_: &ParseState| match reads.get() > MOST_READS {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let options = ParseOptions::new().progress_callback(&mut watch);
        let mut input = |at: usize, _| {
            reads.set(reads.get() + 1);
            bytes.get(at..).unwrap_or_default()
        };
        let tree = parser.parse_with_options(&mut input, None, Some(options));
        if tree.is_none() {
            // One that was stopped half-way is not used again.
            *slot = None;
        }
        tree
    })
}

/// The byte as the grammar may see it. Its scanner looks characters up in a table of 256 without
/// asking how large they are, so it gets none beyond ASCII: to a shell they are all alike, parts
/// of a word, and so is the comma.
fn plain(byte: u8) -> u8 {
    match byte {
        b'\n' | b'\t' | b' '..=b'~' => byte,
        _ => b',',
    }
}

/// Fills the script while walking. Nodes refer to bytes of `text`; the parser saw a copy of the
/// same length with non-ASCII bytes replaced, so the offsets fit both.
struct Walk<'a> {
    text: &'a str,
    script: &'a mut Script,
}

impl<'a> Walk<'a> {
    /// Empty if the range does not fall on character boundaries.
    fn source(&self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn children(&mut self, node: Node<'_>, depth: usize) {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.visit(child, depth + 1);
        }
    }

    /// Dispatches on the kind of a node. Commands in substitutions are visited too, so that rules
    /// that forbid see them, although the substitution itself is an obstacle.
    fn visit(&mut self, node: Node<'_>, depth: usize) {
        if depth > DEEPEST {
            self.script.doubt("it is nested too deeply");
            return;
        }
        if node.is_error() || node.is_missing() {
            self.script.hinder("it cannot be parsed as a shell command");
        }
        if !node.is_named() {
            return;
        }
        match node.kind() {
            "comment" => {}
            "command" => self.command(node, depth, &[]),
            "test_command" => self.test(node, depth),
            "redirected_statement" => self.redirected(node, depth),
            "file_redirect" | "heredoc_redirect" | "herestring_redirect" => {
                let mut left_over = Vec::new();
                self.redirect(node, depth, &mut left_over);
                if !left_over.is_empty() {
                    self.script.hinder("a redirection is in an unusual place");
                }
            }
            "for_statement" => self.for_loop(node, depth),
            "while_statement" => {
                self.script.repeats = true;
                self.children(node, depth);
            }
            kind => {
                if let Some(obstacle) = obstacle(node, kind) {
                    self.script.hinder(obstacle);
                }
                if matches!(kind, "declaration_command" | "unset_command") {
                    let words = words::split(self.source(node));
                    self.script.parts.push(Part {
                        assignments: Vec::new(),
                        words,
                    });
                }
                self.children(node, depth);
            }
        }
    }

    /// A simple command; `more` are words that the grammar took for part of a redirection.
    fn command(&mut self, node: Node<'_>, depth: usize, more: &[Node<'_>]) {
        let mut part = Part::default();
        let mut left_over = Vec::new();
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        // The part comes before those inside its substitutions.
        let position = self.script.parts.len();
        for child in children {
            match child.kind() {
                "variable_assignment" => {
                    part.assignments.push(words::Word::new(self.source(child)));
                    self.children(child, depth + 1);
                }
                "file_redirect" | "herestring_redirect" => {
                    self.redirect(child, depth, &mut left_over);
                }
                "comment" => {}
                "subshell" => {
                    self.script.hinder("it cannot be parsed as a shell command");
                    self.visit(child, depth + 1);
                }
                _ => {
                    part.words.push(words::Word::new(self.source(child)));
                    self.visit(child, depth + 1);
                }
            }
        }
        if !left_over.is_empty() {
            self.script.hinder("a redirection is in an unusual place");
        }
        for word in more.iter().chain(&left_over) {
            part.words.push(words::Word::new(self.source(*word)));
        }
        self.script.parts.insert(position, part);
    }

    /// A test is one part with its words split by quoting alone, because the grammar parses
    /// expressions rather than words there.
    fn test(&mut self, node: Node<'_>, depth: usize) {
        let source = self.source(node);
        // In `[ a > b ]` the shell sees a redirection where the grammar sees a comparison.
        if !source.starts_with("[[") && has_operator(node) {
            self.script.hinder("a test has a redirection in it");
        }
        self.script.parts.push(Part {
            assignments: Vec::new(),
            words: words::split(source),
        });
        self.children(node, depth);
    }

    /// A statement with redirections after it. The grammar attaches words that follow a redirection
    /// (`> out ls -l`) to the redirection; they are given back to the command.
    fn redirected(&mut self, node: Node<'_>, depth: usize) {
        let mut left_over = Vec::new();
        let mut body = None;
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        for child in children {
            match child.kind() {
                "file_redirect" | "heredoc_redirect" | "herestring_redirect" => {
                    self.redirect(child, depth, &mut left_over);
                }
                _ if body.is_none() => body = Some(child),
                _ => self.visit(child, depth + 1),
            }
        }
        match body {
            Some(body) if body.kind() == "command" => self.command(body, depth + 1, &left_over),
            Some(body) => {
                if !left_over.is_empty() {
                    self.script.hinder("a redirection is in an unusual place");
                }
                self.visit(body, depth + 1);
            }
            // `> file command`: the grammar takes the command for more targets.
            None if !left_over.is_empty() => {
                let words = left_over
                    .iter()
                    .map(|word| words::Word::new(self.source(*word)))
                    .collect();
                self.script.parts.push(Part {
                    assignments: Vec::new(),
                    words,
                });
            }
            None => {}
        }
    }

    /// Any redirection; words that belong to the command instead are left over.
    fn redirect<'t>(&mut self, node: Node<'t>, depth: usize, left_over: &mut Vec<Node<'t>>) {
        match node.kind() {
            "file_redirect" => self.file_redirect(node, depth, left_over),
            kind => {
                let mut cursor = node.walk();
                let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
                for child in children {
                    self.input(kind, child, depth, left_over);
                }
            }
        }
    }

    /// A piece of a here-document or here-string.
    fn input<'t>(
        &mut self,
        kind: &str,
        child: Node<'t>,
        depth: usize,
        left_over: &mut Vec<Node<'t>>,
    ) {
        match (kind, child.kind()) {
            (_, "file_redirect" | "herestring_redirect") => {
                self.redirect(child, depth + 1, left_over);
                return;
            }
            (_, "heredoc_body") => self.script.inputs.push(self.source(child).to_owned()),
            ("herestring_redirect", _) if is_word(child) => {
                let word = words::Word::new(self.source(child));
                self.script.inputs.push(word.bare);
            }
            // `cat <<E more`: words of the command after the end mark.
            ("heredoc_redirect", _) if is_word(child) => left_over.push(child),
            _ => {}
        }
        self.visit(child, depth + 1);
    }

    /// The first target belongs to the redirection, all others are words of the command. An
    /// operator that the grammar did not recognise is taken from its error node.
    fn file_redirect<'t>(&mut self, node: Node<'t>, depth: usize, left_over: &mut Vec<Node<'t>>) {
        let mut operator = String::new();
        let mut targets = Vec::new();
        let mut cursor = node.walk();
        let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
        for child in children {
            match child.kind() {
                "file_descriptor" | "comment" => {}
                _ if child.is_error() || !child.is_named() => {
                    operator.push_str(self.source(child));
                }
                _ => targets.push(child),
            }
            self.visit(child, depth + 1);
        }
        let mut targets = targets.into_iter();
        if let Some(target) = targets.next() {
            self.file(&operator, self.source(target));
        }
        left_over.extend(targets);
    }

    /// Copying and closing descriptors (`2>&1`, `>&-`) touches no file. `>&name` writes one.
    fn file(&mut self, operator: &str, target: &str) {
        let descriptor = target == "-"
            || target
                .trim_end_matches('-')
                .bytes()
                .all(|byte| byte.is_ascii_digit());
        if operator.ends_with("&-") || (operator.ends_with('&') && descriptor) {
            return;
        }
        if operator == "<&" {
            self.script.hinder("a descriptor is copied from a name");
        }
        let direction = match operator.contains('>') {
            true => Direction::Out,
            false => Direction::In,
        };
        self.script.redirects.push(Redirect {
            direction,
            target: words::Word::new(target),
        });
    }

    /// The body is visited once, whatever the list is. Only lower-case variables are accepted,
    /// except those that shells and programs obey.
    fn for_loop(&mut self, node: Node<'_>, depth: usize) {
        self.script.repeats = true;
        let variable = node
            .child_by_field_name("variable")
            .map_or("", |variable| self.source(variable));
        // `for PATH in …` would change what the commands after it are.
        let ordinary = variable
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            && !variable.ends_with("_proxy")
            && !["path", "cdpath", "fpath", "manpath"].contains(&variable);
        if !ordinary || !self.source(node).starts_with("for") {
            self.script
                .hinder("a loop sets a variable that commands may depend on");
        }
        self.children(node, depth);
    }
}

/// Why a node of this kind prevents analysis. The kinds in the first arm are structure and harmless
/// leaves; words pass as well, since whether they are literal is recorded in the word.
fn obstacle(node: Node<'_>, kind: &str) -> Option<&'static str> {
    match kind {
        "program"
        | "list"
        | "pipeline"
        | "subshell"
        | "do_group"
        | "if_statement"
        | "elif_clause"
        | "else_clause"
        | "case_statement"
        | "case_item"
        | "negated_command"
        | "command_name"
        | "file_descriptor"
        | "variable_name"
        | "special_variable_name"
        | "string_content"
        | "heredoc_start"
        | "heredoc_body"
        | "heredoc_end"
        | "heredoc_content"
        | "test_operator"
        | "binary_expression"
        | "unary_expression"
        | "parenthesized_expression"
        | "regex"
        | "extglob_pattern"
        | "arithmetic_expansion" => None,
        "compound_statement" => node
            .child(0)
            .is_some_and(|first| first.kind() == "((")
            .then_some("it has arithmetic that cannot be followed"),
        "command_substitution" => Some("it has a command substitution"),
        "process_substitution" => Some("it has a process substitution"),
        "function_definition" => Some("it defines a function, which could stand in for a command"),
        "variable_assignment"
        | "variable_assignments"
        | "declaration_command"
        | "unset_command" => Some("it changes variables that commands may depend on"),
        "c_style_for_statement" => Some("it has arithmetic that cannot be followed"),
        _ if is_word(node) => None,
        _ => Some("it has a construct that cannot be followed"),
    }
}

/// Substitutions are among them: they stand where words stand, and are obstacles by themselves.
fn is_word(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "word"
            | "string"
            | "raw_string"
            | "ansi_c_string"
            | "translated_string"
            | "concatenation"
            | "number"
            | "simple_expansion"
            | "expansion"
            | "arithmetic_expansion"
            | "brace_expression"
            | "command_substitution"
            | "process_substitution"
    )
}

/// Looks into nested expressions but not into words, where the same characters are quoted.
fn has_operator(node: Node<'_>) -> bool {
    let mut cursor = node.walk();
    node.children(&mut cursor).any(|child| {
        let structural = !child.is_named() && child.kind().contains(['<', '>', '&', '|', ';', '(']);
        structural || (child.is_named() && !is_word(child) && has_operator(child))
    })
}
