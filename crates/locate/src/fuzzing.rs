//! Entry points for fuzz targets. Each checks what must hold for any bytes.
//!
//! Compiled with the feature `fuzzing` only.

use crate::{codec::Take, git, history, index::Index};

/// Reads what git printed: a log, a listing of a tree, a batch of files.
pub fn git_output(bytes: &[u8]) {
    let _ = history::records(bytes).count();
    if let Some(blob) = git::blob(bytes) {
        assert!(bytes.ends_with(blob.path.as_bytes()));
    }
    let mut seen = 0;
    let _ = git::read_batch(bytes, 1 << 10, &mut |_, text| {
        assert!(text.len() <= 1 << 10);
        seen += text.len();
    });
    assert!(seen <= bytes.len());
}

/// Reads an index that was kept on disk. What is read can be written and read again.
pub fn index(bytes: &[u8]) {
    let Some(index) = Index::take(&mut Take(bytes)) else {
        return;
    };
    let mut written = Vec::new();
    index.put_into(&mut written);
    let again = Index::take(&mut Take(&written));
    assert!(again.is_some(), "what was written can be read");
}
