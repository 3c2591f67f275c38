//! Tables and verdicts, as markdown and as JSON.
//!
//! A report is data first: sections with rows of samples. Markdown and JSON are two views of it,
//! and JSON has every single value.

use std::fmt::Write;

use serde::Serialize;

use super::{
    machine::Machine,
    samples::{Samples, Unit},
};

/// Everything that one invocation measured.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) machine: Machine,
    pub(super) profile: &'static str,
    pub(super) sections: Vec<Section>,
}

/// One subject: a table and the bars it is held against.
///
/// Made by one subject each; the order of `rows` is that of the table.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    pub(super) title: &'static str,
    /// How to read the table.
    pub(super) reading: String,
    pub(super) columns: Vec<&'static str>,
    pub(super) rows: Vec<Row>,
    pub(super) bars: Vec<Bar>,
}

/// One thing measured; a cell for each column, where there is something to say. As many cells as
/// the section has columns. A cell without value is shown as a dash.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) what: String,
    pub(super) cells: Vec<Option<Samples>>,
}

/// What must hold, and what was found. In the unit of the samples.
#[derive(Debug, Serialize)]
pub(super) struct Bar {
    what: String,
    most: f64,
    found: f64,
    unit: Unit,
    verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Held,
    Missed,
}

impl Bar {
    /// The median must not be above this. A median that does not exist is missed, since NaN is not
    /// below anything.
    pub(super) fn at_most(most: f64, what: impl Into<String>, found: &Samples) -> Self {
        let value = found.median();
        Self {
            what: what.into(),
            most,
            found: value,
            unit: found.unit(),
            verdict: match value <= most {
                true => Verdict::Held,
                false => Verdict::Missed,
            },
        }
    }
}

impl Row {
    pub(super) fn new<const N: usize>(
        what: impl Into<String>,
        cells: [Option<Samples>; N],
    ) -> Self {
        Self {
            what: what.into(),
            cells: cells.into(),
        }
    }
}

impl Report {
    /// Bars of all sections come first: they are what most readers want to know.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!(
            "Measured on {}; profile `{}`.\n",
            self.machine.describe(),
            self.profile
        );
        if self.machine.is_busy() {
            text.push_str("Other work was running at the same time, so times are too long.\n");
        }
        let bars: Vec<&Bar> = self
            .sections
            .iter()
            .flat_map(|section| &section.bars)
            .collect();
        if !bars.is_empty() {
            text.push_str("\n### Bars\n\n| what | bar | found | verdict |\n|---|---|---|---|\n");
        }
        for bar in bars {
            let verdict = match bar.verdict {
                Verdict::Held => "held",
                Verdict::Missed => "**missed**",
            };
            line(
                &mut text,
                [
                    bar.what.clone(),
                    format!("≤ {}", bar.unit.show(bar.most)),
                    bar.unit.show(bar.found),
                    verdict.to_owned(),
                ],
            );
        }
        for section in &self.sections {
            section.append_to(&mut text);
        }
        text
    }
}

impl Section {
    /// A heading, how to read it, and the table. The first column has no heading.
    fn append_to(&self, text: &mut String) {
        // Writing to a string does not fail.
        let _ = write!(text, "\n### {}\n\n{}\n\n", self.title, self.reading);
        let heads = self.columns.iter().map(|&head| head.to_owned());
        line(text, std::iter::once(String::new()).chain(heads));
        line(
            text,
            std::iter::repeat_n("---".to_owned(), self.columns.len() + 1),
        );
        for row in &self.rows {
            let cells = row.cells.iter().map(|cell| match cell {
                Some(samples) => samples.to_string(),
                None => "–".to_owned(),
            });
            line(text, std::iter::once(row.what.clone()).chain(cells));
        }
    }
}

/// A bar in a cell is escaped, so that it does not begin a new one.
fn line(text: &mut String, cells: impl IntoIterator<Item = String>) {
    text.push('|');
    for cell in cells {
        let _ = write!(text, " {} |", cell.replace('|', "\\|"));
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_report_shows_bars_first_and_then_the_tables() {
        let wall = Samples::times([5, 7, 6].map(Duration::from_millis));
        let peak = Samples::megabytes([50_000_000]);
        let report = Report {
            machine: Machine::look(),
            profile: "dist",
            sections: vec![Section {
                title: "Start",
                reading: "How to read it.".to_owned(),
                columns: vec!["wall", "peak"],
                bars: vec![
                    Bar::at_most(10.0, "start", &wall),
                    Bar::at_most(40.0, "memory", &peak),
                ],
                rows: vec![Row::new("a|b", [Some(wall), None])],
            }],
        };
        let text = report.markdown();
        let (_, tables) = text.split_once("### Bars\n\n").unwrap();
        assert_eq!(
            tables,
            "| what | bar | found | verdict |\n|---|---|---|---|\n\
             | start | ≤ 10.0 ms | 6.00 ms | held |\n\
             | memory | ≤ 40.0 MB | 50.0 MB | **missed** |\n\
             \n### Start\n\nHow to read it.\n\n\
             |  | wall | peak |\n| --- | --- | --- |\n\
             | a\\|b | 6.00 ms (5.00–7.00) | – |\n"
        );
    }
}
