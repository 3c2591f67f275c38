//! Programs handed to sed and awk: whether they write files or run commands.
//!
//! Both languages can write files and run commands from within the script, so the script has to be
//! read. For sed, a small subset is recognised as harmless and everything else is a hazard. For
//! awk, a text search for the few ways out is enough, because its other constructs only compute and
//! print.

use crate::shell::Word;

use super::could_be_option;

/// Index of the argument, counted after the command word, and the reason.
type Findings = Vec<(usize, String)>;

/// What in the arguments of sed has to be spelled out by a rule. The script is the value of `-e`,
/// or else the first operand. Options are read to the end even after operands, as GNU sed accepts
/// them there.
pub(super) fn sed(arguments: &[Word]) -> Findings {
    let mut reader = Sed {
        arguments,
        at: 0,
        has_script: false,
        found: Findings::new(),
    };
    let mut operands = Vec::new();
    let mut ended = false;
    while let Some(word) = arguments.get(reader.at) {
        let bare = word.bare.as_str();
        if could_be_option(word) && !ended {
            let reason = format!("`{}` could be an option of `sed`", word.source);
            reader.found.push((reader.at, reason));
        }
        match bare {
            _ if ended || !bare.starts_with('-') || bare == "-" => operands.push(reader.at),
            "--" => ended = true,
            _ if bare.starts_with("--") => reader.long_option(word),
            _ => reader.letters(word),
        }
        reader.at += 1;
    }
    if !reader.has_script
        && let Some(first) = operands.first()
        && let Some(word) = arguments.get(*first)
        && !(word.literal && is_harmless_sed(&word.bare))
    {
        reader.found.push((*first, MAY_WRITE.to_owned()));
    }
    reader.found
}

const MAY_WRITE: &str = "the script of `sed` may write or run";

/// The arguments of sed, read from the left.
struct Sed<'a> {
    arguments: &'a [Word],
    at: usize,
    /// A script was given by an option, so that no operand is one.
    has_script: bool,
    found: Findings,
}

impl Sed<'_> {
    fn script(&mut self, text: &str, is_literal: bool) {
        self.has_script = true;
        if !(is_literal && is_harmless_sed(text)) {
            self.found.push((self.at, MAY_WRITE.to_owned()));
        }
    }

    /// The script is the next argument.
    fn script_in_next(&mut self) {
        self.at += 1;
        self.has_script = true;
        if let Some(next) = self.arguments.get(self.at) {
            self.script(&next.bare, next.literal);
        }
    }

    fn writes(&mut self, option: &str) {
        let reason = format!("`{option}` of `sed` writes files or reads a script");
        self.found.push((self.at, reason));
    }

    fn long_option(&mut self, word: &Word) {
        let bare = word.bare.as_str();
        let (name, value) = match bare[2..].split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (&bare[2..], None),
        };
        if "expression".starts_with(name) {
            match value {
                Some(value) => self.script(value, word.literal),
                None => self.script_in_next(),
            }
        } else if "in-place".starts_with(name) || "file".starts_with(name) {
            self.writes(bare);
        } else if "line-length".starts_with(name) && value.is_none() {
            self.at += 1;
        }
    }

    /// A bundle such as `-ne`: letters without values are skipped, the first one with a value ends
    /// the bundle. Unknown letters count as writing.
    fn letters(&mut self, word: &Word) {
        let bare = word.bare.as_str();
        for (index, letter) in bare.char_indices().skip(1) {
            let rest = &bare[index + letter.len_utf8()..];
            match letter {
                'e' if rest.is_empty() => self.script_in_next(),
                'e' => self.script(rest, word.literal),
                'l' => self.at += usize::from(rest.is_empty()),
                'n' | 'E' | 'r' | 's' | 'u' | 'z' | 'b' => continue,
                _ => self.writes(bare),
            }
            break;
        }
    }
}

