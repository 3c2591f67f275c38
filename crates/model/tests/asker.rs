//! Asking within a budget, against a scripted provider: what is booked, and when nothing is sent.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use codespar_model::{
    AnthropicConfig, AnthropicModel, Asker, Budget, Catalogue, Counted, Exchange, HttpClient,
    HttpOptions, LostCall, ModelError, ModelEvent, Request, RetryPolicy, request_tokens,
};
use codespar_protocol::{Cost, Message, Usage, Usd};
use codespar_testkit::{Fault, Garbage, Script, ScriptedModel, Turn};
use tokio_util::sync::CancellationToken;

/// A dollar per million tokens in, five out.
const MODEL: &str = "claude-haiku-4-5";

struct Bench {
    server: ScriptedModel,
    model: AnthropicModel,
    catalogue: Catalogue,
    budget: Arc<Budget>,
    cancel: CancellationToken,
    deadline: Option<Instant>,
}

impl Bench {
    async fn new(turn: Turn, max: Option<f64>) -> Self {
        Self::with_http(turn, max, HttpOptions::default()).await
    }

    async fn with_http(turn: Turn, max: Option<f64>, options: HttpOptions) -> Self {
        let server = ScriptedModel::start(Script::new().turn(turn))
            .await
            .unwrap();
        let config = AnthropicConfig {
            api_key: Some("key".into()),
            retry: RetryPolicy {
                max_tries: 3,
                first_delay: Duration::from_millis(1),
                ..RetryPolicy::default()
            },
            ..AnthropicConfig::new(server.url().parse().unwrap())
        };
        Self {
            model: AnthropicModel::new(&config, &HttpClient::new(options)).unwrap(),
            server,
            catalogue: Catalogue::builtin(),
            budget: Arc::new(Budget::new(max.and_then(Usd::from_dollars), None)),
            cancel: CancellationToken::new(),
            deadline: None,
        }
    }

    fn asker(&self) -> Asker<'_> {
        Asker {
            model: &self.model,
            catalogue: &self.catalogue,
            budget: &self.budget,
            cancel: &self.cancel,
            deadline: self.deadline,
        }
    }

    async fn ask(&self, text: &str) -> Exchange {
        let request = request(text);
        let tokens = request_tokens(&request);
        self.asker().ask(request, tokens, |_| {}).await
    }

    /// Everything on the account of the model.
    fn booked(&self) -> (Usage, Cost) {
        self.budget.account().remove(MODEL).unwrap_or_default()
    }
}

fn request(text: &str) -> Request {
    Request {
        web_searches: 0,
        model: MODEL.to_owned(),
        system: Arc::from("Be brief."),
        messages: vec![Arc::new(Message::user(text))],
        tools: Arc::from([]),
        max_tokens: 8_000,
        temperature: None,
        effort: None,
        thinking: None,
        stop_sequences: Vec::new(),
    }
}

fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input_tokens: input,
        output_tokens: output,
        ..Usage::default()
    }
}

#[tokio::test]
async fn a_request_that_cannot_fit_is_not_sent() {
    let bench = Bench::new(Turn::text("hi"), Some(0.01)).await;
    let exchange = bench.ask(&"0123456789".repeat(200_000)).await;
    let error = exchange.result.unwrap_err();
    assert!(
        matches!(&error, ModelError::BudgetExceeded { message }
            if message.starts_with("stopped at $0.0000 of $0.0100 (--max-budget-usd)")),
        "{error}"
    );
    assert_eq!(bench.server.request_count(), 0);
    assert_eq!(bench.booked(), Default::default());
}

#[tokio::test]
async fn the_limit_on_the_answer_is_lowered_to_what_is_left() {
    let bench = Bench::new(Turn::text("hi").usage(usage(20, 5)), Some(0.01)).await;
    let answered = bench.ask("hello").await.result.unwrap();
    assert_eq!(answered.cost, Cost::Known(Usd::from_nanos(45_000)));
    let sent = bench.server.last_request().unwrap();
    let max = sent.json()["max_tokens"].as_u64().unwrap();
    assert!((1_500..2_000).contains(&max), "{max}");
    assert_eq!(bench.booked(), (usage(20, 5), answered.cost));
}

