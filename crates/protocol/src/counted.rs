//! Numbers for people.

/// `1 file`, `2 files`.
pub fn counted(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// `8100` as `8.1k`.
pub fn short_count(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{:.1}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_a_plural() {
        assert_eq!(counted(0, "tool call"), "0 tool calls");
        assert_eq!(counted(1, "tool call"), "1 tool call");
        assert_eq!(counted(2, "tool call"), "2 tool calls");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(short_count(999), "999");
        assert_eq!(short_count(8_100), "8.1k");
        assert_eq!(short_count(2_500_000), "2.5M");
    }
}
