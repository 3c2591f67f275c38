//! Labels: what a task requires of the process that runs it, and what such a process offers.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// How many labels a set has at most.
const MOST: usize = 8;
/// How many characters a label has at most.
const LONGEST: usize = 63;

/// A set of labels such as `gpu` or `repo:acme/api`. As text they are sorted, with commas between
/// them, so that equal sets have equal texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Labels(BTreeSet<String>);

/// What was given cannot be a set of labels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    #[error(
        "`{0}` cannot be a label; one has 1 to {LONGEST} characters of a-z, 0-9, `.`, `_`, `:`, \
         `/` and `-`"
    )]
    Malformed(String),
    #[error("{0} labels are too many; there are at most {MOST}")]
    TooMany(usize),
}

impl Labels {
    /// A label that is given twice counts once.
    pub fn new<L: Into<String>>(labels: impl IntoIterator<Item = L>) -> Result<Self, LabelError> {
        let labels: BTreeSet<String> = labels.into_iter().map(Into::into).collect();
        if let Some(bad) = labels.iter().find(|label| !is_label(label)) {
            return Err(LabelError::Malformed(bad.clone()));
        }
        match labels.len() {
            0..=MOST => Ok(Self(labels)),
            many => Err(LabelError::TooMany(many)),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether whoever offers these may run what requires `required`.
    pub fn include(&self, required: &Self) -> bool {
        required.0.is_subset(&self.0)
    }
}

fn is_label(text: &str) -> bool {
    let is_allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b"._:/-".contains(&c);
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_allowed)
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, label) in self.iter().enumerate() {
            let between = if place == 0 { "" } else { "," };
            write!(f, "{between}{label}")?;
        }
        Ok(())
    }
}

impl FromStr for Labels {
    type Err = LabelError;
    fn from_str(text: &str) -> Result<Self, LabelError> {
        match text {
            "" => Ok(Self::default()),
            text => Self::new(text.split(',')),
        }
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Vec::<String>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_have_equal_texts_that_are_read_back() {
        let labels = Labels::new(["repo:acme/api", "gpu", "gpu"]).unwrap();
        assert_eq!(labels.to_string(), "gpu,repo:acme/api");
        assert_eq!(labels.to_string().parse(), Ok(labels.clone()));
        assert_eq!("".parse(), Ok(Labels::default()));
        let json = serde_json::to_string(&labels).unwrap();
        assert_eq!(json, r#"["gpu","repo:acme/api"]"#);
        assert_eq!(serde_json::from_str::<Labels>(&json).unwrap(), labels);
    }

    #[test]
    fn a_bad_label_is_refused_by_name() {
        let long = "x".repeat(64);
        for bad in ["", "GPU", "a b", "a,b", "a#b", "a@b", "[a]", "ä", &long] {
            let refused = Labels::new(["gpu", bad]);
            assert_eq!(refused, Err(LabelError::Malformed(bad.to_owned())));
            let json = serde_json::to_string(&[bad]).unwrap();
            assert!(serde_json::from_str::<Labels>(&json).is_err(), "{bad}");
        }
        assert!(Labels::new(["x".repeat(63)]).is_ok());
        let error = LabelError::Malformed("GPU".to_owned()).to_string();
        assert!(error.starts_with("`GPU` cannot be a label"), "{error}");
    }

    #[test]
    fn a_set_has_at_most_eight() {
        let labels = |count: usize| Labels::new((0..count).map(|n| format!("l{n}")));
        assert!(labels(8).is_ok());
        assert_eq!(labels(9), Err(LabelError::TooMany(9)));
    }

    #[test]
    fn all_that_is_required_must_be_offered() {
        let labels = |text: &str| text.parse::<Labels>().unwrap();
        assert!(labels("gpu,linux").include(&labels("gpu")));
        assert!(labels("").include(&labels("")));
        assert!(!labels("gpu").include(&labels("gpu,linux")));
        assert!(!labels("").include(&labels("gpu")));
    }
}
