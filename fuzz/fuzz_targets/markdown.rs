//! Foreign text in pull requests: it mentions nobody, hides nothing and stays in its place.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| codespar_pulls::fuzzing::markdown(text));
