//! Colours of code, by the words and marks of its language.
//!
//! A lexer of our own, driven by one table entry per language: grammars that parse would cost
//! build time, memory and a larger binary, for colours that hardly differ.

mod languages;
mod lexer;

use ratatui_core::{
    style::Style,
    text::{Line, Span},
};

use self::{languages::Language, lexer::Lexer};
use crate::theme::Theme;

/// What a piece of code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Comment,
    Text,
    Number,
    Keyword,
    Type,
    Function,
    Attribute,
    Key,
    Heading,
    Added,
    Removed,
    Faint,
}

/// What goes on over the end of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Code,
    Comment {
        depth: usize,
    },
    /// A string: which of the quotes of the language.
    Quote(usize),
    /// A raw string of Rust, with so many `#`.
    Raw(usize),
    /// Inside `<…>` of markup.
    Tag,
}

/// Colours the lines of one text, in order.
#[derive(Debug, Clone)]
pub struct Highlighter {
    language: Option<&'static Language>,
    state: State,
}

impl Highlighter {
    /// By the name of a language, or an extension. Unknown ones are shown plain.
    pub fn new(language: &str) -> Self {
        Self {
            language: languages::find(language),
            state: State::Code,
        }
    }

    /// The text is unchanged; it should be one line. The state at the end of the line is kept for
    /// the next one: comments and strings go on. A theme only chooses the colours, so lines of one
    /// text may have different ones.
    pub fn line(&mut self, text: &str, theme: Theme) -> Line<'static> {
        let Some(language) = self.language else {
            return Line::from(text.to_owned());
        };
        let mut lexer = Lexer::new(language, text, self.state);
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut from = 0;
        let mut last = None;
        while let Some((kind, to)) = lexer.next() {
            if last == Some(kind) {
                if let Some(span) = spans.last_mut() {
                    span.content.to_mut().push_str(&text[from..to]);
                }
            } else {
                let piece = text[from..to].to_owned();
                spans.push(Span::styled(piece, style(kind, theme)));
            }
            (from, last) = (to, Some(kind));
        }
        self.state = lexer.state_at_end();
        Line::from(spans)
    }
}

/// The language of a file, by its name.
pub fn language_of(path: &str) -> Option<&'static str> {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let by_name = match name {
        "Cargo.lock" => Some("toml"),
        ".bashrc" | ".zshrc" | ".profile" => Some("shell"),
        "Gemfile" | "Rakefile" => Some("ruby"),
        // `Dockerfile.dev`
        _ if name.starts_with("Dockerfile") => Some("dockerfile"),
        _ => None,
    };
    let tag = by_name.or(extension).unwrap_or(name);
    languages::find(tag).map(|language| language.name)
}

