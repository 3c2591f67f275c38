//! The proxy with real sockets: a server on this machine, a gateway, and clients of both kinds.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rstest::rstest;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// A server that notes what it receives and answers each connection once.
struct Server {
    address: SocketAddr,
    received: Arc<parking_lot::Mutex<Vec<Vec<u8>>>>,
}

impl Server {
    async fn start(answer: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let notes = Arc::clone(&received);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let notes = Arc::clone(&notes);
                tokio::spawn(async move {
                    let number = {
                        let mut notes = notes.lock();
                        notes.push(Vec::new());
                        notes.len() - 1
                    };
                    let mut buffer = [0; 4096];
                    let mut is_answered = false;
                    // Keeps the connection open, as servers do that ignore `Connection: close`.
                    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                        notes.lock()[number].extend(&buffer[..count]);
                        if !is_answered {
                            stream.write_all(answer).await.unwrap();
                            is_answered = true;
                        }
                    }
                });
            }
        });
        Self { address, received }
    }

    fn received(&self) -> String {
        let all = self.received.lock().concat();
        String::from_utf8_lossy(&all).into_owned()
    }

    fn port(&self) -> u16 {
        self.address.port()
    }
}

/// A gateway whose port is on this machine's own loopback device.
struct Proxy {
    gateway: Gateway,
    address: SocketAddr,
    _base: tempfile::TempDir,
}

impl Proxy {
    async fn start(entries: &[String]) -> Self {
        Self::resolving(entries, system_resolver()).await
    }

    async fn resolving(entries: &[String], resolver: Arc<Resolver>) -> Self {
        let base = tempfile::tempdir().unwrap();
        let named = entries.iter().map(|entry| entry.parse().unwrap()).collect();
        let mut egress = Egress::new(AllowedDomains::new(named), base.path().join("egress"));
        egress.resolver = resolver;
        let gateway = egress.open().await.unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let socket = gateway.socket().to_path_buf();
        tokio::task::spawn_blocking(move || handover::send(&socket, &listener).unwrap())
            .await
            .unwrap();
        Self {
            gateway,
            address,
            _base: base,
        }
    }

    /// Sends and gives everything that comes back.
    async fn exchange(&self, sent: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        let mut answer = Vec::new();
        let reading = async {
            let mut buffer = [0; 4096];
            loop {
                match stream.read(&mut buffer).await {
                    Ok(0) | Err(_) => return,
                    Ok(count) => answer.extend(&buffer[..count]),
                }
                // The server leaves the connection open; what ends the answer is its text.
                if answer.ends_with(b"hello") {
                    return;
                }
            }
        };
        timeout(PATIENCE, reading).await.expect("an answer");
        String::from_utf8_lossy(&answer).into_owned()
    }
}

fn fixed(addresses: &[&str]) -> (Arc<Resolver>, Arc<AtomicUsize>) {
    let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let resolver: Arc<Resolver> = Arc::new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        let addresses = addresses.clone();
        Box::pin(async move { Ok(addresses) })
    });
    (resolver, asked)
}

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello";

