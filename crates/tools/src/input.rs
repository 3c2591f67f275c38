//! Tool inputs: their JSON schema, and errors that name the field.
//!
//! A tool's input type is the single source: `schemars` makes the schema that the model sees,
//! `serde` reads what the model wrote. When reading fails, the input is compared with the schema
//! again to find the field at fault. `serde` alone would report a position in a text that the model
//! cannot see.
//!
//! The schema is sent with every request, so what does not help a model to fill it in is removed.

use std::sync::Arc;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, value::RawValue};

use crate::ToolError;

/// The schema of an input type, without what a model does not need.
pub fn schema<T: JsonSchema>() -> Arc<RawValue> {
    let raw = serde_json::value::to_raw_value(&schema_value::<T>());
    // Writing a `Value` cannot fail: its keys are strings and it holds no foreign types.
    raw.map_or_else(|_| Arc::from(RawValue::NULL.to_owned()), Arc::from)
}

/// The schema without one of its fields, which is not on offer here.
pub(crate) fn without_field(schema: &RawValue, field: &str) -> Arc<RawValue> {
    let mut value: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    if let Some(properties) = value.get_mut("properties").and_then(Value::as_object_mut) {
        properties.shift_remove(field);
    }
    let raw = serde_json::value::to_raw_value(&value);
    raw.map_or_else(|_| Arc::from(schema.to_owned()), Arc::from)
}

/// Everything is inlined, since the types are small. The description of the type itself is for us;
/// the tool has its own text for the model.
fn schema_value<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut value = schema.to_value();
    if let Value::Object(object) = &mut value {
        object.remove("description");
    }
    strip(&mut value);
    value
}

/// Removes titles, number formats and null alternatives: the list of required fields says enough.
/// An optional field may be absent or `null`. An unknown field is refused with the names that there
/// are, which costs less than to say so in every schema.
fn strip(schema: &mut Value) {
    let Value::Object(object) = schema else {
        return;
    };
    for noise in ["title", "format", "default", "minimum"] {
        object.remove(noise);
    }
    object.shift_remove("additionalProperties");
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    unwrap_optional(object);
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(strip);
    }
    if let Some(items) = object.get_mut("items") {
        strip(items);
    }
}

/// `anyOf: [schema, null]` is how an optional enum comes out.
fn unwrap_optional(object: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = object.get_mut("anyOf") else {
        return;
    };
    choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
    if let [Value::Object(only)] = choices.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        object.extend(only);
    }
}

/// Reads an input; an error says which field is wrong and what it should be. The schema is made
/// only on failure.
pub fn parse<T: DeserializeOwned + JsonSchema>(input: &RawValue) -> Result<T, ToolError> {
    serde_json::from_str(input.get()).map_err(|error| {
        let found = diagnose(&schema_value::<T>(), input, "");
        ToolError(format!(
            "invalid input: {}",
            found.unwrap_or_else(|| plain(&error))
        ))
    })
}

/// The first field that does not agree with the schema. `None` when the schema finds nothing wrong,
/// as when a number is too large for its type; then the message of `serde` has to do.
fn diagnose(schema: &Value, input: &RawValue, at: &str) -> Option<String> {
    let input: Value = serde_json::from_str(input.get()).ok()?;
    mismatch(schema, &input, at)
}

/// `at` is the path of the value, such as `steps[1].name`; empty for the input as a whole.
fn mismatch(schema: &Value, input: &Value, at: &str) -> Option<String> {
    let here = || match at {
        "" => "the input".to_owned(),
        at => format!("`{at}`"),
    };
    if let Some(Value::Array(allowed)) = schema.get("enum") {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        return (!allowed.contains(&input.to_string()))
            .then(|| format!("{} must be one of {}", here(), allowed.join(", ")));
    }
    let wanted = schema.get("type").and_then(Value::as_str)?;
    if !is_a(input, wanted) {
        let got = described(input);
        return Some(format!("{} must be {}, not {got}", here(), article(wanted)));
    }
    match input {
        Value::Object(fields) => object_mismatch(schema, fields, at),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            mismatch(schema.get("items")?, item, &format!("{at}[{index}]"))
        }),
        _ => None,
    }
}

