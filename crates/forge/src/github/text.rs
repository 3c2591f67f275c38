//! Texts: what errors say, and texts that must fit.

pub(super) use codespar_protocol::error_chain as chain;

/// How the invisible lines begin by which our own texts are found again.
const MARK: &str = "<!-- codespar-";

/// At most so many characters; what is cut says so. Counted in characters, not bytes.
pub(super) fn shortened(text: &str, most: usize) -> String {
    const CUT: &str = "\n\n… (shortened)";
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let is_mark = |line: &&str| line.starts_with(MARK);
    let marks: String = text
        .lines()
        .filter(is_mark)
        .fold(String::new(), |all, mark| all + "\n\n" + mark);
    let kept = most.saturating_sub(CUT.chars().count() + marks.chars().count());
    let rest: Vec<&str> = text.lines().filter(|line| !is_mark(line)).collect();
    let mut short: String = rest.join("\n").chars().take(kept).collect();
    short.push_str(CUT);
    short.push_str(&marks);
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
        // By its mark a text is found again after a crash, so the mark outlives the cut.
        let mark = "<!-- codespar-key: k -->";
        let long = format!("{}\n\n{mark}\n\n{}", "ä".repeat(100), "ö".repeat(100));
        let short = shortened(&long, 60);
        assert_eq!(short.chars().count(), 60);
        assert!(
            short.ends_with(&format!("… (shortened)\n\n{mark}")),
            "{short}"
        );
    }
}
