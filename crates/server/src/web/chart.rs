//! Charts as SVG, drawn on the server.

use maud::{Markup, html};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 200.0;
/// Room for the largest value in the letters of a phone.
const LEFT: f64 = 96.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 26.0;

/// One bar: its name, its value, and how that is written.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) shown: String,
}

/// Bars side by side, for days. The table below a chart has the values for those who see no chart.
pub(super) fn columns(title: &str, bars: &[Bar], top: &str) -> Markup {
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let step = (WIDTH - LEFT) / bars.len().max(1) as f64;
    let tall = HEIGHT - BOTTOM - TOP;
    let height = |value: f64| if most > 0.0 { value / most * tall } else { 0.0 };
    // Names that fit next to each other.
    let every = (bars.len() / 7).max(1);
    html! {
        svg.chart viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(title) {
            line.axis x1=(LEFT) y1=(HEIGHT - BOTTOM) x2=(WIDTH) y2=(HEIGHT - BOTTOM) {}
            line.axis x1=(LEFT) y1=(TOP) x2=(WIDTH) y2=(TOP) stroke-dasharray="2 4" {}
            text x=(LEFT - 8.0) y=(TOP + 4.0) text-anchor="end" { (top) }
            text x=(LEFT - 8.0) y=(HEIGHT - BOTTOM) text-anchor="end" { "0" }
            @for (index, bar) in bars.iter().enumerate() {
                @let x = LEFT + step * index as f64;
                @let h = height(bar.value);
                rect.bar x=(format!("{:.1}", x + step * 0.12)) y=(format!("{:.1}", HEIGHT - BOTTOM - h))
                    width=(format!("{:.1}", step * 0.76)) height=(format!("{h:.1}")) rx="1.5" {
                    title { (bar.name) ": " (bar.shown) }
                }
                @if index % every == 0 {
                    text x=(format!("{:.1}", x + step / 2.0)) y=(HEIGHT - 6.0) text-anchor="middle" {
                        (bar.name.get(5..).unwrap_or(&bar.name))
                    }
                }
            }
        }
    }
}

/// A bar in a row of a table: its share of the largest.
pub(super) fn share(value: f64, most: f64) -> Markup {
    let width = if most > 0.0 {
        value / most * 120.0
    } else {
        0.0
    };
    html! {
        svg width="120" height="10" aria-hidden="true" {
            rect.track width="120" height="10" rx="2" {}
            rect.bar width=(format!("{width:.1}")) height="10" rx="2" {}
        }
    }
}
