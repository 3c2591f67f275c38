//! The status line: model, mode, branch, context, cost, tasks.

use codespar_protocol::short_count;
use codespar_terminal::{Line, Span, editor::VimState, theme::Theme, width};

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
    /// The line, after the state of the editor in vim mode.
    pub(crate) fn line_with(
        &self,
        vim: Option<VimState>,
        columns: u16,
        theme: Theme,
    ) -> Line<'static> {
        let (state, style) = match vim {
            None => return self.line(columns, theme),
            Some(VimState::Insert) => ("INSERT", theme.faint()),
            Some(VimState::Normal) => ("NORMAL", theme.accent()),
        };
        let gap = self.custom.as_ref().map_or("", |_| "  ");
        let state = format!("  {state}{gap}");
        let rest = self.line(columns.saturating_sub(state.len() as u16), theme);
        let mut spans = vec![Span::styled(state, style)];
        let rest_style = rest.style;
        spans.extend(rest.spans.into_iter().map(|span| {
            let style = rest_style.patch(span.style);
            Span::styled(span.content, style)
        }));
        Line::from(spans)
    }

    /// What does not fit is left out from the end.
    fn line(&self, columns: u16, theme: Theme) -> Line<'static> {
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

    /// By importance: the last are left out first. Any mode but the default one is coloured.
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
            parts.push((
                format!("{percent}% of {} context", short_count(fits)),
                style,
            ));
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
    fn the_state_of_vim_mode_is_before_the_users_own_line() {
        let status = Status {
            custom: Some("main | 12 files".into()),
            ..Status::default()
        };
        let theme = Theme::default();
        let line = status.line_with(Some(VimState::Normal), 20, theme);
        assert_eq!(line.to_string(), "  NORMAL  main | 12…");
    }

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
