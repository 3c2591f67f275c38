//! Which servers of a project the user has allowed for good: by their whole definition, so that
//! one that is changed later is asked about again. Kept in the state directory, which no
//! repository can write.

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
};

use codespar_mcp::ServerConfig;
use serde_json::Value;

use crate::error::RuntimeError;

/// Definitions by name, by project.
type Approvals = BTreeMap<PathBuf, BTreeMap<String, Value>>;

fn file(state: &Path) -> PathBuf {
    state.join("mcp-approvals.json")
}

fn read(state: &Path) -> Approvals {
    // A file that cannot be read allows nothing: the user is asked again.
    let text = std::fs::read_to_string(file(state)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// What is allowed in a project.
pub(super) fn of(state: &Path, root: &Path) -> BTreeMap<String, Value> {
    read(state).remove(root).unwrap_or_default()
}

/// Allows a server from now on.
pub fn remember(state: &Path, root: &Path, config: &ServerConfig) -> Result<(), RuntimeError> {
    let mut all = read(state);
    all.entry(root.to_path_buf())
        .or_default()
        .insert(config.name.clone(), config.definition.clone());
    let path = file(state);
    let written = || -> std::io::Result<()> {
        std::fs::create_dir_all(state)?;
        let mut new = tempfile::NamedTempFile::new_in(state)?;
        new.write_all(serde_json::to_string_pretty(&all)?.as_bytes())?;
        new.persist(&path).map_err(|error| error.error)?;
        Ok(())
    };
    written().map_err(|error| RuntimeError::Failed(format!("{}: {error}", path.display())))
}
