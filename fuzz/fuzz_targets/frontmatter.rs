//! YAML frontmatter of agents and skills.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = codespar_tools::frontmatter::parse::<serde_json::Value>(text);
});
