//! What the languages look like, as tables.
//!
//! A new language is one entry. `find` takes names as in a fence of Markdown and extensions of
//! files alike. What differs in kind and not in words (raw strings of Rust, markup) is code in
//! `lexer`.

/// How a text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grammar {
    Code,
    /// Names before `:` or `=` are keys.
    Data,
    Markup,
    Markdown,
    Diff,
}

/// A string, or anything else with an end of its own.
#[derive(Debug)]
pub(super) struct Quote {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    pub(super) escape: Option<u8>,
    pub(super) lines: Lines,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    One,
    Many,
}

/// What begins an attribute or a decorator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attribute {
    None,
    /// `@name`
    At,
    /// `#[…]`, as in Rust
    Bracket,
    /// `#name` at the beginning of a line
    Preprocessor,
    /// `$name`
    Dollar,
}

#[derive(Debug)]
pub(super) struct Language {
    pub(super) name: &'static str,
    /// Other tags, and extensions of files.
    pub(super) also: &'static [&'static str],
    pub(super) grammar: Grammar,
    pub(super) comments: &'static [&'static str],
    pub(super) block_comment: Option<(&'static str, &'static str)>,
    /// From the longest opening to the shortest.
    pub(super) quotes: &'static [Quote],
    pub(super) attribute: Attribute,
    /// Separated by blanks. Looked through word by word, which is fast enough for a line.
    pub(super) keywords: &'static str,
}

const fn one(mark: &'static str) -> Quote {
    Quote {
        open: mark,
        close: mark,
        escape: Some(b'\\'),
        lines: Lines::One,
    }
}

const fn many(mark: &'static str) -> Quote {
    Quote {
        open: mark,
        close: mark,
        escape: Some(b'\\'),
        lines: Lines::Many,
    }
}

const fn verbatim(open: &'static str, close: &'static str) -> Quote {
    Quote {
        open,
        close,
        escape: None,
        lines: Lines::Many,
    }
}

const C_COMMENT: Option<(&str, &str)> = Some(("/*", "*/"));
const BOTH: &[Quote] = &[one("\""), one("'")];

/// What most have; each language says what differs.
const BASE: Language = Language {
    name: "",
    also: &[],
    grammar: Grammar::Code,
    comments: &["//"],
    block_comment: C_COMMENT,
    quotes: BOTH,
    attribute: Attribute::None,
    keywords: "",
};

