use std::fs;

use super::*;

struct Home {
    dir: tempfile::TempDir,
    config: PackageConfig,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["home", "project", "bin"] {
            fs::create_dir(base.join(name)).unwrap();
        }
        let config = PackageConfig {
            home: Some(base.join("home")),
            vars: vec![("PATH".into(), base.join("bin").into())],
            project: base.join("project"),
        };
        Self { dir, config }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A program on the search path.
    fn program(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.write(name, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    async fn hosts(&self) -> (Vec<String>, Vec<String>) {
        let found = self.config.find().await;
        let hosts = found.hosts.iter().map(ToString::to_string).collect();
        (hosts, found.notes)
    }
}

#[tokio::test]
async fn every_managers_own_configuration_counts() {
    let mut home = Home::new();
    home.write(
        "home/.npmrc",
        "; registry=https://commented.example\nregistry = https://npm.example/repo/\n\
         @corp:registry=https://user:secret@scoped.example:8443/\n//npm.example/:_authToken=x\n",
    );
    home.write(
        "home/.config/pip/pip.conf",
        "[global]\nindex-url = https://me:secret@pip.example/simple\nextra-index-url =\n  \
         https://extra1.example/simple\n  https://extra2.example/simple\n",
    );
    home.write(
        "home/.cargo/config.toml",
        "[registries.corp]\nindex = \"sparse+https://cargo.example/index/\"\n\
         [source.crates-io]\nreplace-with = \"mirror\"\n\
         [source.mirror]\nregistry = \"https://mirror.example/git/index\"\n",
    );
    home.write(
        "home/.m2/settings.xml",
        "<settings><!-- <url>https://commented.example</url> --><mirrors><mirror>\
         <url>https://maven.example/repo</url></mirror></mirrors></settings>",
    );
    home.config.vars.push((
        "UV_INDEX".into(),
        "corp=https://uv.example/simple https://uv2.example/simple".into(),
    ));
    let (hosts, notes) = home.hosts().await;
    assert_eq!(
        hosts,
        [
            "npm.example",
            "scoped.example:8443",
            "uv.example",
            "uv2.example",
            "pip.example",
            "extra1.example",
            "extra2.example",
            "cargo.example",
            "mirror.example",
            "maven.example",
        ]
    );
    assert_eq!(notes, Vec::<String>::new());
    // Inside, managers do not see these files; what they are told has no credentials in it.
    assert_eq!(
        home.config.find().await.variables,
        [
            (
                "npm_config_registry",
                "https://npm.example/repo/".to_owned()
            ),
            ("PIP_INDEX_URL", "https://pip.example/simple".to_owned()),
        ]
    );
}

#[tokio::test]
async fn a_manager_without_configuration_is_asked_and_one_that_cannot_tell_is_noted() {
    let home = Home::new();
    home.program("bin/npm", "echo https://told.example/");
    home.program("bin/go", "echo https://go.example,direct; echo off");
    home.program("bin/pip", "exit 1");
    let (hosts, notes) = home.hosts().await;
    assert_eq!(hosts, ["told.example", "go.example"]);
    assert_eq!(
        notes,
        [
            "pip: no index is configured, and it does not tell its own; name the hosts it uses in \
          sandbox.allowedDomains"
        ]
    );
}

#[tokio::test]
async fn a_project_adds_no_hosts_and_its_programs_are_not_run() {
    let mut home = Home::new();
    let npmrc = home.write("project/.npmrc", "registry=https://evil.example/\n");
    std::os::unix::fs::symlink(npmrc, home.dir.path().join("home/.npmrc")).unwrap();
    let ran = home.dir.path().join("ran");
    home.program(
        "project/node_modules/.bin/npm",
        &format!("touch {}; echo https://evil.example/", ran.display()),
    );
    let dir = home.config.project.join("node_modules/.bin");
    home.config.vars = vec![("PATH".into(), format!("{}:.", dir.display()).into())];
    let (hosts, _) = home.hosts().await;
    assert_eq!(hosts, Vec::<String>::new());
    assert!(!ran.exists());
}

#[tokio::test]
async fn what_is_no_host_adds_nothing() {
    let home = Home::new();
    home.write(
        "home/.npmrc",
        "registry=http://127.0.0.1:4873/\n@a:registry=file:///etc\n@b:registry=x\n",
    );
    assert_eq!(home.hosts().await.0, Vec::<String>::new());
}
