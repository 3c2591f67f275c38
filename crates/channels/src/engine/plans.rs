//! `plan` and `approve`: steps that a model proposes and a person approves.
//!
//! A plan is kept with the message that asked for it. Approving puts one message for each step on
//! record, with its task and what it is to do, in one transaction with the answer: a crash leaves
//! all of them or none. From there on a step is work like any other. A step that builds on another
//! waits for its task and starts from its branch; if that one fails, it fails too.
//!
//! What is approved is what was shown: the steps are read from the record and not from the model
//! again. Together they may cost what the day has left.

use codespar_dev::branch_of;
use codespar_protocol::{TaskId, Usd};
use codespar_runtime::{PlanRequest, PlanStep, RuntimeError, plan_feature};
use codespar_store::{ChannelMessage, NewAudit, NewMessage, StartedMessage, StoreError};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{
    ChannelCore,
    brief::{Brief, DevBrief},
    decide::Turn,
    pulls::Said,
    reply::{Audited, Verdict},
    work::task_key,
};
use crate::{
    ForgeOrigin, Privacy, ReplyChoice, RequestOptions,
    message::{KeptMessage, Origin},
    progress::{self, WORK},
};

/// How the JSON of a plan begins, to find the last one of a thread.
const BEGINNING: &str = "{\"kind\":\"plan\"";

/// The steps with their order, on record with the message that asked for them, so that `approve`
/// starts what was shown and nothing that the model says later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "plan")]
struct KeptPlan {
    repository: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    steps: Vec<PlanStep>,
}

/// The last plan of a thread, and which of its steps have a task.
struct LastPlan {
    identity: String,
    plan: KeptPlan,
    /// By step, in order.
    tasks: Vec<Option<TaskId>>,
}

fn step_identity(plan: &str, number: u32) -> String {
    format!("plan/{plan}/{number}")
}

impl ChannelCore {
    pub(crate) async fn plan(
        &self,
        turn: &Turn,
        feature: &str,
        options: &RequestOptions,
    ) -> Result<Said, RuntimeError> {
        let named = options.repository.as_deref();
        let workplace = self
            .workplace(&turn.message.at, named, &turn.binding)
            .await?;
        let request = PlanRequest {
            feature: feature.to_owned(),
            base: options.branch.clone(),
            model: options.model.clone(),
            max_budget: self.budget(&workplace).await?,
        };
        let pulls = self.pulls(&workplace).await?;
        let (dir, cancel) = (&workplace.project.dir, CancellationToken::new());
        let planned = plan_feature(&request, dir, pulls.forge(), &cancel).await?;
        let kept = KeptPlan {
            repository: workplace.name.clone(),
            base: request.base,
            model: request.model,
            steps: planned.steps,
        };
        let choices = vec![ReplyChoice {
            label: "Approve".to_owned(),
            value: "approve".to_owned(),
        }];
        Ok(Said {
            work: serde_json::to_string(&kept).ok(),
            choices,
            cost: planned.cost,
            repository: Some(workplace.name),
            ..Said::text(plan_text(&kept))
        })
    }

