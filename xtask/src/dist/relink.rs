//! Linking once more what the compiler has linked.
//!
//! LLVM's linker writes all its inputs to an archive if it is asked to (`--reproduce`), with a file of
//! the arguments that repeat the link.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::steps;

/// The arguments of the link, in the archive.
const ARGUMENTS: &str = "@response.txt";
const ORDER: &str = "order.txt";

/// LLVM's linker, which comes with the compiler.
pub(super) struct Linker(PathBuf);

impl Linker {
    /// `None` for a platform whose programs are linked by another one, or cannot be run here.
    pub(super) fn of(target: Option<&str>) -> Result<Option<Self>> {
        let version = rustc(&["-vV"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.context("rustc does not name its platform")?;
        let target = target.unwrap_or(host);
        let machine = |triple: &str| triple.split('-').next().map(str::to_owned);
        if !target.contains("-linux-") || machine(target) != machine(host) {
            return Ok(None);
        }
        let sysroot = rustc(&["--print", "sysroot"])?;
        let path = format!("{}/lib/rustlib/{host}/bin/gcc-ld/ld.lld", sysroot.trim());
        let linker = PathBuf::from(path);
        Ok(linker.exists().then_some(Self(linker)))
    }

    /// For the C compiler that starts the linker: use this one, and keep the inputs in this archive.
    pub(super) fn keeping(&self, archive: &Path) -> [String; 3] {
        let directory = self.0.parent().unwrap_or(&self.0);
        [
            format!("-B{}", directory.display()),
            "-fuse-ld=lld".to_owned(),
            format!("-Wl,--reproduce={}", archive.display()),
        ]
    }
}

fn rustc(args: &[&str]) -> Result<String> {
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(program).args(args).output()?;
    ensure!(
        output.status.success(),
        "rustc ended with {}",
        output.status
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// The unpacked inputs, removed when dropped.
pub(super) struct LinkInputs<'a> {
    directory: TempDir,
    linker: &'a Linker,
}

impl<'a> LinkInputs<'a> {
    pub(super) fn unpack(archive: &Path, linker: &'a Linker) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("link-").tempdir()?;
        let mut tar = Command::new("tar");
        tar.args(["--strip-components", "1", "-xf"]).arg(archive);
        steps::run_quietly(tar.arg("-C").arg(directory.path()))?;
        Ok(Self { directory, linker })
    }

    /// Links them; arguments that come later win.
    pub(super) fn link(&self, name: &str, args: &[&str]) -> Result<PathBuf> {
        let mut command = Command::new(&self.linker.0);
        command
            .current_dir(self.directory.path())
            .arg(ARGUMENTS)
            .args(args)
            .args(["-o", name]);
        steps::run_quietly(&mut command)?;
        Ok(self.directory.path().join(name))
    }

    /// With these functions first, in this order. Names that are not there are passed over.
    pub(super) fn link_in_order(&self, name: &str, functions: &[String]) -> Result<PathBuf> {
        fs::write(self.directory.path().join(ORDER), functions.join("\n"))?;
        let order = format!("--symbol-ordering-file={ORDER}");
        self.link(name, &[&order, "--no-warn-symbol-ordering"])
    }
}

#[cfg(test)]
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod tests {
    use super::*;

    const PROGRAM: &str = "
        #[unsafe(no_mangle)] #[inline(never)] extern \"C\" fn early() { println!(\"1\") }
        #[unsafe(no_mangle)] #[inline(never)] extern \"C\" fn late() { println!(\"2\") }
        #[unsafe(no_mangle)] #[inline(never)] extern \"C\" fn middle() { println!(\"3\") }
        fn main() { early(); middle(); late(); }";

    fn places(program: &Path) -> Vec<String> {
        let listed = Command::new("nm").arg("-n").arg(program).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let names = listed.lines().filter_map(|line| line.split(' ').nth(2));
        let ours = names.filter(|name| ["early", "late", "middle"].contains(name));
        ours.map(str::to_owned).collect()
    }

    #[test]
    fn what_was_linked_is_linked_again_with_functions_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let (source, archive) = (
            directory.path().join("main.rs"),
            directory.path().join("kept.tar"),
        );
        fs::write(&source, PROGRAM).unwrap();
        let linker = Linker::of(None).unwrap().unwrap();
        let mut compile = Command::new("rustc");
        compile.args(["--edition", "2024"]).arg(&source);
        for arg in linker.keeping(&archive) {
            compile.arg("-C").arg(format!("link-arg={arg}"));
        }
        compile.current_dir(directory.path());
        steps::run_quietly(&mut compile).unwrap();
        let inputs = LinkInputs::unpack(&archive, &linker).unwrap();
        for order in [["late", "early", "middle"], ["middle", "late", "early"]] {
            let order = order.map(str::to_owned);
            let mut wanted = vec!["not_there".to_owned()];
            wanted.extend(order.clone());
            let program = inputs.link_in_order("ordered", &wanted).unwrap();
            assert_eq!(places(&program), order);
            let output = Command::new(program).output().unwrap();
            assert_eq!(output.stdout, b"1\n3\n2\n", "it runs as before");
        }
    }

    #[test]
    fn programs_of_other_machines_are_left_as_they_are() {
        for target in ["aarch64-apple-darwin", "aarch64-unknown-linux-musl"] {
            assert!(Linker::of(Some(target)).unwrap().is_none());
        }
    }
}
