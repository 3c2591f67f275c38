//! Notebooks byte by byte.

use serde_json::{Value, json};

use crate::{edit::Edit, read::Read, testing::Bench};

/// As Jupyter writes it, with a number and an escape that a rewrite would change.
const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {},
   "source": [
    "# Caf\u00e9\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "calc",
   "metadata": {"scale": 1.50},
   "outputs": [
    {"data": {"text/plain": ["2"]}, "output_type": "execute_result"}
   ],
   "source": [
    "1 + 1"
   ]
  }
 ],
 "metadata": {"zeta": 1, "alpha": 1e5},
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

async fn notebook(text: &str) -> Bench {
    let bench = Bench::new();
    bench.write("a.ipynb", text);
    bench.run(&Read, json!({"file_path": "a.ipynb"})).await;
    bench
}

async fn edited(text: &str, fields: Value) -> (String, String) {
    let bench = notebook(text).await;
    let said = bench.run(&Edit, with_path(fields)).await;
    (bench.text("a.ipynb"), said)
}

async fn refused(text: &str, fields: Value) -> String {
    let bench = notebook(text).await;
    let said = bench.fail(&Edit, with_path(fields)).await;
    assert_eq!(bench.text("a.ipynb"), text);
    said
}

fn with_path(mut fields: Value) -> Value {
    fields["notebook_path"] = json!("a.ipynb");
    fields
}

#[tokio::test]
async fn a_replaced_code_cell_loses_its_outputs_and_nothing_else_changes() {
    let fields = json!({"cell_id": "calc", "new_source": "x = 2\nx * 2"});
    let (text, said) = edited(NOTEBOOK, fields).await;
    let expected = NOTEBOOK
        .replace("\"execution_count\": 3", "\"execution_count\": null")
        .replace(
            "[\n    {\"data\": {\"text/plain\": [\"2\"]}, \"output_type\": \"execute_result\"}\n   ]",
            "[]",
        )
        .replace("    \"1 + 1\"\n", "    \"x = 2\\n\",\n    \"x * 2\"\n");
    assert_eq!(text, expected);
    assert_eq!(said, "Edited a.ipynb:\nreplaced cell calc");
}

