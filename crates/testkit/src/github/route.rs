//! Which endpoint a request is for, and whether who asks may.
//!
//! A request passes these gates, in this order, and the first that it fails answers: git over HTTP
//! is apart; the rate limit; a user agent and a known API version; a token that somebody has; a
//! body of JSON where one is needed; the repository, which a token without access does not see; the
//! endpoint, and the level that it needs. Every answer carries the headers of the rate limit, and
//! what was found unchanged (304) costs nothing of it.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde_json::Value;
use url::form_urlencoded;

use super::{
    answer::{Answer, Answered},
    apps, checks, commits, conversation, data, graphql, merge, pulls, reviews,
    room::Room,
    shapes, smart_http,
    state::{Level, State, TokenKind, User},
};
use crate::http::{Headers, Request};

/// A request, taken apart.
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) raw_query: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: Headers,
    pub(super) body: Bytes,
    /// The body; null if it is not JSON.
    pub(super) json: Value,
    host: String,
}

impl Asked {
    pub(super) fn read(request: &Request, host: &str) -> Self {
        let (path, raw_query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        Self {
            method: request.method.clone(),
            path: path.to_owned(),
            raw_query: raw_query.to_owned(),
            query: form_urlencoded::parse(raw_query.as_bytes())
                .into_owned()
                .collect(),
            headers: request.headers.clone(),
            body: request.body.clone(),
            json: serde_json::from_slice(&request.body).unwrap_or_default(),
            host: host.to_owned(),
        }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    pub(super) fn query(&self, name: &str) -> Option<&str> {
        let pair = self.query.iter().find(|(key, _)| key == name);
        pair.map(|(_, value)| value.as_str())
    }

    /// Whether the `Accept` header contains this.
    pub(super) fn accepts(&self, form: &str) -> bool {
        self.header("accept")
            .is_some_and(|accept| accept.contains(form))
    }

    /// A text of the body that must be there.
    pub(super) fn text(&self, name: &str) -> Result<&str, Answer> {
        let missing = || {
            Answer::error(
                422,
                &format!("Invalid request.\n\n\"{name}\" wasn't supplied."),
            )
        };
        self.json[name].as_str().ok_or_else(missing)
    }

    /// This address with another page.
    pub(super) fn url_with_page(&self, page: usize) -> String {
        let others = self.query.iter().filter(|(name, _)| name != "page");
        let mut query = form_urlencoded::Serializer::new(String::new());
        query
            .extend_pairs(others)
            .append_pair("page", &page.to_string());
        format!("{}{}?{}", self.host, self.path, query.finish())
    }

    /// `Bearer` and `token` are both taken.
    pub(super) fn token(&self) -> Option<&str> {
        let (scheme, token) = self.header("authorization")?.split_once(' ')?;
        matches!(scheme, "Bearer" | "token").then_some(token)
    }

    /// The password of basic authentication.
    pub(super) fn basic_password(&self) -> Option<String> {
        let encoded = self.header("authorization")?.strip_prefix("Basic ")?;
        let pair = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
        pair.split_once(':')
            .map(|(_, password)| password.to_owned())
    }

    /// The parts of the path below the API, decoded.
    pub(super) fn parts(&self, api_path: &str) -> Option<Vec<String>> {
        let below = self.path.strip_prefix(api_path)?.strip_prefix('/')?;
        let decode = |part: &str| {
            // A plus is a plus in a path.
            let part = part.replace('+', "%2B");
            let mut pairs = form_urlencoded::parse(part.as_bytes());
            pairs
                .next()
                .map(|(name, _)| name.into_owned())
                .unwrap_or_default()
        };
        Some(below.split('/').map(decode).collect())
    }
}

/// What a handler is given: the repository, its state, the request and who sent it.
pub(super) struct HandlerContext<'a> {
    pub(super) room: &'a Room,
    pub(super) state: &'a mut State,
    pub(super) asked: &'a Asked,
    /// As it is at the time of the request.
    pub(super) who: User,
}

impl HandlerContext<'_> {
    /// Refused below this level. `permissions` goes into the header that tells a client what its
    /// token lacks.
    pub(super) fn needs(&self, level: Level, permissions: &str) -> Result<(), Answer> {
        if self.who.level >= level {
            return Ok(());
        }
        let refused = Answer::error(403, "Resource not accessible by personal access token");
        Err(refused.header("X-Accepted-GitHub-Permissions", permissions))
    }
}

