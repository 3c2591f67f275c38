//! The picker: a small model that ranks candidate files.
//!
//! It sees paths, the instruction and its pictures, but no content of files. Its answer is a
//! suggestion: paths that the tree does not have are dropped by the caller, and without an answer
//! the index decides alone.

use codespar_protocol::{ContentBlock, Message};

const SYSTEM: &str = include_str!("prompts/picker.md");

/// The system prompt.
pub(crate) fn system(max: usize) -> String {
    SYSTEM.trim().replace("{max}", &max.to_string())
}

/// What the picker is shown.
pub(crate) fn message(
    instruction: &str,
    paths: &[String],
    overview: Option<&str>,
    images: Vec<ContentBlock>,
) -> Message {
    let mut text = format!("<instruction>\n{instruction}\n</instruction>\n\n");
    if let Some(overview) = overview {
        text.push_str(&format!("<directories>\n{overview}\n</directories>\n\n"));
    }
    text.push_str(&format!("<paths>\n{}\n</paths>", paths.join("\n")));
    let mut message = Message::user(text);
    message.content.extend(images);
    message
}

/// The paths of an answer, in order. Models put words or a fence around the list at times; what is
/// no list of strings is no answer.
pub(crate) fn paths(answer: &str) -> Vec<String> {
    let starts = answer.match_indices('[').map(|(at, _)| at);
    for start in starts {
        let mut stream =
            serde_json::Deserializer::from_str(&answer[start..]).into_iter::<Vec<String>>();
        if let Some(Ok(paths)) = stream.next() {
            return paths
                .into_iter()
                .map(|path| path.trim().trim_start_matches("./").to_owned())
                .collect();
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_found_in_whatever_is_around_it() {
        for answer in [
            r#"["src/a.rs", "./b.rs"]"#,
            "```json\n[\"src/a.rs\",\"b.rs\"]\n```",
            "These [two] matter: [\"src/a.rs\", \"b.rs\"]. I hope it helps.",
            r#"{"files": ["src/a.rs", "b.rs"]}"#,
        ] {
            assert_eq!(paths(answer), ["src/a.rs", "b.rs"], "{answer}");
        }
        for answer in ["", "[]", "[1, 2]", "[\"src/a.rs\"", "none"] {
            assert_eq!(paths(answer), Vec::<String>::new(), "{answer}");
        }
    }
}