fn style(kind: Kind, theme: Theme) -> Style {
    match kind {
        Kind::Plain => Style::new(),
        Kind::Comment => theme.comment(),
        Kind::Text => theme.string(),
        Kind::Number => theme.number(),
        Kind::Keyword => theme.keyword(),
        Kind::Type => theme.type_name(),
        Kind::Function => theme.function(),
        Kind::Attribute => theme.attribute(),
        Kind::Key => theme.key(),
        Kind::Heading => theme.heading(),
        Kind::Added => theme.added(),
        Kind::Removed => theme.removed(),
        Kind::Faint => theme.faint(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The pieces of a text with their kinds, without those that are plain.
    fn kinds(language: &str, text: &str) -> Vec<(Kind, String)> {
        let language = languages::find(language).unwrap();
        let mut state = State::Code;
        let mut found = Vec::new();
        for line in text.lines() {
            let mut lexer = Lexer::new(language, line, state);
            let mut from = 0;
            while let Some((kind, to)) = lexer.next() {
                if kind != Kind::Plain {
                    found.push((kind, line[from..to].to_owned()));
                }
                from = to;
            }
            state = lexer.state_at_end();
        }
        found
    }

    fn pieces(kind: Kind, texts: &[&str]) -> Vec<(Kind, String)> {
        texts
            .iter()
            .map(|text| (kind, (*text).to_owned()))
            .collect()
    }

    #[test]
    fn rust_is_told_by_its_words_and_marks() {
        let found = kinds(
            "rust",
            "#[test]\nfn run(x: Vec<'a>) { // note\n  let c = 'x'; r#\"a\nb\"#; 0x1f }",
        );
        let expected = [
            (Kind::Attribute, "#[test]"),
            (Kind::Keyword, "fn"),
            (Kind::Function, "run"),
            (Kind::Type, "Vec"),
            (Kind::Attribute, "'a"),
            (Kind::Comment, "// note"),
            (Kind::Keyword, "let"),
            (Kind::Text, "'x'"),
            (Kind::Text, "r#\"a"),
            (Kind::Text, "b\"#"),
            (Kind::Number, "0x1f"),
        ];
        assert_eq!(found, expected.map(|(kind, text)| (kind, text.to_owned())));
    }

    #[test]
    fn strings_and_comments_go_on_over_lines() {
        let python = kinds("python", "\"\"\"a\nb\"\"\" + 'c\\'d'\n@cached");
        let mut expected = pieces(Kind::Text, &["\"\"\"a", "b\"\"\"", "'c\\'d'"]);
        expected.extend(pieces(Kind::Attribute, &["@cached"]));
        assert_eq!(python, expected);
        assert_eq!(
            kinds("rs", "/* a /* b */\nc */ d"),
            pieces(Kind::Comment, &["/* a /* b */", "c */"])
        );
        assert_eq!(kinds("js", "`a\nb`"), pieces(Kind::Text, &["`a", "b`"]));
    }

    #[test]
    fn a_string_without_end_stops_at_its_line() {
        let found = kinds("c", "char *s = \"abc\nint x;");
        assert_eq!(found.last(), Some(&(Kind::Keyword, "int".to_owned())));
    }

    #[test]
    fn a_hash_inside_a_word_is_no_comment() {
        assert_eq!(kinds("sh", "a#b"), []);
        assert_eq!(kinds("sh", "a #b"), pieces(Kind::Comment, &["#b"]));
        assert_eq!(kinds("sh", "$HOME"), pieces(Kind::Attribute, &["$HOME"]));
    }

    #[test]
    fn data_has_keys() {
        let found = kinds("json", "{\"a\": [\"b\", 1.5, true]}");
        let expected = [
            (Kind::Key, "\"a\""),
            (Kind::Text, "\"b\""),
            (Kind::Number, "1.5"),
            (Kind::Keyword, "true"),
        ];
        assert_eq!(found, expected.map(|(kind, text)| (kind, text.to_owned())));
        assert_eq!(
            kinds("yaml", "my-key: x")[0],
            (Kind::Key, "my-key".to_owned())
        );
        assert_eq!(
            kinds("toml", "name = 'x'")[0],
            (Kind::Key, "name".to_owned())
        );
    }

    #[test]
    fn markup_has_tags_and_attributes() {
        let found = kinds("html", "<a href=\"x\">text</a><!-- c -->");
        let expected = [
            (Kind::Keyword, "<a"),
            (Kind::Attribute, "href"),
            (Kind::Text, "\"x\""),
            (Kind::Keyword, ">"),
            (Kind::Keyword, "</a"),
            (Kind::Keyword, ">"),
            (Kind::Comment, "<!-- c -->"),
        ];
        assert_eq!(found, expected.map(|(kind, text)| (kind, text.to_owned())));
    }

    #[test]
    fn files_have_languages() {
        assert_eq!(language_of("src/main.rs"), Some("rust"));
        assert_eq!(language_of("web/App.tsx"), Some("typescript"));
        assert_eq!(language_of("Makefile"), Some("makefile"));
        assert_eq!(language_of("a/Dockerfile.dev"), Some("dockerfile"));
        assert_eq!(language_of("data.bin"), None);
    }

    fn any_line() -> impl Strategy<Value = String> {
        let parts = prop::sample::select(vec![
            "\"",
            "'",
            "`",
            "/*",
            "*/",
            "//",
            "#",
            "r#\"",
            "\"#",
            "\"\"\"",
            "'''",
            "<!--",
            "-->",
            "<a",
            ">",
            "\\",
            "fn ",
            "Foo",
            "x(",
            "1.5e3",
            "@a",
            "#[",
            "]",
            "$x",
            "é",
            "漢",
            " ",
            "```",
            "+",
            "-",
            ": ",
            "=",
            "\t",
            "--",
            "👩\u{200d}💻",
        ]);
        prop::collection::vec(parts, 0..20).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn every_byte_comes_out_unchanged(
            at in 0..languages::LANGUAGES.len(),
            lines in prop::collection::vec(any_line(), 0..6),
        ) {
            let mut highlighter = Highlighter::new(languages::LANGUAGES[at].name);
            for line in lines {
                prop_assert_eq!(highlighter.line(&line, Theme::default()).to_string(), line);
            }
        }
    }
}
