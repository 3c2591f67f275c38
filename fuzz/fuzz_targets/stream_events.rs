//! Events of a model's stream, of both wire formats. A line is an event: its name, a tab, its data.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let events = || {
        text.lines()
            .map(|line| line.split_once('\t').unwrap_or(("", line)))
    };
    codespar_model::fuzzing::anthropic(events());
    codespar_model::fuzzing::openai(events());
});
