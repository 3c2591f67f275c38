//! Which words of a command are branches, models and paths of a project.

use std::path::Path;

use codespar_runtime::{ProjectDir, has_branch, is_model};

use crate::Names;

/// What a directory and the catalogue of models know.
pub struct ProjectNames<'a> {
    pub project_dir: &'a ProjectDir,
}

impl Names for ProjectNames<'_> {
    fn is_branch(&self, name: &str) -> bool {
        has_branch(self.project_dir, name)
    }

    fn is_model(&self, name: &str) -> bool {
        is_model(self.project_dir, name)
    }

    fn is_path(&self, path: &str) -> bool {
        let is_inside = !Path::new(path).is_absolute() && !path.split('/').any(|part| part == "..");
        is_inside && self.project_dir.root.join(path).exists()
    }
}
