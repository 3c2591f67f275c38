//! Takes secrets out of text, by value and by shape.
//!
//! Two sources of knowledge are combined: the values of environment variables whose names mark them
//! as secrets, in every encoding in which they usually appear, and the shapes of known kinds of
//! tokens. Each match is replaced by a mark:
//!
//! ```text
//! [redacted:GITHUB_TOKEN]    the value of a variable
//! [redacted]                 something with the shape of a secret
//! ```
//!
//! The marks are part of the interface: the model sees them, and `redact/restore.rs` turns them
//! back when an edit contains them. Text without secrets is not copied.

use std::{borrow::Cow, collections::BTreeMap, fmt, ops::Range};

use aho_corasick::AhoCorasick;
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use crate::{leak::is_random, secrets::KNOWN};

mod restore;
mod stream;

pub use restore::{RestoreError, first_new_mark};
pub use stream::RedactedStream;

/// Values shorter than this occur by chance and are no secrets worth the name.
const SHORTEST: usize = 8;

/// A replacement can complete another value with the text around it; a few rounds settle that.
const MOST_ROUNDS: usize = 8;

/// Takes known values, and what has the shape of a secret, out of text.
///
/// The runtime makes one from the secrets among the environment variables. It contains the secrets
/// themselves, so its `Debug` output shows only how many there are.
pub struct Redactor {
    values: Option<AhoCorasick>,
    /// The variable that each form of a value comes from.
    names: Vec<String>,
    /// Forms that go over several lines.
    multiline: Vec<String>,
    /// The length of the longest form, in bytes. A stream keeps back at least this much of an
    /// unfinished line.
    longest: usize,
}

impl Redactor {
    /// Knows these values by name (`ANTHROPIC_API_KEY`, …), as they are and as they look encoded
    /// in base64, in an address or in JSON. Values shorter than 8 characters are ignored.
    pub fn new<N, V>(values: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<String>,
    {
        let mut forms = BTreeMap::new();
        for (name, value) in values {
            let name = name.into();
            for form in forms_of(value.into().trim()) {
                // What the replacement itself says cannot be taken out.
                if form.len() >= SHORTEST && !placeholder(&name).contains(&form) {
                    forms.entry(form).or_insert_with(|| name.clone());
                }
            }
        }
        let (forms, names): (Vec<String>, Vec<String>) = forms.into_iter().unzip();
        let values = match forms.is_empty() {
            true => None,
            false => AhoCorasick::new(&forms).ok(),
        };
        let longest = forms.iter().map(String::len).max().unwrap_or_default();
        let multiline = forms.into_iter().filter(|form| form.contains('\n'));
        Self {
            values,
            names,
            multiline: multiline.collect(),
            longest,
        }
    }

    /// Knows no values, only shapes.
    pub fn by_shape() -> Self {
        Self::new(Vec::<(String, String)>::new())
    }

    /// The text without secrets; borrowed when there are none.
    ///
    /// Runs again on its own result until nothing more is found, for a few rounds at most, since a
    /// replacement can join the text on both sides to a new match.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut result = Cow::Borrowed(text);
        for _ in 0..MOST_ROUNDS {
            let spots = self.spots(&result);
            if spots.is_empty() {
                break;
            }
            result = Cow::Owned(replace(&result, &spots));
        }
        result
    }

    /// Takes secrets out of every string of a JSON value; names of fields stay. The structure never
    /// changes, so the result is still what the reader of the JSON expects.
    pub fn redact_json(&self, json: &mut serde_json::Value) {
        match json {
            serde_json::Value::String(text) => {
                if let Cow::Owned(clean) = self.redact(text) {
                    *text = clean;
                }
            }
            serde_json::Value::Array(items) => {
                items.iter_mut().for_each(|item| self.redact_json(item));
            }
            serde_json::Value::Object(fields) => {
                fields.values_mut().for_each(|item| self.redact_json(item));
            }
            _ => {}
        }
    }

    /// Where known values are, and the names of their variables.
    pub(crate) fn found_values(&self, text: &str) -> Vec<(Range<usize>, &str)> {
        let Some(values) = &self.values else {
            return Vec::new();
        };
        let named = |found: aho_corasick::Match| {
            let name = self.names[found.pattern().as_usize()].as_str();
            (found.range(), name)
        };
        values.find_iter(text).map(named).collect()
    }

