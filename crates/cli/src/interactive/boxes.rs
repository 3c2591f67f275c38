//! Boxes for subagents: their launch and what came of them.

use crate::style;

const WIDTH: usize = 76;

/// A box with a title in its upper edge.
pub(super) fn framed(title: &str, lines: &[String]) -> String {
    let title = fit(title, WIDTH - 4);
    let rest = WIDTH.saturating_sub(title.chars().count() + 5);
    let mut text = format!("┌─ {} {}┐", style::strong(&title), "─".repeat(rest));
    for line in lines {
        let line = fit(line, WIDTH - 4);
        let pad = " ".repeat(WIDTH.saturating_sub(line.chars().count() + 4));
        text.push_str(&format!("\n│ {line}{pad} │"));
    }
    text.push_str(&format!("\n└{}┘", "─".repeat(WIDTH - 2)));
    text
}

fn fit(text: &str, width: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(width.saturating_sub(1)) {
        Some((at, _)) if line.chars().count() > width => format!("{}…", &line[..at]),
        _ => line.to_owned(),
    }
}

/// 812, 8.1k, 1.2M.
pub(super) fn count(number: u64) -> String {
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
    fn every_line_of_a_box_is_equally_wide() {
        let text = framed(
            "Explore · Find äuth errors · haiku",
            &["✓ 12 tool calls".into(), "x".repeat(200)],
        );
        let plain = anstream::adapter::strip_str(&text).to_string();
        let widths: Vec<usize> = plain.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths, vec![WIDTH; 4], "{plain}");
    }

    #[test]
    fn counts_are_short() {
        assert_eq!(
            [count(7), count(8_120), count(1_250_000)],
            ["7", "8.1k", "1.2M"]
        );
    }
}