#[tokio::test]
async fn an_allowed_host_is_reached_by_plain_http_connect_and_socks() {
    let server = Server::start(ANSWER).await;
    let port = server.port();
    let proxy = Proxy::start(&[format!("localhost:{port}")]).await;
    let plain = format!("GET http://LOCALHOST:{port}/x HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    let answer = proxy.exchange(plain.as_bytes()).await;
    assert!(answer.contains("connection: close") && answer.ends_with("\r\n\r\nhello"));
    assert_eq!(
        server.received(),
        format!("GET /x HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n")
    );

    let tunnel = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\nping");
    let answer = proxy.exchange(tunnel.as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("hello"),
        "{answer}"
    );
    assert!(server.received().ends_with("ping"));

    let [high, low] = port.to_be_bytes();
    let mut socks = b"\x05\x01\x00\x05\x01\x00\x03\x09localhost".to_vec();
    socks.extend([high, low]);
    socks.extend(b"pong");
    let answer = proxy.exchange(&socks).await;
    assert!(
        answer.starts_with("\x05\x00\x05\x00") && answer.ends_with("hello"),
        "{answer}"
    );
    assert!(server.received().ends_with("pong"));
    assert_eq!(proxy.gateway.blocked(), Vec::<String>::new());
}

#[rstest]
#[case("CONNECT evil.example:443 HTTP/1.1\r\n\r\n", "evil.example")]
#[case("CONNECT EVIL.example.:443 HTTP/1.1\r\n\r\n", "evil.example")]
#[case("GET http://evil.example/?q=1 HTTP/1.1\r\n\r\n", "evil.example")]
#[case(
    "GET http://evil.example/ HTTP/1.1\r\nHost: packages.example\r\n\r\n",
    "evil.example"
)]
#[case(
    "CONNECT packages.example:22 HTTP/1.1\r\n\r\n",
    "packages.example (port 22 is not allowed)"
)]
#[case("CONNECT 1.1.1.1:443 HTTP/1.1\r\n\r\n", "1.1.1.1 (only names")]
#[case("CONNECT 2130706433:443 HTTP/1.1\r\n\r\n", "2130706433 (only names")]
#[case("CONNECT 0x7f.1:443 HTTP/1.1\r\n\r\n", "0x7f.1 (only names")]
#[case("CONNECT [::1]:443 HTTP/1.1\r\n\r\n", "[::1] (only names")]
#[case(
    "GET http://[::ffff:169.254.169.254]/ HTTP/1.1\r\n\r\n",
    "[::ffff:169.254.169.254] (only"
)]
#[case("\x05\x01\x00\x05\x01\x00\x03\x0cevil.example\x01\x6b", "evil.example")]
#[case(
    "\x05\x01\x00\x05\x01\x00\x01\x01\x01\x01\x01\x01\x6b",
    "1.1.1.1 (only names"
)]
#[tokio::test]
async fn another_host_is_refused_and_named(#[case] request: &str, #[case] named: &str) {
    let (resolver, asked) = fixed(&["127.0.0.1"]);
    let proxy = Proxy::resolving(&["packages.example".to_owned()], resolver).await;
    let answer = proxy.exchange(request.as_bytes()).await;
    if request.starts_with('\x05') {
        assert_eq!(answer.as_bytes()[2..4], [5, 2]);
    } else {
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert!(answer.contains(&format!("blocked: {named}")), "{answer}");
    }
    let blocked = proxy.gateway.blocked();
    assert!(
        blocked[0].starts_with(named) && blocked.len() == 1,
        "{blocked:?}"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 0, "DNS was asked");
}

