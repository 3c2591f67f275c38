//! One kind of line end.

use std::borrow::Cow;

/// The text with `\r\n` and `\r` as `\n`.
pub(crate) fn with_newlines(text: &str) -> Cow<'_, str> {
    match text.contains('\r') {
        true => Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")),
        false => Cow::Borrowed(text),
    }
}
