//! Workflow files.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = codespar_tasks::parse_workflow(text, "w.toml".as_ref(), &["worker"]);
});
