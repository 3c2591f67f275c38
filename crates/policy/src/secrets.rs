//! What is a secret: by the name of a variable, and by the shape of a value.
//!
//! Names are used for environment variables and for assignments in published text. Shapes are used
//! to redact text, to find leaks and to keep values out of the environment of child processes. The
//! lists of shapes are regular expressions without backtracking, so the cost is linear in the text.

use std::sync::LazyLock;

use regex::Regex;

/// Words of a name that mark a secret on their own.
const MARKS: &[&str] = &[
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASS",
    "PWD",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "APIKEY",
    "AUTH",
    "AUTHTOKEN",
    "AUTHORIZATION",
    "BEARER",
    "JWT",
    "COOKIE",
    "PAT",
    "DSN",
    "PRIVATEKEY",
    "ACCESSKEY",
    "SECRETKEY",
    // Whoever has the address may post.
    "WEBHOOK",
    "WEBHOOKS",
];

/// Words before `KEY` that make it a secret one.
const KEYS: &[&str] = &[
    "API",
    "ACCESS",
    "SECRET",
    "PRIVATE",
    "ENCRYPTION",
    "SIGNING",
    "MASTER",
    "SERVICE",
    "ACCOUNT",
    "DEPLOY",
    "SSH",
    "GPG",
    "LICENSE",
    "STORAGE",
    "SESSION",
    "AUTH",
    "APP",
    "ADMIN",
];

/// Names that hold secrets although no word of theirs says so.
const NAMES: &[&str] = &[
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "BW_SESSION",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
];

/// Beginnings of such names: sessions of password managers, one for each account.
const NAME_PREFIXES: &[&str] = &["OP_SESSION", "BW_SESSION_"];

/// Ends of names of addresses that usually have a password in them.
const ADDRESSES: &[&str] = &["DATABASE_URL", "REDIS_URL", "POSTGRES_URL", "MONGODB_URI"];

/// Names that hold none although a word of theirs says so.
const INNOCENT: &[&str] = &["PWD", "OLDPWD", "XAUTHORITY", "DOCKER_AUTH_CONFIG_PATH"];

/// Whether an environment variable of this name holds a secret.
///
/// Case is ignored. A name is split into words at characters that are neither letters nor digits.
/// `KEY` alone says little; it marks a secret after a word such as `API`, or as the second of two
/// words (`STRIPE_KEY`).
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    if INNOCENT.contains(&name.as_str()) {
        return false;
    }
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let begins = NAME_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    if begins || NAMES.contains(&name.as_str()) || ends(&["PASSWORD", "PASSWD"]) || ends(ADDRESSES)
    {
        return true;
    }
    let words: Vec<&str> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    // A file, a limit or a switch is about a secret, it is none: `TOKEN_LIMIT`, `AUTH_TYPE`.
    let about = words.last().is_some_and(|last| {
        matches!(
            *last,
            "LIMIT"
                | "TYPE"
                | "ENABLED"
                | "TIMEOUT"
                | "TTL"
                | "METHOD"
                | "PROVIDER"
                | "MODE"
                | "COUNT"
                | "LENGTH"
                | "TTY"
        )
    });
    if about {
        return false;
    }
    let marked = words
        .iter()
        .any(|word| MARKS.contains(word) || word.ends_with("APIKEY") || word.ends_with("TOKEN"));
    let keyed = words
        .windows(2)
        .any(|pair| matches!(pair[1], "KEY" | "KEYS") && KEYS.contains(&pair[0]));
    marked || keyed || matches!(words.as_slice(), [.., "KEY"] if words.len() == 2)
}

/// A shape that secrets have.
pub(crate) struct Shape {
    /// The group `secret`, or else the whole match, is what must go.
    pub(crate) regex: Regex,
    pub(crate) certainty: Certainty,
}

/// How much a match says by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// Nothing else looks like it. Redacted always; reported as a leak unless it is a stand-in for
    /// a token.
    Certain,
    /// A place where secrets stand, and examples of them too. Redacted always; reported as a leak
    /// only if the value looks random.
    InContext,
}

