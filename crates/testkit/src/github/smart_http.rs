//! Cloning and fetching, through `git http-backend`.
//!
//! The client is a real git that talks to a real git; only authentication is ours, with the token
//! as the password of any user. Without one the answer is 401, so that git asks for it; a token
//! without access gets 404, and one that may only read gets 403 for a push.

use super::{
    Visibility,
    answer::{Answer, Answered},
    git::{Git, feed},
    room::{OtherRepository, Room},
    route::Asked,
    state::Level,
};

/// Answers `/<owner>/<name>.git/…`; `None` if the path is another.
pub(super) fn answer(room: &Room, asked: &Asked) -> Option<Answer> {
    let prefix = format!("/{}/{}.git/", room.owner, room.name);
    if let Some(rest) = asked.path.strip_prefix(&prefix) {
        return Some(serve(room, asked, rest).unwrap_or_else(|error| error));
    }
    let others = room.others.lock();
    others.iter().find_map(|other| {
        let prefix = format!("/{}.git/", other.name);
        let rest = asked.path.strip_prefix(&prefix)?;
        Some(serve_other(room, other, asked, rest))
    })
}

/// A token that nobody has gets nothing, not even what is public.
fn serve_other(room: &Room, other: &OtherRepository, asked: &Asked, rest: &str) -> Answer {
    let token = asked.basic_password();
    let state = room.state.lock();
    let is_known = |token: &String| state.users.iter().any(|user| user.token == *token);
    let is_let_in = match &token {
        Some(token) => is_known(token),
        None => other.visibility == Visibility::Public,
    };
    if !is_let_in {
        let refused = Answer::bytes(401, "text/plain", b"Authentication required".to_vec());
        return refused.header("WWW-Authenticate", "Basic realm=\"GitHub\"");
    }
    let answer = run_backend(&other.git, asked, rest);
    answer.unwrap_or_else(|error| Answer::error(500, &error.to_string()))
}

fn serve(room: &Room, asked: &Asked, rest: &str) -> Answered {
    let pushes =
        rest.contains("receive-pack") || asked.query("service") == Some("git-receive-pack");
    let needed = if pushes { Level::Write } else { Level::Read };
    let token = asked.basic_password();
    let state = room.state.lock();
    let user = state
        .users
        .iter()
        .find(|user| Some(&user.token) == token.as_ref());
    match user {
        None => {
            let refused = Answer::bytes(401, "text/plain", b"Authentication required".to_vec());
            return Err(refused.header("WWW-Authenticate", "Basic realm=\"GitHub\""));
        }
        Some(user) if user.level < Level::Read => return Err(Answer::error(404, "Not Found")),
        Some(user) if user.level < needed => {
            return Err(Answer::error(
                403,
                "Write access to repository not granted.",
            ));
        }
        Some(_) => {}
    }
    run_backend(&room.git, asked, rest).map_err(|error| Answer::error(500, &error.to_string()))
}

/// The state stays locked meanwhile, so a push does not fall into the middle of another request.
fn run_backend(git: &Git, asked: &Asked, rest: &str) -> std::io::Result<Answer> {
    let parent = git.dir.parent().unwrap_or(&git.dir);
    let folder = git.dir.file_name().unwrap_or_default().to_string_lossy();
    let header = |name: &str| asked.header(name).unwrap_or_default().to_owned();
    let mut command = git.command();
    command
        .args(["-c", "http.receivepack=true", "http-backend"])
        .env_remove("GIT_DIR")
        .env("GIT_PROJECT_ROOT", parent)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", format!("/{folder}/{rest}"))
        .env("REQUEST_METHOD", &asked.method)
        .env("QUERY_STRING", &asked.raw_query)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", asked.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("REMOTE_USER", "tester")
        .env("REMOTE_ADDR", "127.0.0.1");
    let output = feed(&mut command, &asked.body)?.stdout;
    Ok(read_cgi(&output))
}

/// Head, empty line, body; the status is a header.
fn read_cgi(output: &[u8]) -> Answer {
    let end = output.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(end) = end else {
        return Answer::error(500, "git http-backend wrote no head");
    };
    let mut answer = Answer::empty(200);
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        match line.split_once(": ") {
            Some(("Status", value)) => {
                let code = value.split(' ').next().and_then(|code| code.parse().ok());
                answer.status = code.unwrap_or(500);
            }
            Some((name, value)) => answer = answer.header(name, value),
            None => {}
        }
    }
    answer.body = output[end + 4..].to_vec();
    answer
}
