//! Our own prompts and tool descriptions, fitted to the tools of their reader.
//!
//! A line that begins with `{{needs Grep, Glob}}` is for readers that have all of these; for others
//! it is left out. A prompt that names a tool its reader lacks costs a failed call, or an excuse.

const BEGIN: &str = "{{needs ";
const END: &str = "}}";

/// The prompt without the lines that need tools the reader does not have.
pub fn lines_for_tools(prompt: &str, has: impl Fn(&str) -> bool) -> String {
    let mut lines = Vec::new();
    for line in prompt.lines() {
        let marked = line
            .strip_prefix(BEGIN)
            .and_then(|rest| rest.split_once(END));
        match marked {
            None => lines.push(line),
            Some((tools, text)) if tools.split(',').all(|tool| has(tool.trim())) => {
                lines.push(text);
            }
            Some(_) => {}
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_if_the_reader_has_what_it_needs() {
        let prompt = "one\n{{needs Grep, Glob}}two\n{{needs Skill}}three\nfour {{needs X}}";
        let fitted = |tools: &[&str]| lines_for_tools(prompt, |tool| tools.contains(&tool));
        assert_eq!(fitted(&["Grep", "Glob"]), "one\ntwo\nfour {{needs X}}");
        assert_eq!(fitted(&["Grep", "Skill"]), "one\nthree\nfour {{needs X}}");
    }
}
