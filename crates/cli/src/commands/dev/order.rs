//! The order of a run of the dev agent: what arguments, environment and settings come to.

use codespar_dev::{Consent, DevOrder, Engine, Linker, VerifyChoice, keep_images};
use codespar_protocol::TaskId;
use codespar_runtime::{Project, RepositoryLinker, requester, which};

use super::{DevArgs, EngineName};
use crate::{
    dev::simulation::{self, SimulationAnswer},
    error::CommandError,
};

/// Flags win over variables, variables over settings. Images are copied, since the run may go on
/// when the original files are gone.
pub(super) async fn order(
    args: &DevArgs,
    project: &Project,
    id: &TaskId,
) -> Result<DevOrder, CommandError> {
    let instruction = args.instruction.join(" ");
    if args
        .verify
        .as_ref()
        .is_some_and(|command| command.trim().is_empty())
    {
        return Err(CommandError::Usage(
            "--verify needs a command; --no-verify runs no tests".to_owned(),
        ));
    }
    if instruction.trim().is_empty() {
        return Err(CommandError::Usage("the instruction is empty".to_owned()));
    }
    let repository = which(&project.dir, &project.settings, args.repo.as_deref())?;
    let answer = args.simulation();
    simulation::check(project, &repository, answer)?;
    let linker = RepositoryLinker {
        project_dir: project.dir.clone(),
        store: project.store.clone(),
    };
    // What is wrong with the repository is said before there is a task.
    let forge = linker
        .forge(&repository)
        .await
        .map_err(CommandError::Usage)?;
    let (dev, verify) = (&project.settings.dev, &project.settings.verify);
    let kept = project.dir.state().join("dev/runs").join(id.as_str());
    let images =
        keep_images(&args.image, &kept).map_err(|error| CommandError::Usage(error.to_string()))?;
    let named = |flag: Option<&String>, variable: &str, setting: Option<&String>, usual: &str| {
        flag.map(String::as_str)
            .or_else(|| project.dir.var(variable))
            .or_else(|| setting.map(String::as_str))
            .unwrap_or(usual)
            .to_owned()
    };
    let usual = project.settings.model.as_deref().unwrap_or("sonnet");
    Ok(DevOrder {
        instruction,
        repository,
        base: args.base.clone(),
        pull_request: args.pr,
        images,
        verify: tests(args, verify.command.as_ref()),
        setup: args.verify_setup.clone().or_else(|| verify.setup.clone()),
        on_failure: verify.on_failure.unwrap_or(codespar_dev::OnFailure::Draft),
        draft: leave(args.draft),
        protected: leave(args.allow_protected),
        simulation: leave(answer == SimulationAnswer::Given),
        protected_globs: dev.protected.clone(),
        max_budget: args.max_budget_usd,
        requested_by: requester(&project.dir, &*forge).await,
        engine: match args.engine {
            Some(EngineName::Auto) => Engine::Auto,
            Some(EngineName::Generate) => Engine::Generate,
            Some(EngineName::Agent) => Engine::Agent,
            None => dev.engine.unwrap_or(Engine::Auto),
        },
        task_model: named(
            args.model.as_ref(),
            "TASK_MODEL",
            dev.task_model.as_ref(),
            usual,
        ),
        picker_model: match project.dir.environment.is_empty_var("PICKER_MODEL") {
            true => String::new(),
            false => named(None, "PICKER_MODEL", dev.picker_model.as_ref(), "haiku"),
        },
        limits: dev.limits(verify, project.settings.max_wall_seconds),
        resumes: Vec::new(),
    })
}

fn tests(args: &DevArgs, setting: Option<&String>) -> VerifyChoice {
    match (&args.verify, args.no_verify, setting) {
        (_, true, _) => VerifyChoice::Skip,
        (Some(command), _, _) | (None, _, Some(command)) => VerifyChoice::Command(command.clone()),
        (None, _, None) => VerifyChoice::Detect,
    }
}

/// Consent is part of the order on record, so a resumed run has it too.
fn leave(granted: bool) -> Consent {
    if granted {
        Consent::Granted
    } else {
        Consent::Withheld
    }
}
