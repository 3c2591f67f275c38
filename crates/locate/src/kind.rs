//! What a file is for, by its path: most instructions are about source.
//!
//! The first rule that fits decides, in the order of [`FileKind::of`]: a lock file in a test
//! directory is a lock file, and a test in a vendored directory is generated. Paths are compared in
//! lower case. The index corrects the kind by content where that tells more (`Reader::read`).

use crate::words;

/// What a file is for. An index on disk holds the place of the variant, so a new one goes to the
/// end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// Code that the project is made of.
    Source,
    /// Tests, their data and their helpers.
    Test,
    /// Prose, examples and benchmarks.
    Docs,
    /// Settings, data and everything else that is text.
    Data,
    /// Lock files of package managers.
    Lock,
    /// Written by a program, or by another project.
    Generated,
    /// Not text.
    Binary,
}

impl FileKind {
    pub(crate) const ALL: [Self; 7] = [
        Self::Source,
        Self::Test,
        Self::Docs,
        Self::Data,
        Self::Lock,
        Self::Generated,
        Self::Binary,
    ];

    /// How much of a file of this kind is read into the index, in bytes. Lock files and binaries
    /// are found by their path alone.
    pub(crate) fn readable_bytes(self) -> usize {
        match self {
            Self::Source | Self::Test => 1 << 20,
            Self::Docs | Self::Data => 1 << 16,
            Self::Generated => 1 << 14,
            Self::Lock | Self::Binary => 0,
        }
    }

    /// The kind that a path speaks of.
    pub fn of(path: &str) -> Self {
        let lower = path.to_ascii_lowercase();
        let (directories, base) = lower.rsplit_once('/').unwrap_or(("", &lower));
        let extension = extension(base);
        let is_code = is_code(extension) || matches!(base, "rakefile" | "gemfile");
        if BINARY.contains(&extension) {
            Self::Binary
        } else if is_lock(base) {
            Self::Lock
        } else if is_foreign(directories) || is_generated(base) {
            Self::Generated
        } else if directories.split('/').any(is_test_directory)
            || directories.split('/').next() == Some("testing")
            || is_test(path, base)
        {
            Self::Test
        } else if directories.split('/').any(|one| DOCS.contains(&one)) || is_prose(base, extension)
        {
            Self::Docs
        } else if is_code {
            Self::Source
        } else {
            Self::Data
        }
    }
}

/// The part after the last dot, or nothing.
pub(crate) fn extension(base: &str) -> &str {
    match base.rsplit_once('.') {
        Some((name, extension)) if !name.is_empty() => extension,
        _ => "",
    }
}

/// Whether code is written in files of this extension (in lower case).
pub(crate) fn is_code(extension: &str) -> bool {
    CODE.contains(&extension)
}

/// Whether files of this extension are known at all. Only such an ending is cut off a name: in
/// `v1.2` or `obj.method` the dot does not begin an extension.
pub(crate) fn is_known(extension: &str) -> bool {
    is_code(extension) || PROSE.contains(&extension) || TEXT.contains(&extension)
}

fn is_lock(base: &str) -> bool {
    base.ends_with(".lock")
        || base.ends_with(".sum")
        || base.ends_with(".lockb")
        || matches!(
            base,
            "package-lock.json" | "npm-shrinkwrap.json" | "pnpm-lock.yaml" | "packages.lock.json"
        )
}

/// Directories that hold the code of other projects or the output of builds.
fn is_foreign(directories: &str) -> bool {
    directories
        .split('/')
        .any(|one| FOREIGN.contains(&one) || one.ends_with(".egg-info"))
}

fn is_generated(base: &str) -> bool {
    const MARKS: &[&str] = &[
        ".min.js",
        ".min.css",
        ".pb.go",
        ".pb.cc",
        ".pb.h",
        "_pb2.py",
        "_pb2_grpc.py",
        ".g.dart",
        ".gen.go",
        ".gen.ts",
        ".generated.ts",
        ".generated.rs",
        ".map",
        ".snap",
        ".bundle.js",
    ];
    MARKS.iter().any(|mark| base.ends_with(mark))
}

fn is_prose(base: &str, extension: &str) -> bool {
    let name = base.split('.').next().unwrap_or(base);
    PROSE.contains(&extension)
        || matches!(
            name,
            "readme"
                | "changelog"
                | "changes"
                | "license"
                | "licence"
                | "copying"
                | "authors"
                | "contributing"
                | "news"
                | "history"
                | "todo"
        ) && !is_code(extension)
}

/// `tests`, and `acceptance-tests`. One that is called `testing` may hold what a project offers for
/// tests, so it counts at the top alone.
fn is_test_directory(name: &str) -> bool {
    const ENDS: [&str; 4] = ["-test", "-tests", "_test", "_tests"];
    TESTS.contains(&name) || ENDS.iter().any(|end| name.ends_with(end))
}

/// By the name of the file alone: `test_x.py`, `x_test.go`, `x.spec.ts`, `XTest.java`. `base` is in
/// lower case, `path` is not: the last form needs the capital, which tells `FooTest` from `Latest`.
fn is_test(path: &str, base: &str) -> bool {
    let name = base.split('.').next().unwrap_or(base);
    let middle = base.split('.').rev().skip(1);
    let own = path.rsplit('/').next().unwrap_or(path);
    let own = own.split('.').next().unwrap_or(own);
    let last = words::parts(own.as_bytes()).last().unwrap_or_default();
    name.starts_with("test_")
        || name.ends_with("_test")
        || name.ends_with("_tests")
        || name.ends_with("_spec")
        || name.ends_with("-test")
        || matches!(name, "conftest" | "test" | "tests")
        || middle
            .clone()
            .any(|one| matches!(one, "test" | "spec" | "stories" | "cy" | "test-d"))
        || (own.len() > last.len() && matches!(last, b"Test" | b"Tests" | b"TestCase"))
}

