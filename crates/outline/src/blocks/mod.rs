//! Finds functions, classes and the blocks inside them, without a grammar.
//!
//! Two ways, by the extension of the file. In languages of braces, a block is what stands between
//! two of them, with the statement before the first; strings and comments are skipped. Everywhere
//! else a block is a line and the lines that are indented more, up to the line that closes it
//! (`end`, `)`), if there is one. Braces that do not add up (a macro, a string of an unusual form)
//! leave the file to its indentation.
//!
//! A block that is found wrongly costs a few lines too many or too few of an excerpt; nothing
//! depends on it being exact.

mod braces;
mod indents;

/// Lines that belong together. Line numbers are from 0, the end is not part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeBlock {
    /// The first line: of the comments and attributes above the header, if there are any.
    pub(crate) first: usize,
    /// The line of the header, for example `class Parser:`.
    pub(crate) header: usize,
    /// The last line of the header: it opens the body.
    pub(crate) opening: usize,
    pub(crate) end: usize,
    /// Blocks in the body, in order, none of them overlapping. They lie between the header and
    /// `end`.
    pub(crate) inner: Vec<CodeBlock>,
}

/// Extensions of languages whose blocks are in braces.
#[rustfmt::skip]
const BRACES: &[&str] = &[
    "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "inl", "ipp", "m", "mm", "cu", "cuh", "java",
    "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "go", "rs", "cs", "php", "kt", "kts",
    "scala", "swift", "dart", "groovy", "gradle", "zig", "d", "sol", "proto", "css", "scss", "less",
    "glsl", "wgsl", "metal", "pl", "pm", "r", "hx", "as", "v", "tf", "hcl", "thrift", "awk", "y",
];

/// The outermost blocks of a text, in order. None of them overlap. Lines may end with a newline or
/// not. Only the extension of `path` counts, in any case; a text without one is read by its
/// indentation.
pub(crate) fn find(path: &str, lines: &[&str]) -> Vec<CodeBlock> {
    let base = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let extension = extension(&base);
    let found = match BRACES.contains(&extension) {
        true => braces::find(lines, extension),
        false => None,
    };
    let mut blocks = found.unwrap_or_else(|| indents::find(lines, extension));
    take_heads(lines, &mut blocks, 0);
    blocks
}

/// The part after the last dot, or nothing.
fn extension(base: &str) -> &str {
    match base.rsplit_once('.') {
        Some((name, extension)) if !name.is_empty() => extension,
        _ => "",
    }
}

/// Gives blocks the comments, attributes and decorators directly above them. Nothing above `floor`
/// is taken: it belongs to another block.
fn take_heads(lines: &[&str], blocks: &mut [CodeBlock], mut floor: usize) {
    for block in blocks {
        while block.first > floor && is_head(lines[block.first - 1]) {
            block.first -= 1;
        }
        take_heads(lines, &mut block.inner, block.opening + 1);
        floor = block.end;
    }
}

/// Whether a line speaks of what follows it.
fn is_head(line: &str) -> bool {
    let line = line.trim_start();
    let marks = ["//", "/*", "*/", "* ", "#", "@", "--", "%", ";;", "[<"];
    line == "*\n" || line == "*" || marks.iter().any(|mark| line.starts_with(mark))
}

/// How far a line is indented. A tab counts as eight columns: where they are mixed, that is what
/// the author saw. `None` for a blank line.
fn indent(line: &str) -> Option<usize> {
    let mut columns = 0;
    for byte in line.bytes() {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns = (columns / 8 + 1) * 8,
            b'\n' | b'\r' | 0x0c => return None,
            _ => return Some(columns),
        }
    }
    None
}

#[cfg(test)]
mod tests;
