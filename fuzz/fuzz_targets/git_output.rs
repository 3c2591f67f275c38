//! What git prints about a hostile repository: logs, listings, batches of files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    codespar_locate::fuzzing::git_output(bytes);
    codespar_forge::fuzzing::tree_line(bytes);
});
