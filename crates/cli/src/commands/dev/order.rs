//! The arguments of `codespar dev` as a request to the dev agent.

use codespar_dev::{Consent, Engine, VerifyChoice};
use codespar_runtime::{DevRequest, Project, which};

use super::{DevArgs, EngineName};
use crate::error::CommandError;

pub(super) fn request(args: &DevArgs, project: &Project) -> Result<DevRequest, CommandError> {
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
    let repository = which(&project.dir, &project.settings, args.repo.as_deref())?;
    Ok(DevRequest {
        base: args.base.clone(),
        pull_request: args.pr,
        images: args.image.clone(),
        verify: match (&args.verify, args.no_verify) {
            (_, true) => Some(VerifyChoice::Skip),
            (Some(command), _) => Some(VerifyChoice::Command(command.clone())),
            (None, _) => None,
        },
        setup: args.verify_setup.clone(),
        draft: consent(args.draft),
        protected: consent(args.allow_protected),
        simulation: args.simulation(),
        max_budget: args.max_budget_usd,
        model: args.model.clone(),
        engine: args.engine.map(|engine| match engine {
            EngineName::Auto => Engine::Auto,
            EngineName::Generate => Engine::Generate,
            EngineName::Agent => Engine::Agent,
        }),
        ..DevRequest::new(instruction, repository)
    })
}

/// Consent is part of the order on record, so a resumed run has it too.
pub(super) fn consent(granted: bool) -> Consent {
    match granted {
        true => Consent::Granted,
        false => Consent::Withheld,
    }
}