pub(super) const LANGUAGES: &[Language] = &[
    Language {
        name: "rust",
        also: &["rs"],
        quotes: &[many("\"")],
        attribute: Attribute::Bracket,
        keywords: "as async await break const continue crate dyn else enum extern false fn for if \
            impl in let loop match mod move mut pub ref return self Self static struct super trait \
            true type unsafe use where while u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize \
            f32 f64 bool char str",
        ..BASE
    },
    Language {
        name: "python",
        also: &["py", "pyi", "python3"],
        comments: &["#"],
        block_comment: None,
        quotes: &[many("\"\"\""), many("'''"), one("\""), one("'")],
        attribute: Attribute::At,
        keywords: "and as assert async await break case class continue def del elif else except \
            False finally for from global if import in is lambda match None nonlocal not or pass \
            raise return self True try while with yield",
        ..BASE
    },
    Language {
        name: "javascript",
        also: &["js", "jsx", "mjs", "cjs"],
        quotes: &[many("`"), one("\""), one("'")],
        attribute: Attribute::At,
        keywords: "async await break case catch class const continue debugger default delete do \
            else export extends false finally for from function if import in instanceof let new \
            null of return static super switch this throw true try typeof undefined var void while \
            with yield",
        ..BASE
    },
    Language {
        name: "typescript",
        also: &["ts", "tsx", "mts", "cts"],
        quotes: &[many("`"), one("\""), one("'")],
        attribute: Attribute::At,
        keywords: "abstract any as async await boolean break case catch class const continue \
            declare default delete do else enum export extends false finally for from function if \
            implements import in infer instanceof interface is keyof let namespace never new null \
            number of private protected public readonly return satisfies static string super \
            switch this throw true try type typeof undefined unknown var void while yield",
        ..BASE
    },
    Language {
        name: "go",
        also: &["golang"],
        quotes: &[verbatim("`", "`"), one("\""), one("'")],
        keywords: "any bool break byte case chan const continue default defer else error \
            fallthrough false float64 for func go goto if import int int64 interface map nil \
            package range return rune select string struct switch true type uint uint64 var",
        ..BASE
    },
    Language {
        name: "c",
        also: &["h"],
        attribute: Attribute::Preprocessor,
        keywords: "auto bool break case char const continue default do double else enum extern \
            false float for goto if inline int long NULL register restrict return short signed \
            sizeof static struct switch true typedef union unsigned void volatile while",
        ..BASE
    },
    Language {
        name: "cpp",
        also: &["c++", "cc", "cxx", "hpp", "hh", "hxx"],
        quotes: &[verbatim("R\"(", ")\""), one("\""), one("'")],
        attribute: Attribute::Preprocessor,
        keywords: "alignas auto bool break case catch char class concept const consteval constexpr \
            continue co_await co_return co_yield decltype default delete do double else enum \
            explicit export extern false final float for friend goto if inline int long mutable \
            namespace new noexcept nullptr operator override private protected public requires \
            return short signed sizeof static struct switch template this throw true try typedef \
            typename union unsigned using virtual void volatile while",
        ..BASE
    },
    Language {
        name: "java",
        quotes: &[many("\"\"\""), one("\""), one("'")],
        attribute: Attribute::At,
        keywords: "abstract assert boolean break byte case catch char class const continue default \
            do double else enum extends false final finally float for if implements import \
            instanceof int interface long native new null package permits private protected public \
            record return sealed short static super switch synchronized this throw throws true try \
            var void volatile while yield",
        ..BASE
    },
    Language {
        name: "kotlin",
        also: &["kt", "kts"],
        quotes: &[verbatim("\"\"\"", "\"\"\""), one("\""), one("'")],
        attribute: Attribute::At,
        keywords: "abstract as break by class companion const constructor continue data do else \
            enum false final for fun if import in init inline interface internal is lateinit null \
            object open override package private protected public return sealed super suspend this \
            throw true try typealias val var when where while",
        ..BASE
    },
    Language {
        name: "csharp",
        also: &["cs", "c#"],
        quotes: &[verbatim("\"\"\"", "\"\"\""), one("\""), one("'")],
        attribute: Attribute::Preprocessor,
        keywords: "abstract as async await base bool break byte case catch char class const \
            continue decimal default delegate do double else enum event explicit extern false \
            finally fixed float for foreach get if implicit in init int interface internal is lock \
            long namespace new null object operator out override params private protected public \
            readonly record ref return sealed set short static string struct switch this throw true \
            try typeof uint ulong using var virtual void when where while yield",
        ..BASE
    },
    Language {
        name: "swift",
        quotes: &[many("\"\"\""), one("\"")],
        attribute: Attribute::At,
        keywords: "actor any as async await break case catch class continue default defer deinit do \
            else enum extension fallthrough false fileprivate final for func guard if import in \
            init inout internal is let mutating nil open override private protocol public repeat \
            return self Self some static struct subscript super switch throw throws true try \
            typealias var where while",
        ..BASE
    },
    Language {
        name: "ruby",
        also: &["rb", "gemspec", "rake"],
        comments: &["#"],
        block_comment: Some(("=begin", "=end")),
        quotes: &[many("\""), many("'"), one("`")],
        attribute: Attribute::At,
        keywords: "alias and begin break case class def defined? do else elsif end ensure false for \
            if in module next nil not or private protected public raise redo require rescue retry \
            return self super then true undef unless until when while yield",
        ..BASE
    },
    Language {
        name: "php",
        comments: &["//", "#"],
        quotes: &[many("\""), many("'")],
        attribute: Attribute::Dollar,
        keywords: "abstract array as break case catch class clone const continue declare default do \
            echo else elseif empty enum extends false final finally fn for foreach function global \
            if implements include instanceof interface isset match namespace new null print private \
            protected public readonly require require_once return static switch throw trait true \
            try unset use var while yield",
        ..BASE
    },
    Language {
        name: "shell",
        also: &["sh", "bash", "zsh", "fish", "ksh", "shellscript"],
        comments: &["#"],
        block_comment: None,
        quotes: &[many("\""), verbatim("'", "'")],
        attribute: Attribute::Dollar,
        keywords: "alias break case cd continue do done echo elif else esac eval exec exit export \
            fi for function if in local read readonly return select set shift source then trap \
            true false unset until while",
        ..BASE
    },
    Language {
        name: "dockerfile",
        also: &["docker", "containerfile"],
        comments: &["#"],
        block_comment: None,
        attribute: Attribute::Dollar,
        keywords: "FROM AS RUN CMD LABEL EXPOSE ENV ADD COPY ENTRYPOINT VOLUME USER WORKDIR ARG \
            ONBUILD STOPSIGNAL HEALTHCHECK SHELL",
        ..BASE
    },
    Language {
        name: "makefile",
        also: &["make", "mk", "gnumakefile"],
        comments: &["#"],
        block_comment: None,
        attribute: Attribute::Dollar,
        keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override unexport",
        ..BASE
    },
    Language {
        name: "sql",
        also: &["psql", "mysql", "sqlite", "postgresql"],
        comments: &["--"],
        keywords: "ADD ALL ALTER AND AS ASC BEGIN BETWEEN BY CASCADE CASE CHECK COLUMN COMMIT \
            CONSTRAINT CREATE CROSS DEFAULT DELETE DESC DISTINCT DROP ELSE END EXISTS FALSE FOREIGN \
            FROM FULL GROUP HAVING IF IN INDEX INNER INSERT INTO IS JOIN KEY LEFT LIKE LIMIT NOT \
            NULL OFFSET ON OR ORDER OUTER OVER PARTITION PRIMARY REFERENCES RETURNING RIGHT \
            ROLLBACK SELECT SET TABLE THEN TRANSACTION TRUE UNION UNIQUE UPDATE USING VALUES VIEW \
            WHEN WHERE WITH BOOLEAN INTEGER INT BIGINT TEXT VARCHAR REAL BLOB TIMESTAMP DATE",
        ..BASE
    },
    Language {
        name: "json",
        also: &["jsonc", "json5", "jsonl"],
        grammar: Grammar::Data,
        quotes: &[one("\"")],
        keywords: "true false null",
        ..BASE
    },
    Language {
        name: "yaml",
        also: &["yml"],
        grammar: Grammar::Data,
        comments: &["#"],
        block_comment: None,
        keywords: "true false null yes no on off",
        ..BASE
    },
    Language {
        name: "toml",
        also: &["ini", "cfg", "conf", "properties"],
        grammar: Grammar::Data,
        comments: &["#", ";"],
        block_comment: None,
        quotes: &[many("\"\"\""), verbatim("'''", "'''"), one("\""), one("'")],
        keywords: "true false",
        ..BASE
    },
    Language {
        name: "css",
        also: &["scss", "less"],
        grammar: Grammar::Data,
        attribute: Attribute::At,
        keywords: "important inherit initial unset none auto",
        ..BASE
    },
    Language {
        name: "html",
        also: &[
            "htm", "xml", "xhtml", "svg", "vue", "svelte", "xsl", "plist",
        ],
        grammar: Grammar::Markup,
        comments: &[],
        block_comment: Some(("<!--", "-->")),
        quotes: &[many("\""), many("'")],
        ..BASE
    },
    Language {
        name: "markdown",
        also: &["md", "mdx"],
        grammar: Grammar::Markdown,
        comments: &[],
        block_comment: None,
        quotes: &[verbatim("```", "```"), one("`")],
        ..BASE
    },
    Language {
        name: "diff",
        also: &["patch"],
        grammar: Grammar::Diff,
        ..BASE
    },
];

/// In any case of letters. The first entry wins.
pub(super) fn find(tag: &str) -> Option<&'static Language> {
    let is = |name: &&str| name.eq_ignore_ascii_case(tag);
    let mut languages = LANGUAGES.iter();
    languages.find(|one| is(&one.name) || one.also.iter().any(is))
}
