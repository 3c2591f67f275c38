//! What the servers went through, and what Temporal has on record afterwards.

use std::collections::HashSet;

use super::TrialCheck;
use crate::fleet::trial::{
    centre::CentreEvents,
    workload::{PROMPT, PlannedTask},
};

/// All that was planned took place before the tasks were over.
pub(crate) fn check_outages(events: &CentreEvents) -> TrialCheck {
    let done = events.done();
    let missed = |event| format!("the tasks were over before {event:?}: use more of them");
    TrialCheck {
        name: "the servers were stopped as often as planned",
        found: format!(
            "{} restarts of the database, {} stops of Temporal",
            done.database_restarts, done.engine_stops
        ),
        problems: events.missed().map(missed).collect(),
    }
}

/// Temporal knows tasks by their ids alone: neither prompts nor these secrets are in its files.
pub(crate) fn check_engine_records(
    tasks: &[PlannedTask],
    secrets: &[&str],
    records: &[u8],
) -> TrialCheck {
    // Looked at as text because that is searched quickly; what is looked for is ASCII.
    let text = String::from_utf8_lossy(records);
    let known = ids_given(tasks, &text);
    let leaked = std::iter::once(&PROMPT)
        .chain(secrets)
        .filter(|secret| text.contains(**secret))
        .map(|secret| format!("`{secret}` is in Temporal's records"));
    let mut problems: Vec<String> = leaked.collect();
    if known < tasks.len() {
        // Then the files cannot be read like this, and what is said above means nothing.
        problems.push(format!("{known} of {} ids were found", tasks.len()));
    }
    TrialCheck {
        name: "Temporal has the ids of tasks on record, no prompts and no passwords",
        found: format!(
            "{} kB, {known} of {} ids",
            records.len() / 1000,
            tasks.len()
        ),
        problems,
    }
}

/// How many of the tasks are named in inputs of activities.
fn ids_given(tasks: &[PlannedTask], text: &str) -> usize {
    const BEFORE: &str = r#""task":""#;
    let given = text.match_indices(BEFORE).filter_map(|(at, _)| {
        let (id, _) = text[at + BEFORE.len()..].split_once('"')?;
        Some(id)
    });
    let given: HashSet<&str> = given.collect();
    tasks
        .iter()
        .filter(|task| given.contains(task.id.as_str()))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::trial::workload;

    #[test]
    fn a_prompt_or_a_password_among_the_records_is_a_problem_and_so_is_a_missing_id() {
        let work = workload::plan(1, 1, Vec::new()).unwrap();
        let id = &work.tasks[0].id;
        let problems = |records: String| {
            let records = [b"\xff\x00", records.as_bytes()].concat();
            check_engine_records(&work.tasks, &["secret-of-a-test"], &records).problems
        };
        let input = format!(r#"{{"task":"{id}","number":1}}"#);
        assert_eq!(problems(input.clone()), [""; 0]);
        assert_eq!(problems(String::new()), ["0 of 1 ids were found"]);
        for leaked in [PROMPT, "secret-of-a-test"] {
            let expected = format!("`{leaked}` is in Temporal's records");
            assert_eq!(problems(format!("{input}{leaked}")), [expected]);
        }
    }
}
