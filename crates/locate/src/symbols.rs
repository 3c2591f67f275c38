//! Finds the names that a file defines, line by line, in any language of the usual families.
//!
//! There is no parser: a line is read from its beginning, past modifiers, to a word that defines
//! something, and the name behind it is taken. Without such a word, the shapes of a method and of
//! an assignment are tried. Some names are missed and some calls are taken for definitions; both
//! only shift a weight. The same code works for languages that it has never seen, for files with
//! errors, and for files that are cut off.
//!
//! ```text
//! pub(crate) fn stem(word: &mut [u8])      modifiers, then `fn`: stem
//! func (s *Server) Listen(addr string)     receiver skipped: Listen
//!   def self.parse(text)                   last of a dotted name: parse
//! static void freeObject(robj *o) {        shape of a function: freeObject
//! DEFAULTS = {                             assigned at the left margin: DEFAULTS
//! ```

use crate::words::is_word;

/// Words that may stand before the word that says what is defined.
#[rustfmt::skip]
const MODIFIERS: &[&[u8]] = &[
    b"pub", b"export", b"default", b"async", b"static", b"public", b"private", b"protected",
    b"final", b"abstract", b"override", b"virtual", b"inline", b"unsafe", b"extern", b"open",
    b"data", b"sealed", b"suspend", b"internal", b"declare", b"partial", b"readonly", b"local",
    b"case", b"crate", b"constexpr", b"explicit", b"friend", b"synchronized", b"native", b"cdef",
    b"cpdef", b"typedef", b"template", b"const", b"in", b"super",
];

/// Words after which the name that is defined comes.
#[rustfmt::skip]
const DEFINERS: &[&[u8]] = &[
    b"def", b"class", b"fn", b"func", b"function", b"struct", b"enum", b"trait", b"interface",
    b"type", b"impl", b"module", b"namespace", b"macro_rules", b"mod", b"object", b"record",
    b"protocol", b"extension", b"sub", b"proc", b"defmodule", b"defp", b"defmacro", b"union",
    b"fun", b"macro", b"message", b"service", b"define", b"actor", b"val",
];

/// Words that stand before a parenthesis without defining anything.
#[rustfmt::skip]
const CONTROL: &[&[u8]] = &[
    b"if", b"for", b"while", b"switch", b"catch", b"return", b"else", b"match", b"foreach",
    b"elif", b"elsif", b"unless", b"until", b"with", b"do", b"try", b"new", b"throw", b"await",
    b"yield", b"function", b"fn", b"func", b"sizeof", b"loop", b"when", b"case", b"select", b"go",
    b"defer", b"using", b"lock", b"describe", b"it", b"test", b"super", b"require", b"import",
    b"and", b"or", b"not", b"print", b"assert",
];

/// Calls `each` with every name that the text defines, with its place.
pub(crate) fn definitions<'t>(text: &'t [u8], mut each: impl FnMut(usize, &'t [u8])) {
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text).chain([text.len()]) {
        let line = &text[start..end];
        if let Some((place, name)) = definition(line)
            && (name.len() > 1 || is_defined(line, place))
        {
            each(start + place, name);
        }
        start = end + 1;
        if start > text.len() {
            break;
        }
    }
}

/// Whether a name of one letter is that of something, not of a variable: a word that defines
/// stands before it, or it is exported.
fn is_defined(line: &[u8], place: usize) -> bool {
    let before = line[..place].trim_ascii();
    let word = before
        .rsplit(|byte| !is_word(*byte))
        .next()
        .unwrap_or_default();
    line[place].is_ascii_alphabetic() && (DEFINERS.contains(&word) || before.starts_with(b"export"))
}

/// The name that a line defines, if it does. Lines of more than 400 bytes are skipped: most are
/// minified or data.
fn definition(line: &[u8]) -> Option<(usize, &[u8])> {
    let indent = line.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let first = line[indent];
    if line.len() > 400 || !(is_word(first) || first == b'#') {
        return None;
    }
    let mut at = indent + usize::from(first == b'#');
    let mut is_constant = false;
    // `pub(crate) unsafe extern "C" fn` is about as long as it gets.
    for _ in 0..6 {
        let word = word_at(line, at)?;
        let after = at + word.len();
        if DEFINERS.contains(&word) {
            return defined_name(line, after);
        }
        match word {
            b"let" | b"var" => return bound_name(line, after, indent),
            b"const" | b"static" => is_constant = true,
            _ if MODIFIERS.contains(&word) => {}
            _ if is_constant && matches!(line.get(skip_space(line, after)), Some(b'=' | b':')) => {
                return (indent < 5).then_some((at, word));
            }
            _ => return callable_name(line, indent).or_else(|| assigned_name(line, indent)),
        }
        at = skip_space(line, skip_group(line, after));
    }
    None
}

/// After `class`, `def self.`, `func (r *Receiver)`: the name.
fn defined_name(line: &[u8], mut at: usize) -> Option<(usize, &[u8])> {
    if line.get(at) == Some(&b'!') {
        at += 1;
    }
    at = skip_space(line, skip_group(line, skip_space(line, at)));
    while matches!(line.get(at), Some(b'*' | b'&')) {
        at += 1;
    }
    let mut name = word_at(line, at)?;
    // `def self.name` and `function Table.name`: the last counts.
    while line.get(at + name.len()) == Some(&b'.') {
        let next = at + name.len() + 1;
        match word_at(line, next) {
            Some(longer) => (at, name) = (next, longer),
            None => break,
        }
    }
    Some((at, name))
}

