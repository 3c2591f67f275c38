use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn none() -> Redactor {
    Redactor::new(Vec::<(String, String)>::new())
}

#[test]
fn a_known_value_is_replaced_by_the_name_of_its_variable() {
    let redactor = Redactor::new([("API_KEY", "hunter22hunter22"), ("SHORT", "abc")]);
    assert_eq!(
        redactor.redact("key=hunter22hunter22; abc"),
        "key=[redacted:API_KEY]; abc"
    );
}

#[test]
fn text_without_secrets_is_borrowed() {
    assert!(matches!(none().redact("nothing here"), Cow::Borrowed(_)));
}

#[rstest]
#[case("")]
#[case("a")]
#[case("ab")]
fn a_value_is_found_inside_base64_wherever_it_stands(#[case] before: &str) {
    let value = "p4ss?word>>/x~";
    let redactor = Redactor::new([("K", value)]);
    for engine in [STANDARD, URL_SAFE] {
        let text = engine.encode(format!("{before}{value}tail"));
        let redacted = redactor.redact(&text);
        assert!(redacted.contains("[redacted:K]"), "{text} {redacted}");
    }
}

#[rstest]
#[case("a%26b%2Fc%20d%3De")]
#[case("a%26b%2fc%20d%3de")]
#[case("a%26b%2Fc+d%3De")]
fn a_value_is_found_in_an_address(#[case] encoded: &str) {
    let redactor = Redactor::new([("K", "a&b/c d=e")]);
    assert_eq!(
        redactor.redact(&format!("?q={encoded}&r")),
        "?q=[redacted:K]&r"
    );
}

#[test]
fn a_value_is_found_in_json() {
    let redactor = Redactor::new([("K", "line one\n\"line\" two")]);
    assert_eq!(
        redactor.redact(r#"{"k":"line one\n\"line\" two"}"#),
        r#"{"k":"[redacted:K]"}"#
    );
}

#[test]
fn the_lines_of_a_value_are_found_between_numbers() {
    let value = "{\n \"type\": \"account\",\n \"key\": \"f81d4fae7dec11d0a76500a0c91e6bf6\"\n}";
    let redactor = Redactor::new([("K", value)]);
    let shown =
        "1\t{\n2\t \"type\": \"account\",\n3\t \"key\": \"f81d4fae7dec11d0a76500a0c91e6bf6\"\n4\t}";
    assert_eq!(
        redactor.redact(shown),
        "1\t{\n2\t \"type\": \"account\",\n3\t [redacted:K]\n4\t}"
    );
}

#[test]
fn overlapping_values_go_together() {
    let redactor = Redactor::new([("A", "aaaaaaaab"), ("B", "baaaaaaaa")]);
    assert_eq!(redactor.redact("xaaaaaaaabaaaaaaaay"), "x[redacted:A]y");
}

#[rstest]
#[case(
    "curl -H 'Authorization: Bearer abcdef0123456789'",
    "curl -H 'Authorization: Bearer [redacted]'"
)]
#[case("postgres://ann:hunter22@db/x", "postgres://ann:[redacted]@db/x")]
#[case(
    "https://x-access-token:ghp_0123456789abcdefghijABCDEFGHIJ@github.com",
    "https://x-access-token:[redacted]@github.com"
)]
#[case("a ghp_0123456789abcdefghijABCDEFGHIJ b", "a [redacted] b")]
#[case(
    "k:\n-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAxxxx\nabc=\n-----END RSA PRIVATE KEY-----\nnext words stay",
    "k:\n[redacted]\nnext words stay"
)]
#[case(
    "-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEAxxxx\nand so on",
    "[redacted]\nand so on"
)]
#[case(
    " 9\tkey:\n10\t-----BEGIN RSA PRIVATE KEY-----\n11\tMIIEowIBAAKCAQEAxxxx\n12\tabc=\n13\t-----END RSA PRIVATE KEY-----\n14\tnext",
    " 9\tkey:\n10\t[redacted]\n14\tnext"
)]
#[case(
    "+-----BEGIN EC PRIVATE KEY-----\n+MIIEowIBAAKCAQEAxxxx\n+abc=\n+-----END EC PRIVATE KEY-----\n+next",
    "+[redacted]\n+next"
)]
#[case(
    "------BEGIN EC PRIVATE KEY-----\n-MIIEowIBAAKCAQEAxxxx\n------END EC PRIVATE KEY-----\n-next",
    "-[redacted]\n-next"
)]
#[case("AKIAIOSFODNN7EXAMPLE,AKIAIOSFODNN7EXAMPLF", "[redacted],[redacted]")]
fn shapes_are_replaced_and_the_rest_stays(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(none().redact(text), expected);
}

#[test]
fn a_value_in_an_address_keeps_its_name() {
    let redactor = Redactor::new([("DB_PASSWORD", "hunter22hunter22")]);
    assert_eq!(
        redactor.redact("postgres://ann:hunter22hunter22@db/x"),
        "postgres://ann:[redacted:DB_PASSWORD]@db/x"
    );
}

#[test]
fn debug_does_not_tell() {
    let redactor = Redactor::new([("K", "hunter22hunter22")]);
    let shown = format!("{redactor:?}");
    assert!(shown.starts_with("Redactor"), "{shown}");
    assert!(!shown.contains("hunter22"), "{shown}");
}

#[rstest]
#[case("-----BEGIN PRIVATE KEY-----AAAAAAAAAAAAAAAA sk-ant-012345678901234567890 ")]
#[case("x.sk-ant-012345678901234567890.")]
#[case("eyJ-AKIAIOSFODNN7EXAMPLE-")]
#[case("a://b:")]
#[case("a://b:c@")]
#[case("authorization: bearer ")]
#[case("aaaaaaaa")]
fn megabytes_of_near_misses_come_to_an_end(#[case] piece: &str) {
    let redactor = Redactor::new([("K", "aaaaaaaab"), ("L", "aaaaaaaaaaaaaaaaaaaaaaaac")]);
    let text = piece.repeat(2_000_000 / piece.len());
    let redacted = redactor.redact(&text);
    assert!(!redacted.contains("sk-ant-0"));
}

proptest! {
    #[test]
    fn a_known_value_never_comes_out(
        value in "[ -~]{8,40}",
        before in "[ -~]{0,30}",
        after in "[ -~]{0,30}",
    ) {
        prop_assume!(value.trim().len() >= 8);
        prop_assume!(!"[redacted:KEY]".contains(value.trim()));
        let redactor = Redactor::new([("KEY", value.clone())]);
        let redacted = redactor.redact(&format!("{before}{value}{after}")).into_owned();
        prop_assert!(!redacted.contains(value.trim()), "{redacted}");
    }

    #[test]
    fn redacting_twice_changes_nothing_more(
        values in prop::collection::vec("[a-c\\[\\]:@/]{8,12}", 0..4),
        text in "[a-c\\[\\]:@/]{0,80}",
    ) {
        let pairs: Vec<(String, String)> = values
            .into_iter()
            .enumerate()
            .map(|(at, value)| (format!("K{at}"), value))
            .collect();
        let redactor = Redactor::new(pairs);
        let once = redactor.redact(&text).into_owned();
        prop_assert_eq!(redactor.redact(&once).into_owned(), once);
    }

    #[test]
    fn redacting_any_text_twice_changes_nothing_more(text in "\\PC{0,120}") {
        let once = none().redact(&text).into_owned();
        prop_assert_eq!(none().redact(&once).into_owned(), once);
    }
}
