//! What a file is, by its first bytes.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Lines of text, in UTF-8 or something near it.
    Text,
    /// A picture a model can look at; its media type.
    Image(&'static str),
    /// Anything else, by name.
    Binary(&'static str),
}

/// How many bytes are enough to tell.
pub(crate) const SNIFFED_BYTES: usize = 8 * 1024;

/// Beginnings of formats that people keep in repositories. UTF-16 counts as binary: Edit works on
/// UTF-8 only.
const MAGIC: &[(&[u8], FileKind)] = &[
    (b"\x89PNG\r\n\x1a\n", FileKind::Image("image/png")),
    (b"\xff\xd8\xff", FileKind::Image("image/jpeg")),
    (b"GIF87a", FileKind::Image("image/gif")),
    (b"GIF89a", FileKind::Image("image/gif")),
    (b"%PDF-", FileKind::Binary("a PDF document")),
    (b"\x7fELF", FileKind::Binary("an ELF executable")),
    (b"PK\x03\x04", FileKind::Binary("a zip archive")),
    (b"\x1f\x8b", FileKind::Binary("a gzip archive")),
    (b"\xfd7zXZ\0", FileKind::Binary("an xz archive")),
    (b"\x28\xb5\x2f\xfd", FileKind::Binary("a zstd archive")),
    (b"SQLite format 3\0", FileKind::Binary("an SQLite database")),
    (b"\0asm", FileKind::Binary("a WebAssembly module")),
    (b"\xff\xfe", FileKind::Binary("UTF-16 text")),
    (b"\xfe\xff", FileKind::Binary("UTF-16 text")),
];

/// What a file that starts with `head` is.
pub(crate) fn sniff(head: &[u8]) -> FileKind {
    if let Some((_, kind)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
        return *kind;
    }
    if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        return FileKind::Image("image/webp");
    }
    if memchr::memchr(0, head).is_some() {
        return FileKind::Binary("a binary file");
    }
    FileKind::Text
}

/// The media type of a picture that a model can look at.
pub fn picture_type(head: &[u8]) -> Option<&'static str> {
    match sniff(head) {
        FileKind::Image(media_type) => Some(media_type),
        FileKind::Text | FileKind::Binary(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(b"\x89PNG\r\n\x1a\n....", FileKind::Image("image/png"))]
    #[case(b"\xff\xd8\xff\xe0", FileKind::Image("image/jpeg"))]
    #[case(b"GIF89a", FileKind::Image("image/gif"))]
    #[case(b"RIFF\x10\0\0\0WEBPVP8 ", FileKind::Image("image/webp"))]
    #[case(b"RIFF\x10\0\0\0WAVE", FileKind::Binary("a binary file"))]
    #[case(b"%PDF-1.7", FileKind::Binary("a PDF document"))]
    #[case(b"a\0b", FileKind::Binary("a binary file"))]
    #[case(b"caf\xe9", FileKind::Text)]
    #[case(b"", FileKind::Text)]
    fn the_first_bytes_tell(#[case] head: &[u8], #[case] kind: FileKind) {
        assert_eq!(sniff(head), kind);
    }
}
