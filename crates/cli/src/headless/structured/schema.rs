//! Whether a value has the form that a JSON schema describes.
//!
//! The keywords that people and generators write for answers: types, `properties`, `required`,
//! `additionalProperties`, `items`, `enum`, `const`, lengths and bounds, `anyOf`, `oneOf`, `allOf`,
//! `$ref` within the schema. Other keywords are not checked; the model sees them all the same.
//!
//! It is not a validator of schemas: one that is malformed was written by the user, and what cannot
//! be understood in it is not checked. The message names the place and what was expected there, in
//! words that a model can act on.

use serde_json::Value;

/// Schemas that refer to themselves end here.
const DEEPEST: usize = 64;

/// The first thing that is wrong, with its place.
pub(super) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    Checker { root: schema }.check(schema, value, "$", 0)
}

struct Checker<'a> {
    root: &'a Value,
}

impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value, at: &str, depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!("{at}: nested too deeply"));
        }
        let schema = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Bool(false) => return Err(format!("{at}: nothing is allowed here")),
            schema => schema,
        };
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let target = name
                .strip_prefix('#')
                .and_then(|path| self.root.pointer(path));
            let target = target.ok_or_else(|| format!("{at}: the schema has no `{name}`"))?;
            return self.check(target, value, at, depth + 1);
        }
        self.of_type(schema, value, at)?;
        chosen(schema, value, at)?;
        bounds(schema, value, at)?;
        self.members(schema, value, at, depth)?;
        self.combined(schema, value, at, depth)
    }

    /// A list of types is any of them. A whole number counts as a number, as JSON makes no
    /// difference.
    fn of_type(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let names: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => return Ok(()),
        };
        match names.iter().any(|name| is_of(name, value)) {
            true => Ok(()),
            false => Err(format!("{at}: expected {}", names.join(" or "))),
        }
    }

    fn members(&self, schema: &Value, value: &Value, at: &str, depth: usize) -> Result<(), String> {
        if let (Value::Array(items), Some(each)) = (value, schema.get("items")) {
            for (index, item) in items.iter().enumerate() {
                self.check(each, item, &format!("{at}[{index}]"), depth + 1)?;
            }
        }
        let Value::Object(fields) = value else {
            return Ok(());
        };
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                return Err(format!("{at}: `{name}` is missing"));
            }
        }
        let known = schema.get("properties").and_then(Value::as_object);
        for (name, field) in fields {
            let place = format!("{at}.{name}");
            match known.and_then(|known| known.get(name)) {
                Some(schema) => self.check(schema, field, &place, depth + 1)?,
                None => match schema.get("additionalProperties") {
                    Some(Value::Bool(false)) => {
                        return Err(format!("{at}: `{name}` is not a field of it"));
                    }
                    Some(other) => self.check(other, field, &place, depth + 1)?,
                    None => {}
                },
            }
        }
        Ok(())
    }

    /// `oneOf` needs exactly one that fits. The message of the others is left out: it would be
    /// about forms that were not meant.
    fn combined(
        &self,
        schema: &Value,
        value: &Value,
        at: &str,
        depth: usize,
    ) -> Result<(), String> {
        let list = |key: &str| schema.get(key).and_then(Value::as_array);
        for part in list("allOf").into_iter().flatten() {
            self.check(part, value, at, depth + 1)?;
        }
        for key in ["anyOf", "oneOf"] {
            let Some(parts) = list(key) else { continue };
            let checked = parts
                .iter()
                .map(|part| self.check(part, value, at, depth + 1));
            let fitting = checked.filter(Result::is_ok).count();
            if fitting == 0 || (key == "oneOf" && fitting > 1) {
                return Err(format!("{at}: fits {fitting} of the forms in `{key}`"));
            }
        }
        Ok(())
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => true,
    }
}

fn chosen(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(Value::Array(choices)) = schema.get("enum")
        && !choices.contains(value)
    {
        let choices: Vec<String> = choices.iter().map(ToString::to_string).collect();
        return Err(format!("{at}: expected one of {}", choices.join(", ")));
    }
    match schema.get("const") {
        Some(wanted) if wanted != value => Err(format!("{at}: expected {wanted}")),
        _ => Ok(()),
    }
}

fn bounds(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    let within = |size: f64, least: &str, most: &str| {
        let is_low = number(least).is_some_and(|least| size < least);
        let is_high = number(most).is_some_and(|most| size > most);
        match is_low || is_high {
            true => Err(format!("{at}: {size} is outside of {least} and {most}")),
            false => Ok(()),
        }
    };
    match value {
        Value::Number(_) => within(value.as_f64().unwrap_or_default(), "minimum", "maximum"),
        Value::String(text) => within(text.chars().count() as f64, "minLength", "maxLength"),
        Value::Array(items) => within(items.len() as f64, "minItems", "maxItems"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_mistake_is_named_with_its_place() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
                "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            },
            "required": ["name"],
            "additionalProperties": false,
            "$defs": {"tag": {"enum": ["a", "b"]}},
        });
        let told = |value: Value| check(&schema, &value).err();
        assert_eq!(
            told(json!({"name": "x", "tags": ["a"], "size": null})),
            None
        );
        for (value, expected) in [
            (json!([]), "$: expected object"),
            (json!({}), "$: `name` is missing"),
            (
                json!({"name": ""}),
                "$.name: 0 is outside of minLength and maxLength",
            ),
            (
                json!({"name": "x", "tags": ["a", "c"]}),
                "$.tags[1]: expected one of \"a\", \"b\"",
            ),
            (
                json!({"name": "x", "size": "2"}),
                "$.size: fits 0 of the forms in `anyOf`",
            ),
            (
                json!({"name": "x", "more": 1}),
                "$: `more` is not a field of it",
            ),
        ] {
            assert_eq!(told(value).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({"$ref": "#"});
        assert!(check(&schema, &json!(1)).is_err());
    }
}