/// Git failed where it should not.
pub(super) fn broken(error: impl std::fmt::Display) -> Answer {
    Answer::error(500, &format!("the fake cannot do it: {error}"))
}

pub(super) fn not_found() -> Answer {
    Answer::error(404, "Not Found")
}

/// Holds the state for the whole request.
pub(super) fn answer(room: &Room, asked: &Asked) -> Answer {
    if let Some(answer) = smart_http::answer(room, asked) {
        return answer;
    }
    if let Some(answer) = conversation::attachment(room, asked) {
        return answer;
    }
    let mut state = room.state.lock();
    state.limit.renew();
    let mut answer = if state.limit.left == 0 {
        Answer::error(403, "API rate limit exceeded for user ID 1.")
    } else {
        admitted(room, &mut state, asked).unwrap_or_else(|error| error)
    };
    if asked.method == "GET" && answer.status == 200 {
        answer = answer.tagged(asked);
    }
    // What has not changed is free.
    if answer.status != 304 {
        state.limit.left = state.limit.left.saturating_sub(1);
    }
    let resource = if asked.path.ends_with("/search/code") {
        "code_search"
    } else {
        "core"
    };
    let limit = &state.limit;
    answer
        .header("X-RateLimit-Limit", limit.limit.to_string())
        .header("X-RateLimit-Remaining", limit.left.to_string())
        .header(
            "X-RateLimit-Used",
            (limit.limit - limit.left.min(limit.limit)).to_string(),
        )
        .header("X-RateLimit-Reset", limit.reset.as_second().to_string())
        .header("X-RateLimit-Resource", resource)
}

/// Everything after the rate limit. An error is an answer like any other.
fn admitted(room: &Room, state: &mut State, asked: &Asked) -> Answered {
    if asked.header("user-agent").is_none() {
        return Err(Answer::error(
            403,
            "Request forbidden by administrative rules.",
        ));
    }
    if asked
        .header("x-github-api-version")
        .is_some_and(|version| version != "2022-11-28")
    {
        return Err(Answer::error(
            400,
            "The requested API version is not supported.",
        ));
    }
    if let Some(answer) = apps::answer(state, asked, &room.api_path) {
        return answer;
    }
    let who = match asked.token() {
        None => return Err(Answer::error(401, "Requires authentication")),
        Some(token) => state.users.iter().find(|user| user.token == token).cloned(),
    };
    let Some(who) = who else {
        return Err(Answer::error(401, "Bad credentials"));
    };
    let has_json = matches!(asked.json, Value::Object(_));
    if matches!(asked.method.as_str(), "POST" | "PATCH" | "PUT") && !has_json {
        return Err(Answer::error(400, "Problems parsing JSON"));
    }
    let mut context = HandlerContext {
        room,
        state,
        asked,
        who,
    };
    if asked.path == graphql_path(&room.api_path) {
        return graphql::answer(&mut context);
    }
    let parts = asked.parts(&room.api_path).ok_or_else(not_found)?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match (asked.method.as_str(), &parts[..]) {
        ("GET", ["user"]) if context.who.kind == TokenKind::App => {
            Err(Answer::error(403, "Resource not accessible by integration"))
        }
        ("GET", ["user"]) => Ok(Answer::json(200, &shapes::user(&context.who.login))),
        ("GET", ["search", "code"]) => commits::search(&context),
        (_, ["repos", owner, name, rest @ ..])
            if (*owner, *name) == (room.owner.as_str(), room.name.as_str())
                && context.who.level > Level::None =>
        {
            dispatch(&mut context, rest)
        }
        (method, ["repos", _, name, ..]) if context.state.former_name.as_deref() == Some(*name) => {
            let status = if method == "GET" { 301 } else { 307 };
            let moved = Answer::error(status, "Moved Permanently");
            Ok(moved.header("Location", moved_url(room, asked, name)))
        }
        _ => Err(not_found()),
    }
}