    /// Starts the steps of the last plan of this thread: those that are named, or all that have not
    /// been started.
    pub(crate) async fn approve(&self, turn: &Turn, chosen: &[u32]) -> Result<Said, RuntimeError> {
        let last = self.last_plan(turn).await?;
        let wanted = wanted_steps(&last, chosen).map_err(RuntimeError::Usage)?;
        let binding = &turn.binding;
        let named = Some(last.plan.repository.as_str());
        let workplace = self.workplace(&turn.message.at, named, binding).await?;
        // The steps together may cost what is left.
        let parts = u64::try_from(wanted.len()).unwrap_or(1).max(1);
        let left = self.budget(&workplace).await?;
        let max_budget = left.map(|left| Usd::from_nanos(left.nanos() / parts));
        let mut tasks = last.tasks.clone();
        let mut said = Said::text("");
        let mut lines = Vec::new();
        for number in wanted {
            let index = number as usize - 1;
            let step = &last.plan.steps[index];
            let task = TaskId::new(WORK);
            let after = step
                .after
                .and_then(|after| tasks.get(after as usize - 1).cloned().flatten());
            let brief = Brief::Dev(DevBrief {
                instruction: step.instruction.clone(),
                repository: workplace.name.clone(),
                base: match &after {
                    Some(after) => Some(branch_of(after)),
                    None => last.plan.base.clone(),
                },
                pull_request: None,
                model: last.plan.model.clone(),
                images: Vec::new(),
                requested_by: turn.requester(),
                max_budget,
                after,
            });
            let started = self.step_message(turn, &last, number, &task, &brief);
            said.audit.push(self.step_audit(turn, &started));
            let what = format!("{}{}", step.title, after_text(step));
            let label = step_label(&workplace.name, number);
            let outbound = progress::starting(&label, &what);
            said.outbound.push(self.outbound(
                task_key(&task, "progress"),
                &turn.message.at,
                outbound,
            ));
            said.started.push(started);
            lines.push(format!("{number}. {} ({task})", step.title));
            tasks[index] = Some(task);
        }
        said.text = format!("approved:\n{}", lines.join("\n"));
        said.repository = Some(workplace.name);
        Ok(said)
    }

    async fn last_plan(&self, turn: &Turn) -> Result<LastPlan, RuntimeError> {
        let found = self.store().last_work(&turn.message.at, BEGINNING).await?;
        let read = found.and_then(|message| {
            let work = message.work.as_deref()?;
            let plan = serde_json::from_str::<KeptPlan>(work).ok()?;
            Some((message.identity, plan))
        });
        let Some((identity, plan)) = read else {
            return Err(RuntimeError::Usage(
                "there is no plan in this thread; `plan <feature>` makes one".to_owned(),
            ));
        };
        let mut tasks = Vec::new();
        for (number, _) in (1..).zip(&plan.steps) {
            let known = self
                .store()
                .message(&step_identity(&identity, number))
                .await;
            tasks.push(match known {
                Ok(message) => message.task_id,
                Err(StoreError::NoSuchMessage(_)) => None,
                Err(error) => return Err(error.into()),
            });
        }
        Ok(LastPlan {
            identity,
            plan,
            tasks,
        })
    }

    /// The message of a step: of the person who approved it.
    fn step_message(
        &self,
        turn: &Turn,
        last: &LastPlan,
        number: u32,
        task: &TaskId,
        brief: &Brief,
    ) -> StartedMessage {
        let step = &last.plan.steps[number as usize - 1];
        let kept = KeptMessage {
            speaker: turn.kept.speaker.clone(),
            privacy: Privacy::Room,
            text: step.title.clone(),
            images: Vec::new(),
            reply_to: None,
            forge: turn.kept.forge.as_ref().map(ForgeOrigin::for_later),
            origin: Some(Origin::Plan { step: number }),
        };
        StartedMessage {
            message: NewMessage {
                identity: step_identity(&last.identity, number),
                at: turn.message.at.clone(),
                speaker: turn.message.speaker.clone(),
                mentioned: true,
                body: serde_json::to_string(&kept).unwrap_or_default(),
            },
            task_id: task.clone(),
            work: serde_json::to_string(brief).unwrap_or_default(),
            repository: brief.repository().to_owned(),
        }
    }

    fn step_audit(&self, turn: &Turn, started: &StartedMessage) -> NewAudit {
        let audited = Audited {
            role: Some(turn.role),
            action: "dev",
            verdict: Verdict::Allowed,
            detail: &turn.text,
            task: Some(&started.task_id),
        };
        NewAudit {
            identity: started.message.identity.clone(),
            repository: Some(started.repository.clone()),
            ..self.entry(&turn.message, &audited)
        }
    }

    /// Where the task is that a step builds on.
    pub(crate) async fn base_state(
        &self,
        message: &ChannelMessage,
        after: &TaskId,
    ) -> Result<BaseState, StoreError> {
        match self.store().task(after).await {
            Ok(_) => return Ok(BaseState::There),
            Err(StoreError::NoSuchTask(_)) => {}
            Err(error) => return Err(error),
        }
        let open = self.store().open_messages(&message.at.channel).await?;
        let is_open = open
            .iter()
            .any(|other| other.task_id.as_ref() == Some(after));
        Ok(match is_open {
            true => BaseState::Coming,
            false => BaseState::Missing,
        })
    }
}

