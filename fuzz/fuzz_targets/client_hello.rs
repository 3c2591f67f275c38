//! How TLS begins in a tunnel: a verdict stays the same when more bytes follow.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| codespar_tools::egress::fuzzing::client_hello(bytes));
