//! Finds what must not be published: known values, tokens by their shape, and random strings that
//! are called a secret or look like nothing else.
//!
//! Redaction and this check differ in what a mistake costs. Redaction may replace too much, so it
//! takes every match. Here a match stops a publication, so examples, placeholders, checksums and
//! data are recognised and let through, and lines that the old text has already are not reported.

use std::{collections::HashSet, sync::LazyLock};

use regex::Regex;

use crate::{
    Redactor, is_secret_name,
    secrets::{Certainty, KNOWN},
};

/// A place that would publish a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// Counted from 1.
    pub line: usize,
    /// What it is, without the secret itself.
    pub what: String,
}

/// Lines longer than this are data or generated code; random strings in them mean nothing. Known
/// values and shapes are still found in them.
const LONGEST_LINE: usize = 400;

/// Files whose long random strings are checksums.
const CHECKSUMS: &[&str] = &[".lock", ".sum", "-lock.json", "-lock.yaml", ".lockfile"];

/// `name = "value"`, `name: value`, `NAME=value`.
static ASSIGNED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?<name>[A-Za-z][A-Za-z0-9_.-]{1,60})["']?\s*(?::=|=>|[:=])\s*["'`]?(?<value>[A-Za-z0-9+/_=.~-]{20,200})["'`]?\s*[,;)}\]]*\s*$"#,
    )
    .ok()
});

/// A whole quoted string.
static QUOTED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"["'`](?<value>[A-Za-z0-9+/_=-]{32,128})["'`]"#).ok());

impl Redactor {
    /// The first place of a text that must not be published. Lines that `before` has are there
    /// already. `path` is where the text is going to be, if it is a file.
    ///
    /// The earliest line is reported. `None` is no proof that there is no secret: only known
    /// values, known shapes and strings that look random can be found.
    pub fn leak(&self, text: &str, before: &str, path: Option<&str>) -> Option<Leak> {
        let old: HashSet<&str> = before.lines().collect();
        let known = self.known_leak(text, &old);
        let random = match path.is_some_and(|path| CHECKSUMS.iter().any(|end| path.ends_with(end)))
        {
            true => None,
            false => random_leak(text, &old),
        };
        match (known, random) {
            (Some(known), Some(random)) if random.line < known.line => Some(random),
            (Some(known), _) => Some(known),
            (None, random) => random,
        }
    }

    fn known_leak(&self, text: &str, old: &HashSet<&str>) -> Option<Leak> {
        let by_value = self
            .found_values(text)
            .into_iter()
            .map(|(range, name)| (range, format!("the value of {name}")));
        let by_shape = KNOWN.iter().flat_map(|shape| {
            shape.regex.captures_iter(text).filter_map(|found| {
                let secret = found.name("secret").or_else(|| found.get(0))?;
                let is_meant = match shape.certainty {
                    Certainty::Certain => is_token(secret.as_str()),
                    Certainty::InContext => is_random(secret.as_str()),
                };
                let what = match secret.as_str().starts_with("-----BEGIN") {
                    true => "a private key",
                    false => "a token by its shape",
                };
                is_meant.then(|| (secret.range(), what.to_owned()))
            })
        });
        by_value
            .chain(by_shape)
            .filter(|(range, _)| is_new(text, range.start, range.end, old))
            .min_by_key(|(range, _)| range.start)
            .map(|(range, what)| Leak {
                line: line_of(text, range.start),
                what,
            })
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at]
        .iter()
        .filter(|b| **b == b'\n')
        .count()
        + 1
}

/// Whether one of the lines from here to there is not an old one.
fn is_new(text: &str, start: usize, end: usize, old: &HashSet<&str>) -> bool {
    let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let to = text[end..].find('\n').map_or(text.len(), |at| end + at);
    text[from..to].lines().any(|line| !old.contains(line))
}

/// A random value for a secret name is always reported; any other string that looks random only if
/// neither the line before nor the line after has one too.
fn random_leak(text: &str, old: &HashSet<&str>) -> Option<Leak> {
    let lines: Vec<&str> = text.lines().collect();
    let has_data = |at: Option<usize>| {
        at.and_then(|at| lines.get(at))
            .is_some_and(|line| random_string(line).is_some())
    };
    for (at, line) in lines.iter().enumerate() {
        if line.len() > LONGEST_LINE || old.contains(line) {
            continue;
        }
        let what = match assigned_secret(line) {
            Some(name) => format!("a random value for `{name}`"),
            // Several in a row are data: a certificate, an image, a table.
            None if random_string(line).is_some()
                && !has_data(at.checked_sub(1))
                && !has_data(Some(at + 1)) =>
            {
                "a string of high entropy".to_owned()
            }
            None => continue,
        };
        return Some(Leak { line: at + 1, what });
    }
    None
}

fn assigned_secret(line: &str) -> Option<&str> {
    let found = ASSIGNED.as_ref()?.captures(line)?;
    let (name, value) = (found.name("name")?, found.name("value")?);
    let words = name.as_str().replace(['.', '-'], "_");
    (is_secret_name(&snake(&words)) && is_random(value.as_str())).then_some(name.as_str())
}

/// `apiKey` has two words.
fn snake(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && was_lower {
            words.push('_');
        }
        was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        words.push(c);
    }
    words
}

