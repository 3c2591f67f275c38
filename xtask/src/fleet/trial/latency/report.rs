//! Latencies as a table or as JSON, and whether they are within the bar.

use anyhow::{Result, bail};
use serde::Serialize;

use crate::fleet::trial::{TrialSurface, numbers::Spread};

/// Seconds, by what was done and from where they are counted.
#[derive(Debug, Serialize)]
pub(super) struct LatencyReport {
    pub(super) engine: &'static str,
    /// Where the servers kept their files.
    pub(super) storage: &'static str,
    #[serde(skip)]
    pub(super) through: TrialSurface,
    pub(super) stop_from_act: Spread,
    pub(super) stop_from_record: Spread,
    pub(super) answer_from_act: Spread,
    pub(super) answer_from_record: Spread,
}

impl LatencyReport {
    pub(super) fn print(&self) {
        let Self {
            engine, storage, ..
        } = self;
        println!("\nby {engine}, servers {storage}\n");
        println!(
            "| what | counted from | times | median (s) | p99 (s) | max (s) |\n|---|---|--:|--:|--:|--:|"
        );
        let (stop, answer) = (
            "stop, until the end is recorded",
            "answer, until the next model call",
        );
        let act = match self.through {
            TrialSurface::Commands => "the start of the command",
            TrialSurface::Server => "the request to the server",
        };
        for (what, from, spread) in [
            (stop, act, &self.stop_from_act),
            (stop, "its record", &self.stop_from_record),
            (answer, act, &self.answer_from_act),
            (answer, "its record", &self.answer_from_record),
        ] {
            println!(
                "| {what} | {from} | {} | {:.3} | {:.3} | {:.3} |",
                spread.count, spread.median, spread.p99, spread.max
            );
        }
    }

    /// From the act, an error where the 99th percentile is above so many seconds; with 0 there is no
    /// bar.
    pub(super) fn verdict(&self, within: f64) -> Result<()> {
        let acts = [
            ("stops", &self.stop_from_act),
            ("answers", &self.answer_from_act),
        ];
        let late: Vec<String> = acts
            .into_iter()
            .filter(|(_, spread)| within > 0.0 && spread.p99 > within)
            .map(|(what, spread)| format!("{what} take {:.3} s", spread.p99))
            .collect();
        match late.is_empty() {
            true => Ok(()),
            false => bail!(
                "at the 99th percentile {}, and may take {within} s",
                late.join(" and ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_above_the_bar_is_an_error_unless_there_is_none() {
        let spread = |seconds: f64| Spread::of(vec![seconds]);
        let report = LatencyReport {
            engine: "leases",
            storage: "in memory",
            through: TrialSurface::Commands,
            stop_from_act: spread(0.5),
            stop_from_record: spread(9.0),
            answer_from_act: spread(1.5),
            answer_from_record: spread(9.0),
        };
        let error = report.verdict(1.0).unwrap_err().to_string();
        let expected = "at the 99th percentile answers take 1.500 s, and may take 1 s";
        assert_eq!(error, expected);
        report.verdict(1.5).unwrap();
        report.verdict(0.0).unwrap();
    }
}