/// Known shapes, each apart: together, one that waits for its end would make the others read the
/// same text again and again.
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
    r"(?-u:\b)hf_[A-Za-z0-9]{30,}",
    r"(?-u:\b)pypi-[A-Za-z0-9_-]{50,}",
    // Tokens of our own API.
    r"(?-u:\b)cspr_[A-Za-z0-9]{40,}",
    r"(?-u:\b)dop_v1_[a-f0-9]{64}",
    r"(?-u:\b)shp(?:at|ss|ca|pa)_[A-Fa-f0-9]{32}",
    r"(?-u:\b)SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"(?-u:\b)ya29\.[A-Za-z0-9_-]{30,}",
    r"(?-u:\b)AGE-SECRET-KEY-1[0-9A-Z]{50,}",
    r"(?-u:\b)AccountKey=(?<secret>[A-Za-z0-9+/=]{60,})",
    // Addresses that take messages from whoever knows them.
    r"/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/(?<secret>[A-Za-z0-9]{16,})",
    r"/api/webhooks/[0-9]{15,}/(?<secret>[A-Za-z0-9_-]{30,})",
    r"(?-u:\b)(?:sk|rk)_live_[A-Za-z0-9]{16,}",
    r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    // Its lines may be numbered, quoted, or those of a difference.
    concat!(
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
        r"(?:(?:\s|\\[nr]|[0-9]+\t|[-+|>])*(?:Proc-Type|DEK-Info|Version|Comment): [^\n]*)*",
        r"(?:(?:\s|\\[nr]|[0-9]+\t|[-+|>])*[A-Za-z0-9+/=]{16,})*",
        r"(?:(?:\s|\\[nr]|[0-9]+\t|[-+|>])*[A-Za-z0-9+/=]{0,15}(?:\s|\\[nr]|[0-9]+\t|[-+|>])*",
        r"-----END [A-Z0-9 ]{0,40}-----)?",
    ),
];

/// What is a secret because of what stands around it, whatever it looks like itself.
const IN_CONTEXT: &[&str] = &[
    r"(?-u:\b)(?i:[a-z][a-z0-9+.-]{1,20})://[!-.0-9;-?A-~]{0,256}:(?<secret>[!-.0-?A-~]+)@",
    concat!(
        r"(?i:authorization)[^A-Za-z0-9\n]{1,8}(?i:bearer|basic|token)",
        r"[ \t]+(?<secret>[A-Za-z0-9._~+/=-]{8,})",
    ),
    r"(?-u:\b)(?i:bearer)[ \t]+(?<secret>[A-Za-z0-9._~+/=-]{20,})",
];

/// All shapes, compiled on first use.
pub(crate) static KNOWN: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    // They are constants: the tests compile every one of them.
    let certain = SHAPES.iter().map(|shape| (shape, Certainty::Certain));
    let in_context = IN_CONTEXT.iter().map(|shape| (shape, Certainty::InContext));
    certain
        .chain(in_context)
        .filter_map(|(shape, certainty)| {
            let regex = Regex::new(shape).ok()?;
            Some(Shape { regex, certainty })
        })
        .collect()
});

