//! A cell of a Jupyter notebook: the `NotebookEdit` of other agents.
//!
//! A notebook is JSON, and what it holds besides the cell is none of our business: the new text is
//! put in place of the old one byte by byte, and nothing else is written anew. Key order,
//! indentation, numbers and escapes of the rest stay as they were found.

use std::{borrow::Cow, ops::Range};

use codespar_policy::Redactor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{
    Map, Value, json,
    ser::{PrettyFormatter, Serializer},
    value::RawValue,
};

use super::{Change, Grounds};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NotebookInput {
    pub(super) notebook_path: String,
    /// Its id, or `cell-N` (from 0) where cells have none; to insert, the cell before the new one
    cell_id: Option<String>,
    /// Not needed to delete
    pub(super) new_source: Option<String>,
    cell_type: Option<CellType>,
    /// replace by default
    edit_mode: Option<EditMode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CellType {
    Code,
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum EditMode {
    Replace,
    Insert,
    Delete,
}

#[derive(Deserialize)]
struct Notebook<'a> {
    #[serde(borrow)]
    cells: &'a RawValue,
    #[serde(default)]
    nbformat: u64,
    #[serde(default)]
    nbformat_minor: u64,
}

/// The fields of a cell that an edit reads or replaces.
#[derive(Deserialize)]
struct Cell<'a> {
    id: Option<String>,
    cell_type: String,
    #[serde(borrow)]
    source: &'a RawValue,
    #[serde(borrow)]
    outputs: Option<&'a RawValue>,
    #[serde(borrow)]
    execution_count: Option<&'a RawValue>,
}

/// Makes the edit; the error says what is wrong with the notebook or the input.
pub(super) fn edited(
    original: &str,
    input: &NotebookInput,
    redactor: &Redactor,
) -> Result<Change, String> {
    let source = input.new_source.as_deref();
    // Carriage returns of the notebook are escaped; one without any keeps to plain line ends.
    let source = source.map(|source| match original.contains("\\r\\n") {
        true => Cow::Borrowed(source),
        false => Cow::Owned(source.replace("\r\n", "\n")),
    });
    let source = source.as_deref();
    if let Some(mark) = source.and_then(|source| redactor.added_mark(original, source)) {
        return Err(format!(
            "`{mark}` stands for a secret of the notebook that was not shown, and would take its \
             place; leave the cell with the secret as it is"
        ));
    }
    let sheet = Sheet::read(original)?;
    match input.edit_mode.unwrap_or(EditMode::Replace) {
        EditMode::Replace => {
            let index = sheet.find(input.cell_id.as_deref())?;
            let source = source.ok_or("`new_source` is missing")?;
            sheet.replace(index, source, input.cell_type)
        }
        EditMode::Insert => {
            let after = input.cell_id.as_deref();
            let after = after.map(|id| sheet.find(Some(id))).transpose()?;
            let source = source.ok_or("`new_source` is missing")?;
            let kind = input
                .cell_type
                .ok_or("to insert a cell, `cell_type` is needed")?;
            Ok(sheet.insert(after, source, kind))
        }
        EditMode::Delete => {
            let index = sheet.find(input.cell_id.as_deref())?;
            Ok(sheet.delete(index))
        }
    }
}

/// A notebook and where its parts are in the text.
struct Sheet<'a> {
    text: &'a str,
    notebook: Notebook<'a>,
    raw: Vec<&'a RawValue>,
    cells: Vec<Cell<'a>>,
    /// One step of indentation; none if the text is one line.
    indent: Option<&'a str>,
}

