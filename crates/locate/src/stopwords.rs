//! Words that say nothing about where to look.
//!
//! Two uses with different lists. Keywords are shown and searched for, so task verbs (`fix`, `add`)
//! have to go. In ranking most of them stay, since they may be names in the code; instead the
//! phrases of bug reports go, whose rareness in code would give them a high weight.
//!
//! The lists are sorted, for binary search.

/// Function words and vague words of degree.
#[rustfmt::skip]
const COMMON: &[&str] = &[
    "a", "about", "above", "after", "again", "all", "already", "also", "although", "always", "am",
    "an", "and", "another", "any", "anyone", "anything", "are", "aren", "around", "as", "at",
    "away", "be", "because", "been", "before", "being", "below", "between", "both", "but", "by",
    "can", "cannot", "could", "couldn", "did", "didn", "do", "does", "doesn", "doing", "don",
    "done", "down", "during", "each", "either", "else", "etc", "even", "ever", "every",
    "everything", "fast", "faster", "few", "for", "from", "further", "get", "gets", "getting",
    "give", "given", "gives", "go", "goes", "going", "got", "had", "has", "have", "haven",
    "having", "he", "hence", "her", "here", "him", "his", "how", "however", "i", "if", "in",
    "inside", "instead", "into", "is", "isn", "it", "its", "itself", "just", "know", "less", "let",
    "like", "likely", "ll", "look", "looks", "lot", "made", "make", "makes", "making", "many",
    "may", "maybe", "me", "might", "more", "most", "much", "must", "my", "myself", "need",
    "needed", "needs", "neither", "never", "no", "nor", "not", "nothing", "now", "of", "off",
    "often", "ok", "on", "once", "one", "only", "onto", "or", "other", "others", "otherwise",
    "our", "out", "over", "own", "per", "perhaps", "put", "quickly", "quite", "rather", "re",
    "really", "same", "see", "seem", "seems", "several", "shall", "she", "should", "shouldn",
    "since", "slow", "slower", "slowly", "so", "some", "someone", "something", "sometimes", "soon",
    "still", "such", "sure", "take", "takes", "than", "that", "the", "their", "them", "themselves",
    "then", "there", "therefore", "these", "they", "thing", "things", "think", "this", "those",
    "though", "through", "thus", "to", "together", "too", "toward", "two", "under", "until", "up",
    "upon", "us", "use", "used", "uses", "using", "usually", "ve", "very", "via", "want", "wants",
    "was", "wasn", "way", "we", "well", "were", "what", "whatever", "when", "where", "whether",
    "which", "while", "who", "whole", "whose", "why", "will", "with", "within", "without", "won",
    "would", "wouldn", "yet", "you", "your", "yourself",
];

/// What is to be done, not where.
#[rustfmt::skip]
const TASKS: &[&str] = &[
    "add", "added", "adding", "adds", "adjust", "allow", "allows", "avoid", "build", "change",
    "changes", "clean", "cleanup", "correct", "correctly", "create", "creates", "creating",
    "debug", "delete", "enable", "ensure", "fix", "fixed", "fixes", "fixing", "handle",
    "implement", "implements", "improve", "improves", "include", "increase", "introduce",
    "investigate", "modify", "move", "optimise", "optimize", "patch", "please", "prevent",
    "properly", "reduce", "refactor", "remove", "removes", "removing", "rename", "repair",
    "replace", "resolve", "rewrite", "set", "simplify", "solve", "support", "supports", "tweak",
    "update", "updates", "upgrade", "write",
];

/// How issues and commit messages are written, in whatever project.
#[rustfmt::skip]
const REPORTING: &[&str] = &[
    "actual", "actually", "add", "additional", "adds", "appear", "appears", "attempt", "behave",
    "behavior", "behaviour", "bug", "bugfix", "bugs", "cause", "caused", "causes", "causing",
    "chore", "com", "confirm", "consider", "correctly", "currently", "describe", "description",
    "desired", "documentation", "encountered", "ensure", "environment", "exactly", "example",
    "examples", "expect", "expected", "expecting", "explain", "fact", "feat", "feature", "feel",
    "fix", "fixed", "fixes", "following", "found", "github", "guess", "happen", "happened",
    "happening", "happens", "hello", "help", "hi", "http", "https", "info", "information", "issue",
    "issues", "latest", "linux", "macos", "mention", "mentioned", "minimal", "notice", "noticed",
    "observed", "org", "please", "possible", "possibly", "problem", "problems", "produces",
    "properly", "proposal", "proposed", "provide", "question", "reason", "refactor", "related",
    "repo", "report", "reported", "reproduce", "reproducible", "reproduction", "request",
    "response", "result", "results", "screenshot", "screenshots", "seen", "shows", "similar",
    "snippet", "solution", "steps", "suggest", "summary", "thank", "thanks", "tried", "try",
    "trying", "ubuntu", "unexpected", "unfortunately", "version", "versions", "windows", "work",
    "workaround", "working", "works", "wrong", "wrongly", "www",
];

fn is_in(list: &[&str], word: &str) -> bool {
    list.binary_search(&word).is_ok()
}

/// For keywords: a word (in lower case) that is no subject.
pub(crate) fn is_no_keyword(word: &str) -> bool {
    is_in(COMMON, word) || is_in(TASKS, word)
}

/// For ranking: a word (in lower case) whose rareness in code means nothing.
pub(crate) fn is_noise(word: &str) -> bool {
    is_in(COMMON, word) || is_in(REPORTING, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_in_order_so_that_they_can_be_searched() {
        for list in [COMMON, TASKS, REPORTING] {
            assert!(list.is_sorted());
        }
    }
}
