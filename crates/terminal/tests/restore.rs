//! A terminal is restored by a hook that knows nothing of it. One test: the terminal is that of the
//! process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::{os::fd::OwnedFd, panic};

use codespar_terminal::modes::{Modes, ModifyOtherKeys, restore_after_panic};
use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, tcgetattr},
};

fn is_raw(fd: &OwnedFd) -> bool {
    !tcgetattr(fd)
        .unwrap()
        .local_modes
        .contains(LocalModes::ICANON)
}

#[test]
fn a_panic_leaves_the_terminal_as_it_was() {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap();
    let program = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();

    // Not entered: nothing to restore.
    restore_after_panic();
    let modes = Modes::enter(&program, &program, ModifyOtherKeys::Off).unwrap();
    assert!(is_raw(&program));
    panic::set_hook(Box::new(|_| restore_after_panic()));
    let result = panic::catch_unwind(|| panic!("of the test"));
    let _ = panic::take_hook();
    assert!(result.is_err());
    assert!(!is_raw(&program));
    drop(modes);

    let mut bytes = [0; 400];
    let count = rustix::io::read(&screen, &mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes[..count]).replace('\u{1b}', "");
    let left = "[?2026l[?7h[m[>4m[<u[?1004l[?2004l[?25h";
    assert_eq!(text, format!("[?2004h[?1004h[>1u{left}\r\n[J"));
}