    /// What must go, in order, without overlap. Overlapping matches are merged into one, which
    /// takes the longer mark: that is the one with a name in it. Marks that are there already are
    /// skipped.
    fn spots(&self, text: &str) -> Vec<(Range<usize>, String)> {
        let mut spots = Vec::new();
        if let Some(values) = &self.values {
            for found in values.find_overlapping_iter(text) {
                let name = &self.names[found.pattern().as_usize()];
                spots.push((found.range(), placeholder(name)));
            }
        }
        for shape in KNOWN.iter() {
            for found in shape.regex.captures_iter(text) {
                let Some(spot) = found.name("secret").or_else(|| found.get(0)) else {
                    continue;
                };
                if !is_placeholder(spot.as_str()) {
                    spots.push((spot.range(), placeholder("")));
                }
            }
        }
        spots.sort_by_key(|(range, _)| (range.start, usize::MAX - range.end));
        let mut merged: Vec<(Range<usize>, String)> = Vec::with_capacity(spots.len());
        for (range, with) in spots {
            match merged.last_mut() {
                Some((last, kept)) if range.start < last.end => {
                    last.end = last.end.max(range.end);
                    if with.len() > kept.len() {
                        *kept = with;
                    }
                }
                _ => merged.push((range, with)),
            }
        }
        merged
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("values", &self.names.len())
            .finish_non_exhaustive()
    }
}

fn replace(text: &str, spots: &[(Range<usize>, String)]) -> String {
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for (range, with) in spots {
        result.push_str(&text[done..range.start]);
        result.push_str(with);
        done = range.end;
    }
    result.push_str(&text[done..]);
    result
}

/// The name appears only if it is a plain identifier of at most 64 bytes; otherwise the mark could
/// not be recognised again.
fn placeholder(name: &str) -> String {
    let fit = !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match fit {
        true => format!("[redacted:{name}]"),
        false => "[redacted]".to_owned(),
    }
}

fn is_placeholder(text: &str) -> bool {
    text.strip_prefix("[redacted")
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|rest| !rest.contains(['[', ']']))
}

/// A value in every form in which it may turn up. As it is, in base64 at each of the three possible
/// alignments and in both alphabets, percent-encoded in upper and lower case, form-encoded and as a
/// JSON string. For a value of several lines, each line that looks random counts as well.
fn forms_of(value: &str) -> Vec<String> {
    if value.len() < SHORTEST {
        return Vec::new();
    }
    let mut forms = vec![value.to_owned()];
    for shift in 0..3 {
        let standard = base64_inside(value, shift);
        forms.push(standard.replace('+', "-").replace('/', "_"));
        forms.push(standard);
    }
    forms.push(percent_encoded(value, "0123456789ABCDEF"));
    forms.push(percent_encoded(value, "0123456789abcdef"));
    forms.push(url::form_urlencoded::byte_serialize(value.as_bytes()).collect());
    if let Ok(json) = serde_json::to_string(value) {
        forms.push(json.trim_matches('"').to_owned());
    }
    // Where its lines are numbered or quoted, the whole is not found.
    if value.contains('\n') {
        let lines = value.lines().map(str::trim);
        forms.extend(lines.filter(|line| is_random(line)).map(str::to_owned));
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// The characters that the value alone decides when it stands `shift` bytes into encoded text.
fn base64_inside(value: &str, shift: usize) -> String {
    let mut bytes = vec![0; shift];
    bytes.extend_from_slice(value.as_bytes());
    let encoded = STANDARD_NO_PAD.encode(&bytes);
    let front = (shift * 8).div_ceil(6);
    // The last character is shared with what follows, unless the bytes end a group of three.
    let back = usize::from(!bytes.len().is_multiple_of(3));
    encoded
        .get(front..encoded.len().saturating_sub(back))
        .unwrap_or_default()
        .to_owned()
}

fn percent_encoded(value: &str, digits: &str) -> String {
    let digits = digits.as_bytes();
    let mut encoded = String::with_capacity(value.len() * 3);
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push(char::from(digits[usize::from(byte >> 4)]));
            encoded.push(char::from(digits[usize::from(byte & 15)]));
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
