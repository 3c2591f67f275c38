//! The SOCKS5 handshake with the proxy: a host is allowed or refused as by any other way.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| codespar_tools::egress::fuzzing::socks_request(bytes));
