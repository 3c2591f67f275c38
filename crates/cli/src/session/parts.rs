//! What is said at the beginning, and rules that are kept.

use codespar_policy::Rule;
use codespar_runtime::{Project, local_file, remember_rules};

use crate::style;

/// Which model, which directory, and what is wrong with the settings.
pub(super) fn banner(project: &Project) -> String {
    let mut lines = vec![
        format!(
            "{} {}  {} · {}",
            style::strong("codespar"),
            env!("CARGO_PKG_VERSION"),
            project.provider.choice.id,
            project.dir.cwd.display(),
        ),
        style::faint("/help shows commands and keys, Ctrl-D leaves"),
    ];
    if project.provider.is_simulated() {
        let why = &project.provider.why;
        lines.push(style::warning(format!(
            "simulated: no model is called ({why})"
        )));
    }
    lines.extend(project.warnings.iter().map(style::warning));
    lines.join("\n")
}

/// Keeps the rules of an answer "always", and says where.
///
/// The sandbox protects the file: a command that runs now may put an older version back at its
/// end. With `vouch_for` the new text is then written again. A rule that cannot be kept holds for
/// this session; one that is none is kept nowhere, and the agent asks again.
pub(super) fn keep_rules(project: &Project, rules: &[String]) -> String {
    if let Some(error) = rules.iter().find_map(|rule| Rule::parse(rule).err()) {
        return style::warning(error);
    }
    let file = local_file(&project.dir);
    match remember_rules(&project.dir, rules) {
        Ok(kept) => {
            let text = kept.text.into_bytes();
            project.sandbox.vouch_for(file.clone(), text);
            let place = style::faint(format!("kept in {}", file.display()));
            match kept.warning {
                Some(warning) => format!("{place}\n{}", style::warning(warning)),
                None => place,
            }
        }
        Err(error) => style::warning(format!("allowed for this session only: {error}")),
    }
}