#[rstest]
#[case(&["10.0.0.1"])]
#[case(&["127.0.0.1"])]
#[case(&["169.254.169.254"])]
#[case(&["100.64.0.1"])]
#[case(&["::1"])]
#[case(&["fd00::1"])]
#[case(&["1.1.1.1", "10.0.0.1"])]
#[tokio::test]
async fn an_allowed_name_that_leads_into_a_private_network_is_refused(#[case] found: &[&str]) {
    let (resolver, asked) = fixed(found);
    let proxy = Proxy::resolving(&["packages.example".to_owned()], resolver).await;
    let answer = proxy
        .exchange(b"CONNECT packages.example:443 HTTP/1.1\r\n\r\n")
        .await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    let blocked = proxy.gateway.blocked();
    assert!(
        blocked[0].starts_with("packages.example (its address "),
        "{blocked:?}"
    );
    // Asked once: there is no second answer that could be another address.
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn tls_for_another_host_ends_the_tunnel_before_the_server_sees_it() {
    let server = Server::start(ANSWER).await;
    let port = server.port();
    let proxy = Proxy::start(&[format!("localhost:{port}")]).await;
    let mut sent = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n").into_bytes();
    sent.extend(client_hello::tests::hello("evil.example"));
    let answer = proxy.exchange(&sent).await;
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\n");
    assert_eq!(server.received(), "");
    assert_eq!(
        proxy.gateway.blocked(),
        ["evil.example (named by TLS in a tunnel to localhost)"]
    );
}

#[tokio::test]
async fn tls_for_the_same_host_passes() {
    let server = Server::start(b"hello").await;
    let port = server.port();
    let proxy = Proxy::start(&[format!("localhost:{port}")]).await;
    let mut sent = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n").into_bytes();
    sent.extend(client_hello::tests::hello("localhost"));
    assert!(proxy.exchange(&sent).await.ends_with("hello"));
    assert_eq!(proxy.gateway.blocked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_second_request_behind_the_first_is_not_sent() {
    let server = Server::start(ANSWER).await;
    let port = server.port();
    let proxy = Proxy::start(&[format!("localhost:{port}")]).await;
    let sent = format!(
        "POST http://localhost:{port}/ HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc\
         GET /hidden HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    );
    assert!(proxy.exchange(sent.as_bytes()).await.ends_with("hello"));
    let received = server.received();
    assert!(received.ends_with("\r\n\r\nabc"), "{received}");
    let ambiguous = format!(
        "POST http://localhost:{port}/ HTTP/1.1\r\nContent-Length: 3\r\n\
         Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    );
    let answer = proxy.exchange(ambiguous.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(server.received(), received);
}

#[tokio::test]
async fn a_client_that_sends_a_long_body_still_sees_that_it_was_refused() {
    let proxy = Proxy::start(&["packages.example".to_owned()]).await;
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    let body = vec![b'x'; 4 << 20];
    let head = format!(
        "POST http://evil.example/ HTTP/1.1\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    let read = timeout(PATIENCE, stream.read_to_string(&mut answer)).await;
    read.expect("an answer").unwrap();
    assert!(answer.contains("blocked: evil.example"), "{answer}");
}

#[tokio::test]
async fn a_head_without_an_end_is_not_read_for_ever() {
    let proxy = Proxy::start(&["packages.example".to_owned()]).await;
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    let endless = async {
        stream
            .write_all(b"GET http://packages.example/ HTTP/1.1\r\n")
            .await?;
        loop {
            stream.write_all(b"x: y\r\n").await?;
        }
    };
    let ended: Result<std::io::Result<()>, _> = timeout(PATIENCE, endless).await;
    assert!(ended.expect("the connection is closed").is_err());
}

#[tokio::test]
async fn connections_end_with_the_gateway_and_nothing_is_left_on_disk() {
    let server = Server::start(ANSWER).await;
    let port = server.port();
    let proxy = Proxy::start(&[format!("localhost:{port}")]).await;
    // Handed over: the socket is gone already.
    assert!(!proxy.gateway.socket().exists());
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    let tunnel = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n");
    stream.write_all(tunnel.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    let Proxy {
        gateway,
        address,
        _base: base,
    } = proxy;
    drop(gateway);
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest))
        .await
        .expect("the connection is closed");
    let closed = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, closed).await.expect("the port is closed");
    assert_eq!(
        std::fs::read_dir(base.path().join("egress"))
            .unwrap()
            .count(),
        0
    );
}

#[tokio::test]
async fn only_a_listening_tcp_socket_is_taken_over() {
    use std::{io::Read, os::unix::net::UnixStream};

    let base = tempfile::tempdir().unwrap();
    let egress = Egress::new(AllowedDomains::default(), base.path().join("egress"));
    let gateway = egress.open().await.unwrap();
    let socket = gateway.socket().to_path_buf();
    let attempts = move || {
        // Nothing, and a socket that does not listen.
        drop(UnixStream::connect(&socket).unwrap());
        let unbound = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let unbound = std::net::TcpListener::from(std::os::fd::OwnedFd::from(unbound));
        assert!(handover::send(&socket, &unbound).is_err());
        let everywhere = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
        assert!(handover::send(&socket, &everywhere).is_err());
        let right = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        handover::send(&socket, &right).unwrap();
        // It is the only one.
        assert!(UnixStream::connect(&socket).is_err());
        let mut stream = std::net::TcpStream::connect(right.local_addr().unwrap()).unwrap();
        std::io::Write::write_all(&mut stream, b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    };
    tokio::task::spawn_blocking(attempts).await.unwrap();
    assert_eq!(gateway.blocked(), ["evil.example"]);
}
