//! A JSON object whose values keep their exact text and order.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _, MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::value::{RawValue, to_raw_value};

/// Fields in the order they came, each value as the text it was written in.
///
/// This is what lets a content block go back to its provider unchanged, including fields
/// that this version does not know.
#[derive(Debug, Clone, Default)]
pub struct RawObject(Vec<(String, Box<RawValue>)>);

impl RawObject {
    /// The text of one field.
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| &**value)
    }

    /// Takes a field out and reads it as `T`; `None` when it is absent.
    pub fn take<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>, serde_json::Error> {
        let Some(at) = self.0.iter().position(|(name, _)| name == key) else {
            return Ok(None);
        };
        let (_, value) = self.0.remove(at);
        serde_json::from_str(value.get()).map(Some)
    }

    /// Takes a field that must be there.
    pub fn require<T: DeserializeOwned>(&mut self, key: &str) -> Result<T, serde_json::Error> {
        self.take(key)?
            .ok_or_else(|| serde_json::Error::custom(format!("missing field `{key}`")))
    }

    pub fn push<T: Serialize>(&mut self, key: &str, value: &T) -> Result<(), serde_json::Error> {
        self.0.push((key.to_owned(), to_raw_value(value)?));
        Ok(())
    }

    /// True when nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The size of its keys and values as they are written.
    pub fn bytes(&self) -> usize {
        let sizes = self
            .0
            .iter()
            .map(|(key, value)| key.len() + value.get().len());
        sizes.sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), &**value))
    }
}

impl PartialEq for RawObject {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self
                .iter()
                .zip(other.iter())
                .all(|((ka, va), (kb, vb))| ka == kb && va.get() == vb.get())
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in self.iter() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = RawObject;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry::<String, Box<RawValue>>()? {
                    fields.push(entry);
                }
                Ok(RawObject(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}
