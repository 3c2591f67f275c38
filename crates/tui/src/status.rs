//! The status line: model, mode, branch, context, cost, tasks.

use codespar_terminal::{Line, Span, theme::Theme, width};

use crate::text::count;

/// What the status line says. Set by whoever drives the session, whenever it changes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Status {
    pub model: String,
    /// The permission mode, as in settings.
    pub mode: String,
    pub branch: Option<String>,
    /// Tokens in the context of the last call, and how many fit.
    pub context: Option<(u64, u64)>,
    pub cost: String,
    pub running_tasks: usize,
    /// The output of the user's own status command replaces everything else.
    pub custom: Option<String>,
}

impl Status {
    /// What does not fit is left out from the end.
    pub(crate) fn line(&self, columns: u16, theme: Theme) -> Line<'static> {
        let columns = usize::from(columns);
        if let Some(custom) = &self.custom {
            return Line::styled(width::shortened(custom, columns), theme.faint());
        }
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut used = 0;
        for (text, style) in self.parts(theme) {
            let separator = if spans.is_empty() { "  " } else { " · " };
            let wide = width::of(separator) + width::of(&text);
            if used + wide > columns {
                break;
            }
            used += wide;
            spans.push(Span::styled(separator, theme.faint()));
            spans.push(Span::styled(text, style));
        }
        Line::from(spans)
    }

    fn parts(&self, theme: Theme) -> Vec<(String, codespar_terminal::Style)> {
        let mut parts = vec![(self.model.clone(), theme.faint())];
        let mode_style = match self.mode.as_str() {
            "default" => theme.faint(),
            "bypassPermissions" => theme.error(),
            _ => theme.warning(),
        };
        parts.push((self.mode.clone(), mode_style));
        parts.extend(self.branch.clone().map(|branch| (branch, theme.faint())));
        if let Some((used, fits)) = self.context {
            let percent = used * 100 / fits.max(1);
            let style = match percent {
                0..80 => theme.faint(),
                _ => theme.warning(),
            };
            parts.push((format!("{percent}% of {} context", count(fits)), style));
        }
        if !self.cost.is_empty() {
            parts.push((self.cost.clone(), theme.faint()));
        }
        match self.running_tasks {
            0 => {}
            1 => parts.push(("1 task".to_owned(), theme.accent())),
            n => parts.push((format!("{n} tasks"), theme.accent())),
        }
        parts.retain(|(text, _)| !text.is_empty());
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_from_the_end() {
        let status = Status {
            model: "sonnet".into(),
            mode: "plan".into(),
            branch: Some("main".into()),
            context: Some((50_000, 200_000)),
            cost: "$0.04".into(),
            running_tasks: 2,
            custom: None,
        };
        let theme = Theme::default();
        assert_eq!(
            status.line(80, theme).to_string(),
            "  sonnet · plan · main · 25% of 200.0k context · $0.04 · 2 tasks"
        );
        assert_eq!(status.line(20, theme).to_string(), "  sonnet · plan");
    }
}
