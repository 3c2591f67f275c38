//! The figures in `docs/benchmarks.md`, between two markers.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};

const BEGIN: &str = "<!-- figures: written by `cargo xtask bench --write` -->\n";
const END: &str = "<!-- end of figures -->\n";

/// Replaces what stands between the markers.
pub(super) fn write(path: &Path, figures: &str) -> Result<()> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = replaced(&text, figures).with_context(|| format!("in {}", path.display()))?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// An error if a marker is missing: figures must not end up somewhere else.
fn replaced(text: &str, figures: &str) -> Result<String> {
    let parts = text
        .split_once(BEGIN)
        .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let Some((before, after)) = parts else {
        bail!(
            "the figures go between the lines `{}` and `{}`",
            BEGIN.trim(),
            END.trim()
        );
    };
    Ok(format!("{before}{BEGIN}\n{figures}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let text = format!("before\n{BEGIN}old\n{END}after\n");
        let new = replaced(&text, "new\n").unwrap();
        assert_eq!(new, format!("before\n{BEGIN}\nnew\n\n{END}after\n"));
        assert_eq!(replaced(&new, "new\n").unwrap(), new);
    }

    #[test]
    fn a_document_without_markers_is_left_alone() {
        let error = replaced("no markers\n", "new\n").unwrap_err();
        assert!(error.to_string().starts_with("the figures go between"));
    }
}