/// The task that a step builds on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BaseState {
    There,
    /// It is about to be started.
    Coming,
    /// It could not be started, and will not be.
    Missing,
}

/// `acme/api · step 2`
pub(crate) fn step_label(repository: &str, number: u32) -> String {
    format!("{repository} · step {number}")
}

fn after_text(step: &PlanStep) -> String {
    step.after
        .map_or_else(String::new, |after| format!(" (after step {after})"))
}

/// The steps to be started, in order. A step without the one that it builds on makes no sense.
fn wanted_steps(last: &LastPlan, chosen: &[u32]) -> Result<Vec<u32>, String> {
    let steps = &last.plan.steps;
    let most = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    if let Some(unknown) = chosen.iter().find(|number| **number > most) {
        return Err(format!(
            "the plan has {most} steps; there is no step {unknown}"
        ));
    }
    let is_started = |number: u32| last.tasks[number as usize - 1].is_some();
    let is_chosen = |number: u32| chosen.is_empty() || chosen.contains(&number);
    let wanted: Vec<u32> = (1..=most)
        .filter(|number| is_chosen(*number) && !is_started(*number))
        .collect();
    if wanted.is_empty() {
        return Err("these steps were approved before".to_owned());
    }
    for number in &wanted {
        if let Some(after) = steps[*number as usize - 1].after
            && !wanted.contains(&after)
            && !is_started(after)
        {
            return Err(format!(
                "step {number} builds on step {after}: write `approve {after},{number}`"
            ));
        }
    }
    Ok(wanted)
}

fn plan_text(plan: &KeptPlan) -> String {
    let mut text = format!("A plan for {}:", plan.repository);
    for (number, step) in (1..).zip(&plan.steps) {
        text.push_str(&format!("\n{number}. {}{}", step.title, after_text(step)));
    }
    text.push_str(
        "\n`approve` starts all of it, `approve 1,2` some; each step gets a pull request.",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(after: &[Option<u32>], started: &[u32]) -> LastPlan {
        let steps: Vec<PlanStep> = after
            .iter()
            .map(|after| PlanStep {
                title: "t".to_owned(),
                instruction: "i".to_owned(),
                after: *after,
            })
            .collect();
        let tasks = (1..).zip(&steps);
        let tasks = tasks.map(|(number, _)| started.contains(&number).then(|| TaskId::new(WORK)));
        LastPlan {
            identity: "m".to_owned(),
            tasks: tasks.collect(),
            plan: KeptPlan {
                repository: "r".to_owned(),
                base: None,
                model: None,
                steps,
            },
        }
    }

    #[test]
    fn steps_are_started_once_and_with_what_they_build_on() {
        let plan = [None, Some(1), None];
        assert_eq!(wanted_steps(&last(&plan, &[]), &[]), Ok(vec![1, 2, 3]));
        assert_eq!(wanted_steps(&last(&plan, &[]), &[3, 1]), Ok(vec![1, 3]));
        assert_eq!(wanted_steps(&last(&plan, &[1]), &[2]), Ok(vec![2]));
        assert_eq!(wanted_steps(&last(&plan, &[1, 3]), &[]), Ok(vec![2]));
        for (started, chosen, reason) in [
            (vec![], vec![2], "step 2 builds on step 1"),
            (vec![], vec![4], "there is no step 4"),
            (vec![1, 2, 3], vec![], "approved before"),
        ] {
            let refused = wanted_steps(&last(&plan, &started), &chosen).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn a_plan_is_found_by_the_beginning_of_its_record() {
        let kept = last(&[None], &[]).plan;
        let text = serde_json::to_string(&kept).unwrap();
        assert!(text.starts_with(BEGINNING), "{text}");
        assert_eq!(serde_json::from_str::<KeptPlan>(&text).unwrap(), kept);
    }
}
