//! What test programs print: counts without overflow, names without anything else.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| codespar_change::fuzzing::test_output(text));
