//! Variables that lead package managers to their directories.

use std::path::Path;

/// Where tools look for what was downloaded for them, besides the project itself: the name of a
/// directory, and the variables that lead there.
pub(super) fn cache_variables(caches: &Path) -> Vec<(&'static str, Vec<(String, String)>)> {
    let dir = |name: &str| caches.join(name).display().to_string();
    let one = |name: &str, value: String| (name.to_owned(), value);
    vec![
        (
            "go",
            vec![
                one("GOMODCACHE", dir("go")),
                // Or it could not be removed.
                one("GOFLAGS", "-modcacherw".to_owned()),
            ],
        ),
        (
            "maven",
            vec![one(
                "MAVEN_OPTS",
                format!("-Dmaven.repo.local={}", dir("maven")),
            )],
        ),
        ("cargo", vec![one("CARGO_HOME", dir("cargo"))]),
    ]
}

/// Keeps package managers from asking, from writing to the user's caches, and from installing git
/// hooks, which nothing here runs.
pub(super) fn setup_variables(downloads: &Path) -> Vec<(String, String)> {
    let dir = |name: &str| format!("{}/{name}", downloads.display());
    [
        ("CI", "true".to_owned()),
        ("HUSKY", "0".to_owned()),
        ("BUNDLE_PATH", "vendor/bundle".to_owned()),
        ("COMPOSER_CACHE_DIR", dir("composer")),
        ("npm_config_audit", "false".to_owned()),
        ("npm_config_cache", dir("npm")),
        ("npm_config_fetch_retries", "1".to_owned()),
        ("npm_config_fund", "false".to_owned()),
        ("npm_config_store_dir", dir("pnpm")),
        ("npm_config_update_notifier", "false".to_owned()),
        ("PIPENV_VENV_IN_PROJECT", "1".to_owned()),
        ("PIP_CACHE_DIR", dir("pip")),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1".to_owned()),
        ("PIP_RETRIES", "1".to_owned()),
        ("POETRY_CACHE_DIR", dir("poetry")),
        ("POETRY_VIRTUALENVS_IN_PROJECT", "true".to_owned()),
        ("UV_CACHE_DIR", dir("uv")),
        ("YARN_CACHE_FOLDER", dir("yarn")),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
