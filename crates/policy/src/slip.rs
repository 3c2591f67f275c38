//! How far a word is from the one that was probably meant.

/// How many letters must be changed, added or taken away to make one word the other; case does
/// not count.
pub fn slips(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.to_ascii_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.to_ascii_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_differ_are_counted() {
        assert_eq!(slips("Bash", "bash"), 0);
        assert_eq!(slips("Bsh", "Bash"), 1);
        assert_eq!(slips("Raed", "Read"), 2);
        assert_eq!(slips("SlashCommand", "Bash"), 9);
    }
}
