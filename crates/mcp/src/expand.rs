//! `${NAME}` and `${NAME:-default}` in configurations.
//!
//! A variable that is empty counts as not set. `$NAME` without braces stays as it is, and a value
//! is not looked at again: one that contains `${` is put in as it stands.

/// Looks variables up.
pub(super) trait Lookup {
    fn get(&self, name: &str) -> Option<String>;
}

impl<F: Fn(&str) -> Option<String>> Lookup for F {
    fn get(&self, name: &str) -> Option<String> {
        self(name)
    }
}

/// Puts variables in and notes which were taken. The error names what is not set.
pub(super) fn expand(
    text: &str,
    variables: &dyn Lookup,
    taken: &mut Vec<String>,
) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inside, behind)) = after.split_once('}') else {
            return Err(format!("`${{` is not closed in `{text}`"));
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            return Err(format!("`{name}` is not the name of a variable"));
        }
        match (
            variables.get(name).filter(|value| !value.is_empty()),
            default,
        ) {
            (Some(value), _) => {
                if !taken.iter().any(|known| known == name) {
                    taken.push(name.to_owned());
                }
                out.push_str(&value);
            }
            (None, Some(default)) => out.push_str(default),
            (None, None) => {
                return Err(format!(
                    "the variable {name} is not set; set it, or write ${{{name}:-default}}"
                ));
            }
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

fn is_name(name: &str) -> bool {
    let proper = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(proper)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<(String, Vec<String>), String> {
        let variables = |name: &str| match name {
            "HOST" => Some("example.org".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let mut taken = Vec::new();
        expand(text, &variables, &mut taken).map(|text| (text, taken))
    }

    #[test]
    fn variables_are_put_in_and_noted_and_defaults_stand_in_for_the_missing() {
        assert_eq!(
            expanded("https://${HOST}/${NONE:-a/b}?${EMPTY:-e}&${HOST}"),
            Ok((
                "https://example.org/a/b?e&example.org".to_owned(),
                vec!["HOST".to_owned()]
            ))
        );
        assert_eq!(
            expanded("$HOST costs 5$"),
            Ok(("$HOST costs 5$".to_owned(), vec![]))
        );
    }

    #[test]
    fn what_is_missing_or_malformed_is_named() {
        assert_eq!(
            expanded("x ${TOKEN}"),
            Err("the variable TOKEN is not set; set it, or write ${TOKEN:-default}".to_owned())
        );
        assert_eq!(
            expanded("x ${TOKEN"),
            Err("`${` is not closed in `x ${TOKEN`".to_owned())
        );
        assert_eq!(
            expanded("${a b}"),
            Err("`a b` is not the name of a variable".to_owned())
        );
    }
}
