//! Names of hosts: one spelling each, never an address, and allowed only if the list names them.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: (&str, u16)| {
    let (host, port) = input;
    for port in [port, 443, 8443] {
        codespar_tools::egress::fuzzing::destination(host, port);
    }
});
