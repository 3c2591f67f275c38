//! A repository's configuration: what we make of it names nothing that git could run.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    codespar_git::fuzzing::settings(bytes);
    let text = String::from_utf8_lossy(bytes);
    codespar_git::fuzzing::format(&text);
    codespar_git::fuzzing::branch_name(&text);
});
