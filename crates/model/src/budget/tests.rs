//! Limits hold for callers one after another and side by side.

use std::time::Duration;

use super::*;

fn usd(dollars: f64) -> Usd {
    Usd::from_dollars(dollars).unwrap()
}

/// A dollar per million tokens in, five out; writing to the cache costs a quarter more.
const PRICES: Prices = Prices {
    input: Usd::from_nanos(1_000_000_000),
    output: Usd::from_nanos(5_000_000_000),
    cache_write_5m: Usd::from_nanos(1_250_000_000),
    cache_write_1h: Usd::from_nanos(2_000_000_000),
    cache_read: Usd::from_nanos(100_000_000),
};

fn call(input_tokens: u64, max_tokens: u32) -> Wanted<'static> {
    Wanted {
        web_searches: 0,
        model: "m",
        input_tokens,
        max_tokens,
        prices: Some(PRICES),
    }
}

fn tokens(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage {
        input_tokens,
        output_tokens,
        ..Usage::default()
    }
}

async fn refusal(budget: &Arc<Budget>, wanted: Wanted<'_>) -> String {
    budget.reserve(&wanted).await.unwrap_err()
}

#[tokio::test]
async fn the_first_call_is_refused_when_its_input_alone_passes_the_limit() {
    let budget = Arc::new(Budget::new(Some(usd(0.01)), None));
    assert_eq!(
        refusal(&budget, call(1_000_000, 8_000)).await,
        "stopped at $0.0000 of $0.0100 (--max-budget-usd): the next call of m has up to 1000000 \
         tokens of input and could cost $1.25"
    );
    assert_eq!(budget.account(), Account::new());
}

#[tokio::test]
async fn the_answer_is_kept_to_what_is_left() {
    let budget = Arc::new(Budget::new(Some(usd(0.02)), None));
    // 4,000 tokens of input cost half a cent at the most; the rest pays for 3,000 of output.
    let reserved = budget.reserve(&call(4_000, 8_000)).await.unwrap();
    assert_eq!(reserved.max_tokens, 3_000);
    drop(reserved);
    let unlimited = Arc::new(Budget::default());
    let reserved = unlimited.reserve(&call(4_000, 8_000)).await.unwrap();
    assert_eq!(reserved.max_tokens, 8_000);
}

#[tokio::test]
async fn a_limit_on_tokens_counts_input_and_answer() {
    let budget = Arc::new(Budget::new(None, Some(10_000)));
    budget.add("m", tokens(3_000, 1_000), Cost::default());
    let reserved = budget.reserve(&call(4_000, 8_000)).await.unwrap();
    assert_eq!(reserved.max_tokens, 2_000);
    drop(reserved);
    assert!(
        refusal(&budget, call(5_900, 8_000))
            .await
            .starts_with("stopped at 4000 of 10000 tokens")
    );
}

#[tokio::test]
async fn calls_side_by_side_cannot_pass_the_limit_together() {
    let tree = Arc::new(Budget::new(Some(usd(1.0)), None));
    // Each can cost 0.6 dollars: the second waits for the first.
    let wanted = call(400_000, 20_000);
    let first = tree.reserve(&wanted).await.unwrap();
    let agent = Arc::new(Budget::new(None, None).within(tree.clone()));
    let second = tokio::spawn(async move { agent.reserve(&call(400_000, 20_000)).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!second.is_finished());
    // It came to less than it reserved, so the other fits.
    tree.add("m", tokens(100_000, 0), Cost::Known(usd(0.1)));
    drop(first);
    let second = second.await.unwrap().unwrap();
    assert_eq!(second.max_tokens, 20_000);
    assert_eq!(tree.state.lock().reserved, usd(0.6));
    drop(second);
    assert_eq!(tree.state.lock().reserved, Usd::ZERO);
}

#[tokio::test]
async fn one_that_cannot_fit_even_alone_does_not_wait() {
    let tree = Arc::new(Budget::new(Some(usd(1.0)), None));
    let _first = tree.reserve(&call(400_000, 20_000)).await.unwrap();
    assert!(
        refusal(&tree, call(900_000, 20_000))
            .await
            .contains("$1.13")
    );
}

#[tokio::test]
async fn a_part_is_kept_to_its_own_limit_and_booked_in_both() {
    let tree = Arc::new(Budget::new(Some(usd(1.0)), None));
    let part = Arc::new(Budget::new(Some(usd(0.1)), None).within(tree.clone()));
    assert!(
        refusal(&part, call(200_000, 8_000))
            .await
            .contains("of $0.1000")
    );
    part.add("m", tokens(10, 0), Cost::Known(usd(0.05)));
    let expected = [("m".to_owned(), tokens(10, 0), Cost::Known(usd(0.05)))];
    assert_eq!(part.since(&Account::new()), expected);
    assert_eq!(tree.since(&Account::new()), expected);
    let mark = tree.account();
    tree.add("m", tokens(1, 0), Cost::default());
    assert_eq!(
        tree.since(&mark),
        [("m".to_owned(), tokens(1, 0), Cost::default())]
    );
}

#[tokio::test]
async fn a_try_that_was_lost_leaves_less_for_the_next() {
    let budget = Arc::new(Budget::new(Some(usd(1.0)), None));
    let reserved = budget.reserve(&call(400_000, 20_000)).await.unwrap();
    assert!(reserved.still_fits());
    budget.add("m", tokens(500_000, 0), Cost::Known(usd(0.5)));
    assert!(!reserved.still_fits());
}

#[tokio::test]
async fn a_model_without_a_price_cannot_be_held_to_a_limit_on_money() {
    let unpriced = Wanted {
        prices: None,
        ..call(10, 10)
    };
    let budget = Arc::new(Budget::new(Some(usd(1.0)), None));
    assert!(refusal(&budget, unpriced).await.contains("no known price"));
    let free = Arc::new(Budget::default().with_spent(usd(3.0)));
    assert!(free.reserve(&unpriced).await.is_ok());
}
