//! A model's stream in both wire formats: however the bytes are cut, the answer is the same. The
//! first byte says how.
#![no_main]

use codespar_model::fuzzing::{Format, stream};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((size, bytes)) = bytes.split_first() else {
        return;
    };
    for format in [Format::Anthropic, Format::OpenAi] {
        stream(format, bytes, usize::from(*size));
    }
});