impl<'a> Sheet<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let not_one = |error: serde_json::Error| format!("it is not a notebook: {error}");
        let notebook: Notebook<'a> = serde_json::from_str(text).map_err(not_one)?;
        let raw: Vec<&'a RawValue> = serde_json::from_str(notebook.cells.get()).map_err(not_one)?;
        let cells = raw.iter().map(|cell| serde_json::from_str(cell.get()));
        let cells = cells.collect::<Result<_, _>>().map_err(not_one)?;
        let second = text.lines().nth(1).unwrap_or_default();
        let indent = &second[..second.len() - second.trim_start().len()];
        Ok(Self {
            text,
            notebook,
            raw,
            cells,
            indent: (!indent.is_empty()).then_some(indent),
        })
    }

    fn find(&self, id: Option<&str>) -> Result<usize, String> {
        let id = id.ok_or("`cell_id` is missing")?;
        let by_id = self
            .cells
            .iter()
            .position(|cell| cell.id.as_deref() == Some(id));
        let by_number = || {
            let number: usize = id.strip_prefix("cell-")?.parse().ok()?;
            let cell = self.cells.get(number)?;
            cell.id.is_none().then_some(number)
        };
        by_id.or_else(by_number).ok_or_else(|| {
            let names = (0..self.cells.len()).map(|index| self.name(index)).take(30);
            let names = names.collect::<Vec<_>>().join(", ");
            format!("there is no cell `{id}`; there are: {names}")
        })
    }

    fn name(&self, index: usize) -> String {
        let id = self.cells.get(index).and_then(|cell| cell.id.clone());
        id.unwrap_or_else(|| format!("cell-{index}"))
    }

    /// Where a part is in the text.
    fn span(&self, part: &RawValue) -> Range<usize> {
        let start = part.get().as_ptr() as usize - self.text.as_ptr() as usize;
        start..start + part.get().len()
    }

    /// The white space that the line of a place begins with.
    fn margin(&self, at: usize) -> &'a str {
        let line = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let line = &self.text[line..];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    /// A value as it would stand in this notebook, in a line with this margin.
    fn written(&self, value: &Value, margin: &str) -> String {
        let Some(indent) = self.indent else {
            return value.to_string();
        };
        let mut out = Vec::new();
        let formatter = PrettyFormatter::with_indent(indent.as_bytes());
        let mut serializer = Serializer::with_formatter(&mut out, formatter);
        // Writing a `Value` to memory cannot fail.
        let _ = value.serialize(&mut serializer);
        let text = String::from_utf8(out).unwrap_or_default();
        text.replace('\n', &format!("\n{margin}"))
    }

    /// Puts texts in the places of others, given in any order.
    fn spliced(&self, mut parts: Vec<(Range<usize>, String)>) -> String {
        parts.sort_by_key(|(span, _)| span.start);
        let mut text = String::with_capacity(self.text.len());
        let mut at = 0;
        for (span, part) in parts {
            text.push_str(&self.text[at..span.start]);
            text.push_str(&part);
            at = span.end;
        }
        text + &self.text[at..]
    }

    /// Outputs belong to the code that made them, so new code has none.
    fn replace(
        &self,
        index: usize,
        source: &str,
        kind: Option<CellType>,
    ) -> Result<Change, String> {
        let cell = &self.cells[index];
        let report = format!("\nreplaced cell {}", self.name(index));
        let wanted = kind
            .map(|kind| json!(kind))
            .and_then(|kind| kind.as_str().map(str::to_owned));
        if let Some(wanted) = wanted.filter(|wanted| *wanted != cell.cell_type) {
            let text = self.retyped(index, source, &wanted)?;
            return Ok(changed(text, report));
        }
        let span = self.span(cell.source);
        let lines = lines_of(source, cell.source.get().starts_with('"'));
        let mut parts = vec![(span.clone(), self.written(&lines, self.margin(span.start)))];
        if cell.cell_type == "code" {
            parts.extend(cell.outputs.map(|part| (self.span(part), "[]".to_owned())));
            let count = cell.execution_count;
            parts.extend(count.map(|part| (self.span(part), "null".to_owned())));
        }
        Ok(changed(self.spliced(parts), report))
    }

    /// A cell of another type has other fields; the ones that both have are kept.
    fn retyped(&self, index: usize, source: &str, kind: &str) -> Result<String, String> {
        let raw = self.raw[index];
        let fields: Map<String, Value> =
            serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
        let is_string = fields.get("source").is_some_and(Value::is_string);
        let mut cell = Map::new();
        for (name, value) in fields {
            match name.as_str() {
                "cell_type" => cell.insert(name, json!(kind)),
                "source" => cell.insert(name, lines_of(source, is_string)),
                "outputs" | "execution_count" => None,
                _ => cell.insert(name, value),
            };
        }
        if kind == "code" {
            cell.insert("execution_count".to_owned(), Value::Null);
            cell.insert("outputs".to_owned(), json!([]));
        }
        let span = self.span(raw);
        let written = self.written(&Value::Object(cell), self.margin(span.start));
        Ok(self.spliced(vec![(span, written)]))
    }

    /// After a cell, or before all of them.
    fn insert(&self, after: Option<usize>, source: &str, kind: CellType) -> Change {
        let mut cell = Map::new();
        cell.insert("cell_type".to_owned(), json!(kind));
        if kind == CellType::Code {
            cell.insert("execution_count".to_owned(), Value::Null);
        }
        let id = self.has_ids().then(|| self.new_id());
        if let Some(id) = &id {
            cell.insert("id".to_owned(), json!(id));
        }
        cell.insert("metadata".to_owned(), json!({}));
        if kind == CellType::Code {
            cell.insert("outputs".to_owned(), json!([]));
        }
        cell.insert("source".to_owned(), lines_of(source, false));
        let cell = Value::Object(cell);
        let list = self.span(self.notebook.cells);
        let part = match (after, self.raw.first()) {
            (_, None) => {
                let whole = self.written(&Value::Array(vec![cell]), self.margin(list.start));
                (list, whole)
            }
            (None, Some(first)) => {
                let start = self.span(first).start;
                let margin = self.margin(start);
                let text = format!("{},{}", self.written(&cell, margin), self.gap(margin));
                (start..start, text)
            }
            (Some(index), Some(_)) => {
                let span = self.span(self.raw[index]);
                let margin = self.margin(span.start);
                let text = format!(",{}{}", self.gap(margin), self.written(&cell, margin));
                (span.end..span.end, text)
            }
        };
        let place = after.map_or(0, |index| index + 1);
        let name = id.unwrap_or_else(|| format!("cell-{place}"));
        changed(self.spliced(vec![part]), format!("\ninserted cell {name}"))
    }

    fn gap(&self, margin: &str) -> String {
        match self.indent {
            Some(_) => format!("\n{margin}"),
            None => " ".to_owned(),
        }
    }

    fn delete(&self, index: usize) -> Change {
        let span = self.span(self.raw[index]);
        let part = match (index.checked_sub(1), self.raw.get(index + 1)) {
            (_, Some(next)) => (span.start..self.span(next).start, String::new()),
            (Some(before), None) => (self.span(self.raw[before]).end..span.end, String::new()),
            (None, None) => (self.span(self.notebook.cells), "[]".to_owned()),
        };
        let report = format!("\ndeleted cell {}", self.name(index));
        changed(self.spliced(vec![part]), report)
    }

    /// Since version 4.5 of the format every cell has one.
    fn has_ids(&self) -> bool {
        (self.notebook.nbformat, self.notebook.nbformat_minor) >= (4, 5)
    }

    fn new_id(&self) -> String {
        let is_taken = |id: &String| self.cells.iter().any(|cell| cell.id.as_ref() == Some(id));
        let mut number = self.cells.len();
        loop {
            let id = format!("new-{number}");
            if !is_taken(&id) {
                return id;
            }
            number += 1;
        }
    }
}

/// A cell is named by its id, which says nothing about what is in it.
fn changed(text: String, report: String) -> Change {
    Change {
        text,
        report,
        grounds: Grounds::None,
    }
}

/// The source as a notebook has it: a list of lines, each with its line break, or one string.
fn lines_of(source: &str, as_string: bool) -> Value {
    if as_string {
        return json!(source);
    }
    source
        .split_inclusive('\n')
        .map(|line| json!(line))
        .collect()
}

#[cfg(test)]
#[path = "notebook_tests.rs"]
mod tests;
