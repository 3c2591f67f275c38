//! Shell commands: from text to the simple commands and redirections in it.
//!
//! No parser of ours can know everything that a shell would do with a text. Two independent
//! readings are therefore made, and a command is taken as understood only if they agree:
//!
//! ```text
//! text ── tree-sitter grammar (tree) ── parts, redirects, inputs
//!      └─ plain scan of quotes and operators (scan)
//!             └─ both compared, operator by operator (agree)
//! ```
//!
//! Every construct that could make a command do something other than its words say leaves an
//! `obstacle`. With an obstacle the command is never allowed by its parts; rules that forbid still
//! examine whatever was found.

mod agree;
mod disguise;
mod interpreters;
mod scan;
mod tree;
mod words;

pub(crate) use disguise::{base_name, disguises, is_wrapper};
#[cfg(test)]
pub(crate) use interpreters::all as all_interpreters;
pub(crate) use interpreters::{is_interpreter, is_shell};
pub(crate) use words::{Word, tidy};

/// Longer than this is not analysed. The parts stay empty then and the script is doubtful.
const LONGEST: usize = 64 * 1024;

/// A command line, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Every simple command, in the order written; also those inside substitutions.
    pub(crate) parts: Vec<Part>,
    /// Every redirection to or from a file.
    pub(crate) redirects: Vec<Redirect>,
    /// Texts handed to commands as their input.
    pub(crate) inputs: Vec<String>,
    /// Why the parts are not the whole truth. `None` means that the parts and redirections are
    /// exactly what a shell would run and open, as far as text can tell.
    pub(crate) obstacle: Option<String>,
    /// The parts may not even be all there are. Implies an obstacle. Rules that forbid then also
    /// look at [`fragments`].
    pub(crate) doubtful: bool,
    /// Something in it runs more than once. A loop: a relative `cd ..` in it may climb further than
    /// one step.
    pub(crate) repeats: bool,
}

/// A simple command: assignments before it, the command word, its arguments. Keywords of the shell
/// are not parts, but tests (`[`, `[[`) and declarations are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) assignments: Vec<Word>,
    pub(crate) words: Vec<Word>,
}

impl Part {
    /// As written, in one line, without redirections. This is the form that allow rules are
    /// compared with and that suggested rules contain.
    pub(crate) fn text(&self) -> String {
        let words: Vec<&str> = self
            .assignments
            .iter()
            .chain(&self.words)
            .map(|word| word.source.as_str())
            .collect();
        words.join(" ")
    }

    /// The arguments as they are passed on. For `echo rm x | sh`: what the first command prints is
    /// the script of the second.
    pub(crate) fn said(&self) -> String {
        let words: Vec<&str> = self
            .words
            .iter()
            .skip(1)
            .map(|word| word.bare.as_str())
            .collect();
        words.join(" ")
    }

    /// The command word, when it is certain.
    pub(crate) fn name(&self) -> Option<&str> {
        self.words.first().and_then(Word::value)
    }
}

/// What a redirection does to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

/// A redirection to or from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) direction: Direction,
    pub(crate) target: Word,
}

impl Script {
    /// Takes a command line apart. Never fails: what is not understood is an obstacle. Time is
    /// bounded: the length is limited, and so are the depth of the tree and the work of the parser.
    pub(crate) fn read(text: &str) -> Self {
        let mut script = Self::default();
        if text.len() > LONGEST {
            script.doubt("it is longer than 64 KiB");
            return script;
        }
        if let Some(strange) = text.chars().find(|c| is_strange(*c)) {
            script.doubt(&format!(
                "it has the character U+{:04X}, which is not what it seems",
                u32::from(strange)
            ));
        }
        tree::read(text, &mut script);
        script.look_at_command_words();
        script
    }

    /// Notes why the command cannot be analysed; the first reason is kept.
    pub(crate) fn hinder(&mut self, why: &str) {
        self.obstacle.get_or_insert_with(|| why.to_owned());
    }

    /// The same, where the text itself was not understood.
    pub(crate) fn doubt(&mut self, why: &str) {
        self.doubtful = true;
        self.hinder(why);
    }

    /// After parsing: the first part whose command word hides what it runs becomes the obstacle,
    /// unless there is one already.
    fn look_at_command_words(&mut self) {
        let obstacle = self.parts.iter().find_map(disguise::obstacle);
        if let Some(obstacle) = obstacle {
            self.hinder(&obstacle);
        }
    }
}

/// Pieces of a text that was not understood, cut wherever a command could begin. Quotes are ignored
/// when cutting, so a piece may be half of a quoted string. For rules that forbid, too many pieces
/// do no harm.
pub(crate) fn fragments(text: &str) -> Vec<Part> {
    let spaced: String = text
        .chars()
        .map(|c| if is_strange(c) { '\n' } else { c })
        .collect();
    spaced
        .split(['\n', ';', '&', '|', '(', ')', '{', '}', '`', '<', '>'])
        .map(|piece| Part {
            assignments: Vec::new(),
            words: words::split(piece),
        })
        .filter(|part| !part.words.is_empty())
        .collect()
}

/// Characters that the shell and the reader, or the shell and the grammar, see differently. Control
/// characters, blanks beyond ASCII, and characters without width or visible form. They let a
/// command look different from what runs, or split words where only one of the two readings splits
/// them.
fn is_strange(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || (c.is_whitespace() && !c.is_ascii())
        || matches!(
            c,
            '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{180e}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{ffa0}'
        )
}

#[cfg(test)]
mod tests;
