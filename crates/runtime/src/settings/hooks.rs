//! The hooks of all settings files, and where those of repositories run.

use codespar_policy::hooks::{HookOrigin, HookSet, HookSource, read_hooks};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::RuntimeError;

/// Where the commands of a repository's hooks run. The user decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProjectHookPlace {
    /// Like the agent's own commands.
    #[default]
    Sandbox,
    /// Like a program that the user starts.
    Outside,
    /// Nowhere.
    Off,
}

/// What settings say about hooks.
#[derive(Debug, Default)]
pub struct HookSettings {
    set: HookSet,
    place: Option<ProjectHookPlace>,
    /// The user wants none for now.
    is_disabled: bool,
}

impl HookSettings {
    /// Adds the hooks of a file. A mistake is an error that names the file and the place in it:
    /// somebody may rely on a hook that would be left out.
    pub(crate) fn add(
        &mut self,
        raw: &RawValue,
        source: &HookSource,
        warnings: &mut Vec<String>,
    ) -> Result<(), RuntimeError> {
        let wrong = |error: String| RuntimeError::Usage(format!("{}: {error}", source.file));
        let value = serde_json::from_str(raw.get()).map_err(|error| wrong(error.to_string()))?;
        let (hooks, told) = read_hooks(&value, source).map_err(|error| wrong(error.to_string()))?;
        for hook in &hooks {
            if hook.kind() == "broken" {
                warnings.push(format!("{hook} cannot be run"));
            }
        }
        warnings.extend(told);
        self.set.add(hooks);
        Ok(())
    }

    /// What a file of the user says besides.
    pub(super) fn choose(&mut self, place: Option<ProjectHookPlace>, disabled: Option<bool>) {
        self.place = place.or(self.place);
        self.is_disabled = disabled.unwrap_or(self.is_disabled);
    }

    /// Where those of repositories run.
    pub fn place(&self) -> ProjectHookPlace {
        self.place.unwrap_or_default()
    }

    /// The hooks that run.
    pub fn in_force(&self) -> HookSet {
        let mut set = HookSet::default();
        let hooks = self.set.iter();
        set.add(hooks.filter(|hook| self.runs(hook.source.origin)).cloned());
        set
    }

    /// Whether hooks of this origin run.
    pub fn runs(&self, origin: HookOrigin) -> bool {
        let is_wanted = match origin {
            HookOrigin::User => true,
            HookOrigin::Project => self.place() != ProjectHookPlace::Off,
        };
        is_wanted && !self.is_disabled
    }

    /// All that are written, also those that do not run.
    pub fn written(&self) -> &HookSet {
        &self.set
    }
}
