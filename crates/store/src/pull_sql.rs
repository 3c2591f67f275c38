//! The SQL of pull requests, in the dialect that SQLite and PostgreSQL share.
//!
//! A pull request is found by repository and number, a check by repository, commit and name. Both
//! are texts of the caller's; no table lists repositories. A test looks at the plan of each
//! statement (`sqlite/plans/pulls.rs`).

macro_rules! select_pull {
    ($which:literal) => {
        concat!(
            "SELECT number, title, body, state, draft, head, head_commit, base, author, \
             created_at, updated_at, merge_commit FROM pulls ",
            $which
        )
    };
}

macro_rules! select_review {
    ($which:literal) => {
        concat!(
            "SELECT place, author, verdict, body, comments, commit_id, at FROM pull_reviews ",
            $which
        )
    };
}

pub(crate) const PULL: &str = select_pull!("WHERE repository = $1 AND number = $2");

pub(crate) const PULLS: &str = select_pull!("WHERE repository = $1 ORDER BY number DESC");

pub(crate) const PULLS_IN_STATE: &str =
    select_pull!("WHERE repository = $1 AND state = $2 ORDER BY number DESC");

/// At most one row: a unique index covers the open ones by head.
pub(crate) const OPEN_PULL_OF_HEAD: &str =
    select_pull!("WHERE repository = $1 AND head = $2 AND state = 'open'");

/// The number after the repository's last, and after those that are taken otherwise ($10).
pub(crate) const INSERT_PULL: &str = "INSERT INTO pulls (repository, number, title, body, state, \
     draft, head, head_commit, base, author, created_at, updated_at) \
     SELECT $1, CASE WHEN COALESCE(MAX(number), 0) > $10 THEN MAX(number) ELSE $10 END + 1, \
     $2, $3, 'open', $4, $5, $6, $7, $8, $9, $9 \
     FROM pulls WHERE repository = $1 RETURNING number";

/// Writes all fields; the caller has read those that stay.
pub(crate) const CHANGE_PULL: &str = "UPDATE pulls SET title = $3, body = $4, state = $5, \
     draft = $6, head_commit = $7, merge_commit = $8, updated_at = $9 \
     WHERE repository = $1 AND number = $2";

/// Nothing where the key is taken.
pub(crate) const INSERT_REVIEW: &str = "INSERT INTO pull_reviews (repository, number, place, key, \
     author, verdict, body, comments, commit_id, at) \
     SELECT $1, $2, COALESCE(MAX(place), 0) + 1, $3, $4, $5, $6, $7, $8, $9 \
     FROM pull_reviews WHERE repository = $1 AND number = $2 \
     ON CONFLICT (repository, number, key) DO NOTHING";

pub(crate) const REVIEW_BY_KEY: &str =
    select_review!("WHERE repository = $1 AND number = $2 AND key = $3");

pub(crate) const REVIEWS: &str =
    select_review!("WHERE repository = $1 AND number = $2 ORDER BY place");

/// What is recorded again as it was keeps its time.
pub(crate) const SET_CHECK: &str = "INSERT INTO commit_checks (repository, commit_id, name, state, \
     summary, url, at) VALUES ($1, $2, $3, $4, $5, $6, $7) \
     ON CONFLICT (repository, commit_id, name) DO UPDATE SET \
     at = CASE WHEN commit_checks.state = excluded.state THEN commit_checks.at \
     ELSE excluded.at END, \
     state = excluded.state, summary = excluded.summary, url = excluded.url";

pub(crate) const CHECKS: &str = "SELECT name, state, summary, url, at FROM commit_checks \
     WHERE repository = $1 AND commit_id = $2 ORDER BY name";
