//! Tokens on disk: a file for each address, in a directory of the state directory.
//!
//! The file is named after the address, not after the server: another server of the same name, in
//! another project, does not get its tokens. The address stands in the file too and is compared.
//! Files are replaced as a whole and readable by the user alone.

use std::{
    fs::{self, File, TryLockError},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::Url;

/// A token and what belongs to it; anything larger is something else.
const MAX_FILE: u64 = 256 << 10;
/// How long before its end a token counts as expired.
const EARLY: u64 = 30;
/// How long another process may take to refresh a token.
const LOCK_WAIT: Duration = Duration::from_secs(30);
/// Scopes that a server may ask for at once, and bytes of one.
const MAX_SCOPES: usize = 64;
const MAX_SCOPE: usize = 200;
/// A longer header is not kept.
pub(super) const MAX_CHALLENGE: usize = 4 << 10;

/// Where the tokens of all servers are.
#[derive(Debug, Clone)]
pub struct McpTokenStore {
    directory: PathBuf,
}

impl McpTokenStore {
    /// The directory is made when the first token is kept.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    pub(crate) fn of(&self, resource: &Url) -> ServerTokens {
        let digest = Sha256::digest(resource.as_str().as_bytes());
        let name: String = digest[..16].iter().map(|b| format!("{b:02x}")).collect();
        ServerTokens {
            file: self.directory.join(format!("{name}.json")),
            resource: resource.to_string(),
        }
    }

    /// Forgets the tokens for an address; says whether there were any.
    pub fn forget(&self, resource: &Url) -> Result<bool, String> {
        let tokens = self.of(resource);
        let found = tokens.read().is_some_and(|kept| kept.credentials.is_some());
        tokens.remove().map_err(|error| error.to_string())?;
        Ok(found)
    }
}

/// The tokens for one address.
#[derive(Debug, Clone)]
pub(crate) struct ServerTokens {
    file: PathBuf,
    resource: String,
}

/// What the file holds.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct KeptTokens {
    /// The address that the tokens are for.
    resource: String,
    pub(crate) client_secret: Option<String>,
    /// Where the tokens came from. They are refreshed there and nowhere else.
    pub(crate) token_endpoint: Option<String>,
    /// The header that began the login: discovery starts from it again.
    pub(crate) challenge: Option<String>,
    /// Scopes that a call was refused for; the next login asks for them.
    #[serde(default)]
    pub(crate) wanted: Vec<String>,
    pub(crate) credentials: Option<StoredCredentials>,
}

impl KeptTokens {
    fn field(&self, name: &str) -> Option<Value> {
        let response = self.credentials.as_ref()?.token_response.as_ref()?;
        let mut fields = serde_json::to_value(response).ok()?;
        Some(fields.get_mut(name)?.take())
    }

    pub(crate) fn access_token(&self) -> Option<String> {
        Some(self.field("access_token")?.as_str()?.to_owned())
    }

    /// A token without an end is fresh until the server refuses it.
    pub(crate) fn is_fresh(&self) -> bool {
        let received = self.credentials.as_ref().and_then(|c| c.token_received_at);
        let lasts = self.field("expires_in").and_then(|value| value.as_u64());
        let (Some(received), Some(lasts)) = (received, lasts) else {
            return true;
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        received.saturating_add(lasts) > now.saturating_add(EARLY)
    }

    pub(crate) fn granted(&self) -> Vec<String> {
        let credentials = self.credentials.as_ref();
        credentials.map_or_else(Vec::new, |c| c.granted_scopes.clone())
    }
}

impl ServerTokens {
    /// `None` where there is no file, one that cannot be read, or one for another address.
    pub(crate) fn read(&self) -> Option<KeptTokens> {
        let text = codespar_files::read_text(&self.file, MAX_FILE).ok()?;
        let kept: KeptTokens = serde_json::from_str(&text).ok()?;
        (kept.resource == self.resource).then_some(kept)
    }

