//! The digits of ids that people type.

use std::sync::{
    LazyLock,
    atomic::{AtomicU32, Ordering},
};

use uuid::Uuid;

/// Eight hexadecimal digits. One process never makes the same twice: of ten thousand random ids,
/// one set in eighty would have a pair with the same digits.
pub(crate) fn fresh_digits() -> String {
    static SEED: LazyLock<(u32, u32)> = LazyLock::new(|| {
        let random = || Uuid::new_v4().as_fields().0;
        (random(), random())
    });
    static MADE: AtomicU32 = AtomicU32::new(0);
    let (start, step) = *SEED;
    // An odd step goes through all 2^32 values before it comes back to the first.
    let digits = MADE
        .fetch_add(1, Ordering::Relaxed)
        .wrapping_mul(step | 1)
        .wrapping_add(start);
    format!("{digits:08x}")
}

pub(crate) fn are_digits(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == 8 && text.bytes().all(is_digit)
}
