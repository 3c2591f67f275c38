use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn parse(text: &str) -> Result<RequestHead, BadRequest> {
    RequestHead::parse(text.as_bytes())
}

fn server_head(head: &RequestHead) -> String {
    let Target::Plain { host, port, path } = &head.target else {
        panic!("{head:?}");
    };
    String::from_utf8(head.for_server(host, *port, path)).unwrap()
}

#[test]
fn a_tunnel_names_host_and_port() {
    let head = parse("CONNECT a.example:443 HTTP/1.1\r\nHost: b.example\r\n\r\n").unwrap();
    assert_eq!(
        head.target,
        Target::Tunnel {
            host: "a.example".to_owned(),
            port: 443
        }
    );
}

#[test]
fn the_host_field_is_the_targets_and_fields_between_neighbours_end_here() {
    let head = parse(
        "GET http://a.example:8080/x?y=1 HTTP/1.1\r\nHost: evil.example\r\nAccept: */*\r\n\
         Connection: keep-alive, X-Secret\r\nX-Secret: 1\r\nProxy-Authorization: Basic eA==\r\n\
         Proxy-Connection: keep-alive\r\nUpgrade: websocket\r\nTE: trailers\r\n\r\n",
    )
    .unwrap();
    assert_eq!(
        server_head(&head),
        "GET /x?y=1 HTTP/1.1\r\nHost: a.example:8080\r\naccept: */*\r\nConnection: close\r\n\r\n"
    );
}

#[test]
fn connection_cannot_take_the_framing_away() {
    let head = parse(
        "POST http://a.example/ HTTP/1.1\r\nConnection: content-length\r\nContent-Length: 3\r\n\r\n",
    )
    .unwrap();
    assert_eq!(
        server_head(&head),
        "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"
    );
}

#[rstest]
#[case::both("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n")]
#[case::two_lengths("Content-Length: 3\r\nContent-Length: 4\r\n")]
#[case::two_equal_lengths("Content-Length: 3\r\nContent-Length: 3\r\n")]
#[case::list_of_lengths("Content-Length: 3, 3\r\n")]
#[case::signed("Content-Length: +3\r\n")]
#[case::hex("Content-Length: 0x3\r\n")]
#[case::huge("Content-Length: 99999999999999999999999\r\n")]
#[case::gzip("Transfer-Encoding: gzip, chunked\r\n")]
#[case::twice("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")]
#[case::vertical_tab("Transfer-Encoding: \x0bchunked\r\n")]
#[case::space_before_colon("Transfer-Encoding : chunked\r\n")]
#[case::folded("X: 1\r\n Transfer-Encoding: chunked\r\n")]
#[case::bare_line_feed("X: 1\nTransfer-Encoding: chunked\r\n")]
#[case::bare_carriage_return("X: 1\rTransfer-Encoding: chunked\r\n")]
#[case::nul("X: 1\0\r\n")]
#[case::nameless(": 1\r\n")]
#[case::no_colon("X\r\n")]
fn ambiguous_requests_are_refused(#[case] fields: &str) {
    let request = format!("POST http://a.example/ HTTP/1.1\r\n{fields}\r\n");
    assert!(parse(&request).is_err(), "{request:?}");
}

#[rstest]
#[case::origin_form("GET / HTTP/1.1\r\n\r\n")]
#[case::asterisk("OPTIONS * HTTP/1.1\r\n\r\n")]
#[case::https("GET https://a.example/ HTTP/1.1\r\n\r\n")]
#[case::file("GET file:///etc/passwd HTTP/1.1\r\n\r\n")]
#[case::user("GET http://user@a.example/ HTTP/1.1\r\n\r\n")]
#[case::user_is_a_host("GET http://a.example:80@evil.example/ HTTP/1.1\r\n\r\n")]
#[case::backslash("GET http://a.example\\@evil.example/ HTTP/1.1\r\n\r\n")]
#[case::no_host("GET http:///x HTTP/1.1\r\n\r\n")]
#[case::fragment("GET http://a.example/#x HTTP/1.1\r\n\r\n")]
#[case::two_spaces("GET  http://a.example/ HTTP/1.1\r\n\r\n")]
#[case::tab("GET\thttp://a.example/ HTTP/1.1\r\n\r\n")]
#[case::version_2("GET http://a.example/ HTTP/2.0\r\n\r\n")]
#[case::version_0_9("GET http://a.example/\r\n\r\n")]
#[case::tunnel_without_port("CONNECT a.example HTTP/1.1\r\n\r\n")]
#[case::tunnel_with_path("CONNECT a.example:443/ HTTP/1.1\r\n\r\n")]
#[case::tunnel_port_0("CONNECT a.example:0 HTTP/1.1\r\n\r\n")]
#[case::tunnel_port_signed("CONNECT a.example:+443 HTTP/1.1\r\n\r\n")]
#[case::tunnel_port_wraps("CONNECT a.example:65979 HTTP/1.1\r\n\r\n")]
#[case::tunnel_with_body("CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 3\r\n\r\n")]
#[case::chunked_in_1_0("POST http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n")]
#[case::empty("\r\n\r\n")]
#[case::leading_line("\r\nGET http://a.example/ HTTP/1.1\r\n\r\n")]
fn requests_that_are_not_for_a_proxy_are_refused(#[case] request: &str) {
    assert!(parse(request).is_err(), "{request:?}");
}

/// Pieces from which ambiguous heads can be put together.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        &b"GET "[..],
        b"CONNECT ",
        b"http://",
        b"a.example",
        b":80",
        b"@",
        b"/",
        b" HTTP/1.1",
        b"\r\n",
        b"\n",
        b"\r",
        b"Content-Length: 3",
        b"Transfer-Encoding: chunked",
        b"Connection: close",
        b" ",
        b":",
    ]);
    prop_oneof![
        4 => known.prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ]
}

proptest! {
    #[test]
    fn whatever_is_accepted_has_one_reading(pieces in prop::collection::vec(piece(), 0..24)) {
        let mut bytes = pieces.concat();
        bytes.extend(b"\r\n\r\n");
        let Ok(head) = RequestHead::parse(&bytes) else { return Ok(()) };
        let Target::Plain { host, port, path } = &head.target else { return Ok(()) };
        prop_assert!(!host.contains(['@', '/', '\\', ' ']));
        let sent = head.for_server(host, *port, path);
        // One head, ended once, at its end; one framing; one host.
        prop_assert_eq!(memchr::memmem::find(&sent, b"\r\n\r\n"), Some(sent.len() - 4));
        let text = String::from_utf8_lossy(&sent).to_ascii_lowercase();
        let count = |name: &str| text.matches(&format!("\r\n{name}:")).count();
        prop_assert!(count("content-length") + count("transfer-encoding") <= 1);
        prop_assert_eq!((count("host"), count("connection")), (1, 1));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = RequestHead::parse(&bytes);
    }
}
