//! Unified diffs: both readers see the same lines, so that what is reviewed is what is remarked on.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let read = codespar_pulls::fuzzing::diff(text);
    let shown = codespar_forge::fuzzing::shown_lines(text);
    // The readers may differ in what they make of a diff that no git prints; a line that both
    // know is in the same file.
    let whole = text.starts_with("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ ")
        && text.matches("diff --git").count() == 1
        && text.matches("+++ ").count() == 1
        && text.matches("rename").count() == 0;
    if whole && let Some((_, lines)) = read.first() {
        let other: Vec<u32> = shown.iter().map(|(_, line)| *line).collect();
        assert_eq!(*lines, other);
    }
});
