//! `cargo xtask image`: the root file system of the container image, made without an engine for
//! containers, and the program tried in it.
//!
//! The instructions are read from the Dockerfile, so that what is tried is what is built. One that is
//! not understood here is an error: it would otherwise be left out.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{metadata::Metadata, steps, tools::on_path};

/// Make the root file system that the Dockerfile describes, and try the program in it. Needs root and
/// debootstrap, and some minutes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program to put into it; that of `cargo build --release` by default
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// What the image has its programs run with.
#[derive(Debug, Default, PartialEq)]
struct Image {
    root: PathBuf,
    variables: Vec<(String, String)>,
    user: String,
    directory: String,
    entry: Vec<String>,
}

pub(crate) fn run(args: &Args, root: &Path) -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root() && on_path("debootstrap"),
        "this needs root, and debootstrap: apt-get install debootstrap"
    );
    let program = match &args.program {
        Some(program) => program.clone(),
        None => Metadata::read(root)?
            .target_directory
            .join("release/codespar"),
    };
    ensure!(
        program.is_file(),
        "there is no program {}",
        program.display()
    );
    let dir = tempfile::tempdir()?;
    let mut image = Image {
        root: dir.path().join("root"),
        ..Image::default()
    };
    let file = fs::read_to_string(root.join("Dockerfile")).context("Dockerfile")?;
    for (word, rest) in instructions(&file)? {
        println!("{word} {rest}");
        image.carry_out(&word, &rest, &program)?;
    }
    ensure!(!image.entry.is_empty(), "the Dockerfile has no ENTRYPOINT");
    let version = image.said(&["--version"])?;
    ensure!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
    let health = image.said(&["doctor"])?;
    print!("{version}{health}");
    for part in ["/state", "/work", "git"] {
        ensure!(health.contains(part), "doctor says nothing of {part}");
    }
    println!("the image works");
    Ok(())
}

/// With lines joined that go on on the next. Comments and empty lines are left out.
fn instructions(file: &str) -> Result<Vec<(String, String)>> {
    let lines = file
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let text = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let split = |line: &str| {
        let words = line.split_once(' ');
        let (word, rest) = words.with_context(|| format!("not an instruction: {line}"))?;
        Ok((word.to_owned(), rest.trim().to_owned()))
    };
    lines.map(split).collect()
}

impl Image {
    fn carry_out(&mut self, word: &str, rest: &str, program: &Path) -> Result<()> {
        match word {
            "FROM" => self.begin(rest),
            "RUN" => self.inside(&["sh", "-c", rest], "root"),
            "COPY" => self.copy(rest, program),
            "ENV" => {
                let (name, value) = rest.split_once('=').context("ENV without `=`")?;
                self.variables.push((name.to_owned(), value.to_owned()));
                Ok(())
            }
            "USER" => {
                rest.clone_into(&mut self.user);
                Ok(())
            }
            "WORKDIR" => {
                rest.clone_into(&mut self.directory);
                ensure!(self.place(rest).is_dir(), "WORKDIR {rest} is not there");
                Ok(())
            }
            "ENTRYPOINT" => {
                self.entry = serde_json::from_str(rest).context("ENTRYPOINT")?;
                Ok(())
            }
            // Where it is mounted; the architecture, of which there is one here.
            "VOLUME" | "ARG" => Ok(()),
            _ => bail!("the instruction {word} is not understood"),
        }
    }

    /// The stable Debian of this machine stands for that of the image.
    fn begin(&self, base: &str) -> Result<()> {
        ensure!(
            base == "debian:stable-slim",
            "the base {base} is not understood"
        );
        let release = fs::read_to_string("/etc/os-release")?;
        let name = release
            .lines()
            .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
        let name = name.context("the release of this Debian is not known")?;
        let mut command = Command::new("debootstrap");
        command.args(["--variant=minbase", name]).arg(&self.root);
        steps::run(command.stdout(std::process::Stdio::null()))
    }

    /// `--chmod=MODE SOURCE TARGET`; the only source is the program.
    fn copy(&self, rest: &str, program: &Path) -> Result<()> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [mode, source, target] = words[..] else {
            bail!("COPY {rest} is not understood");
        };
        let mode = mode
            .strip_prefix("--chmod=")
            .context("COPY without --chmod")?;
        ensure!(
            source.ends_with("/codespar"),
            "COPY of {source} is not understood"
        );
        let target = self.place(target);
        fs::copy(program, &target)?;
        let mode = fs::Permissions::from_mode(u32::from_str_radix(mode, 8)?);
        Ok(fs::set_permissions(target, mode)?)
    }

    fn place(&self, inside: &str) -> PathBuf {
        self.root.join(inside.trim_start_matches('/'))
    }

    /// In the root, with a /proc of its own that is gone with the command.
    fn command(&self, words: &[&str], user: &str) -> Command {
        let mut command = Command::new("unshare");
        let chroot = "mount -t proc proc \"$0/proc\" && dir=\"$1\" user=\"$2\" && shift 2 && \
                      root=\"$0\" && exec chroot --userspec=\"$user\" \"$root\" \
                      sh -c 'cd \"$0\" && exec \"$@\"' \"$dir\" \"$@\"";
        let directory = match self.directory.as_str() {
            "" => "/",
            directory => directory,
        };
        command
            .args([
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "sh",
                "-c",
                chroot,
            ])
            .arg(&self.root)
            .args([directory, user])
            .args(words)
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            );
        command
    }

    fn inside(&self, words: &[&str], user: &str) -> Result<()> {
        steps::run_quietly(
            self.command(words, user)
                .stdout(std::process::Stdio::null()),
        )
    }

    /// What the entry point says, as the user of the image and with nothing but its variables.
    fn said(&self, args: &[&str]) -> Result<String> {
        let mut words = vec!["env".to_owned(), "-i".to_owned()];
        let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        let variables = self.variables.iter().chain([&path]);
        words.extend(variables.map(|(name, value)| format!("{name}={value}")));
        words.extend(self.entry.iter().cloned());
        words.extend(args.iter().map(|arg| (*arg).to_owned()));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = self.command(&words, &self.user).output()?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        ensure!(
            said.status.success(),
            "{} ended with {}: {text}{}",
            words.join(" "),
            said.status,
            String::from_utf8_lossy(&said.stderr)
        );
        Ok(text)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_of_the_dockerfile_is_understood() {
        let file = include_str!("../../Dockerfile");
        let words: Vec<String> = instructions(file)
            .unwrap()
            .into_iter()
            .map(|(word, _)| word)
            .collect();
        let expected = [
            "FROM",
            "RUN",
            "ARG",
            "COPY",
            "ENV",
            "USER",
            "WORKDIR",
            "VOLUME",
            "ENTRYPOINT",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn an_instruction_that_is_new_is_refused_and_lines_are_joined() {
        let read = instructions("# a\nRUN one \\\n    && two\n\nHEALTHCHECK NONE\n").unwrap();
        assert_eq!(
            read[0].1.split_whitespace().collect::<Vec<_>>(),
            ["one", "&&", "two"]
        );
        let refused = Image::default().carry_out(&read[1].0, &read[1].1, Path::new("x"));
        assert!(refused.unwrap_err().to_string().contains("HEALTHCHECK"));
    }
}
