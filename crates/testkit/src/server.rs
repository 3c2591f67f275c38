//! The running server, as tests hold it.
//!
//! A test starts a server with a script, runs the program under test against `url`, and looks at
//! the requests afterwards:
//!
//! ```text
//! let server = ScriptedModel::start_blocking(Script::of([Turn::text("Hello.")]))?;
//! // ANTHROPIC_BASE_URL=server.url() ANTHROPIC_API_KEY=anything codespar -p "hi"
//! assert_eq!(server.requests()[0].messages().len(), 1);
//! ```
//!
//! The async and the blocking form are the same server; the blocking one has a thread and a runtime
//! of its own, so a test without Tokio can use it. To act while an answer is awaited, wait for its
//! request first (`wait_for_requests`), or hold the turn with a `Gate`.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::{net::TcpListener, runtime, sync::oneshot};

use crate::{
    CapturedRequest, Log, RequestCapture, Script,
    serve::{Counts, Room, accept},
};

/// How long the waiting functions wait; far beyond anything a healthy test needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A model that answers by script, over HTTP, on the loopback address unless told otherwise. Dropping it stops it.
///
/// Stopping closes every connection. The blocking form waits until its thread has ended.
pub struct ScriptedModel {
    address: SocketAddr,
    room: Arc<Room>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Settings of a server that tests rarely change.
#[derive(Default)]
pub struct Setup {
    /// The address; the loopback one where none is given.
    pub address: Option<Ipv4Addr>,
    /// The port; 0, the default, takes a free one. Fails to start if the port is taken.
    pub port: u16,
    /// Which requests are kept. Long runs and benchmarks keep few or none, since each request holds
    /// the whole conversation.
    pub capture: RequestCapture,
    /// Takes one line for each request.
    pub log: Option<Log>,
}

impl Setup {
    fn place(&self) -> (Ipv4Addr, u16) {
        (self.address.unwrap_or(Ipv4Addr::LOCALHOST), self.port)
    }
}

/// What was waited for did not happen in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("waited for {expected} {what}, but there were {found} after {} s", PATIENCE.as_secs())]
pub struct WaitedTooLong {
    what: &'static str,
    expected: u64,
    found: u64,
}

impl ScriptedModel {
    /// Starts a server on the current Tokio runtime.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_with(script, Setup::default()).await
    }

    /// Starts a server on the current Tokio runtime.
    ///
    /// It ends with that runtime, also while the value lives.
    pub async fn start_with(script: Script, setup: Setup) -> io::Result<Self> {
        let listener = TcpListener::bind(setup.place()).await?;
        let address = listener.local_addr()?;
        let room = Arc::new(Room::new(script, setup.capture, setup.log));
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(accept(listener, Arc::clone(&room), stopped));
        Ok(Self {
            address,
            room,
            stop: Some(stop),
            thread: None,
        })
    }

    /// Starts a server on a thread with a runtime of its own, for tests that are not async and
    /// for benchmarks.
    pub fn start_blocking(script: Script) -> io::Result<Self> {
        Self::start_blocking_with(script, Setup::default())
    }

    /// Starts a server on a thread with a runtime of its own.
    pub fn start_blocking_with(script: Script, setup: Setup) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = mpsc::channel();
        let place = setup.place();
        let room = Arc::new(Room::new(script, setup.capture, setup.log));
        let served = Arc::clone(&room);
        let thread = thread::Builder::new()
            .name("scripted-model".to_owned())
            .spawn(move || {
                let run = || {
                    let runtime = runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()?;
                    let bind = TcpListener::bind(place);
                    let listener = runtime.block_on(bind)?;
                    let address = listener.local_addr()?;
                    Ok::<_, io::Error>((runtime, listener, address))
                };
                match run() {
                    Ok((runtime, listener, address)) => {
                        // The receiver waits below until it has this.
                        let _ = ready.send(Ok(address));
                        runtime.block_on(accept(listener, served, stopped));
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error));
                    }
                }
            })?;
        let address = started.recv().map_err(io::Error::other)??;
        Ok(Self {
            address,
            room,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The base URL without a slash at its end, as `ANTHROPIC_BASE_URL` has it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base URL for the OpenAI format, as `OPENAI_BASE_URL` has it.
    pub fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests kept, in order of arrival. Those that were refused are among them.
    pub fn requests(&self) -> Vec<CapturedRequest> {
        self.room.kept.lock().all()
    }

    /// The last request kept.
    pub fn last_request(&self) -> Option<CapturedRequest> {
        self.room.kept.lock().last()
    }

    /// How many requests came, kept or not.
    pub fn request_count(&self) -> u64 {
        self.room.counts.borrow().requests
    }

    /// How many answers the client broke off by closing the connection. An answer without
    /// latency or delay is sent at once and cannot be broken off.
    pub fn dropped(&self) -> u64 {
        self.room.counts.borrow().dropped
    }

    /// Waits until so many requests have come, and returns those that are kept. A request counts
    /// when it has arrived whole, before it is answered.
    pub async fn wait_for_requests(
        &self,
        count: u64,
    ) -> Result<Vec<CapturedRequest>, WaitedTooLong> {
        self.wait("requests", count, |counts| counts.requests)
            .await?;
        Ok(self.requests())
    }

    /// Waits until so many answers were broken off by the client.
    pub async fn wait_for_dropped(&self, count: u64) -> Result<(), WaitedTooLong> {
        self.wait("dropped connections", count, |counts| counts.dropped)
            .await
    }

    /// As [`Self::wait_for_requests`], for tests that are not async.
    pub fn wait_for_requests_blocking(
        &self,
        count: u64,
    ) -> Result<Vec<CapturedRequest>, WaitedTooLong> {
        self.wait_blocking("requests", count, |counts| counts.requests)?;
        Ok(self.requests())
    }

    /// As [`Self::wait_for_dropped`], for tests that are not async.
    pub fn wait_for_dropped_blocking(&self, count: u64) -> Result<(), WaitedTooLong> {
        self.wait_blocking("dropped connections", count, |counts| counts.dropped)
    }

    async fn wait(
        &self,
        what: &'static str,
        expected: u64,
        of: fn(&Counts) -> u64,
    ) -> Result<(), WaitedTooLong> {
        let mut counts = self.room.counts.subscribe();
        let enough = counts.wait_for(|counts| of(counts) >= expected);
        match tokio::time::timeout(PATIENCE, enough).await {
            Ok(_) => Ok(()),
            Err(_) => Err(WaitedTooLong {
                what,
                expected,
                found: of(&self.room.counts.borrow()),
            }),
        }
    }

    /// Looks every millisecond; a wait on the channel would need a runtime.
    fn wait_blocking(
        &self,
        what: &'static str,
        expected: u64,
        of: fn(&Counts) -> u64,
    ) -> Result<(), WaitedTooLong> {
        let begin = Instant::now();
        loop {
            let found = of(&self.room.counts.borrow());
            if found >= expected {
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                return Err(WaitedTooLong {
                    what,
                    expected,
                    found,
                });
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server has been reported by its thread.
            let _ = thread.join();
        }
    }
}
