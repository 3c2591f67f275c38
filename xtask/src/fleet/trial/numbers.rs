//! Median, 95th and 99th percentile and maximum of what was measured, in seconds.

use serde::Serialize;

#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Spread {
    pub(super) count: usize,
    pub(super) median: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

impl Spread {
    pub(super) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self {
            count: values.len(),
            median: at(&values, 50),
            p95: at(&values, 95),
            p99: at(&values, 99),
            max: at(&values, 100),
        }
    }

    /// `median / p95 / max`.
    pub(super) fn show(&self) -> String {
        match self.count {
            0 => "–".to_owned(),
            _ => format!("{:.1} / {:.1} / {:.1}", self.median, self.p95, self.max),
        }
    }
}

/// The smallest value that at least so many of a hundred do not exceed; 0 of none.
fn at(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let spread = Spread::of((1..=200).rev().map(f64::from).collect());
        let found = [spread.median, spread.p95, spread.p99, spread.max];
        assert_eq!(found, [100.0, 190.0, 198.0, 200.0]);
        assert_eq!(Spread::of(vec![3.0]).show(), "3.0 / 3.0 / 3.0");
        assert_eq!(Spread::of(Vec::new()).show(), "–");
    }
}
