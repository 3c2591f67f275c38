//! Server configurations: `mcpServers` of `.mcp.json` and of settings, checked and expanded.
//!
//! ```text
//! {"mcpServers": {
//!   "files": {"command": "npx", "args": ["-y", "pkg"], "env": {"KEY": "${TOKEN}"}},
//!   "web": {"type": "http", "url": "https://example.org/mcp",
//!           "headers": {"Authorization": "Bearer ${TOKEN:-none}"}}
//! }}
//! ```
//!
//! A file may also be the map of servers itself, as in many plugins: `{"files": {"command": …}}`.
//!
//! `type` is `stdio`, `http` or `sse` (the HTTP transport of 2024). It may be left out where only one
//! of `command` and `url` is given; an address is `http` then. An address may have `oauth`, for
//! servers that want a login and know its client already.
//! A bad entry is reported by file, line and name, and the others are used; only a file that is not
//! JSON fails as a whole. Variables are looked up through the caller: nothing here reads the
//! environment.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use codespar_files::OpenError;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use url::Url;

use crate::{
    expand::{Lookup, expand},
    naming::server_word,
    oauth::OAuthSettings,
};

/// A configuration is small; anything larger is something else.
pub const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Who wrote a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The user, in a file named on the command line.
    CommandLine,
    /// The user, in the settings of the state directory.
    User,
    /// Whoever wrote the repository. Not started before the user has approved it.
    Project,
}

impl Origin {
    /// For people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CommandLine => "command line",
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A program that talks over its standard streams.
    Program {
        /// By path or by a name on the `PATH`.
        command: String,
        arguments: Vec<String>,
        /// Variables besides the basic ones.
        env: BTreeMap<String, String>,
    },
    /// An address.
    Http {
        url: Url,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
        transport: HttpTransport,
        /// For a login.
        oauth: OAuthSettings,
    },
    /// In the program of the client that started us.
    Client,
}

/// How an address is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpTransport {
    /// Streamable HTTP.
    Streamable,
    /// The transport of 2024: one event stream, and an address for messages.
    LegacySse,
}

/// A server that can be connected to.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// What it is called.
    pub name: String,
    pub endpoint: Endpoint,
    pub origin: Origin,
    /// The file it stands in.
    pub path: PathBuf,
    /// As it was written, before variables were put in. What the user is shown and approves: it
    /// holds no secret that was put in.
    pub definition: Value,
    /// Variables of our environment that went into it.
    pub variables: Vec<String>,
}

/// What is wrong with a configuration, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct McpProblem {
    pub path: PathBuf,
    /// The line, if one is to blame.
    pub line: Option<usize>,
    /// What and why.
    pub message: String,
}

impl fmt::Display for McpProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path.display(), self.message),
            None => write!(f, "{}: {}", self.path.display(), self.message),
        }
    }
}

/// What a file holds: servers by name, and what was wrong with others.
#[derive(Debug, Default, PartialEq)]
pub struct ServerConfigs {
    /// Those that can be used.
    pub servers: Vec<ServerConfig>,
    /// The rest.
    pub problems: Vec<McpProblem>,
}

/// Entries stay raw, so that a bad one is reported by itself, with the line on which it begins.
type RawEntries<'a> = BTreeMap<String, &'a RawValue>;

#[derive(Deserialize)]
struct File<'a> {
    #[serde(rename = "mcpServers", borrow)]
    servers: Option<RawEntries<'a>>,
}

/// Where servers are in a file that has other keys, too.
const SERVERS_KEY: &str = "mcpServers";
/// What tells a server from other objects.
const SERVER_KEYS: [&str; 3] = ["command", "url", "type"];

/// Keys of Claude Code without a meaning here: they change nothing that a server does.
const KNOWN: [&str; 3] = ["alwaysLoad", "timeout", "tools"];

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    oauth: OAuthEntry,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OAuthEntry {
    client_id: Option<String>,
    client_secret: Option<String>,
    client_metadata_url: Option<String>,
    callback_port: Option<u16>,
    #[serde(default)]
    scopes: Vec<String>,
}

