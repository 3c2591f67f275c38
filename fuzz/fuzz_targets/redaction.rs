//! Redaction in pieces: however a text is cut, no secret of it comes out.
#![no_main]

use std::sync::Arc;

use codespar_policy::{RedactedStream, Redactor};

const SECRET: &str = "correct-horse-battery-staple";

libfuzzer_sys::fuzz_target!(|input: (Vec<String>, u8)| {
    let (pieces, place) = input;
    let redactor = Arc::new(Redactor::new([("SECRET_TOKEN", SECRET)]));
    let mut stream = RedactedStream::new(redactor);
    let mut out = String::new();
    let (first, second) = SECRET.split_at(usize::from(place) % SECRET.len());
    for piece in &pieces {
        stream.push(piece, &mut out);
        stream.push(first, &mut out);
        stream.push(second, &mut out);
    }
    stream.finish(&mut out);
    assert!(!out.contains(SECRET));
});
