//! Keeping our own memory and environment from the commands we run.

/// Makes this process's memory and `/proc/<pid>/environ` unreadable to other processes of the same
/// user, and keeps secrets out of core dumps. Root can still read them; bubblewrap's own `/proc`
/// and Landlock's ptrace rule stop even that. The binary calls it first thing.
pub fn harden_self() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}