#[tokio::test]
async fn tokens_that_the_provider_does_not_count_are_booked_by_estimate() {
    let text = "word ".repeat(100);
    let input = request_tokens(&request(&text));
    let bench = Bench::new(Turn::text(text.clone()).usage(usage(0, 0)), None).await;
    let answered = bench.ask(&text).await.result.unwrap();
    let booked = answered.response.usage;
    assert_eq!(answered.counted, Counted::Estimated);
    assert_eq!(booked.input_tokens, input);
    assert!((200..400).contains(&booked.output_tokens), "{booked:?}");
    assert_eq!(bench.booked(), (booked, answered.cost));
    assert!(answered.cost.at_least() > Usd::ZERO);
}

#[tokio::test]
async fn a_budget_holds_with_a_provider_that_counts_nothing() {
    let turn = Turn::text("0123456789".repeat(190)).usage(usage(0, 0));
    let bench = Bench::new(turn, Some(0.01)).await;
    assert!(bench.ask("hello").await.result.is_ok());
    let error = bench.ask("hello").await.result.unwrap_err();
    assert!(
        matches!(error, ModelError::BudgetExceeded { .. }),
        "{error}"
    );
    assert_eq!(bench.server.request_count(), 1);
}

#[tokio::test]
async fn input_of_a_broken_stream_is_booked_as_the_provider_counted_it() {
    let turn = Turn::text("hello")
        .usage(usage(1_000, 7))
        .fault(Fault::CutAfterEvents(1))
        .fault(Fault::Garbage(Garbage::Sse(1)));
    let bench = Bench::new(turn, None).await;
    let exchange = bench.ask("hello").await;
    assert_eq!(exchange.result.unwrap().response.usage, usage(1_000, 7));
    let lost = LostCall {
        model: MODEL.to_owned(),
        usage: usage(1_000, 1),
        cost: Cost::Known(Usd::from_nanos(1_005_000)),
        counted: Counted::ByProvider,
    };
    assert_eq!(exchange.lost, [lost.clone(), lost]);
    assert_eq!(bench.booked().0, usage(3_000, 9));
}

#[tokio::test]
async fn input_that_nobody_counted_is_booked_by_estimate() {
    let turn = Turn::text("hello")
        .usage(usage(50, 7))
        .fault(Fault::CutAfterEvents(0))
        .fault(Fault::Reset);
    let bench = Bench::new(turn, None).await;
    let exchange = bench.ask("hello").await;
    assert!(exchange.result.is_ok());
    let estimate = request_tokens(&request("hello"));
    let lost: Vec<_> = exchange
        .lost
        .iter()
        .map(|call| (call.usage, call.counted))
        .collect();
    assert_eq!(lost, [(usage(estimate, 0), Counted::Estimated); 2]);
    assert_eq!(bench.booked().0, usage(50 + 2 * estimate, 7));
}

#[tokio::test]
async fn a_refusal_by_status_is_not_charged() {
    let turn = Turn::text("hello")
        .usage(usage(50, 7))
        .fault(Fault::status(529).into())
        .fault(Fault::status(429).retry_after_ms(1).into());
    let bench = Bench::new(turn, None).await;
    let exchange = bench.ask("hello").await;
    assert!(exchange.result.is_ok());
    assert_eq!(exchange.lost, []);
    assert_eq!(bench.booked().0, usage(50, 7));
}

#[tokio::test]
async fn a_retry_makes_do_with_what_a_lost_try_has_left() {
    let turn = Turn::text("hello")
        .usage(usage(4_000, 1))
        .fault(Fault::CutAfterEvents(1));
    let bench = Bench::new(turn, Some(0.01)).await;
    assert!(bench.ask("hello").await.result.is_ok());
    let limits: Vec<u64> = bench
        .server
        .requests()
        .iter()
        .map(|request| request.json()["max_tokens"].as_u64().unwrap())
        .collect();
    // The lost try cost 0.4 cents, which would have paid for 800 tokens of output.
    assert_eq!(limits[0] - limits[1], 801);
    assert_eq!(bench.booked().0.input_tokens, 8_000);
}

