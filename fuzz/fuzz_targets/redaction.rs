//! Redaction: however a text is cut, no secret of it comes out, and redacting again changes nothing.
#![no_main]

use std::sync::Arc;

use codespar_policy::{RedactedStream, Redactor};

const SECRET: &str = "correct-horse-battery-staple";

libfuzzer_sys::fuzz_target!(|input: (Vec<String>, u8)| {
    let (pieces, place) = input;
    let redactor = Arc::new(Redactor::new([("SECRET_TOKEN", SECRET)]));
    let mut stream = RedactedStream::new(Arc::clone(&redactor));
    let mut out = String::new();
    let mut whole = String::new();
    let (first, second) = SECRET.split_at(usize::from(place) % SECRET.len());
    for piece in &pieces {
        for part in [piece.as_str(), first, second] {
            stream.push(part, &mut out);
            whole.push_str(part);
        }
    }
    stream.finish(&mut out);
    assert!(!out.contains(SECRET));
    let once = redactor.redact(&whole);
    assert!(!once.contains(SECRET));
    assert_eq!(redactor.redact(&once), once);
});