/// `const name = …` near the left margin.
fn bound_name(line: &[u8], after: usize, indent: usize) -> Option<(usize, &[u8])> {
    let mut at = skip_space(line, after);
    if word_at(line, at) == Some(b"mut") {
        at = skip_space(line, at + 3);
    }
    let name = word_at(line, at)?;
    (indent < 3).then_some((at, name))
}

/// `Type name(arguments) {`, or such a line at the left margin.
fn callable_name(line: &[u8], indent: usize) -> Option<(usize, &[u8])> {
    if line.get(indent) == Some(&b'#') {
        return None;
    }
    let trimmed = line.trim_ascii_end();
    let last = *trimmed.last()?;
    let opens = last == b'{' || (indent == 0 && matches!(last, b')' | b','));
    if !opens {
        return None;
    }
    let bracket = memchr::memchr(b'(', line)?;
    if memchr::memchr(b'=', &line[..bracket]).is_some() {
        return None;
    }
    let end = line[..bracket].trim_ascii_end().len();
    let start = end
        - line[..end]
            .iter()
            .rev()
            .take_while(|b| is_word(**b))
            .count();
    let name = &line[start..end];
    let is_call = indent == 0 && last != b'{' && start == 0;
    let reached = start > 0 && line[start - 1] == b'.';
    (!name.is_empty() && !CONTROL.contains(&name) && !is_call && !reached).then_some((start, name))
}

/// `NAME = …` at the left margin, and `name: function` or `name = (…) =>` anywhere.
fn assigned_name(line: &[u8], indent: usize) -> Option<(usize, &[u8])> {
    let name = word_at(line, indent)?;
    let at = skip_space(line, indent + name.len());
    let sign = *line.get(at)?;
    if !matches!(sign, b'=' | b':') || line.get(at + 1) == Some(&b'=') {
        return None;
    }
    let value = &line[at + 1..];
    let is_function = memchr::memmem::find(value, b"=>").is_some()
        || memchr::memmem::find(value, b"function").is_some();
    (is_function || (indent == 0 && sign == b'=')).then_some((indent, name))
}

fn word_at(line: &[u8], at: usize) -> Option<&[u8]> {
    let rest = line.get(at..)?;
    let length = rest.iter().take_while(|byte| is_word(**byte)).count();
    (length > 0).then(|| &rest[..length])
}

fn skip_space(line: &[u8], at: usize) -> usize {
    let rest = line.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|b| b.is_ascii_whitespace()).count()
}

/// Past `(…)`, `<…>` or `"…"` if one begins here. Groups within groups are not understood; one that
/// does not end on this line is not skipped.
fn skip_group(line: &[u8], at: usize) -> usize {
    let close = match line.get(at) {
        Some(b'(') => b')',
        Some(b'<') => b'>',
        Some(b'"') => b'"',
        _ => return at,
    };
    match memchr::memchr(close, &line[at + 1..]) {
        Some(length) => at + length + 2,
        None => at,
    }
}

#[cfg(test)]
mod tests {
    use super::definitions;

    fn names(text: &str) -> Vec<String> {
        let mut names = Vec::new();
        definitions(text.as_bytes(), |_, name| {
            names.push(String::from_utf8_lossy(name).into_owned());
        });
        names
    }

    #[test]
    fn the_names_that_many_languages_define_are_found() {
        for (line, name) in [
            ("def get_order_by(self):", "get_order_by"),
            ("    async def fetch(self):", "fetch"),
            ("class SQLCompiler(Base):", "SQLCompiler"),
            ("pub(crate) fn stem(word: &mut [u8]) -> usize {", "stem"),
            ("pub struct Table {", "Table"),
            ("impl<T> Table<T> {", "Table"),
            ("macro_rules! join {", "join"),
            ("func (s *Server) Listen(addr string) error {", "Listen"),
            ("export default async function load(x) {", "load"),
            ("export const render = (vnode) => {", "render"),
            ("  componentDidMount() {", "componentDidMount"),
            ("    public static int size(List<A> list) {", "size"),
            ("    protected function boot(): void", "boot"),
            ("  def self.parse(text)", "parse"),
            ("static void freeObject(robj *o) {", "freeObject"),
            ("int main(int argc, char **argv)", "main"),
            ("#define MAX_CLIENTS 10", "MAX_CLIENTS"),
            ("DEFAULTS = {", "DEFAULTS"),
            ("const MAX: usize = 3;", "MAX"),
            ("type Options struct {", "Options"),
            ("module Jekyll", "Jekyll"),
            ("export function h(type) {", "h"),
        ] {
            assert_eq!(names(line), [name], "{line}");
        }
    }

    #[test]
    fn calls_and_control_flow_define_nothing() {
        for line in [
            "if (ready) {",
            "    for (const a of b) {",
            "  } else if (x) {",
            "    return parse(text)",
            "    client.on('x', () => {",
            "foo(bar)",
            "x = 3",
            "let i = 0;",
            "x == 3",
            "",
        ] {
            assert_eq!(names(line), [""; 0], "{line}");
        }
    }
}