impl ServerConfigs {
    /// Reads a file like `.mcp.json`; `None` if there is none. An error is a file that cannot be
    /// read or is not JSON; bad entries are among the problems.
    pub fn read(
        path: &Path,
        origin: Origin,
        variables: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, McpProblem> {
        match codespar_files::read_text(path, MAX_CONFIG_BYTES) {
            Ok(text) => Self::parse(&text, path, origin, variables).map(Some),
            Err(OpenError::Missing) => Ok(None),
            Err(error) => Err(McpProblem {
                path: path.to_path_buf(),
                line: None,
                message: error.to_string(),
            }),
        }
    }

    /// Takes the text of a file like `.mcp.json`. Other keys beside `mcpServers` are ignored; of a
    /// file without it each object is to be a server.
    pub fn parse(
        text: &str,
        path: &Path,
        origin: Origin,
        variables: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, McpProblem> {
        let text = text.trim_start_matches('\u{feff}');
        let wrong = |error: serde_json::Error| McpProblem {
            path: path.to_path_buf(),
            line: Some(error.line()),
            message: message_of(&error),
        };
        let line_of = |raw: &RawValue| {
            let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
            let before = text.get(..start);
            before.map(|before| before.lines().count().max(1))
        };
        let file: File<'_> = serde_json::from_str(text).map_err(wrong)?;
        let mut found = Self::default();
        let is_flat = file.servers.is_none();
        let entries = match file.servers {
            Some(entries) => entries,
            None => serde_json::from_str::<RawEntries<'_>>(text).map_err(wrong)?,
        };
        for (name, raw) in entries {
            if !is_flat || is_server(raw) {
                found.add(&name, raw, (path, line_of(raw)), origin, &variables);
            } else if raw.get().starts_with('{') {
                found.problems.push(McpProblem {
                    path: path.to_path_buf(),
                    line: line_of(raw),
                    message: format!(
                        "there is no `{SERVERS_KEY}`, and `{name}` is no server: it has neither \
                         `command` nor `url`"
                    ),
                });
            }
        }
        Ok(found)
    }

    /// Takes the entries of the key `mcpServers` of a settings file. Without lines: the settings
    /// were parsed before.
    pub fn of_settings(
        entries: &BTreeMap<String, Box<RawValue>>,
        path: &Path,
        variables: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let mut found = Self::default();
        for (name, raw) in entries {
            found.add(name, raw, (path, None), Origin::User, &variables);
        }
        found
    }

    /// An unknown key is reported, and the server is used all the same.
    fn add(
        &mut self,
        name: &str,
        raw: &RawValue,
        (path, line): (&Path, Option<usize>),
        origin: Origin,
        variables: &dyn Lookup,
    ) {
        let mut complain = |message: String| {
            self.problems.push(McpProblem {
                path: path.to_path_buf(),
                line,
                message: format!("mcpServers.{name}: {message}"),
            });
        };
        let entry: Entry = match serde_json::from_str(raw.get()) {
            Ok(entry) => entry,
            Err(error) => return complain(message_of(&error)),
        };
        // A client describes its own servers in more words than we have a use for.
        let is_known =
            |key: &&String| entry.kind.as_deref() == Some("sdk") || KNOWN.contains(&key.as_str());
        for key in entry.other.keys().filter(|key| !is_known(key)) {
            complain(format!(
                "`{key}` is not a key of a server; it is left alone"
            ));
        }
        let mut taken = Vec::new();
        match endpoint(name, &entry, origin, variables, &mut taken) {
            Ok(endpoint) => self.servers.push(ServerConfig {
                name: name.to_owned(),
                endpoint,
                origin,
                path: path.to_path_buf(),
                definition: serde_json::from_str(raw.get()).unwrap_or_default(),
                variables: taken,
            }),
            Err(message) => complain(message),
        }
    }
}

/// Whether an entry of a file without `mcpServers` is a server.
fn is_server(raw: &RawValue) -> bool {
    let fields = serde_json::from_str::<Map<String, Value>>(raw.get());
    fields.is_ok_and(|fields| SERVER_KEYS.iter().any(|key| fields.contains_key(*key)))
}

/// The error without the place, which is told apart.
fn message_of(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message
        .split(" at line ")
        .next()
        .unwrap_or(&message)
        .to_owned()
}

/// The error is a text for the problem. `taken` collects the variables that were put in.
fn endpoint(
    name: &str,
    entry: &Entry,
    origin: Origin,
    variables: &dyn Lookup,
    taken: &mut Vec<String>,
) -> Result<Endpoint, String> {
    if server_word(name).is_empty() {
        return Err("the name needs a letter or a digit".to_owned());
    }
    let kind = match (entry.kind.as_deref(), &entry.command, &entry.url) {
        (Some(kind), ..) => kind,
        (None, Some(_), None) => "stdio",
        (None, None, Some(_)) => "http",
        (None, Some(_), Some(_)) => {
            return Err("it has both `command` and `url`; say which by `type`".to_owned());
        }
        (None, None, None) => {
            return Err("it needs `command` (a program) or `url` (streamable HTTP)".to_owned());
        }
    };
    let mut put_in = |text: &str| expand(text, variables, taken);
    match kind {
        "stdio" => {
            let command = entry.command.as_deref().unwrap_or_default();
            if command.is_empty() {
                return Err("a stdio server needs `command`".to_owned());
            }
            Ok(Endpoint::Program {
                command: put_in(command)?,
                arguments: entry
                    .args
                    .iter()
                    .map(|arg| put_in(arg))
                    .collect::<Result<_, _>>()?,
                env: expanded(&entry.env, &mut put_in)?,
            })
        }
        "http" | "streamable-http" => address(entry, HttpTransport::Streamable, &mut put_in),
        "sse" => address(entry, HttpTransport::LegacySse, &mut put_in),
        "sdk" if origin == Origin::CommandLine => Ok(Endpoint::Client),
        "sdk" => Err("only the program that starts us can have such a server".to_owned()),
        other => Err(format!(
            "`type` is `{other}`; there are stdio, http and sse"
        )),
    }
}

fn address(
    entry: &Entry,
    transport: HttpTransport,
    put_in: &mut impl FnMut(&str) -> Result<String, String>,
) -> Result<Endpoint, String> {
    let url = entry.url.as_deref().ok_or("an http server needs `url`")?;
    let url = put_in(url)?;
    let url: Url = url.parse().map_err(|error| format!("`url`: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`url`: {} is not http or https", url.scheme()));
    }
    let OAuthEntry {
        client_id,
        client_secret,
        client_metadata_url,
        callback_port,
        scopes,
    } = &entry.oauth;
    let mut optional = |text: &Option<String>| text.as_deref().map(&mut *put_in).transpose();
    let oauth = OAuthSettings {
        client_id: optional(client_id)?,
        client_secret: optional(client_secret)?,
        client_metadata_url: optional(client_metadata_url)?,
        callback_port: *callback_port,
        scopes: scopes.clone(),
    };
    if oauth.client_secret.is_some() && oauth.client_id.is_none() {
        return Err("`oauth.clientSecret` needs `oauth.clientId`".to_owned());
    }
    Ok(Endpoint::Http {
        url,
        headers: expanded(&entry.headers, put_in)?,
        transport,
        oauth,
    })
}

fn expanded(
    map: &BTreeMap<String, String>,
    put_in: &mut impl FnMut(&str) -> Result<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    map.iter()
        .map(|(key, value)| Ok((key.clone(), put_in(value)?)))
        .collect()
}

impl ServerConfig {
    /// Whether it has an address and no token of its own.
    pub(crate) fn may_log_in(&self) -> bool {
        let is_token = |name: &String| name.eq_ignore_ascii_case("authorization");
        match &self.endpoint {
            Endpoint::Http { headers, .. } => !headers.keys().any(is_token),
            Endpoint::Program { .. } | Endpoint::Client => false,
        }
    }

