//! What the surface needs to know of the environment and the settings.

use std::{collections::BTreeMap, sync::Arc};

use codespar_runtime::{Project, ProjectCommands};
use codespar_tui::{
    Keymap, Motion, TuiOptions,
    theme::{Background, Colours},
};

use super::completion::Completions;
use crate::error::CommandError;

pub(super) fn options(
    project: &Arc<Project>,
    commands: &Arc<ProjectCommands>,
) -> Result<TuiOptions, CommandError> {
    let environment = &project.dir.environment;
    let variable = |name: &str| environment.var(name).map(str::to_owned);
    let keys: &BTreeMap<String, String> = &project.settings.terminal.keys;
    let keymap = Keymap::with(keys).map_err(|error| CommandError::Usage(error.to_string()))?;
    let colours = match variable("NO_COLOR") {
        Some(_) => Colours::None,
        None => Colours::Palette,
    };
    let motion = match project.settings.terminal.reduced_motion {
        Some(true) => Motion::Reduced,
        _ => Motion::Full,
    };
    let kept = project.dir.state().join("terminal").join(key_of(project));
    Ok(TuiOptions {
        colours,
        background: variable("COLORFGBG").and_then(|value| background(&value)),
        motion,
        keymap,
        vim: project.settings.terminal.vim == Some(true),
        redactor: project.redactor.clone(),
        history: kept.join("history.jsonl"),
        draft: kept.join("draft.json"),
        completion: Arc::new(Completions::new(project, commands)),
        editor: variable("VISUAL").or_else(|| variable("EDITOR")),
        term: variable("TERM").unwrap_or_default(),
        term_program: variable("TERM_PROGRAM"),
    })
}

/// History and drafts are kept for each project: a directory by a hash of its root.
fn key_of(project: &Project) -> String {
    use sha2::{Digest, Sha256};
    let root = project.dir.root.as_os_str().as_encoded_bytes();
    let hash = Sha256::digest(root);
    hash.iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// `15;0` is light on dark: the last number is the background.
fn background(value: &str) -> Option<Background> {
    let number: u8 = value.rsplit(';').next()?.parse().ok()?;
    Some(match number {
        7 | 9..=15 => Background::Light,
        _ => Background::Dark,
    })
}
