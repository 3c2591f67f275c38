//! What a confined command sends to the proxy: heads of requests and TLS hellos.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| codespar_tools::egress::fuzzing::read(bytes));
