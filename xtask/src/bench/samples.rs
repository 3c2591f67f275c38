//! Measured values of one thing: median and spread.
//!
//! The median is what bars are held against: a single slow run, for example of a busy machine, does
//! not move it. The spread is shown beside it.

use std::{fmt, time::Duration};

use serde::{Serialize, Serializer, ser::SerializeStruct};

/// What is counted. Megabytes and kilobytes are decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Unit {
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "MB")]
    Megabytes,
    #[serde(rename = "KB")]
    Kilobytes,
    #[serde(rename = "x")]
    Times,
    #[serde(rename = "count")]
    Count,
}

impl Unit {
    /// A figure with as many digits as mean something.
    pub(super) fn show(self, value: f64) -> String {
        let digits = self.digits(value);
        match self {
            Self::Milliseconds => format!("{digits} ms"),
            Self::Seconds => format!("{digits} s"),
            Self::Megabytes => format!("{digits} MB"),
            Self::Kilobytes => format!("{digits} KB"),
            Self::Times => format!("{digits}×"),
            Self::Count => digits,
        }
    }

    /// Three significant digits below a thousand.
    fn digits(self, value: f64) -> String {
        match value.abs() {
            _ if self == Self::Times => format!("{value:.2}"),
            _ if self == Self::Count => format!("{value:.0}"),
            ..10.0 => format!("{value:.2}"),
            10.0..100.0 => format!("{value:.1}"),
            _ => format!("{value:.0}"),
        }
    }
}

/// Values of one thing, a run each.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Samples {
    unit: Unit,
    /// From the least to the greatest.
    sorted: Vec<f64>,
}

impl Samples {
    pub(super) fn new(unit: Unit, values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Self { unit, sorted }
    }

    pub(super) fn times(values: impl IntoIterator<Item = Duration>) -> Self {
        Self::new(Unit::Milliseconds, values.into_iter().map(milliseconds))
    }

    pub(super) fn seconds(values: impl IntoIterator<Item = Duration>) -> Self {
        let seconds = values.into_iter().map(|time| time.as_secs_f64());
        Self::new(Unit::Seconds, seconds)
    }

    pub(super) fn megabytes(values: impl IntoIterator<Item = u64>) -> Self {
        let mega = |bytes: u64| bytes as f64 / 1e6;
        Self::new(Unit::Megabytes, values.into_iter().map(mega))
    }

    pub(super) fn kilobytes(values: impl IntoIterator<Item = f64>) -> Self {
        let kilo = |bytes: f64| bytes / 1e3;
        Self::new(Unit::Kilobytes, values.into_iter().map(kilo))
    }

    pub(super) fn unit(&self) -> Unit {
        self.unit
    }

    /// The middle one; between the two middle ones if their number is even. NaN if there is none.
    pub(super) fn median(&self) -> f64 {
        let middle = self.sorted.len() / 2;
        match (self.sorted.get(middle), self.sorted.len() % 2) {
            (Some(value), 1) => *value,
            (Some(value), _) => (self.sorted[middle - 1] + value) / 2.0,
            (None, _) => f64::NAN,
        }
    }

    /// NaN if there is no value.
    fn bounds(&self) -> (f64, f64) {
        let end = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
        (end(self.sorted.first()), end(self.sorted.last()))
    }
}

/// `4.1 ms (3.9–5.0)`; the spread only where it can be seen.
impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.unit.show(self.median()))?;
        let (least, greatest) = self.bounds();
        let (least, greatest) = (self.unit.digits(least), self.unit.digits(greatest));
        if least != greatest {
            write!(f, " ({least}–{greatest})")?;
        }
        Ok(())
    }
}

/// All values are in it, so that a later reader can compute other figures from them.
impl Serialize for Samples {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (least, greatest) = self.bounds();
        let mut fields = serializer.serialize_struct("Samples", 5)?;
        fields.serialize_field("unit", &self.unit)?;
        fields.serialize_field("median", &self.median())?;
        fields.serialize_field("min", &least)?;
        fields.serialize_field("max", &greatest)?;
        fields.serialize_field("values", &self.sorted)?;
        fields.end()
    }
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The middle of some times.
pub(super) fn median(times: impl IntoIterator<Item = Duration>) -> f64 {
    Samples::times(times).median()
}

/// The mean of some times, in milliseconds.
pub(super) fn mean(times: &[Duration]) -> f64 {
    milliseconds(times.iter().sum()) / times.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        let of = |values: &[f64]| Samples::new(Unit::Times, values.iter().copied()).median();
        assert_eq!(of(&[9.0, 1.0, 2.0]), 2.0);
        assert_eq!(of(&[4.0, 1.0, 2.0, 9.0]), 3.0);
        assert!(of(&[]).is_nan());
    }

    #[test]
    fn a_figure_shows_its_spread_if_it_has_one() {
        let times = [1234, 45_678, 9].map(Duration::from_micros);
        assert_eq!(Samples::times(times).to_string(), "1.23 ms (0.01–45.7)");
        assert_eq!(Samples::megabytes([123_456_789]).to_string(), "123 MB");
        assert_eq!(Samples::kilobytes([15e3, 15.001e3]).to_string(), "15.0 KB");
        let ratios = Samples::new(Unit::Times, [12.0, 1.0]);
        assert_eq!(ratios.to_string(), "6.50× (1.00–12.00)");
    }
}
