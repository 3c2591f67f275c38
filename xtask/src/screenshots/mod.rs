//! `cargo xtask screenshots`: pictures of the session at a terminal, made from a real session.
//!
//! The binary runs in a pseudo-terminal against the scripted model; what an emulator then shows is
//! drawn as SVG. A picture that nobody draws by hand cannot show what the program does not do, and
//! `--check` tells when it has become old.

mod picture;
mod scenes;
mod svg;
mod terminal;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{metadata::Metadata, steps};
use scenes::Scene;

/// Draw the session at a terminal into docs/images, from the built binary.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these scenes; all by default
    scenes: Vec<String>,
    /// Write nothing; fail if a file differs from what would be written
    #[arg(long)]
    check: bool,
    /// Use the debug build instead of the release build
    #[arg(long)]
    debug: bool,
}

pub(crate) fn run(args: &Args, root: &Path) -> Result<()> {
    let scenes = chosen(&args.scenes)?;
    let binary = build(args, root)?;
    let directory = root.join("docs/images");
    let mut old = Vec::new();
    for scene in scenes {
        let drawn = terminal::play(&scene, &binary)
            .and_then(|picture| svg::draw(&picture))
            .with_context(|| format!("scene `{}`", scene.name))?;
        let name = format!("terminal-{}.svg", scene.name);
        let path = directory.join(&name);
        if args.check {
            if fs::read_to_string(&path).ok().as_deref() != Some(drawn.as_str()) {
                old.push(format!("docs/images/{name}"));
            }
        } else {
            fs::create_dir_all(&directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
            fs::write(&path, &drawn).with_context(|| format!("cannot write {}", path.display()))?;
            println!("docs/images/{name}: {} bytes", drawn.len());
        }
    }
    if !old.is_empty() {
        bail!(
            "the session looks different now: {}; run `cargo xtask screenshots` and look at the \
             result",
            old.join(", ")
        );
    }
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<Scene>> {
    let mut scenes = scenes::all();
    let known: Vec<&str> = scenes.iter().map(|scene| scene.name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("there is no scene `{unknown}`: use {}", known.join(", "));
    }
    scenes.retain(|scene| names.is_empty() || names.iter().any(|name| name == scene.name));
    Ok(scenes)
}

fn build(args: &Args, root: &Path) -> Result<PathBuf> {
    let (flags, directory): (&[&str], _) = match args.debug {
        true => (&[], "debug"),
        false => (&["--release"], "release"),
    };
    // The whole workspace, as for the other commands: a single package is compiled with other
    // features.
    let mut command = steps::cargo(root);
    steps::run(command.args(["build", "--workspace", "--bins"]).args(flags))?;
    let target = Metadata::read(root)?.target_directory;
    Ok(target.join(directory).join("codespar"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scene_that_does_not_exist_is_named_with_those_that_do() {
        let Err(error) = chosen(&["sunset".to_owned()]) else {
            panic!("there is no such scene");
        };
        assert_eq!(
            error.to_string(),
            "there is no scene `sunset`: use answer, edit, agents"
        );
        let one = chosen(&["edit".to_owned()]).unwrap();
        assert_eq!(one.len(), 1);
    }
}
