//! A session in a pseudo-terminal, from its start to the moment that is drawn.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use codespar_testkit::{ScriptedModel, process::CleanRoom};

use crate::pty::{PtySession, PtySize, VERSION};

use super::{picture::Picture, scenes::Scene};

const COLUMNS: u16 = 100;
const ROWS: u16 = 30;
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
    let size = PtySize {
        rows: ROWS,
        columns: COLUMNS,
    };
    let mut session = PtySession::start(&room, &work, binary, &server.url(), size)?;
    Shown(&session).wait_for(&["/help shows the commands"])?;
    session.types(VERSION)?;
    session.types(scene.prompt)?;
    Shown(&session).wait_for(&[scene.prompt])?;
    session.types("\r")?;
    Shown(&session).wait_for(scene.cues)?;
    Shown(&session)
        .settled(scene)?
        .with_short_home(&home.to_string_lossy())
}

/// What the screen shows, from a session.
struct Shown<'a>(&'a PtySession<'a>);

impl Shown<'_> {
    fn picture(&self) -> Result<Picture> {
        Picture::of(self.0.output().emulator.screen())?.with_fixed_durations()
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