/// Templates, build scripts, queries and schemas count as code.
#[rustfmt::skip]
const CODE: &[&str] = &[
    "ts", "js", "tsx", "jsx", "py", "go", "rs", "java", "rb", "php", "mjs", "cjs", "mts", "cts",
    "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "inl", "ipp", "m", "mm", "cs", "fs", "vb",
    "kt", "kts", "scala", "sc", "groovy", "clj", "cljs", "cljc", "edn", "swift", "dart", "lua",
    "pl", "pm", "r", "jl", "hs", "lhs", "ml", "mli", "elm", "ex", "exs", "erl", "hrl", "zig",
    "nim", "cr", "d", "v", "sv", "vhd", "pas", "f", "f90", "f95", "for", "ada", "adb", "ads", "sh",
    "bash", "zsh", "fish", "ps1", "bat", "cmd", "awk", "sql", "vue", "svelte", "astro", "pyx",
    "pxd", "pyi", "y", "yy", "l", "ll", "asm", "s", "cu", "cuh", "glsl", "wgsl", "metal", "proto",
    "thrift", "graphql", "gql", "nu", "tcl", "el", "lisp", "scm", "rkt", "sol", "nix", "tf", "hcl",
    "erb", "haml", "slim", "twig", "blade", "jinja", "j2", "mustache", "hbs", "ejs", "coffee",
    "rake", "gemspec", "cmake", "bzl", "star", "mako", "tpl", "jq", "vim", "hx", "as",
];
#[rustfmt::skip]
const PROSE: &[&str] = &[
    "md", "mdx", "rst", "txt", "adoc", "asciidoc", "org", "tex", "rdoc", "textile", "pod", "ipynb",
    "po", "pot", "mo", "markdown",
];
#[rustfmt::skip]
const TEXT: &[&str] = &[
    "json", "jsonc", "json5", "yaml", "yml", "toml", "ini", "cfg", "conf", "xml", "html", "htm",
    "css", "scss", "sass", "less", "csv", "tsv", "properties", "env", "lock", "gradle", "svg",
    "plist", "log", "in", "am", "ac", "mk", "xsd", "xsl", "styl",
];
#[rustfmt::skip]
const BINARY: &[&str] = &[
    "png", "jpg", "jpeg", "gif", "webp", "bmp", "ico", "icns", "tif", "tiff", "psd", "pdf", "zip",
    "gz", "tgz", "bz2", "xz", "zst", "7z", "rar", "tar", "jar", "war", "class", "so", "a", "o",
    "dll", "dylib", "exe", "bin", "wasm", "pyc", "ttf", "otf", "woff", "woff2", "eot", "mp3",
    "mp4", "wav", "ogg", "webm", "avi", "mov", "flac", "sqlite", "db", "npy", "npz", "pkl", "h5",
    "hdf5", "parquet", "xls", "xlsx", "ods", "doc", "docx", "ppt", "pptx", "fits", "rdb", "glb",
    "gltf", "hdr", "exr", "ktx", "ktx2", "dds", "mat", "gem", "whl", "phar", "keystore", "jks",
    "p12", "der", "afm", "pfb", "msi", "dmg", "iso", "bcmap", "mpy", "avif",
];
#[rustfmt::skip]
const TESTS: &[&str] = &[
    "test", "tests", "__tests__", "spec", "specs", "testdata", "test_data", "test-data", "e2e",
    "fixtures", "__fixtures__", "__mocks__", "mocks", "__snapshots__", "snapshots", "testsuite",
    "test-fixtures", "testfixtures", "integration_tests", "integration-tests", "unit_tests",
    "test_fixtures", "tests-integration", "test-utils", "test_utils", "baseline_images",
];
#[rustfmt::skip]
const DOCS: &[&str] = &[
    "doc", "docs", "documentation", "example", "examples", "sample", "samples", "demo", "demos",
    "bench", "benches", "benchmark", "benchmarks", "tutorial", "tutorials", "galleries", "website",
    "man", "asv_bench", "scripts", "dev-tools", "locale", "locales", "i18n", "changelog",
    "changelog_unreleased",
];
#[rustfmt::skip]
const FOREIGN: &[&str] = &[
    "vendor", "third_party", "third-party", "thirdparty", "node_modules", "bower_components",
    "dist", "extern", "externals", "_vendor", "site-packages", "generated", "__generated__",
    ".yarn", "deps", "single_include",
];

#[cfg(test)]
mod tests {
    use super::FileKind::{self, *};

    #[test]
    fn a_path_says_what_a_file_is_for() {
        for (path, kind) in [
            ("src/auth/login.ts", Source),
            ("src/_pytest/python.py", Source),
            ("src/contest.rs", Source),
            ("Latest.java", Source),
            ("src/test/java/A.java", Test),
            ("pkg/query_test.go", Test),
            ("test_login.py", Test),
            ("ui/login.spec.ts", Test),
            ("src/FooTest.java", Test),
            ("testing/code/source.py", Test),
            ("app/testing/client.py", Source),
            ("packages/dts-test/setup.ts", Test),
            ("types/setup.test-d.ts", Test),
            ("README.md", Docs),
            ("docs/conf.py", Docs),
            ("CHANGES", Docs),
            ("package.json", Data),
            ("package-lock.json", Lock),
            ("Cargo.lock", Lock),
            ("go.sum", Lock),
            ("vendor/a/b.go", Generated),
            ("web/app.min.js", Generated),
            ("logo.PNG", Binary),
        ] {
            assert_eq!(FileKind::of(path), kind, "{path}");
        }
    }
}
