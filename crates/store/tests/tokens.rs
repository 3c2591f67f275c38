//! Tokens of the API and browsers that signed in, and what servers show of the rest.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "this is a test"
)]

#[macro_use]
mod backends;

use codespar_protocol::{
    AccessRole, Cost, EntryBody, Message, SessionId, SessionMode, StopReason, TokenId, Usage, Usd,
};
use codespar_store::{
    Database, NewBrowserSession, NewSession, NewToken, SecretHash, SessionPage, StoreError,
};
use jiff::{SignedDuration, Timestamp};

on_every_store!(
    a_token_is_found_by_its_hash_until_it_is_revoked,
    the_last_use_of_a_token_is_on_record,
    a_browser_acts_with_its_token_until_it_signs_out_expires_or_the_token_is_revoked,
    sessions_are_listed_by_project_in_pages,
    entries_come_in_pages,
    usage_is_summed_by_day_directory_and_model,
);

fn hash(text: &str) -> SecretHash {
    SecretHash(text.to_owned())
}

fn new_token(name: &str, role: AccessRole) -> NewToken {
    NewToken {
        name: name.to_owned(),
        role,
        hash: hash(name),
    }
}

async fn a_token_is_found_by_its_hash_until_it_is_revoked(store: &dyn Database) {
    let ci = store.create_token(new_token("ci", AccessRole::Write));
    let ci = ci.await.unwrap();
    let other = store.create_token(new_token("me", AccessRole::Admin));
    let other = other.await.unwrap();
    assert_eq!(
        store.token_by_hash(&hash("ci")).await.unwrap(),
        Some(ci.clone())
    );
    assert_eq!(store.token_by_hash(&hash("x")).await.unwrap(), None);

    let revoked = store.revoke_token(&ci.id).await.unwrap();

    assert!(revoked.revoked_at.is_some());
    assert_eq!(store.token_by_hash(&hash("ci")).await.unwrap(), None);
    // Again changes nothing.
    assert_eq!(store.revoke_token(&ci.id).await.unwrap(), revoked);
    assert_eq!(store.tokens().await.unwrap(), [revoked, other]);
    let unknown = store.revoke_token(&TokenId::new()).await;
    assert!(matches!(unknown, Err(StoreError::NoSuchToken(_))));
}

async fn the_last_use_of_a_token_is_on_record(store: &dyn Database) {
    let token = store.create_token(new_token("ci", AccessRole::Read));
    let token = token.await.unwrap();
    assert_eq!(token.last_used_at, None);
    store.touch_token(&token.id).await.unwrap();
    let first = store.tokens().await.unwrap()[0].last_used_at.unwrap();
    store.touch_token(&token.id).await.unwrap();
    assert_eq!(store.tokens().await.unwrap()[0].last_used_at, Some(first));
}

async fn a_browser_acts_with_its_token_until_it_signs_out_expires_or_the_token_is_revoked(
    store: &dyn Database,
) {
    let token = store.create_token(new_token("me", AccessRole::Merge));
    let token = token.await.unwrap();
    let session = |name: &str, hours: i64| NewBrowserSession {
        token_id: token.id.clone(),
        hash: hash(name),
        expires_at: Timestamp::now() + SignedDuration::from_hours(hours),
    };
    for (name, hours) in [("laptop", 1), ("phone", 1), ("old", -1)] {
        let made = store.create_browser_session(session(name, hours));
        made.await.unwrap();
    }
    let at = async |name: &str| store.browser_token(&hash(name)).await.unwrap();
    assert_eq!(at("laptop").await, Some(token.clone()));
    assert_eq!(at("old").await, None);
    assert_eq!(at("unknown").await, None);
    store.end_browser_session(&hash("laptop")).await.unwrap();
    assert_eq!(at("laptop").await, None);
    assert!(at("phone").await.is_some());
    store.revoke_token(&token.id).await.unwrap();
    assert_eq!(at("phone").await, None);
}

async fn session(store: &dyn Database, cwd: &str) -> SessionId {
    let new = NewSession {
        id: SessionId::new(),
        cwd: cwd.into(),
        model: "m".to_owned(),
        mode: SessionMode::Normal,
    };
    store.create_session(new).await.unwrap().id
}

fn answer(model: &str, cost: Cost) -> EntryBody {
    EntryBody::Assistant {
        message: Message::user("-"),
        message_id: None,
        model: model.to_owned(),
        stop_reason: StopReason::EndTurn,
        usage: Usage {
            input_tokens: 10,
            output_tokens: 1,
            ..Usage::default()
        },
        cost,
    }
}

async fn sessions_are_listed_by_project_in_pages(store: &dyn Database) {
    let mut here = Vec::new();
    for cwd in ["/p", "/p/sub", "/p/sub/deep"] {
        here.push(session(store, cwd).await);
    }
    for cwd in ["/pp", "/other", "/"] {
        session(store, cwd).await;
    }
    here.reverse();
    let page = async |before, limit| {
        let roots = vec!["/p".into(), "/q".into()];
        let page = SessionPage {
            roots,
            before,
            limit,
        };
        let found = store.sessions_page(page).await.unwrap();
        found
            .into_iter()
            .map(|session| session.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(page(None, 10).await, here);
    assert_eq!(page(None, 2).await, here[..2]);
    assert_eq!(page(Some(here[1]), 2).await, here[2..]);
    assert_eq!(page(Some(SessionId::new()), 2).await, []);
}

async fn entries_come_in_pages(store: &dyn Database) {
    let id = session(store, "/p").await;
    let bodies = vec![answer("m", Cost::Known(Usd::ZERO)); 5];
    store.append(id, 0, bodies).await.unwrap();
    let seqs = async |from, limit| {
        let page = store.entries_page(id, from, limit).await.unwrap();
        page.iter().map(|entry| entry.seq).collect::<Vec<_>>()
    };
    assert_eq!(seqs(0, 2).await, [1, 2]);
    assert_eq!(seqs(3, 2).await, [3, 4]);
    assert_eq!(seqs(5, 9).await, [5]);
    assert_eq!(seqs(6, 9).await, [0; 0]);
    let missing = store.entries_page(SessionId::new(), 1, 1).await;
    assert!(matches!(missing, Err(StoreError::NoSuchSession(_))));
}

async fn usage_is_summed_by_day_directory_and_model(store: &dyn Database) {
    let one = session(store, "/p").await;
    let cent = Cost::Known(Usd::from_nanos(10_000_000));
    let bodies = vec![
        answer("a", cent),
        answer("a", cent),
        answer("b", Cost::Unknown(Usd::ZERO)),
    ];
    store.append(one, 0, bodies).await.unwrap();
    let two = session(store, "/q").await;
    store.append(two, 0, vec![answer("a", cent)]).await.unwrap();
    let now = Timestamp::now();
    let day = SignedDuration::from_hours(24);

    let found = store.daily_usage(now - day, now + day).await.unwrap();

    let rows: Vec<(&str, &str, u64, u64, Cost)> = found
        .iter()
        .map(|row| {
            let directory = row.directory.to_str().unwrap();
            (
                directory,
                row.model.as_str(),
                row.calls,
                row.usage.input_tokens,
                row.cost,
            )
        })
        .collect();
    let expected = [
        ("/p", "a", 2, 20, Cost::Known(Usd::from_nanos(20_000_000))),
        ("/p", "b", 1, 10, Cost::Unknown(Usd::ZERO)),
        ("/q", "a", 1, 10, cent),
    ];
    assert_eq!(rows, expected);
    assert_eq!(store.daily_usage(now + day, now + day).await.unwrap(), []);
}
