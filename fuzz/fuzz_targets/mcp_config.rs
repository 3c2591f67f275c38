//! Files like `.mcp.json`.
#![no_main]

use codespar_mcp::{Origin, ServerConfigs};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = ServerConfigs::parse(text, ".mcp.json".as_ref(), Origin::Project, |_| None);
});
