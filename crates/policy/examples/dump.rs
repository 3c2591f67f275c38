//! x
#![allow(clippy::unwrap_used)]
use std::time::Instant;
const SHAPES: &[&str] = &[
    r"(?-u:\b)sk-[A-Za-z0-9_-]{20,}",
    r"(?-u:\b)(?:ghp|gho|ghs|ghu|ghr)_[A-Za-z0-9]{20,}",
    r"(?-u:\b)github_pat_[A-Za-z0-9_]{20,}",
    r"(?-u:\b)glpat-[A-Za-z0-9_-]{16,}",
    r"(?-u:\b)xox[abposre]-[A-Za-z0-9-]{10,}",
    r"(?-u:\b)xapp-[A-Za-z0-9-]{10,}",
    r"(?-u:\b)(?:AKIA|ASIA)[A-Z0-9]{16}(?-u:\b)",
    r"(?-u:\b)AIza[A-Za-z0-9_-]{30,}",
    r"(?-u:\b)npm_[A-Za-z0-9]{30,}",
    r"(?-u:\b)(?:sk|rk)_live_[A-Za-z0-9]{16,}",
    r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    concat!(
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
        r"(?:(?:\s|\\[nr])*(?:Proc-Type|DEK-Info|Version|Comment): [^\n]*)*",
        r"(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})*",
        r"(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{0,15}(?:\s|\\[nr])*",
        r"-----END [A-Z0-9 ]{0,40}-----)?",
    ),
    r"(?-u:\b)(?i:[a-z][a-z0-9+.-]{1,20})://[!-.0-9;-?A-~]{0,256}:(?<secret>[!-.0-?A-~]+)@",
    concat!(
        r"(?i:authorization)[^A-Za-z0-9\n]{1,8}(?i:bearer|basic|token)",
        r"[ \t]+(?<secret>[A-Za-z0-9._~+/=-]{8,})",
    ),
    r"(?-u:\b)(?i:bearer)[ \t]+(?<secret>[A-Za-z0-9._~+/=-]{20,})",
];

fn main() {
    for piece in [
        "aaaaaaaa",
        "eyJ-AKIAIOSFODNN7EXAMPLE-",
        "let x = foo(bar); ",
    ] {
        let text = piece.repeat(2_000_000 / piece.len());
        for s in SHAPES {
            let r = regex::Regex::new(s).unwrap();
            let t = Instant::now();
            let n = r.captures_iter(&text).count();
            println!("{piece:?} {n} {:?} {s}", t.elapsed());
        }
    }
}
