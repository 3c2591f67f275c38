//! What is played for each picture: files, the prompt, the answers of the model.
//!
//! Token counts are set in every answer: computed ones would depend on the length of temporary
//! paths in the requests, and with them the costs on the screen.

use codespar_protocol::Usage;
use codespar_testkit::{Conversation, Gate, Matcher, Script, Turn};
use serde_json::json;

pub(super) struct Scene {
    /// Part of the file name.
    pub(super) name: &'static str,
    /// Path and text, in the project.
    pub(super) files: &'static [(&'static str, &'static str)],
    pub(super) prompt: &'static str,
    pub(super) script: Script,
    /// The moment to draw is when all of these are on the screen (with fixed durations)
    pub(super) cues: &'static [&'static str],
    /// and none of these.
    pub(super) over: &'static [&'static str],
    /// Texts of which each comes after the one before.
    pub(super) order: &'static [&'static str],
}

pub(super) fn all() -> Vec<Scene> {
    vec![answer(), edit(), agents()]
}

/// Blocks of every kind that has a style of its own. Short enough that nothing scrolls: how many
/// rows do depends on when the parts of an answer arrive.
const ANSWER: &str = "\
## How requests are limited

Each client has a **bucket of tokens** that fills up again over time:

1. `allow` takes a token; without one, the request is refused with *429*.
2. A bucket that was full for an hour is dropped.

| setting | default | meaning |
|---|---:|---|
| `burst` | 20 | tokens in a full bucket |
| `per_second` | 5 | tokens that are added |

```rust
/// Whether a request may pass now.
pub fn allow(&mut self, now: Instant) -> bool {
    self.refill(now); // for the time since the last request
    self.bucket.take(1, \"request\").is_ok()
}
```
";

const PARSER: &str = "\
use crate::lexer::{Token, lex};

/// Reads a whole file.
pub fn parse(text: &str) -> Result<Ast, ParseError> {
    let mut tokens = lex(text);
    let first = tokens.next().unwrap();
    let mut ast = Ast::starting_with(first);
    for token in tokens {
        ast.push(token)?;
    }
    Ok(ast)
}
";

fn answer() -> Scene {
    Scene {
        name: "answer",
        files: &[],
        prompt: "how does the rate limiter work?",
        script: Script::of([Turn::text(ANSWER).usage(tokens(18_400, 310))]),
        cues: &["/help shows commands and keys", "1 turn ·", "% of "],
        over: &[],
        order: &[],
    }
}

fn edit() -> Scene {
    let input = json!({
        "file_path": "src/parse.rs",
        "old_string": "    let first = tokens.next().unwrap();\n",
        "new_string": "    let Some(first) = tokens.next() else {\n        return Ok(Ast::default());\n    };\n",
    });
    let found = "The parser takes the first token without checking that there is one.";
    let read = Turn::tool("Read", &json!({"file_path": "src/parse.rs"}));
    Scene {
        name: "edit",
        files: &[("src/parse.rs", PARSER)],
        prompt: "fix the parser, empty input crashes it",
        script: Script::of([
            read.usage(tokens(16_200, 60)),
            Turn::text(found)
                .and_tool("Edit", &input)
                .usage(tokens(16_900, 180)),
        ]),
        cues: &["y yes, once", "% of "],
        over: &["tab answers this question"],
        order: &[],
    }
}

/// The agents wait for a second answer that never comes, so they run as long as it takes to draw
/// them.
fn agents() -> Scene {
    let never = Gate::closed();
    let start = |description: &str, prompt: &str| json!({"description": description, "prompt": prompt, "subagent_type": "Explore"});
    let agent = |prompt: &str, pattern: &str, input: u64| {
        let search = Turn::tool("Grep", &json!({"pattern": pattern}));
        Conversation::new(prompt, Matcher::first_user_contains(prompt))
            .turn(search.usage(tokens(input, 40)))
            .turn(Turn::text("done").held_by(&never))
    };
    let (parser, errors) = ("List the callers of parse.", "List the error types.");
    Scene {
        name: "agents",
        files: &[("src/parse.rs", PARSER)],
        prompt: "who calls the parser, and which errors can it return?",
        script: Script::of([Turn::text("Two agents look at both questions at once.")
            .and_tool("Task", &start("Find the callers of parse", parser))
            .and_tool("Task", &start("Collect the error types", errors))
            .usage(tokens(15_800, 140))])
        .conversation(agent(parser, "parse\\(", 6_100))
        .conversation(agent(errors, "enum \\w+Error", 5_700)),
        cues: &["Grep parse", "Grep enum", "% of "],
        over: &["0 tool calls", " 0 tokens"],
        order: &["Find the callers", "Collect the error types"],
    }
}

fn tokens(input: u64, output: u64) -> Usage {
    Usage {
        input_tokens: input,
        output_tokens: output,
        ..Usage::default()
    }
}
