//! Whether the steps of a workflow fit together.
//!
//! Each problem carries the place in the file, so that the message names its line. The first one
//! found is reported.

use std::collections::{HashMap, HashSet};

use super::file::{RawStep, Wrong};

/// Ids are words of their own, `needs` are known, nothing waits for itself.
pub(super) fn steps(steps: &[RawStep]) -> Result<(), Wrong> {
    if steps.is_empty() {
        return Err(Wrong {
            span: 0..0,
            message: "there are no steps; add a [[step]]".to_owned(),
        });
    }
    let mut known = HashSet::with_capacity(steps.len());
    for step in steps {
        let id = step.id.get_ref().as_str();
        if !is_word(id) {
            let message = format!("`{id}` cannot be an id; use letters, digits, `-` and `_`");
            return Err(Wrong::at(&step.id, message));
        }
        if !known.insert(id) {
            return Err(Wrong::at(&step.id, format!("there are two steps `{id}`")));
        }
    }
    for step in steps {
        if let Some(need) = step
            .needs
            .iter()
            .find(|need| !known.contains(need.get_ref().as_str()))
        {
            let message = format!(
                "step `{}` needs `{}`, which is not a step here",
                step.id.get_ref(),
                need.get_ref()
            );
            return Err(Wrong::at(need, message));
        }
    }
    no_cycle(steps)
}

fn is_word(id: &str) -> bool {
    !id.is_empty()
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Follows `needs` from each step; coming back to a step on the way is a cycle. Its own stack
/// rather than recursion: a file can be long. The message lists the steps of the cycle so that each
/// waits for the next.
fn no_cycle(steps: &[RawStep]) -> Result<(), Wrong> {
    let places: HashMap<&str, usize> = steps
        .iter()
        .enumerate()
        .map(|(place, step)| (step.id.get_ref().as_str(), place))
        .collect();
    let mut done = vec![false; steps.len()];
    for start in 0..steps.len() {
        // Each entry: a step on the way, and how many of its needs were followed.
        let mut way: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some((place, followed)) = way.last_mut() {
            let (at, next) = (*place, *followed);
            *followed += 1;
            if done[at] {
                way.pop();
                continue;
            }
            let Some(need) = steps[at].needs.get(next) else {
                done[at] = true;
                way.pop();
                continue;
            };
            let Some(&to) = places.get(need.get_ref().as_str()) else {
                continue;
            };
            if let Some(first) = way.iter().position(|(place, _)| *place == to) {
                let mut names: Vec<&str> = way[first..]
                    .iter()
                    .map(|(place, _)| steps[*place].id.get_ref().as_str())
                    .collect();
                names.push(need.get_ref());
                let message = format!("steps wait for each other: {}", names.join(" → "));
                return Err(Wrong::at(&steps[to].id, message));
            }
            way.push((to, 0));
        }
    }
    Ok(())
}
