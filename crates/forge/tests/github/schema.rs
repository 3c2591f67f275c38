//! Checks values against the schemas of GitHub's published description (OpenAPI 3.0).

use std::path::Path;

use serde_json::Value;

/// Where `cargo xtask test` puts it.
const INSTALLED: &str =
    "../../target/github-openapi/node_modules/@octokit/openapi/generated/api.github.com.json";

pub(crate) struct Description(Value);

/// Whose value is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Ours: all that is required must be there.
    Request,
    /// The fake's: it may leave out what nobody reads, but not invent.
    Answer,
}

impl Description {
    /// `None` where it is not installed.
    pub(crate) fn installed() -> Option<Self> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(INSTALLED);
        let text = std::fs::read(file).ok()?;
        Some(Self(serde_json::from_slice(&text).unwrap()))
    }

    #[cfg(test)]
    pub(crate) fn of(value: Value) -> Self {
        Self(value)
    }

    /// The operation for a path as it is sent.
    pub(crate) fn operation(&self, method: &str, path: &str) -> Option<&Value> {
        let mut paths: Vec<(&String, &Value)> = self.0["paths"].as_object()?.iter().collect();
        // A path that is written out goes before one with a parameter.
        paths.sort_by_key(|(template, _)| template.matches('{').count());
        let fits = |(template, _): &&(&String, &Value)| path_fits(template, path);
        let mut found = paths.iter().filter(fits);
        found.find_map(|(_, item)| item.get(method.to_lowercase()))
    }

    /// Follows references.
    pub(crate) fn resolve<'a>(&'a self, mut schema: &'a Value) -> &'a Value {
        while let Some(reference) = schema["$ref"].as_str() {
            let pointer = reference.trim_start_matches('#');
            schema = self.0.pointer(pointer).unwrap_or(&Value::Null);
        }
        schema
    }

    /// What is wrong with a value, place by place.
    pub(crate) fn problems(
        &self,
        schema: &Value,
        value: &Value,
        at: &str,
        side: Side,
    ) -> Vec<String> {
        let schema = self.resolve(schema);
        if let Some(all) = schema["allOf"].as_array() {
            return all
                .iter()
                .flat_map(|one| self.problems(one, value, at, side))
                .collect();
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(choices) = schema[word].as_array() {
                return self.best_choice(choices, schema, value, at, side);
            }
        }
        let one_of_enum = |allowed: &Vec<Value>| allowed.contains(value);
        if schema["enum"]
            .as_array()
            .is_some_and(|allowed| !one_of_enum(allowed) && !value.is_null())
        {
            return vec![format!("{at}: {value} is not one of {}", schema["enum"])];
        }
        match (schema["type"].as_str(), value) {
            (None, _) => Vec::new(),
            (Some(_), Value::Null) if schema["nullable"] == true => Vec::new(),
            (Some("object"), Value::Object(_)) => self.in_object(schema, value, at, side),
            (Some("array"), Value::Array(items)) => {
                let each = items.iter().enumerate();
                each.flat_map(|(index, item)| {
                    self.problems(&schema["items"], item, &format!("{at}[{index}]"), side)
                })
                .collect()
            }
            (Some("string"), Value::String(_))
            | (Some("boolean"), Value::Bool(_))
            | (Some("number"), Value::Number(_)) => Vec::new(),
            (Some("integer"), Value::Number(number)) if !number.is_f64() => Vec::new(),
            (Some(kind), value) => vec![format!("{at}: {value} is no {kind}")],
        }
    }

    fn best_choice(
        &self,
        choices: &[Value],
        schema: &Value,
        value: &Value,
        at: &str,
        side: Side,
    ) -> Vec<String> {
        if value.is_null() && schema["nullable"] == true {
            return Vec::new();
        }
        let tried = choices
            .iter()
            .map(|choice| self.problems(choice, value, at, side));
        tried.min_by_key(Vec::len).unwrap_or_default()
    }

    fn in_object(&self, schema: &Value, value: &Value, at: &str, side: Side) -> Vec<String> {
        let mut problems = Vec::new();
        let required = schema["required"].as_array().into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if side == Side::Request && value.get(name).is_none() {
                problems.push(format!("{at}: `{name}` is missing"));
            }
        }
        let Some(known) = schema["properties"].as_object() else {
            return problems;
        };
        for (name, inner) in value.as_object().into_iter().flatten() {
            let place = format!("{at}.{name}");
            match (known.get(name), &schema["additionalProperties"]) {
                (Some(schema), _) => problems.extend(self.problems(schema, inner, &place, side)),
                (None, Value::Bool(true) | Value::Object(_)) => {}
                (None, _) => problems.push(format!("{place}: there is no such field")),
            }
        }
        problems
    }
}

/// The last parameter of a ref's path takes all that is left.
fn path_fits(template: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    for word in template.split('/') {
        match (word, parts.next()) {
            ("{ref}", Some(_)) if template.contains("/git/") && template.ends_with("{ref}") => {
                return true;
            }
            (word, Some(part)) if word.starts_with('{') || word == part => {}
            _ => return false,
        }
    }
    parts.next().is_none()
}

#[test]
fn the_checker_finds_what_is_wrong() {
    use serde_json::json;
    let description = Description::of(json!({
        "paths": {"/a/{b}": {"post": {"x": 1}}, "/a/git/refs/{ref}": {"get": {"x": 2}}},
        "components": {"s": {"type": "string", "enum": ["p", "q"]}},
    }));
    assert_eq!(
        description.operation("POST", "/a/z"),
        Some(&json!({"x": 1}))
    );
    assert_eq!(
        description.operation("GET", "/a/git/refs/heads/x/y"),
        Some(&json!({"x": 2}))
    );
    assert_eq!(description.operation("GET", "/a/z/y"), None);
    let schema = json!({
        "type": "object",
        "required": ["k"],
        "properties": {
            "k": {"$ref": "#/components/s"},
            "n": {"type": "integer", "nullable": true},
            "l": {"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "boolean"}]}},
        },
    });
    let problems = |value: Value| description.problems(&schema, &value, "body", Side::Request);
    assert_eq!(
        problems(json!({"k": "p", "n": null, "l": ["x", true]})),
        [""; 0]
    );
    assert_eq!(
        problems(json!({"n": "1", "l": [1], "z": 0})),
        [
            "body: `k` is missing",
            "body.n: \"1\" is no integer",
            "body.l[0]: 1 is no string",
            "body.z: there is no such field",
        ]
    );
    assert_eq!(
        problems(json!({"k": "r"})),
        ["body.k: \"r\" is not one of [\"p\",\"q\"]"]
    );
}
