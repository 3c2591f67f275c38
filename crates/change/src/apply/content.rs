//! The new bytes of a file.

use codespar_tools::matching::{self, Block, BlockFailure, apply_blocks};

/// Its bytes as text, or why they are none. A file with a zero byte or without valid UTF-8 is
/// refused rather than converted: bytes that no block mentions must come out as they went in.
pub(super) fn text(content: &[u8]) -> Result<&str, &'static str> {
    if content.contains(&0) {
        return Err("it is a binary file, which cannot be changed as text");
    }
    std::str::from_utf8(content).map_err(
        |_| "it is not UTF-8 text, so it cannot be changed without harm to its other bytes",
    )
}

/// A file's text replaced whole. What did not change keeps its bytes: line ends, the byte order
/// mark, whether there is a newline at the end.
pub(super) fn replaced(original: &str, content: &str) -> String {
    let body = original.strip_prefix('\u{feff}').unwrap_or(original);
    let all = body.strip_suffix('\n').unwrap_or(body);
    let all = all.strip_suffix('\r').unwrap_or(all);
    let whole = Block {
        search: all.to_owned(),
        replace: content.strip_suffix('\n').unwrap_or(content).to_owned(),
    };
    match apply_blocks(original, &[whole]) {
        Ok(applied) => applied.text,
        // A file of one blank line: there is nothing to keep.
        Err(_) => content.to_owned(),
    }
}

/// A file's text with other lines in some places.
pub(super) fn edited(
    original: &str,
    blocks: &[Block],
) -> Result<matching::AppliedEdits, Vec<BlockFailure>> {
    apply_blocks(original, blocks)
}

/// The content of a new file that came as a pair with nothing to find.
pub(super) fn created(blocks: &[Block]) -> Option<String> {
    match blocks {
        [block] if block.search.is_empty() => edited("", blocks).ok().map(|applied| applied.text),
        _ => None,
    }
}
