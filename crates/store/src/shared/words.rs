//! Values of a few words, kept as the protocol writes them, so that there is no second list of words.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::rows::{field, message_of};
use crate::StoreError;
use crate::engine::Row;

/// The word that a value has in JSON.
pub(super) fn word_of(value: impl Serialize) -> Result<String, StoreError> {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => Ok(word),
        Ok(other) => Err(StoreError::Database(format!("{other} is not a word"))),
        Err(error) => Err(StoreError::Database(error.to_string())),
    }
}

/// Its inverse, for a column.
pub(super) fn from_word<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T, String> {
    serde_json::from_value(Value::String(field(row, column)?)).map_err(message_of)
}
