//! Enough of an S3 server: put, get by range, list, delete. Nothing is authenticated.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

/// By bucket and key, as in the path.
pub(crate) type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

pub(crate) struct S3Server {
    pub(crate) url: String,
    pub(crate) objects: Objects,
}

struct Request {
    method: String,
    path: String,
    query: String,
    range: Option<(usize, usize)>,
    body: Vec<u8>,
}

struct Response {
    status: &'static str,
    headers: String,
    body: Vec<u8>,
}

impl S3Server {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let objects = Objects::default();
        let kept = objects.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, kept.clone()));
            }
        });
        Self { url, objects }
    }
}

async fn serve(stream: TcpStream, objects: Objects) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let Response {
            status,
            headers,
            body,
        } = answer(&request, &objects);
        let head = format!(
            "HTTP/1.1 {status}\r\n{headers}etag: \"e\"\r\ncontent-length: {}\r\n\
             last-modified: Mon, 02 Nov 2026 10:00:00 GMT\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
    }
}

/// `None` when the client has gone.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let mut first = lines[0].split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let header = |name: &str| {
        let found = lines.iter().filter_map(|line| line.split_once(": "));
        let mut found = found.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.to_owned())
    };
    let length = header("content-length").map_or(0, |length| length.parse().unwrap());
    let range = header("range").map(|range| {
        let (start, end) = range["bytes=".len()..].split_once('-').unwrap();
        (start.parse().unwrap(), end.parse().unwrap())
    });
    let (path, query) = (path[1..].to_owned(), query.replace("%2F", "/"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request {
        method,
        path,
        query,
        range,
        body,
    })
}

fn answer(request: &Request, objects: &Objects) -> Response {
    let mut objects = objects.lock().unwrap();
    let ok = |body: String| Response {
        status: "200 OK",
        headers: "content-type: application/xml\r\n".to_owned(),
        body: body.into_bytes(),
    };
    match (request.method.as_str(), objects.get(&request.path)) {
        ("PUT", _) => {
            objects.insert(request.path.clone(), request.body.clone());
            ok(String::new())
        }
        ("GET", Some(bytes)) => {
            let (start, last) = request.range.unwrap();
            Response {
                status: "206 Partial Content",
                headers: format!("content-range: bytes {start}-{last}/{}\r\n", bytes.len()),
                body: bytes[start..=last].to_vec(),
            }
        }
        ("GET", None) if request.query.contains("list-type=2") => ok(listed(request, &objects)),
        ("POST", _) => {
            let text = String::from_utf8(request.body.clone()).unwrap();
            let mut removed = String::new();
            for key in text.split("<Key>").skip(1) {
                let key = key.split('<').next().unwrap();
                objects.remove(&format!("{}/{key}", request.path));
                removed.push_str(&format!("<Deleted><Key>{key}</Key></Deleted>"));
            }
            ok(format!("<DeleteResult>{removed}</DeleteResult>"))
        }
        _ => Response {
            status: "404 Not Found",
            headers: String::new(),
            body: b"<Error><Code>NoSuchKey</Code></Error>".to_vec(),
        },
    }
}

fn listed(request: &Request, objects: &BTreeMap<String, Vec<u8>>) -> String {
    let prefix = request.query.split("prefix=").nth(1).unwrap_or_default();
    let prefix = prefix.split('&').next().unwrap();
    let below = format!("{}/{prefix}", request.path.trim_end_matches('/'));
    let found = objects.iter().filter(|(key, _)| key.starts_with(&below));
    let entry = |(key, bytes): (&String, &Vec<u8>)| {
        let key = key.split_once('/').unwrap().1;
        format!(
            "<Contents><Key>{key}</Key><Size>{}</Size><ETag>e</ETag>\
             <LastModified>2026-11-02T10:00:00.000Z</LastModified></Contents>",
            bytes.len()
        )
    };
    let entries: String = found.map(entry).collect();
    format!("<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>")
}