/// Whether a script is made of commands that only print. What is not understood is not harmless.
/// Commands may be separated by blanks, newlines, semicolons and braces. Each one must be followed
/// by such a separator or the end.
fn is_harmless_sed(script: &str) -> bool {
    const BETWEEN: [char; 6] = [' ', '\t', '\n', ';', '{', '}'];
    let mut rest = script.trim_start_matches(BETWEEN);
    while !rest.is_empty() {
        let Some(command) = sed_address(rest) else {
            return false;
        };
        if !command.starts_with('{') {
            match sed_command(command) {
                Some(after) if after.is_empty() || after.starts_with(BETWEEN) => rest = after,
                _ => return false,
            }
        } else {
            rest = command;
        }
        rest = rest.trim_start_matches(BETWEEN);
    }
    true
}

/// What follows the addresses. Line numbers, `$`, ranges, steps and `/regex/`. The other form of a
/// regex address, `\cregexc`, is not recognised and makes the script a hazard.
fn sed_address(mut text: &str) -> Option<&str> {
    loop {
        let first = text.chars().next()?;
        text = match first {
            '0'..='9' | '$' | ',' | '~' | '+' | '!' | ' ' => &text[1..],
            '/' => {
                let after = delimited(&text[1..], '/')?;
                after.trim_start_matches(['I', 'M'])
            }
            _ => return Some(text),
        };
    }
}

/// What follows one harmless command. `None` for `w`, `W`, `e`, `r`, `R` and every other command
/// that is not on the list, and for flags of `s` other than `g`, `p`, `i`, `I` and a number:
/// `s/a/b/w out` writes and `s/a/b/e` runs.
fn sed_command(text: &str) -> Option<&str> {
    let first = text.chars().next()?;
    let rest = &text[first.len_utf8()..];
    match first {
        'p' | 'd' | 'D' | 'P' | 'g' | 'G' | 'h' | 'H' | 'x' | 'n' | 'N' | '=' | 'l' => Some(rest),
        'q' | 'Q' => Some(rest.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit())),
        's' => {
            let delimiter = rest.chars().next().filter(|c| !c.is_alphanumeric())?;
            if matches!(delimiter, '\n' | '\\') {
                return None;
            }
            let after = delimited(&rest[delimiter.len_utf8()..], delimiter)?;
            let after = delimited(after, delimiter)?;
            Some(after.trim_start_matches(|c: char| "gpiI".contains(c) || c.is_ascii_digit()))
        }
        'y' => {
            let delimiter = rest.chars().next().filter(char::is_ascii_punctuation)?;
            let after = delimited(&rest[1..], delimiter)?;
            delimited(after, delimiter)
        }
        _ => None,
    }
}

/// What follows the next delimiter that has no backslash before it.
fn delimited(text: &str, delimiter: char) -> Option<&str> {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next()?;
            }
            // These are read differently by different programs.
            '\n' => return None,
            '[' if text[at..].split(']').next()?.contains(delimiter) => return None,
            c if c == delimiter => return Some(&text[at + c.len_utf8()..]),
            _ => {}
        }
    }
    None
}

/// What in the arguments of awk has to be spelled out by a rule. Only the program and the options
/// before it are examined. A comparison with `>` counts as a redirection; that costs a question.
pub(super) fn awk(arguments: &[Word]) -> Findings {
    const ACTS: &[&str] = &["system", "|", ">", "getline", "@"];
    let mut found = Findings::new();
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let bare = word.bare.as_str();
        let takes_value = matches!(bare, "-F" | "-v");
        let harmless = takes_value || bare.starts_with("-F") || bare.starts_with("-v");
        if takes_value {
            at += 2;
            continue;
        }
        if harmless || bare == "--" {
            at += 1;
            continue;
        }
        let reason = if bare.starts_with('-') && bare.len() > 1 {
            Some(format!("`{bare}` of `awk` can load or write"))
        } else if !word.literal || ACTS.iter().any(|act| bare.contains(act)) {
            Some("the program of `awk` may write or run".to_owned())
        } else {
            None
        };
        let is_program = !bare.starts_with('-') || bare.len() == 1;
        if let Some(reason) = reason {
            found.push((at, reason));
        }
        if is_program {
            // What follows are files, which awk reads, and assignments.
            break;
        }
        at += 1;
    }
    found
}
