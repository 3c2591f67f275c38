//! One change after another, as one change.
//!
//! A repair is made on top of the change it repairs, but what is published is one commit against
//! the base. So two changes are folded into one. For every path there is at most one change that
//! leaves a file there, removes it or moves it away; `name_once` restores that after each step.
//!
//! | earlier | later | together |
//! |---|---|---|
//! | added | modified | added, with the later content |
//! | added | deleted | nothing |
//! | modified | deleted | deleted |
//! | deleted | added | modified |
//! | moved a → b | moved b → c | moved a → c |
//! | moved a → b | added a | modified a, added b |

use codespar_protocol::{Bytes, ChangeSet, FileChange, FileMode, RepoPath};

use super::{MapSource, SourceFile};

/// The change that has the effect of `earlier` and then `later`, which was made for the files as
/// `earlier` leaves them.
pub fn stacked(earlier: &ChangeSet, later: ChangeSet) -> ChangeSet {
    let mut all = earlier.0.clone();
    for change in later.0 {
        match change {
            FileChange::Added {
                path,
                content,
                mode,
            } => put(&mut all, path, content, mode, Unknown::IsNew),
            FileChange::Modified {
                path,
                content,
                mode,
            } => put(&mut all, path, content, mode, Unknown::IsThere),
            FileChange::Deleted { path } => delete(&mut all, path),
            FileChange::Moved {
                from,
                to,
                content,
                mode,
            } => relocate(&mut all, from, to, content, mode),
        }
        name_once(&mut all);
    }
    ChangeSet(all)
}

/// A name that one file leaves and another takes is a file whose content changes: every name is in
/// one change only.
fn name_once(all: &mut Vec<FileChange>) {
    let taken = all.iter().enumerate().find_map(|(at, change)| {
        let FileChange::Moved { from, .. } = change else {
            return None;
        };
        let other = all.iter().position(|other| other.path() == from)?;
        (other != at).then_some((at, other))
    });
    let Some((at, other)) = taken else { return };
    if let FileChange::Moved {
        to, content, mode, ..
    } = all[at].clone()
    {
        all[at] = FileChange::Added {
            path: to,
            content,
            mode,
        };
    }
    match all[other].clone() {
        FileChange::Added {
            path,
            content,
            mode,
        } => {
            all[other] = FileChange::Modified {
                path,
                content,
                mode,
            };
        }
        FileChange::Moved {
            from,
            to,
            content,
            mode,
        } => {
            all[other] = FileChange::Modified {
                path: to,
                content,
                mode,
            };
            all.push(FileChange::Deleted { path: from });
        }
        FileChange::Modified { .. } | FileChange::Deleted { .. } => {}
    }
}

/// What a path that the earlier change does not touch is before both.
#[derive(Clone, Copy)]
enum Unknown {
    IsNew,
    IsThere,
}

/// Where the earlier change leaves or removes a file of this name.
fn place(all: &[FileChange], path: &RepoPath) -> Option<usize> {
    all.iter().position(|change| change.path() == path)
}

/// A file of this name with this content, whatever the earlier change did with the name.
fn put(
    all: &mut Vec<FileChange>,
    path: RepoPath,
    content: Bytes,
    mode: FileMode,
    unknown: Unknown,
) {
    let added = |path, content| FileChange::Added {
        path,
        content,
        mode,
    };
    let modified = |path, content| FileChange::Modified {
        path,
        content,
        mode,
    };
    let Some(at) = place(all, &path) else {
        // A file that was moved away left its name free; what comes there is new.
        all.push(match unknown {
            Unknown::IsNew => added(path, content),
            Unknown::IsThere => modified(path, content),
        });
        return;
    };
    all[at] = match &all[at] {
        FileChange::Added { .. } => added(path, content),
        FileChange::Modified { .. } | FileChange::Deleted { .. } => modified(path, content),
        FileChange::Moved { from, to, .. } => FileChange::Moved {
            from: from.clone(),
            to: to.clone(),
            content,
            mode,
        },
    };
}

/// A file that the earlier change created leaves no trace; one that it moved is deleted under its
/// old name.
fn delete(all: &mut Vec<FileChange>, path: RepoPath) {
    let Some(at) = place(all, &path) else {
        all.push(FileChange::Deleted { path });
        return;
    };
    match all.remove(at) {
        FileChange::Added { .. } => {}
        FileChange::Modified { path, .. } | FileChange::Deleted { path } => {
            all.push(FileChange::Deleted { path });
        }
        FileChange::Moved { from, .. } => all.push(FileChange::Deleted { path: from }),
    }
}

/// Back to its own first name it is a modification.
fn relocate(
    all: &mut Vec<FileChange>,
    from: RepoPath,
    to: RepoPath,
    content: Bytes,
    mode: FileMode,
) {
    let origin = match place(all, &from).map(|at| all.remove(at)) {
        // It is new: it has no name before.
        Some(FileChange::Added { .. }) => None,
        Some(FileChange::Moved { from, .. }) => Some(from),
        Some(FileChange::Modified { path, .. } | FileChange::Deleted { path }) => Some(path),
        None => Some(from),
    };
    let is_freed = place(all, &to).is_some();
    match origin {
        Some(origin) if origin == to && !is_freed => all.push(FileChange::Modified {
            path: to,
            content,
            mode,
        }),
        Some(origin) if !is_freed => all.push(FileChange::Moved {
            from: origin,
            to,
            content,
            mode,
        }),
        // The name is that of a file that goes: its content changes, and the other file goes.
        origin => {
            put(all, to, content, mode, Unknown::IsNew);
            all.extend(origin.map(|path| FileChange::Deleted { path }));
        }
    }
}