fn moved_url(room: &Room, asked: &Asked, former: &str) -> String {
    let path = asked
        .path
        .replacen(&format!("/{former}"), &format!("/{}", room.name), 1);
    format!("{}{path}?{}", room.host, asked.raw_query)
}

/// As on the two kinds of hosts.
fn graphql_path(api_path: &str) -> String {
    format!(
        "{}/graphql",
        api_path.strip_suffix("/v3").unwrap_or(api_path)
    )
}

/// Endpoints below `/repos/OWNER/NAME`. Open pull requests follow their branches before they are
/// looked at.
fn dispatch(context: &mut HandlerContext<'_>, parts: &[&str]) -> Answered {
    match (context.asked.method.as_str(), parts) {
        ("GET", []) => Ok(Answer::json(
            200,
            &shapes::repo(context.room, context.state, context.who.level),
        )),
        ("GET", ["git", "ref", "heads", branch @ ..]) => data::get_ref(context, &branch.join("/")),
        ("GET", ["git", "commits", sha]) => data::get_commit(context, sha),
        ("GET", ["git", "trees", sha]) => data::get_tree(context, sha),
        ("GET", ["git", "blobs", sha]) => data::get_blob(context, sha),
        ("POST", ["git", "blobs"]) => data::post_blob(context),
        ("POST", ["git", "trees"]) => data::post_tree(context),
        ("POST", ["git", "commits"]) => data::post_commit(context),
        ("POST", ["git", "refs"]) => data::post_ref(context),
        ("PATCH", ["git", "refs", "heads", branch @ ..]) => {
            data::patch_ref(context, &branch.join("/"))
        }
        ("DELETE", ["git", "refs", "heads", branch @ ..]) => {
            data::delete_ref(context, &branch.join("/"))
        }
        ("GET", ["commits"]) => commits::list(context),
        ("GET", ["commits", sha, "check-runs"]) => checks::runs(context, sha),
        ("GET", ["commits", sha, "status"]) => checks::combined(context, sha),
        ("GET", ["collaborators", login, "permission"]) => checks::permission(context, login),
        ("GET", ["pulls"]) => pulls::list(context),
        ("POST", ["pulls"]) => pulls::open(context),
        (_, ["pulls", number, rest @ ..]) => {
            let number = number.parse().map_err(|_| not_found())?;
            pulls::refresh(context, number)?;
            of_pull(context, number, rest)
        }
        ("GET", ["collaborators", login]) => checks::collaborator(context, login),
        ("POST", ["check-runs"]) => checks::post_run(context),
        ("POST", ["statuses", sha]) => checks::post_status(context, sha),
        (_, ["issues", rest @ ..]) => conversation::answer(context, rest),
        _ => Err(not_found()),
    }
}

fn of_pull(context: &mut HandlerContext<'_>, number: u64, parts: &[&str]) -> Answered {
    match (context.asked.method.as_str(), parts) {
        ("GET", []) => pulls::get(context, number),
        ("PATCH", []) => pulls::change(context, number),
        ("GET", ["files"]) => pulls::files(context, number),
        ("GET", ["reviews"]) => reviews::list(context, number),
        ("POST", ["reviews"]) => reviews::post(context, number),
        ("GET", ["reviews", id]) => reviews::get(context, id),
        ("GET", ["reviews", id, "comments"]) => reviews::comments_of(context, id),
        ("GET", ["comments"]) => reviews::line_comments(context, number),
        ("PUT", ["merge"]) => merge::merge(context, number),
        _ => Err(not_found()),
    }
}