#[tokio::test]
async fn a_retry_that_could_pass_the_limit_is_not_made() {
    let turn = Turn::text("hello")
        .usage(usage(9_000, 1))
        .fault(Fault::CutAfterEvents(1));
    let bench = Bench::new(turn, Some(0.01)).await;
    let exchange = bench.ask("hello").await;
    let error = exchange.result.unwrap_err();
    assert!(
        matches!(&error, ModelError::BudgetExceeded { message }
            if message.starts_with("stopped at $0.0090 of $0.0100")),
        "{error}"
    );
    assert_eq!(bench.server.request_count(), 1);
    assert_eq!(bench.booked().0.input_tokens, 9_000);
}

#[tokio::test]
async fn an_interrupted_answer_is_booked() {
    let turn = Turn::text("0123456789".repeat(100))
        .usage(usage(1_000, 400))
        .fault(Fault::HangAfterEvents(12));
    let bench = Bench::new(turn, None).await;
    let (cancel, mut seen) = (bench.cancel.clone(), 0);
    let stop_after_some_text = move |event| {
        if let ModelEvent::TextDelta(text) = event {
            seen += text.len();
            if seen > 500 {
                cancel.cancel();
            }
        }
    };
    let exchange = bench
        .asker()
        .ask(request("hello"), 10, stop_after_some_text)
        .await;
    assert!(matches!(exchange.result, Err(ModelError::Cancelled)));
    let [lost] = &exchange.lost[..] else {
        panic!("{:?}", exchange.lost);
    };
    assert_eq!(
        (lost.usage.input_tokens, lost.counted),
        (1_000, Counted::ByProvider)
    );
    assert!(lost.usage.output_tokens > 100, "{lost:?}");
    assert_eq!(bench.booked(), (lost.usage, lost.cost));
}

#[tokio::test]
async fn a_call_that_is_dropped_is_booked() {
    let turn = Turn::text("hello")
        .usage(usage(1_000, 7))
        .fault(Fault::HangAfterEvents(4));
    let bench = Bench::new(turn, None).await;
    {
        let (tell, told) = tokio::sync::oneshot::channel();
        let mut tell = Some(tell);
        let watch = move |_| {
            if let Some(tell) = tell.take() {
                let _ = tell.send(());
            }
        };
        let asker = bench.asker();
        tokio::select! {
            exchange = asker.ask(request("hello"), 10, watch) => panic!("{exchange:?}"),
            _ = told => {}
        }
    }
    assert_eq!(bench.booked().0.input_tokens, 1_000);
}

#[tokio::test]
async fn a_wait_beyond_the_deadline_is_not_begun() {
    let turn = Turn::text("hello").fault(Fault::status(429).retry_after("200").into());
    let mut bench = Bench::new(turn, None).await;
    bench.deadline = Some(Instant::now() + Duration::from_secs(60));
    let exchange = bench.ask("hello").await;
    let error = exchange.result.unwrap_err();
    assert!(
        matches!(&error, ModelError::OutOfTime { message }
            if message.contains("the next try would be in 200 s")),
        "{error}"
    );
    assert_eq!(bench.booked(), Default::default());
}

#[tokio::test]
async fn pings_without_content_are_a_stall() {
    let turn = Turn::text("hello")
        .usage(usage(1_000, 7))
        .fault(Fault::PingAfterEvents(1));
    let options = HttpOptions {
        stall_timeout: Duration::from_millis(300),
        ..HttpOptions::default()
    };
    let bench = Bench::with_http(turn, None, options).await;
    let mut reasons = Vec::new();
    let watch = |event| {
        if let ModelEvent::Retrying { reason, .. } = event {
            reasons.push(reason);
        }
    };
    let exchange = bench.asker().ask(request("hello"), 10, watch).await;
    assert!(exchange.result.is_ok());
    assert_eq!(
        reasons,
        [
            "the answer from anthropic broke off: no content came for 0.3 seconds, only keep-alive \
          events"
        ]
    );
    assert_eq!(bench.booked().0.input_tokens, 2_000);
}
