//! The head of a request that a confined command sends to the proxy: one request to one host goes
//! on, and only to a host that is allowed.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| codespar_tools::egress::fuzzing::request_head(bytes));
