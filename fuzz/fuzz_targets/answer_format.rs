//! The dev agent's answer format: any text is parsed or refused, never a panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = codespar_dev::answer::parse(text);
});