/// Whether there is something in the text that has the shape of a secret.
pub fn looks_secret(value: &str) -> bool {
    KNOWN.iter().any(|shape| shape.regex.is_match(value))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn every_shape_compiles() {
        assert_eq!(KNOWN.len(), SHAPES.len() + IN_CONTEXT.len());
    }

    #[rstest]
    #[case("ANTHROPIC_API_KEY")]
    #[case("ANTHROPIC_AUTH_TOKEN")]
    #[case("OPENAI_API_KEY")]
    #[case("GITHUB_TOKEN")]
    #[case("GH_TOKEN")]
    #[case("AWS_SECRET_ACCESS_KEY")]
    #[case("AWS_ACCESS_KEY_ID")]
    #[case("AWS_SESSION_TOKEN")]
    #[case("NPM_TOKEN")]
    #[case("PGPASSWORD")]
    #[case("MYSQL_PWD")]
    #[case("DB_PASS")]
    #[case("SSH_AUTH_SOCK")]
    #[case("GOOGLE_APPLICATION_CREDENTIALS")]
    #[case("DOCKER_AUTH_CONFIG")]
    #[case("SENTRY_DSN")]
    #[case("SECRET_KEY_BASE")]
    #[case("slack_bot_token")]
    #[case("STRIPE_KEY")]
    #[case("OPENAI_APIKEY")]
    #[case("CODESPAR_DATABASE_URL")]
    #[case("BW_SESSION")]
    #[case("OP_SESSION_my_account")]
    #[case("SLACK_WEBHOOK_URL")]
    #[case("DISCORD_WEBHOOK")]
    fn names_of_secrets_are_known(#[case] name: &str) {
        assert!(is_secret_name(name), "{name}");
    }

    #[rstest]
    #[case("KEYBOARD")]
    #[case("TOKENIZERS_PARALLELISM")]
    #[case("MONKEY")]
    #[case("SSH_TTY")]
    #[case("GPG_TTY")]
    #[case("KUBECONFIG")]
    #[case("PWD")]
    #[case("OLDPWD")]
    #[case("PATH")]
    #[case("HOME")]
    #[case("COMPASS_DIR")]
    #[case("AUTHOR")]
    #[case("GIT_AUTHOR_NAME")]
    #[case("MAX_TOKEN_LIMIT")]
    #[case("XAUTHORITY")]
    #[case("DESKTOP_SESSION")]
    #[case("XDG_SESSION_ID")]
    fn other_names_are_left_alone(#[case] name: &str) {
        assert!(!is_secret_name(name), "{name}");
    }

    #[rstest]
    #[case("sk-ant-api03-AbCdEfGhIjKlMnOpQrSt")]
    #[case("cspr_0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0")]
    #[case("sk-proj-0123456789abcdefghij")]
    #[case("ghp_0123456789abcdefghijklmnopqrstuvwxyz")]
    #[case("ghs_0123456789abcdefghijklmnopqrstuvwxyz")]
    #[case("github_pat_0123456789abcdefghij_KLMNOP")]
    #[case("glpat-0123456789abcdefghij")]
    #[case("xoxb-1234567890-abcdefghij")]
    #[case("xapp-1-A0123456789-abcdef")]
    #[case("AKIAIOSFODNN7EXAMPLE")]
    #[case("ASIAIOSFODNN7EXAMPLE")]
    #[case("AIzaSyA0123456789abcdefghijklmnopqrstuvw")]
    #[case("npm_0123456789abcdefghijklmnopqrstuvwxyz")]
    #[case("https://hooks.example.com/services/T0123456789/B0123456789/abcdefABCDEF0123456789ab")]
    #[case(
        "https://chat.example.com/api/webhooks/123456789012345678/abcdefghijklmnopqrstuvwxyzABCDEF"
    )]
    #[case("SG.abcdefghijklmnopqrst.uvwxyzABCDEFGHIJKLMNOP")]
    #[case("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLWhlcmU")]
    #[case("-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----")]
    #[case("-----BEGIN OPENSSH PRIVATE KEY-----")]
    #[case("postgres://ann:hunter22@db.example.com/x")]
    #[case("Authorization: Bearer abcdef0123456789")]
    #[case(r#""authorization": "Basic YW5uOmh1bnRlcjI=""#)]
    fn shapes_of_secrets_are_known(#[case] value: &str) {
        assert!(looks_secret(value), "{value}");
    }

    #[rstest]
    #[case("hello world")]
    #[case("sk-short")]
    #[case("https://example.com:8080/a@b")]
    #[case("https://example.com/a:b@c")]
    #[case("task-0123456789abcdefghijklmnop")]
    #[case("-----BEGIN PUBLIC KEY-----")]
    #[case("AKIA is a prefix")]
    #[case("the bearer of this letter")]
    fn ordinary_text_is_not_secret(#[case] value: &str) {
        assert!(!looks_secret(value), "{value}");
    }
}
