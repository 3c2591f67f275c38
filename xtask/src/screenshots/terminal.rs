//! A session in a pseudo-terminal, from its start to the moment that is drawn.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
    process::{Child, ChildStdin, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use codespar_testkit::{
    ScriptedModel,
    process::{CleanRoom, kill_9},
};

use super::{picture::Picture, scenes::Scene};

const COLUMNS: u16 = 100;
const ROWS: u16 = 30;
/// A terminal that says what it is marks its pastes.
const VERSION: &str = "\x1bP>|emulator 1\x1b\\\x1b[?62c";
/// For each cue. What has not come by then does not come.
const PATIENCE: Duration = Duration::from_secs(30);
/// A screen that has not changed for so long, apart from its times, is complete.
const SETTLED: Duration = Duration::from_millis(700);
const LOOK: Duration = Duration::from_millis(20);
/// A spinner would be at another place in every picture.
const SETTINGS: &str = r#"{"terminal": {"reducedMotion": true}}"#;

/// How often a scene is played whose parts came in the wrong order.
const TAKES: usize = 20;

/// Plays a scene until all its cues are visible, and gives what the screen then shows.
///
/// What runs side by side may begin in any order; the scene is played again until it is the one
/// that it wants.
pub(super) fn play(scene: &Scene, binary: &Path) -> Result<Picture> {
    for _ in 0..TAKES {
        let picture = take(scene, binary)?;
        let text = picture.text();
        let places = scene.order.iter().map(|part| text.find(part));
        if places.is_sorted() {
            return Ok(picture);
        }
    }
    bail!(
        "{:?} were not once in this order in {TAKES} takes",
        scene.order
    )
}

fn take(scene: &Scene, binary: &Path) -> Result<Picture> {
    let room = CleanRoom::new()?;
    let home = fs::canonicalize(room.home())?;
    let work = home.join("project");
    fs::create_dir_all(work.join(".git"))?;
    fs::write(work.join(".git/HEAD"), "ref: refs/heads/main\n")?;
    fs::write(room.codespar_home().join("settings.json"), SETTINGS)?;
    for (name, text) in scene.files {
        let path = work.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&work))?;
        fs::write(path, text)?;
    }
    let server = ScriptedModel::start_blocking(scene.script.clone())?;
    let mut session = Session::start(&room, &work, binary, &server.url())?;
    session.wait_for(&["/help shows the commands"])?;
    session.types(VERSION)?;
    session.types(scene.prompt)?;
    session.wait_for(&[scene.prompt])?;
    session.types("\r")?;
    session.wait_for(scene.cues)?;
    session
        .settled(scene)?
        .with_short_home(&home.to_string_lossy())
}

struct Session<'a> {
    room: &'a CleanRoom,
    child: Child,
    input: ChildStdin,
    emulator: Arc<Mutex<vt100::Parser>>,
}

impl<'a> Session<'a> {
    fn start(room: &'a CleanRoom, work: &Path, binary: &Path, url: &str) -> Result<Self> {
        let emulator = vt100::Parser::new(ROWS.try_into()?, COLUMNS.try_into()?, 0);
        let emulator = Arc::new(Mutex::new(emulator));
        // The path is in a variable, so that no character of it means something to the shell.
        let program = format!("stty rows {ROWS} cols {COLUMNS}; exec \"$PROGRAM\"");
        let mut child = room
            .command("script")
            .current_dir(work)
            .args(["-qec", &program, "/dev/null"])
            .env("PROGRAM", binary)
            .env("TERM", "linux")
            .env("SHELL", "/bin/sh")
            .env("ANTHROPIC_BASE_URL", url)
            .env("ANTHROPIC_API_KEY", "sk-test-key-of-the-screenshots")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start `script`: install util-linux")?;
        let mut output = child.stdout.take().context("`script` has no output")?;
        let input = child.stdin.take().context("`script` has no input")?;
        let shown = Arc::clone(&emulator);
        thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                locked(&shown).process(&buffer[..count]);
            }
        });
        Ok(Self {
            room,
            child,
            input,
            emulator,
        })
    }

    fn types(&mut self, text: &str) -> Result<()> {
        self.input.write_all(text.as_bytes())?;
        Ok(self.input.flush()?)
    }

    fn picture(&self) -> Result<Picture> {
        Picture::of(locked(&self.emulator).screen())?.with_fixed_durations()
    }

    fn wait_for(&self, cues: &[&str]) -> Result<()> {
        let began = Instant::now();
        loop {
            let text = self.picture()?.text();
            let Some(missing) = cues.iter().find(|cue| !text.contains(**cue)) else {
                return Ok(());
            };
            if began.elapsed() > PATIENCE {
                bail!("waited {} s for `{missing}`:\n{text}", PATIENCE.as_secs());
            }
            thread::sleep(LOOK);
        }
    }

    /// The first picture that stays the same and has nothing of what the scene wants to be over.
    fn settled(&self, scene: &Scene) -> Result<Picture> {
        let began = Instant::now();
        let mut last = self.picture()?;
        let mut since = Instant::now();
        while since.elapsed() < SETTLED {
            thread::sleep(LOOK);
            let next = self.picture()?;
            let text = next.text();
            if next != last || scene.over.iter().any(|over| text.contains(over)) {
                last = next;
                since = Instant::now();
            }
            if began.elapsed() > PATIENCE {
                bail!("the screen did not come to rest:\n{text}");
            }
        }
        Ok(last)
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // The session hears that its terminal is gone and ends; what is left after that is stuck.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let left = self.room.wait_until_empty(Duration::from_secs(5));
        for process in left.unwrap_or_default() {
            let _ = kill_9(process);
        }
    }
}

/// A panic of the thread that reads leaves a screen that can still be shown.
fn locked(emulator: &Mutex<vt100::Parser>) -> MutexGuard<'_, vt100::Parser> {
    emulator.lock().unwrap_or_else(PoisonError::into_inner)
}
