//! A light stemmer: brings the forms of an English word together, in place.
//!
//! Not one of the published stemmers: it has fewer rules and is applied to every identifier part of
//! a repository, so it has to be fast. Two words that share a stem by mistake cost a little
//! precision; a rule that is missing costs a match. An index holds hashes of stems, so a change of
//! a rule needs a new version of the cache.

const VOWELS: &[u8] = b"aeiouy";

/// Shortens a lower-case ASCII word to its stem; the stem is the first `n` bytes.
///
/// The stem need not be a word. All that counts is that related forms share it.
pub(crate) fn stem(word: &mut [u8]) -> usize {
    let mut n = word.len();
    if n < 4 || !word.iter().all(u8::is_ascii_lowercase) {
        return n;
    }
    n = singular(word, n);
    n = without_tense(word, n);
    n = without_agent(word, n);
    n = without_derivation(word, n);
    if n > 3 && word[n - 1] == b'e' {
        n -= 1;
    }
    if n > 2 && word[n - 1] == b'y' && !VOWELS.contains(&word[n - 2]) {
        word[n - 1] = b'i';
    }
    n
}

/// Whether the first `n` bytes end so and at least `rest` bytes remain before it.
fn ends(word: &[u8], n: usize, suffix: &[u8], rest: usize) -> bool {
    n >= suffix.len() + rest && word[..n].ends_with(suffix)
}

/// `classes`, `queries`, `boxes`, `sessions`; but not `status`, `this` or `class`.
fn singular(word: &mut [u8], n: usize) -> usize {
    if ends(word, n, b"sses", 2) {
        n - 2
    } else if ends(word, n, b"ies", 2) {
        word[n - 3] = b'y';
        n - 2
    } else if ends(word, n, b"xes", 2) || ends(word, n, b"ches", 2) || ends(word, n, b"shes", 2) {
        n - 2
    } else if ends(word, n, b"s", 3) && !matches!(word[n - 2], b's' | b'u' | b'i') {
        n - 1
    } else {
        n
    }
}

/// `running` becomes `run`: a doubled letter loses one, except for `l`, `s` and `z`, which words
/// such as `call` and `pass` have themselves. What remains needs a vowel: `string` stays.
fn without_tense(word: &mut [u8], n: usize) -> usize {
    for suffix in [b"ing".as_slice(), b"ed"] {
        if !ends(word, n, suffix, 3) {
            continue;
        }
        let rest = n - suffix.len();
        if !word[..rest].iter().any(|byte| VOWELS.contains(byte)) {
            continue;
        }
        let doubled = word[rest - 1] == word[rest - 2];
        if doubled && !matches!(word[rest - 1], b'l' | b's' | b'z') {
            return rest - 1;
        }
        return rest;
    }
    n
}

/// `parser` becomes `pars`, as `parse` does, and `formatter` becomes `format`: code names what does
/// a thing, instructions say what is done. `user` and `order` are too short to be one of these.
fn without_agent(word: &[u8], mut n: usize) -> usize {
    while ends(word, n, b"er", 4) {
        n -= 2;
        if word[n - 1] == word[n - 2] && !matches!(word[n - 1], b'l' | b's' | b'z') {
            n -= 1;
        }
    }
    n
}

/// The first suffix that fits is removed, so longer ones come before their own ends. `at` and `iz`
/// are what `without_tense` leaves of `generated` and `normalizing`.
fn without_derivation(word: &[u8], n: usize) -> usize {
    const SUFFIXES: &[(&[u8], usize)] = &[
        (b"ization", 3),
        (b"isation", 3),
        (b"ations", 4),
        (b"ation", 4),
        (b"ator", 4),
        (b"ate", 4),
        (b"at", 4),
        (b"izer", 3),
        (b"ize", 3),
        (b"ise", 3),
        (b"iz", 3),
        (b"ion", 4),
        (b"ly", 4),
    ];
    for (suffix, rest) in SUFFIXES {
        if ends(word, n, suffix, *rest) {
            return n - suffix.len();
        }
    }
    n
}

#[cfg(test)]
mod tests {
    use super::stem;

    fn stemmed(word: &str) -> String {
        let mut bytes = word.as_bytes().to_vec();
        let n = stem(&mut bytes);
        String::from_utf8_lossy(&bytes[..n]).into_owned()
    }

    #[test]
    fn the_forms_of_a_word_share_a_stem() {
        for forms in [
            &["cache", "caches", "cached", "caching"][..],
            &["session", "sessions"],
            &["expire", "expired", "expires", "expiring"],
            &["query", "queries"],
            &["generate", "generator", "generation", "generated"],
            &["parse", "parsing", "parsed"],
            &["handler", "handlers", "handle", "handling"],
            &["parser", "parse", "parsers"],
            &["formatter", "format", "formatting"],
            &["renderer", "render", "rendering"],
            &["run", "running"],
            &["match", "matches", "matching"],
            &["normalize", "normalizer", "normalization", "normalizing"],
        ] {
            let stems: Vec<String> = forms.iter().map(|form| stemmed(form)).collect();
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{stems:?}");
        }
    }

    #[test]
    fn short_words_and_words_with_digits_stay() {
        for word in ["is", "bus", "utf8", "a1b2s"] {
            assert_eq!(stemmed(word), word);
        }
    }
}
