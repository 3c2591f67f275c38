//! Texts: what errors say, and texts that must fit.

pub(super) use codespar_protocol::error_chain as chain;

/// At most so many characters; what is cut says so.
pub(super) fn shortened(text: &str, most: usize) -> String {
    const CUT: &str = "\n\n… (shortened)";
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(CUT.chars().count());
    let mut short: String = text.chars().take(kept).collect();
    short.push_str(CUT);
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_to_the_limit_and_says_so() {
        assert_eq!(shortened("äöü", 3), "äöü");
        let short = shortened(&"ä".repeat(100), 40);
        assert_eq!(short.chars().count(), 40);
        assert!(short.ends_with("… (shortened)"));
    }
}