#[tokio::test]
async fn line_ends_are_those_of_the_notebook() {
    let fields = |source| json!({"cell_id": "calc", "new_source": source});
    let (text, _) = edited(NOTEBOOK, fields("x\r\ny")).await;
    let (plain, _) = edited(NOTEBOOK, fields("x\ny")).await;
    assert_eq!(text, plain);
    let windows = NOTEBOOK.replace("u00e9\\n", "u00e9\\r\\n");
    let (text, _) = edited(&windows, fields("x\r\ny")).await;
    assert!(text.contains(r#""x\r\n","#), "{text}");
}

#[tokio::test]
async fn a_cell_gets_another_type_with_the_fields_of_that_type() {
    let fields = json!({"cell_id": "calc", "new_source": "words", "cell_type": "markdown"});
    let (text, _) = edited(NOTEBOOK, fields).await;
    let notebook: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        notebook["cells"][1],
        json!({"cell_type": "markdown", "id": "calc", "metadata": {"scale": 1.5}, "source": ["words"]})
    );
    assert!(
        text.starts_with(&NOTEBOOK[..NOTEBOOK.find("  {\n   \"cell_type\": \"code\"").unwrap()])
    );
    assert!(text.ends_with(&NOTEBOOK[NOTEBOOK.find(" \"metadata\": {\"zeta\"").unwrap()..]));
}

#[tokio::test]
async fn cells_are_inserted_and_deleted_in_their_place() {
    let fields = json!({
        "edit_mode": "insert", "cell_id": "intro", "cell_type": "code", "new_source": "import os"
    });
    let (text, said) = edited(NOTEBOOK, fields).await;
    let cell = "  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"new-2\",\n   \
                \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n    \"import os\"\n   ]\n  },\n";
    let at = NOTEBOOK.find("  {\n   \"cell_type\": \"code\"").unwrap();
    assert_eq!(
        text,
        format!("{}{cell}{}", &NOTEBOOK[..at], &NOTEBOOK[at..])
    );
    assert_eq!(said, "Edited a.ipynb:\ninserted cell new-2");
    let (back, _) = edited(&text, json!({"edit_mode": "delete", "cell_id": "new-2"})).await;
    assert_eq!(back, NOTEBOOK);
    let first = json!({"edit_mode": "insert", "cell_type": "markdown", "new_source": "top"});
    let (text, _) = edited(NOTEBOOK, first).await;
    let notebook: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(notebook["cells"][0]["source"], json!(["top"]));
    let (last, _) = edited(NOTEBOOK, json!({"edit_mode": "delete", "cell_id": "calc"})).await;
    let notebook: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(notebook["cells"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_notebook_of_one_line_without_ids_stays_one() {
    let text = r#"{"cells":[{"cell_type":"code","metadata":{},"source":"a","outputs":[],"execution_count":1}],"nbformat":4,"nbformat_minor":2}"#;
    let (text, _) = edited(text, json!({"cell_id": "cell-0", "new_source": "b\nc"})).await;
    assert_eq!(
        text,
        r#"{"cells":[{"cell_type":"code","metadata":{},"source":"b\nc","outputs":[],"execution_count":null}],"nbformat":4,"nbformat_minor":2}"#
    );
    let (empty, _) = edited(&text, json!({"edit_mode": "delete", "cell_id": "cell-0"})).await;
    assert_eq!(empty, r#"{"cells":[],"nbformat":4,"nbformat_minor":2}"#);
    let fields = json!({"edit_mode": "insert", "cell_type": "markdown", "new_source": ""});
    let (one, _) = edited(&empty, fields).await;
    assert_eq!(
        one,
        r#"{"cells":[{"cell_type":"markdown","metadata":{},"source":[]}],"nbformat":4,"nbformat_minor":2}"#
    );
}

#[tokio::test]
async fn what_cannot_be_done_is_said_and_changes_nothing() {
    for (fields, expected) in [
        (
            json!({"cell_id": "nope", "new_source": "x"}),
            "there is no cell `nope`; there are: intro, calc",
        ),
        // A cell with an id is not addressed by its number.
        (
            json!({"cell_id": "cell-1", "new_source": "x"}),
            "there is no cell `cell-1`",
        ),
        (json!({"new_source": "x"}), "`cell_id` is missing"),
        (json!({"cell_id": "calc"}), "`new_source` is missing"),
        (
            json!({"edit_mode": "insert", "new_source": "x"}),
            "`cell_type` is needed",
        ),
        (
            json!({"cell_id": "calc", "new_source": "x", "edit_mode": "move"}),
            "must be one of",
        ),
        (
            json!({"cell_id": "calc", "new_source": "x", "cell": 1}),
            "there is no field `cell`",
        ),
    ] {
        let said = refused(NOTEBOOK, fields).await;
        assert!(said.contains(expected), "{said}");
    }
    let said = refused("not json\n", json!({"cell_id": "a", "new_source": "x"})).await;
    assert!(said.contains("it is not a notebook"), "{said}");
    let bench = Bench::new();
    bench.write("a.ipynb", NOTEBOOK);
    let fields = json!({"cell_id": "calc", "new_source": "x"});
    let unread = bench.fail(&Edit, with_path(fields)).await;
    assert!(unread.contains("not edited"), "{unread}");
    assert_eq!(bench.text("a.ipynb"), NOTEBOOK);
}

#[tokio::test]
async fn a_redaction_mark_never_takes_the_place_of_a_secret() {
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let text = NOTEBOOK.replace("1 + 1", &format!("key = '{token}'"));
    let mark = codespar_policy::Redactor::by_shape()
        .redact(token)
        .into_owned();
    let said = refused(
        &text,
        json!({"cell_id": "calc", "new_source": format!("key = '{mark}'")}),
    )
    .await;
    assert!(said.contains("stands for a secret"), "{said}");
}
