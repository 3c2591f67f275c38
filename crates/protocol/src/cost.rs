//! Money, counted in whole billionths of a dollar so that sums are exact.

use std::{
    fmt,
    ops::{AddAssign, Sub},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const NANOS: f64 = 1e9;
/// Nine million dollars. Up to here a float counts nanos exactly, so that what is written can be
/// read back; sums stay at it.
const MOST: u64 = 9_000_000_000_000_000;

/// US dollars. Serialised as a number of dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd {
    nanos: u64,
}

impl Usd {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0 };

    /// From whole billionths of a dollar.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self { nanos }
    }

    /// In whole billionths of a dollar.
    pub const fn nanos(self) -> u64 {
        self.nanos
    }

    /// From dollars; `None` for a negative or senseless amount.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        let nanos = (dollars * NANOS).round();
        (nanos.is_finite() && (0.0..=MOST as f64).contains(&nanos)).then_some(Self {
            nanos: nanos as u64,
        })
    }

    pub fn dollars(self) -> f64 {
        self.nanos as f64 / NANOS
    }

    /// The price of `tokens` at this price for a million of them.
    pub fn per_million(self, tokens: u64) -> Self {
        let nanos = u128::from(self.nanos) * u128::from(tokens) / 1_000_000;
        Self {
            nanos: u64::try_from(nanos).unwrap_or(MOST).min(MOST),
        }
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        self.nanos = self.nanos.saturating_add(other.nanos).min(MOST);
    }
}

impl fmt::Display for Usd {
    /// Four decimals below a dollar, two above: `$0.0042`, `$12.30`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos < 1_000_000_000 {
            write!(f, "${:.4}", self.dollars())
        } else {
            write!(f, "${:.2}", self.dollars())
        }
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Self::from_dollars(dollars).ok_or_else(|| {
            serde::de::Error::custom(format!("{dollars} is not an amount of dollars"))
        })
    }
}

/// What one or more calls cost. A call whose model has no known price makes the sum unknown:
/// it is never counted as free. Serialised as dollars, or `null` when unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// All of it is known.
    Known(Usd),
    /// At least this much; some call had no price.
    Unknown(Usd),
}

impl Default for Cost {
    fn default() -> Self {
        Self::Known(Usd::ZERO)
    }
}

impl Cost {
    /// The part that is known.
    pub fn at_least(self) -> Usd {
        match self {
            Self::Known(usd) | Self::Unknown(usd) => usd,
        }
    }

    /// The sum, if all of it is known.
    pub fn known(self) -> Option<Usd> {
        match self {
            Self::Known(usd) => Some(usd),
            Self::Unknown(_) => None,
        }
    }
}

impl Sub for Cost {
    type Output = Self;

    /// What was added since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        let more = self
            .at_least()
            .nanos()
            .saturating_sub(earlier.at_least().nanos());
        match self {
            Self::Known(_) => Self::Known(Usd::from_nanos(more)),
            Self::Unknown(_) => Self::Unknown(Usd::from_nanos(more)),
        }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        let mut sum = self.at_least();
        sum += other.at_least();
        *self = match (*self, other) {
            (Self::Known(_), Self::Known(_)) => Self::Known(sum),
            _ => Self::Unknown(sum),
        };
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(usd) => usd.fmt(f),
            Self::Unknown(Usd::ZERO) => f.write_str("unknown"),
            Self::Unknown(usd) => write!(f, "unknown (at least {usd})"),
        }
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.known().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Option::<Usd>::deserialize(deserializer)? {
            Some(usd) => Self::Known(usd),
            None => Self::Unknown(Usd::ZERO),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_with_one_unknown_part_is_unknown_and_keeps_what_it_knows() {
        let mut cost = Cost::Known(Usd::from_nanos(5));
        cost += Cost::Unknown(Usd::ZERO);
        cost += Cost::Known(Usd::from_nanos(7));
        assert_eq!(cost, Cost::Unknown(Usd::from_nanos(12)));
        assert_eq!(serde_json::to_string(&cost).unwrap(), "null");
    }

    #[test]
    fn a_price_per_million_is_exact_for_one_token() {
        let price = Usd::from_dollars(0.01).unwrap();
        assert_eq!(price.per_million(1), Usd::from_nanos(10));
        assert_eq!(price.per_million(2_500_000).to_string(), "$0.0250");
    }

    #[test]
    fn senseless_amounts_are_refused() {
        for bad in [-0.01, f64::NAN, f64::INFINITY, 1e12] {
            assert_eq!(Usd::from_dollars(bad), None, "{bad}");
        }
    }
}