    /// Changes what is kept. The new file is complete before it takes the place of the old one, and
    /// has mode 0600 from the start.
    pub(crate) fn change(&self, change: impl FnOnce(&mut KeptTokens)) -> std::io::Result<()> {
        let mut kept = self.read().unwrap_or_default();
        change(&mut kept);
        kept.resource = self.resource.clone();
        let text = serde_json::to_string(&kept)?;
        if text.len() as u64 > MAX_FILE {
            return Err(std::io::Error::other("the token is too large to be kept"));
        }
        let directory = self.make_directory()?;
        let mut new = tempfile::NamedTempFile::new_in(directory)?;
        new.write_all(text.as_bytes())?;
        new.as_file().sync_all()?;
        new.persist(&self.file).map_err(|error| error.error)?;
        Ok(())
    }

    /// Keeps what a server asked for in vain, so that the next login asks for it.
    pub(crate) fn want(&self, challenge: &str, scopes: &str) -> std::io::Result<()> {
        self.change(|kept| {
            kept.challenge = Some(challenge.to_owned()).filter(|text| text.len() <= MAX_CHALLENGE);
            for scope in scopes.split_whitespace() {
                let is_new = !kept.wanted.iter().any(|known| known == scope);
                if is_new && scope.len() <= MAX_SCOPE && kept.wanted.len() < MAX_SCOPES {
                    kept.wanted.push(scope.to_owned());
                }
            }
        })
    }

    fn remove(&self) -> std::io::Result<()> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn make_directory(&self) -> std::io::Result<&std::path::Path> {
        let none = || std::io::Error::other("no directory for tokens");
        let directory = self.file.parent().ok_or_else(none)?;
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(directory)?;
        Ok(directory)
    }

    /// Held while a token is refreshed: a refresh token may be used once only, and other processes
    /// have the same.
    async fn lock(&self) -> std::io::Result<File> {
        self.make_directory()?;
        let mut options = File::options();
        options.create(true).append(true).mode(0o600);
        let file = options.open(self.file.with_extension("lock"))?;
        let deadline = tokio::time::Instant::now() + LOCK_WAIT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if tokio::time::Instant::now() > deadline => {
                    return Err(std::io::Error::other("another process is refreshing it"));
                }
                Err(TryLockError::WouldBlock) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}

fn failed(error: &std::io::Error) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl CredentialStore for ServerTokens {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.read().and_then(|kept| kept.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.change(|kept| kept.credentials = Some(credentials))
            .map_err(|error| failed(&error))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.remove().map_err(|error| failed(&error))
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let file = self.lock().await.map_err(|error| failed(&error))?;
        Ok(Some(CredentialRefreshGuard::new(file)))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;

    fn credentials(token: &str) -> StoredCredentials {
        let value = json!({
            "client_id": "c",
            "token_response": {"access_token": token, "token_type": "bearer", "expires_in": 3600},
            "granted_scopes": ["read"], "token_received_at": 1, "issuer": null,
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn tokens_are_for_the_user_and_one_address_alone() {
        let dir = tempfile::tempdir().unwrap();
        let store = McpTokenStore::new(dir.path().join("tokens"));
        let here: Url = "https://a.example/mcp".parse().unwrap();
        let there: Url = "https://b.example/mcp".parse().unwrap();
        let tokens = store.of(&here);
        tokens
            .change(|kept| kept.credentials = Some(credentials("t1")))
            .unwrap();
        let mode =
            |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&tokens.file), 0o600);
        assert_eq!(mode(&dir.path().join("tokens")), 0o700);
        let kept = tokens.read().unwrap();
        assert_eq!(kept.access_token().as_deref(), Some("t1"));
        assert!(!kept.is_fresh(), "it was issued in 1970");
        assert!(store.of(&there).read().is_none());
        // A file that was copied to the name of another address is not taken.
        fs::copy(&tokens.file, &store.of(&there).file).unwrap();
        assert!(store.of(&there).read().is_none());
        assert!(store.forget(&here).unwrap());
        assert!(!store.forget(&here).unwrap());
        assert!(tokens.read().is_none());
    }

    #[test]
    fn a_server_cannot_fill_the_file_with_scopes() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = McpTokenStore::new(dir.path().to_owned()).of(&"https://a/".parse().unwrap());
        let many: Vec<String> = (0..1_000).map(|number| format!("s{number}")).collect();
        tokens.want("Bearer", &many.join(" ")).unwrap();
        tokens.want("Bearer", &"x".repeat(1_000)).unwrap();
        assert_eq!(tokens.read().unwrap().wanted.len(), MAX_SCOPES);
    }
}