/// From 32 to 128 characters in quotes, of mixed case and with digits, at least 24 of them without
/// a separator. Paths, checksums and data URLs do not count. Hexadecimal digits reach 4 bits for
/// each byte at most and so never the 4.2 that are required.
fn random_string(line: &str) -> Option<&str> {
    let value = QUOTED.as_ref()?.captures(line)?.name("value")?.as_str();
    let has = |is: fn(&u8) -> bool| value.bytes().filter(is).count();
    let is_mixed = has(u8::is_ascii_uppercase) >= 4
        && has(u8::is_ascii_lowercase) >= 4
        && has(u8::is_ascii_digit) >= 3;
    let is_checksum = ["sha1-", "sha256-", "sha384-", "sha512-", "h1:"]
        .iter()
        .any(|start| value.starts_with(start))
        || line.contains(";base64,")
        || line.contains("ssh-")
        || line.contains("integrity");
    let is_path = value.matches('/').count() > 2;
    let is_text = value
        .split(['-', '_', '/', '='])
        .all(|part| part.len() < 24);
    (is_mixed && !is_checksum && !is_path && !is_text && entropy(value) >= 4.2 && is_jumpy(value))
        .then_some(value)
}

/// Random characters change their kind all the time; the words of a name do not.
fn is_jumpy(value: &str) -> bool {
    let kind = |byte: u8| match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    let bytes = value.as_bytes();
    let jumps = bytes
        .windows(2)
        .filter(|pair| kind(pair[0]) != kind(pair[1]))
        .count();
    jumps * 5 >= bytes.len() * 2
}

/// A token, and not a word that only begins like one or stands for one. A private key needs at
/// least 40 characters of material: `-----BEGIN … KEY-----` alone is often quoted in documentation.
fn is_token(text: &str) -> bool {
    if text.starts_with("-----BEGIN") {
        let material = text.split("-----").nth(2).unwrap_or_default();
        return material.bytes().filter(u8::is_ascii_alphanumeric).count() >= 40;
    }
    !is_stand_in(text)
        && text
            .split(['-', '_', '.'])
            .any(|part| part.len() >= 10 && part.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Examples and blanks.
fn is_stand_in(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    upper.contains("EXAMPLE")
        || upper.contains("REDACTED")
        || text
            .as_bytes()
            .windows(8)
            .any(|window| window.iter().all(|byte| *byte == window[0]))
}

/// A password or a key, not a word, a version, a path or a reference. Judged by its longest part
/// without separators: at least 16 characters with letters and digits, and 3.2 bits for each byte.
/// A stand-in such as a run of eight equal characters is not random.
pub(crate) fn is_random(value: &str) -> bool {
    let longest = value
        .split(['-', '_', '.', '/', '~', '='])
        .max_by_key(|part| part.len())
        .unwrap_or_default();
    let has = |is: fn(&u8) -> bool| longest.bytes().any(|byte| is(&byte));
    longest.len() >= 16
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && !is_stand_in(value)
        && entropy(longest) >= 3.2
}

/// Bits for each byte.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = text.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / length;
            -share * share.log2()
        })
        .sum()
}

#[cfg(test)]
mod tests;
