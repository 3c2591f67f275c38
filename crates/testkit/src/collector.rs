//! An OpenTelemetry collector as far as tests need one: it takes spans over HTTP and keeps them.
//!
//! The encoding is that of Protocol Buffers, of which only the fields of a span are read.

use std::{
    collections::BTreeMap,
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::net::TcpListener;

use crate::http::{Connection, Request};

/// Listens on a port of its own until it is dropped.
pub struct TraceCollector {
    url: String,
    kept: Arc<Mutex<Kept>>,
    _runtime: tokio::runtime::Runtime,
}

#[derive(Default)]
struct Kept {
    spans: Vec<CollectedSpan>,
    headers: Vec<(String, String)>,
    bytes: Vec<u8>,
}

/// A span that a process sent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CollectedSpan {
    /// In hexadecimal digits, as all ids here.
    pub trace: String,
    pub id: String,
    /// Empty for the top of a trace.
    pub parent: String,
    pub name: String,
    pub is_error: bool,
    pub nanoseconds: u64,
    /// Of the span and of its process, as text.
    pub attributes: BTreeMap<String, String>,
}

impl TraceCollector {
    pub fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let url = format!("http://{}", listener.local_addr()?);
        let kept = Arc::<Mutex<Kept>>::default();
        let keeper = kept.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Ok(connection) = Connection::new(stream) {
                    tokio::spawn(serve(connection, keeper.clone()));
                }
            }
        });
        Ok(Self {
            url,
            kept,
            _runtime: runtime,
        })
    }

    /// For `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn spans(&self) -> Vec<CollectedSpan> {
        self.kept.lock().spans.clone()
    }

    /// The spans as soon as there is one that fits, or all there are when the time is over.
    pub fn wait_for(
        &self,
        patience: Duration,
        fits: impl Fn(&CollectedSpan) -> bool,
    ) -> Vec<CollectedSpan> {
        let began = Instant::now();
        loop {
            let spans = self.spans();
            if spans.iter().any(&fits) || began.elapsed() > patience {
                return spans;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether any request had this header.
    pub fn has_header(&self, name: &str, value: &str) -> bool {
        let kept = self.kept.lock();
        let mut headers = kept.headers.iter();
        headers.any(|(known, given)| known.eq_ignore_ascii_case(name) && given == value)
    }

    /// Whether these bytes were in anything that was sent.
    pub fn has_text(&self, text: &str) -> bool {
        let kept = self.kept.lock();
        let mut windows = kept.bytes.windows(text.len());
        windows.any(|window| window == text.as_bytes())
    }
}

async fn serve(mut connection: Connection, kept: Arc<Mutex<Kept>>) {
    while let Ok(Some(request)) = connection.read_request().await {
        let head: &str = match take(&request, &kept) {
            true => "200 OK",
            false => "404 Not Found",
        };
        let answer = format!(
            "HTTP/1.1 {head}\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n"
        );
        if connection.send(answer.as_bytes()).await.is_err() || request.wants_close() {
            return;
        }
    }
}

fn take(request: &Request, kept: &Mutex<Kept>) -> bool {
    if (request.method.as_str(), request.path.as_str()) != ("POST", "/v1/traces") {
        return false;
    }
    let mut kept = kept.lock();
    kept.headers.extend(request.headers.0.iter().cloned());
    kept.bytes.extend_from_slice(&request.body);
    for of_process in children(&request.body, 1) {
        let process =
            attributes(children(of_process, 1).flat_map(|resource| children(resource, 1)));
        for scope in children(of_process, 2) {
            let spans = children(scope, 2).map(|bytes| span(bytes, process.clone()));
            kept.spans.extend(spans);
        }
    }
    true
}

fn span(bytes: &[u8], process: BTreeMap<String, String>) -> CollectedSpan {
    let text = |field| children(bytes, field).next().map(lossy).unwrap_or_default();
    let id = |field| children(bytes, field).next().map(hex).unwrap_or_default();
    let number = |bytes, wanted| {
        let mut fields = Fields(bytes);
        fields.find_map(|(field, value)| match value {
            Value::Number(number) if field == wanted => Some(number),
            _ => None,
        })
    };
    let status = children(bytes, 15).next().unwrap_or_default();
    let time = |field| number(bytes, field).unwrap_or_default();
    let mut all = process;
    all.extend(attributes(children(bytes, 9)));
    CollectedSpan {
        trace: id(1),
        id: id(2),
        parent: id(4),
        name: text(5),
        is_error: number(status, 3) == Some(2),
        nanoseconds: time(8).saturating_sub(time(7)),
        attributes: all,
    }
}

fn attributes<'a>(pairs: impl Iterator<Item = &'a [u8]>) -> BTreeMap<String, String> {
    let pair = |bytes: &'a [u8]| {
        let key = children(bytes, 1).next().map(lossy)?;
        let (_, value) = Fields(children(bytes, 2).next()?).next()?;
        let value = match value {
            Value::Number(number) => number.to_string(),
            Value::Bytes(text) => lossy(text),
        };
        Some((key, value))
    };
    pairs.filter_map(pair).collect()
}

/// Messages, texts and bytes of one field.
fn children(bytes: &[u8], wanted: u64) -> impl Iterator<Item = &[u8]> {
    Fields(bytes).filter_map(move |(field, value)| match value {
        Value::Bytes(bytes) if field == wanted => Some(bytes),
        _ => None,
    })
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, up to the first that cannot be read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn fixed(&mut self, count: usize) -> Option<Value<'a>> {
        let bytes = self.bytes(count)?.iter().rev();
        Some(Value::Number(
            bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        ))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.fixed(8)?,
            2 => {
                let count = self.varint()?;
                Value::Bytes(self.bytes(usize::try_from(count).ok()?)?)
            }
            5 => self.fixed(4)?,
            _ => return None,
        };
        Some((key >> 3, value))
    }
}
