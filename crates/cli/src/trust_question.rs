//! Asks the user at a terminal, once for each content.
//!
//! Asked before settings are read, since it decides what they are. The answer is recorded by
//! content, so the same files are not asked about again; a changed file is, with the difference.

use std::{io::BufRead, path::Path};

use codespar_runtime::trust::{ProjectTrust, UserDirs};

use crate::{error::CommandError, printer, style};

/// Shows what the files of a project would grant and asks whether they may. A no is remembered
/// for these contents, and the project is used without them.
///
/// End of input decides nothing: the files are left out this time, and the question comes again.
pub(crate) fn ask(
    project: &ProjectTrust,
    person: &UserDirs,
    cwd: &Path,
) -> Result<ProjectTrust, CommandError> {
    if !project.is_unasked() {
        if let Some(notice) = project.notice() {
            printer::err(format_args!("codespar: {notice}"));
        }
        return Ok(project.clone());
    }
    let root = project.root().display();
    printer::ask(format_args!(
        "{}\nThe files of {root} come from whoever wrote the repository. They would grant:\n\n{}\n\
         Deny and ask rules count in any case.\n\
         Trust these files as they are? y yes · n no, go on without them: ",
        style::strong("Do you trust this directory?"),
        project.details_of_ignored(),
    ))?;
    loop {
        let mut line = String::new();
        let count = std::io::stdin().lock().read_line(&mut line)?;
        let trusted = match line.trim() {
            "y" | "yes" => true,
            "n" | "no" => false,
            _ if count == 0 => return Ok(project.clone()),
            _ => {
                printer::ask(format_args!("y or n: "))?;
                continue;
            }
        };
        project
            .decide(&person.state, trusted)
            .map_err(|error| CommandError::Failed(format!("cannot keep the decision: {error}")))?;
        // The decision is about what was shown: a file that was changed meanwhile is not covered.
        return Ok(ProjectTrust::read(person, project.root(), cwd));
    }
}
