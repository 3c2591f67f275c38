//! The index of a repository as it is kept on disk: read or refused, and written as it was read.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| codespar_locate::fuzzing::index(bytes));