impl MapSource {
    /// Puts the tree to where a change leaves it. `is_seen` says whether whoever changes it next
    /// has seen all of a file that was there before. Removals first, since a name may be left by
    /// one file and taken by another. New files count as seen whole: whoever changes them next
    /// wrote them.
    pub fn change(&mut self, changes: &ChangeSet, is_seen: impl Fn(&str) -> bool) {
        for change in &changes.0 {
            match change {
                FileChange::Deleted { path } => self.remove(path),
                FileChange::Moved { from, .. } => self.remove(from),
                FileChange::Added { .. } | FileChange::Modified { .. } => {}
            }
        }
        for change in &changes.0 {
            let (path, content, mode, partial) = match change {
                FileChange::Deleted { .. } => continue,
                FileChange::Added {
                    path,
                    content,
                    mode,
                } => (path, content, mode, false),
                FileChange::Modified {
                    path,
                    content,
                    mode,
                } => (path, content, mode, !is_seen(path.as_str())),
                FileChange::Moved {
                    from,
                    to,
                    content,
                    mode,
                } => (to, content, mode, !is_seen(from.as_str())),
            };
            let file = SourceFile {
                content: content.0.clone(),
                mode: *mode,
                partial,
            };
            self.insert(path.clone(), file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Files = BTreeMap<String, Vec<u8>>;

    /// What a change makes of files; an error where it cannot be made.
    fn made(files: &Files, changes: &ChangeSet) -> Result<Files, String> {
        let mut names: Vec<&RepoPath> = Vec::new();
        for change in &changes.0 {
            names.push(change.path());
            if let FileChange::Moved { from, .. } = change {
                names.push(from);
            }
        }
        names.sort();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(format!("a name is there twice: {changes:?}"));
        }
        let mut out = files.clone();
        for change in &changes.0 {
            let gone = match change {
                FileChange::Deleted { path } => path,
                FileChange::Moved { from, .. } => from,
                FileChange::Modified { path, .. } if !files.contains_key(path.as_str()) => {
                    return Err(format!("{path} is modified and is not there"));
                }
                _ => continue,
            };
            out.remove(gone.as_str())
                .ok_or_else(|| format!("{gone} goes and is not there"))?;
        }
        for change in &changes.0 {
            let (path, content, is_new) = match change {
                FileChange::Deleted { .. } => continue,
                FileChange::Modified { path, content, .. } => (path, content, false),
                FileChange::Added { path, content, .. } => (path, content, true),
                FileChange::Moved { to, content, .. } => (to, content, true),
            };
            let old = out.insert(path.to_string(), content.0.clone());
            if is_new && old.is_some() {
                return Err(format!("{path} is new and is there"));
            }
        }
        Ok(out)
    }

    /// A change that fits these files, made of random numbers.
    fn change(files: &Files, choices: &[(u8, u8, u8)]) -> ChangeSet {
        let path = |n: u8| RepoPath::new(&format!("f{}", n % 6)).unwrap();
        let (mut touched, mut changes) = (Vec::new(), Vec::new());
        for &(what, which, byte) in choices {
            let (path, other) = (path(which), path(byte));
            if touched.contains(&path) || touched.contains(&other) {
                continue;
            }
            let content = Bytes(vec![what, which, byte]);
            let mode = FileMode::Regular;
            let is_there = files.contains_key(path.as_str());
            let is_free = !files.contains_key(other.as_str()) && other != path;
            changes.push(match what % 3 {
                _ if !is_there => FileChange::Added {
                    path: path.clone(),
                    content,
                    mode,
                },
                0 => FileChange::Deleted { path: path.clone() },
                1 if is_free => {
                    touched.push(other.clone());
                    FileChange::Moved {
                        from: path.clone(),
                        to: other,
                        content,
                        mode,
                    }
                }
                _ => FileChange::Modified {
                    path: path.clone(),
                    content,
                    mode,
                },
            });
            touched.push(path);
        }
        ChangeSet(changes)
    }

    proptest! {
        #[test]
        fn two_changes_in_one_leave_the_files_that_both_leave(
            there in prop::collection::vec(any::<u8>(), 0..6),
            one in prop::collection::vec(any::<(u8, u8, u8)>(), 0..6),
            two in prop::collection::vec(any::<(u8, u8, u8)>(), 0..6),
        ) {
            let files: Files = there.iter().map(|n| (format!("f{}", n % 6), vec![*n])).collect();
            let earlier = change(&files, &one);
            let between = made(&files, &earlier).unwrap();
            let later = change(&between, &two);
            let after = made(&between, &later).unwrap();
            let both = stacked(&earlier, later.clone());
            prop_assert_eq!(made(&files, &both), Ok(after), "{:?} {:?}", earlier, later);
        }
    }
}
