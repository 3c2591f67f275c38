//! Cycles among tasks that wait for each other.
//!
//! A depth-first walk along what tasks wait for. A task that is met while it is still on the path
//! closes a cycle; one that has been left behind cannot be part of any.

use std::collections::HashMap;

use codespar_protocol::TaskId;

/// What each task waits for.
pub(super) type Waits<'a> = HashMap<&'a TaskId, Vec<&'a TaskId>>;

/// A cycle that can be reached from these tasks, closed: `a → b → a`. Walks without recursion,
/// for chains are as long as people make them.
pub(super) fn cycle<'a>(
    from: impl Iterator<Item = &'a TaskId>,
    waits: &Waits<'a>,
) -> Option<Vec<TaskId>> {
    let mut done: HashMap<&TaskId, bool> = HashMap::new();
    for start in from {
        if done.contains_key(start) {
            continue;
        }
        // Each step with how many of its blockers were walked.
        let mut path: Vec<(&TaskId, usize)> = vec![(start, 0)];
        done.insert(start, false);
        while let Some((id, walked)) = path.last_mut() {
            let Some(&next) = waits.get(*id).and_then(|blockers| blockers.get(*walked)) else {
                done.insert(id, true);
                path.pop();
                continue;
            };
            *walked += 1;
            match done.get(next) {
                Some(true) => {}
                Some(false) => {
                    let on_path = path.iter().map(|(id, _)| *id);
                    let around = on_path.skip_while(|id| *id != next).chain([next]);
                    return Some(around.cloned().collect());
                }
                None => {
                    done.insert(next, false);
                    path.push((next, 0));
                }
            }
        }
    }
    None
}