/// Missing fields come before wrong ones: a misspelt required field is both, and its name is the
/// more useful message. An unknown field is reported with the names that there are.
fn object_mismatch(schema: &Value, fields: &Map<String, Value>, at: &str) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    let path = |name: &str| match at {
        "" => name.to_owned(),
        at => format!("{at}.{name}"),
    };
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            return Some(format!("`{}` is missing", path(name)));
        }
    }
    for (name, value) in fields {
        match properties.get(name) {
            None => {
                let known: Vec<&str> = properties.keys().map(String::as_str).collect();
                let known = known.join(", ");
                let name = path(name);
                return Some(format!("there is no field `{name}`; there are: {known}"));
            }
            Some(_) if value.is_null() => {}
            Some(schema) => {
                if let Some(problem) = mismatch(schema, value, &path(name)) {
                    return Some(problem);
                }
            }
        }
    }
    None
}

/// All integers of tool inputs are unsigned, so a negative number or a fraction is none.
fn is_a(value: &Value, wanted: &str) -> bool {
    match wanted {
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn article(wanted: &str) -> &str {
    match wanted {
        "string" => "a string",
        "integer" => "a whole number, 0 or more",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "an array",
        "object" => "an object",
        other => other,
    }
}

/// A short value is quoted; a long one would only bury the message.
fn described(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().count() > 40 => "a string".to_owned(),
        Value::String(_) => format!("the string {value}"),
        other => other.to_string(),
    }
}

/// The message of `serde_json` without its position, which means nothing to a model.
fn plain(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rfind(" at line ") {
        Some(at) => message[..at].to_owned(),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        Fast,
        Slow,
    }

    /// Not for the model.
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        /// Where.
        path: String,
        /// How many.
        limit: Option<usize>,
        mode: Option<Mode>,
        #[serde(default)]
        steps: Vec<Step>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Step {
        name: String,
    }

    #[test]
    fn the_schema_has_only_what_the_model_needs() {
        assert_eq!(
            schema::<Sample>().get(),
            r#"{"type":"object","properties":{"path":{"type":"string","description":"Where."},"limit":{"type":"integer","description":"How many."},"mode":{"type":"string","enum":["fast","slow"]},"steps":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}},"required":["path"]}"#
        );
    }

    #[rstest]
    #[case(r#"{"limit":1}"#, "`path` is missing")]
    #[case(r#"{"path":3}"#, "`path` must be a string, not 3")]
    #[case(
        r#"{"path":"a","limit":"5"}"#,
        "`limit` must be a whole number, 0 or more, not the string \"5\""
    )]
    #[case(
        r#"{"path":"a","limit":-1}"#,
        "`limit` must be a whole number, 0 or more, not -1"
    )]
    #[case(
        r#"{"path":"a","mode":"quick"}"#,
        "`mode` must be one of \"fast\", \"slow\""
    )]
    #[case(
        r#"{"path":"a","steps":[{"name":"x"},{}]}"#,
        "`steps[1].name` is missing"
    )]
    #[case(
        r#"{"path":"a","depth":1}"#,
        "there is no field `depth`; there are: path, limit, mode, steps"
    )]
    #[case(
        r#""{\"path\":""#,
        "the input must be an object, not the string \"{\\\"path\\\":\""
    )]
    fn an_error_names_the_field_and_what_is_expected(#[case] input: &str, #[case] expected: &str) {
        let raw = RawValue::from_string(input.to_owned()).unwrap();
        assert_eq!(
            parse::<Sample>(&raw),
            Err(ToolError(format!("invalid input: {expected}")))
        );
    }

    #[test]
    fn null_stands_for_an_absent_field() {
        let raw = RawValue::from_string(r#"{"path":"a","limit":null}"#.to_owned()).unwrap();
        let sample = Sample {
            path: "a".into(),
            limit: None,
            mode: None,
            steps: vec![],
        };
        assert_eq!(parse::<Sample>(&raw), Ok(sample));
    }
}
