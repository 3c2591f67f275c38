//! Keeping our own memory and environment from the commands we run.

/// Makes this process's memory and `/proc/<pid>/environ` unreadable to other processes of the same
/// user, and keeps secrets out of core dumps. Root outside of a sandbox can still read them; a
/// command in a sandbox lacks the capability for it, whoever started it. The binary calls it before
/// it opens a project, and so do the guards. Does nothing on systems other than Linux.
pub fn harden_self() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}
