//! A tool call as people read it: the command, the change, or the input as JSON; folded, with its
//! result.

use maud::{Markup, html};
use serde_json::Value;

use super::{diff, text};

/// Of an input or a result.
const MOST_BYTES: usize = 20_000;

/// What a call does, in a few words.
pub(super) fn summary(input: &Value) -> String {
    let keys = [
        "command",
        "pattern",
        "query",
        "file_path",
        "path",
        "url",
        "description",
        "prompt",
    ];
    let found = keys.iter().find_map(|key| input.get(key)?.as_str());
    let found = found.unwrap_or_default();
    let first = found.trim().lines().next().unwrap_or_default();
    text::shortened(&codespar_runtime::printable(first), 120)
}

/// The whole input, without secrets already.
pub(super) fn input(tool: &str, input: &Value) -> Markup {
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    if let Some(command) = text("command") {
        return block(command);
    }
    let path = text("file_path").or_else(|| text("path"));
    if let (Some(old), Some(new)) = (text("old_string"), text("new_string")) {
        return html! { (path_line(path)) (diff::replacement(old, new)) };
    }
    if let (Some(edits), Some(_)) = (input.get("edits").and_then(Value::as_array), path) {
        let part = |edit: &Value, key: &str| edit[key].as_str().unwrap_or_default().to_owned();
        return html! {
            (path_line(path))
            @for edit in edits {
                (diff::replacement(&part(edit, "old_string"), &part(edit, "new_string")))
            }
        };
    }
    if let (Some(content), "Write") = (text("content"), tool) {
        return html! { (path_line(path)) (diff::replacement("", content)) };
    }
    match input {
        Value::String(text) => block(text),
        other => block(&serde_json::to_string_pretty(other).unwrap_or_default()),
    }
}

fn path_line(path: Option<&str>) -> Markup {
    html! { @if let Some(path) = path { p.mono { (codespar_runtime::printable(path)) } } }
}

/// Text as it is, shortened.
pub(super) fn block(content: &str) -> Markup {
    let content = codespar_runtime::printable(content);
    let shown = text::head(&content, MOST_BYTES);
    html! {
        pre tabindex="0" { (shown) }
        @if shown.len() < content.len() {
            p.note { (content.len() - shown.len()) " more bytes are not shown." }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_in_an_input_is_markup() {
        let attack = "<script>alert(1)</script><img onerror=x>\u{202e}";
        let inputs = [
            json!({"command": attack}),
            json!({"file_path": attack, "old_string": attack, "new_string": attack}),
            json!({"file_path": attack, "edits": [{"old_string": attack, "new_string": attack}]}),
            json!({"file_path": attack, "content": attack}),
            json!({attack: [attack, {"a": attack}]}),
            json!(attack),
        ];
        for one in inputs {
            let shown = input("Write", &one).into_string();
            assert!(!shown.contains("<script"), "{shown}");
            assert!(!shown.contains("<img"), "{shown}");
            assert!(!shown.contains('\u{202e}'), "{shown}");
            assert!(shown.contains("&lt;script&gt;"), "{shown}");
        }
        assert!(!summary(&json!({"command": attack})).contains('\u{202e}'));
    }
}
