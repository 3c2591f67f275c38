//! All that we send, and all that the fake answers, against GitHub's published description.

use codespar_forge::{Draft, Forge, MergeOrder, NewReview, PullRequestChange};
use codespar_protocol::{
    Bytes, FileChange, FileMode, MergeStrategy, PullRequestState, ReviewComment, Verdict,
};
use codespar_testkit::github::RecordedRequest;
use serde_json::{Value, json};

use crate::{
    schema::{Description, Side},
    world::{World, new_commit, new_pull, path},
};

#[tokio::test]
#[ignore = "needs a package of npm; cargo xtask test installs and runs it where npm is"]
async fn what_we_send_and_what_the_fake_answers_is_as_github_describes_it() {
    let description = Description::installed().expect("cargo xtask test installs it, with npm");
    let world = World::new().await;
    use_everything(&world).await;
    let requests = world.github.requests();
    let problems: Vec<String> = requests
        .iter()
        .flat_map(|request| problems_of(&description, request))
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let mut kinds: Vec<String> = requests
        .iter()
        .filter_map(|request| kind_of(&description, request))
        .collect();
    kinds.sort();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "checks/list-for-ref",
            "git/create-blob",
            "git/create-commit",
            "git/create-ref",
            "git/create-tree",
            "git/delete-ref",
            "git/get-blob",
            "git/get-commit",
            "git/get-ref",
            "git/get-tree",
            "git/update-ref",
            "issues/list-comments",
            "pulls/create",
            "pulls/create-review",
            "pulls/get",
            "pulls/list",
            "pulls/list-files",
            "pulls/list-review-comments",
            "pulls/list-reviews",
            "pulls/merge",
            "pulls/update",
            "repos/check-collaborator",
            "repos/get",
            "repos/get-collaborator-permission-level",
            "repos/get-combined-status-for-ref",
            "repos/list-commits",
            "search/code",
            "users/get-authenticated",
        ],
        "every endpoint that we use is checked"
    );
}

fn kind_of(description: &Description, request: &RecordedRequest) -> Option<String> {
    let operation = description.operation(&request.method, &request.path)?;
    operation["operationId"].as_str().map(str::to_owned)
}

fn problems_of(description: &Description, request: &RecordedRequest) -> Vec<String> {
    // GraphQL has a description of its own.
    if request.path == "/graphql" {
        return Vec::new();
    }
    let name = format!("{} {}", request.method, request.path);
    let Some(operation) = description.operation(&request.method, &request.path) else {
        return vec![format!("{name}: there is no such endpoint")];
    };
    let mut problems = query_problems(description, operation, request);
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !request.body.is_null() {
        problems.extend(description.problems(body, &request.body, "body", Side::Request));
    } else if operation["requestBody"]["required"] == true {
        problems.push("there must be a body".to_owned());
    }
    let answer = description.resolve(&operation["responses"][request.status.to_string()]);
    // Nothing new and not allowed can come from everywhere.
    if answer.is_null() && !matches!(request.status, 304 | 403 | 404) {
        problems.push(format!("the answer cannot have status {}", request.status));
    }
    let schema = &answer["content"]["application/json"]["schema"];
    if !schema.is_null() && !request.answer.is_null() && request.status < 300 {
        problems.extend(description.problems(schema, &request.answer, "answer", Side::Answer));
    }
    problems
        .iter()
        .map(|problem| format!("{name}: {problem}"))
        .collect()
}

fn query_problems(
    description: &Description,
    operation: &Value,
    request: &RecordedRequest,
) -> Vec<String> {
    let parameters: Vec<&Value> = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|parameter| description.resolve(parameter))
        .filter(|parameter| parameter["in"] == "query")
        .collect();
    let mut problems = Vec::new();
    for (name, value) in &request.query {
        let Some(parameter) = parameters
            .iter()
            .find(|parameter| parameter["name"] == name.as_str())
        else {
            problems.push(format!("there is no query `{name}`"));
            continue;
        };
        let is_number = description.resolve(&parameter["schema"])["type"] == "integer";
        let value = match value.parse::<u64>() {
            Ok(number) if is_number => json!(number),
            _ => json!(value),
        };
        problems.extend(description.problems(&parameter["schema"], &value, name, Side::Request));
    }
    let given = |parameter: &&&Value| {
        request
            .query
            .iter()
            .any(|(name, _)| parameter["name"] == name.as_str())
    };
    for parameter in parameters
        .iter()
        .filter(|parameter| parameter["required"] == true)
    {
        if !given(&parameter) {
            problems.push(format!("the query {} is missing", parameter["name"]));
        }
    }
    problems
}

/// Each method of the forge, with all that it can send.
async fn use_everything(world: &World) {
    let forge = &world.forge;
    let main = world.main().await;
    forge.whoami().await.unwrap();
    forge.default_strategy().await.unwrap();
    forge.file(&main, &path("src/login.ts")).await.unwrap();
    forge.tree(&main).await.unwrap();
    forge.search(&["timeout".to_owned()], 3).await.unwrap();
    forge.permission("carol").await.unwrap();
    let mut new = new_commit("codespar/a", &main, "README.md", "x\n");
    new.changes.0.push(FileChange::Moved {
        from: path("run.sh"),
        to: path("bin/run.sh"),
        content: Bytes(b"x".to_vec()),
        mode: FileMode::Executable,
    });
    let first = forge.commit(&new).await.unwrap();
    assert_eq!(forge.commit(&new).await.unwrap(), first);
    let mut more = new_commit("codespar/a", &first, "README.md", "y\n");
    more.key = "more".to_owned();
    more.author = None;
    let head = forge.commit(&more).await.unwrap();
    forge
        .open_pull_request(&new_pull("codespar/a"))
        .await
        .unwrap();
    let change = PullRequestChange {
        title: Some("T".to_owned()),
        body: Some("B".to_owned()),
        state: Some(PullRequestState::Open),
        draft: Some(Draft::Draft),
    };
    forge.change_pull_request(1, &change).await.unwrap();
    let change = PullRequestChange {
        draft: Some(Draft::Ready),
        ..PullRequestChange::default()
    };
    forge.change_pull_request(1, &change).await.unwrap();
    forge.pull_requests(None).await.unwrap();
    let review = NewReview {
        commit: head.clone(),
        verdict: Verdict::Approve,
        body: "Good.\n<!-- codespar-key: r -->".to_owned(),
        comments: vec![
            ReviewComment {
                path: "README.md".to_owned(),
                line: 1,
                body: "ok".to_owned(),
            },
            ReviewComment {
                path: "none".to_owned(),
                line: 1,
                body: "hm".to_owned(),
            },
        ],
        key: "r".to_owned(),
    };
    world
        .forge_as("alice-token")
        .review(1, &review)
        .await
        .unwrap();
    world.github.set_check_run(&head.0, "unit", Some("success"));
    world.github.set_status(&head.0, "ci/lint", "success");
    world.github.comment(1, "carol", "hm");
    forge.checks(&head).await.unwrap();
    forge.activity(1).await.unwrap();
    forge.diff(1).await.unwrap();
    world.github.set_diff_limit(1);
    world.forge_as("bob-token").diff(1).await.unwrap();
    forge.mergeability(1).await.unwrap();
    let order = MergeOrder {
        strategy: MergeStrategy::Squash,
        expected_head: head,
        title: Some("Into main".to_owned()),
    };
    forge.merge(1, &order).await.unwrap();
    forge.delete_branch("codespar/a").await.unwrap();
}