    /// One line that says what would be started or connected to, as it was written.
    pub fn summary(&self) -> String {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let args = self.definition["args"].as_array();
        match &self.endpoint {
            Endpoint::Program { .. } => {
                let parts = std::iter::once(text(&self.definition["command"]))
                    .chain(args.into_iter().flatten().map(text));
                parts.collect::<Vec<_>>().join(" ")
            }
            Endpoint::Http { .. } => text(&self.definition["url"]),
            Endpoint::Client => "in the program of the client".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str) -> Result<ServerConfigs, McpProblem> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".mcp.json");
        fs::write(&path, text).unwrap();
        let variables = |name: &str| (name == "TOKEN").then(|| "t0k".to_owned());
        let found = ServerConfigs::read(&path, Origin::Project, variables);
        found.map(Option::unwrap)
    }

    fn problems(found: &ServerConfigs) -> Vec<(Option<usize>, &str)> {
        let problems = found.problems.iter();
        problems.map(|p| (p.line, p.message.as_str())).collect()
    }

    #[test]
    fn programs_and_addresses_are_read_with_their_variables() {
        let found = read(
            r#"{"mcpServers": {
                "files": {"command": "npx", "args": ["-y", "${PKG:-files}"], "env": {"KEY": "${TOKEN}"}},
                "web": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
            }}"#,
        )
        .unwrap();
        assert_eq!(problems(&found), []);
        let ends: Vec<&Endpoint> = found
            .servers
            .iter()
            .map(|server| &server.endpoint)
            .collect();
        assert_eq!(
            ends,
            [
                &Endpoint::Program {
                    command: "npx".to_owned(),
                    arguments: vec!["-y".to_owned(), "files".to_owned()],
                    env: BTreeMap::from([("KEY".to_owned(), "t0k".to_owned())]),
                },
                &Endpoint::Http {
                    url: "https://example.org/mcp".parse().unwrap(),
                    headers: BTreeMap::from([(
                        "Authorization".to_owned(),
                        "Bearer t0k".to_owned()
                    )]),
                    transport: HttpTransport::Streamable,
                    oauth: OAuthSettings::default(),
                }
            ]
        );
        assert_eq!(found.servers[0].variables, ["TOKEN"]);
        assert_eq!(found.servers[0].summary(), "npx -y ${PKG:-files}");
    }

    #[test]
    fn a_bad_entry_is_named_with_its_line_and_the_others_are_used() {
        let found = read(
            "{\n\"mcpServers\": {\n\"a\": {\"command\": \"x\", \"env\": {\"K\": \"${NONE}\"}},\n\"b\": {},\n\"c\": {\"command\": \"x\", \"arg\": []},\n\"d\": {\"type\": \"ws\", \"url\": \"http://h\"},\n\"e\": {\"url\": \"ftp://h\"},\n\"f\": {\"command\": 5}\n}}",
        )
        .unwrap();
        assert_eq!(
            problems(&found),
            [
                (
                    Some(3),
                    "mcpServers.a: the variable NONE is not set; set it, or write ${NONE:-default}"
                ),
                (
                    Some(4),
                    "mcpServers.b: it needs `command` (a program) or `url` (streamable HTTP)"
                ),
                (
                    Some(5),
                    "mcpServers.c: `arg` is not a key of a server; it is left alone"
                ),
                (
                    Some(6),
                    "mcpServers.d: `type` is `ws`; there are stdio, http and sse"
                ),
                (Some(7), "mcpServers.e: `url`: ftp is not http or https"),
                (
                    Some(8),
                    "mcpServers.f: invalid type: integer `5`, expected a string"
                ),
            ]
        );
        let names: Vec<&str> = found.servers.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["c"]);
    }

    #[test]
    fn a_file_may_be_the_map_of_servers_itself() {
        let found = read(
            "{\n\"$schema\": \"x\",\n\"a\": {\"command\": \"x\"},\n\"b\": {\"command\": \"x\", \"env\": {\"K\": \"${NONE}\"}},\n\"c\": {\"args\": []}\n}",
        )
        .unwrap();
        let names: Vec<&str> = found.servers.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["a"]);
        assert_eq!(
            problems(&found),
            [
                (
                    Some(4),
                    "mcpServers.b: the variable NONE is not set; set it, or write ${NONE:-default}"
                ),
                (
                    Some(5),
                    "there is no `mcpServers`, and `c` is no server: it has neither `command` nor `url`"
                ),
            ]
        );
        let both = read(r#"{"mcpServers": {}, "a": {"command": "x"}}"#).unwrap();
        assert_eq!(both, ServerConfigs::default());
    }

    #[test]
    fn an_address_has_the_transport_and_the_client_that_its_entry_names() {
        let found = read(
            r#"{"mcpServers": {
                "old": {"type": "sse", "url": "https://example.org/sse"},
                "own": {"url": "https://example.org/mcp", "oauth": {"clientId": "c", "clientSecret": "${TOKEN}", "callbackPort": 7777, "scopes": ["read"]}},
                "bad": {"url": "https://example.org/mcp", "oauth": {"clientSecret": "s"}},
                "odd": {"url": "https://example.org/mcp", "oauth": {"client": "s"}}
            }}"#,
        )
        .unwrap();
        let texts: Vec<&str> = found.problems.iter().map(|p| p.message.as_str()).collect();
        assert_eq!(
            texts[0],
            "mcpServers.bad: `oauth.clientSecret` needs `oauth.clientId`"
        );
        assert!(
            texts[1].starts_with("mcpServers.odd: unknown field `client`"),
            "{texts:?}"
        );
        let Endpoint::Http { transport, .. } = &found.servers[0].endpoint else {
            panic!("it has an address");
        };
        assert_eq!(*transport, HttpTransport::LegacySse);
        let Endpoint::Http { oauth, .. } = &found.servers[1].endpoint else {
            panic!("it has an address");
        };
        let expected = OAuthSettings {
            client_id: Some("c".to_owned()),
            client_secret: Some("t0k".to_owned()),
            callback_port: Some(7777),
            scopes: vec!["read".to_owned()],
            ..OAuthSettings::default()
        };
        assert_eq!(*oauth, expected);
        assert_eq!(found.servers[1].variables, ["TOKEN"]);
    }

    #[test]
    fn a_file_that_is_no_json_is_an_error_with_its_line() {
        let problem = read("{\n\"mcpServers\": {\n").unwrap_err();
        assert_eq!(
            (problem.line, problem.message.as_str()),
            (Some(3), "EOF while parsing an object")
        );
        let nowhere = Path::new("/nowhere/.mcp.json");
        assert_eq!(
            ServerConfigs::read(nowhere, Origin::Project, |_| None),
            Ok(None)
        );
    }
}
