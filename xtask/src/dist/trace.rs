//! Which functions runs of the program use, by valgrind's callgrind.

use std::{
    collections::HashSet,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use codespar_testkit::{Script, ScriptedModel, Turn, process::CleanRoom};
use serde_json::json;

use crate::tools::on_path;

/// Those of the simplest run first, then what each of the others adds: a run that needs less finds its
/// functions in fewer places.
pub(super) fn used_functions(program: &Path) -> Result<Vec<String>> {
    ensure!(
        on_path("valgrind"),
        "needs valgrind: apt-get install valgrind"
    );
    let room = CleanRoom::new()?;
    fs::write(room.work().join("README.md"), "One line.\nAnother line.\n")?;
    let hello = Script::of([Turn::text("Hello.")]);
    // The others are as for somebody who has used it before.
    run(&mut room.command(program), Some(&hello))?;
    let mut functions = Vec::new();
    let mut known = HashSet::new();
    for script in [None, Some(hello), Some(tools())] {
        let file = room.home().join("callgrind.out");
        let mut traced = room.command("valgrind");
        traced
            .args(["--quiet", "--tool=callgrind", "--demangle=no"])
            .arg(format!("--callgrind-out-file={}", file.display()))
            .arg(program);
        run(&mut traced, script.as_ref())?;
        let trace = fs::read_to_string(file).context("valgrind has written nothing")?;
        let names = names(&trace).filter(|name| known.insert((*name).to_owned()));
        functions.extend(names.map(str::to_owned));
    }
    Ok(functions)
}

/// What agents do most.
fn tools() -> Script {
    let edit =
        json!({ "file_path": "README.md", "old_string": "Another", "new_string": "The other" });
    Script::of([
        Turn::tool("Read", &json!({ "file_path": "README.md" })),
        Turn::tool("Grep", &json!({ "pattern": "line" })),
        Turn::tool("Edit", &edit),
        Turn::tool("Bash", &json!({ "command": "echo" })),
        Turn::text("Done."),
    ])
}

/// Without a script only the version is asked for.
fn run(command: &mut Command, script: Option<&Script>) -> Result<()> {
    let model = match script {
        Some(script) => Some(ScriptedModel::start_blocking(script.clone())?),
        None => None,
    };
    match &model {
        Some(model) => command
            .args(["-p", "hi", "--permission-mode", "acceptEdits"])
            .env("ANTHROPIC_BASE_URL", model.url())
            .env("ANTHROPIC_API_KEY", "a-key-for-a-trace-0001"),
        None => command.arg("--version"),
    };
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("a run to be traced ended with {}: {said}", output.status);
    }
    Ok(())
}

/// The functions that a trace names. A name stands where its number is first used; what follows an
/// apostrophe is how deep it was called by itself.
fn names(trace: &str) -> impl Iterator<Item = &str> {
    trace.lines().filter_map(|line| {
        let named = line.strip_prefix('c').unwrap_or(line);
        let (_, name) = named.strip_prefix("fn=(")?.split_once(") ")?;
        name.split('\'').next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_names_each_function_once_by_its_symbol() {
        let trace = "# callgrind format\nfl=(1) a.rs\nfn=(1) _ZN4main17h01E\n0 5\ncfn=(2) inner'2\n\
                     calls=1 0\n0 3\nfn=(2)\n0 1\ncfn=(3) 0x0000000000001234\nfn=(4) malloc\n";
        let found: Vec<&str> = names(trace).collect();
        assert_eq!(
            found,
            ["_ZN4main17h01E", "inner", "0x0000000000001234", "malloc"]
        );
    }
}
