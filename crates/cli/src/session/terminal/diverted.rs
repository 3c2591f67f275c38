//! What commands print, as output of the surface. Styles are marks in the text.

use std::sync::Arc;

use codespar_tui::{OutputLine, TextLine, TextSpan, TextStyle, Tui, theme::Theme};

use crate::{
    printer::{Diverted, plain},
    style::Mark,
};

/// Whole lines go to the surface as they come; what has no line end yet waits for it.
pub(super) fn to(tui: Tui) -> Arc<Diverted> {
    let begun = parking_lot::Mutex::new(String::new());
    Arc::new(move |text: &str| {
        let mut begun = begun.lock();
        begun.push_str(text);
        let Some(end) = begun.rfind('\n') else {
            return;
        };
        let rest = begun.split_off(end + 1);
        let whole = std::mem::replace(&mut *begun, rest);
        tui.output(lines(whole.trim_end_matches('\n')));
    })
}

/// A text with marks as lines.
pub(super) fn lines(text: &str) -> Vec<OutputLine> {
    let theme = Theme::default();
    let mut style = TextStyle::new();
    let lines = text.split('\n').map(|line| {
        let mut spans: Vec<TextSpan<'static>> = Vec::new();
        let mut piece = String::new();
        for c in line.chars() {
            match Mark::of(c) {
                None => piece.push(c),
                Some(mark) => {
                    let done = std::mem::take(&mut piece);
                    spans.push(TextSpan::styled(plain(&done).into_owned(), style));
                    style = style_of(mark, theme);
                }
            }
        }
        spans.push(TextSpan::styled(plain(&piece).into_owned(), style));
        spans.retain(|span| !span.content.is_empty());
        OutputLine::hanging(TextLine::from(spans), 2)
    });
    lines.collect()
}

fn style_of(mark: Mark, theme: Theme) -> TextStyle {
    match mark {
        Mark::Error => theme.error(),
        Mark::Warning => theme.warning(),
        Mark::Good => theme.good(),
        Mark::Strong => theme.strong(),
        Mark::Faint => theme.faint(),
        Mark::End => TextStyle::new(),
    }
}
