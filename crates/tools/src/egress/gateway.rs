//! One command's way out: the socket it is handed over by, its connections, what it was refused.
//!
//! It is opened before the command is started and accepts exactly one listening socket. From then
//! on the unix socket is gone, so the command itself, which could reach it under bubblewrap, has
//! nothing to hand over a second one to. Whether the command has started at all does not matter
//! here: without a socket it simply waits until it is dropped.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::{TcpListener, TcpStream, UnixListener},
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
};

use super::{gate::Gate, handover, http, socket_dir::SocketDir, socks};

/// Connections of one command at a time; the next one waits. One command cannot take all of the
/// process's connections.
const MOST_CONNECTIONS: usize = 64;

/// The way out. When it is dropped, every connection is closed and the socket is gone.
pub(crate) struct Gateway {
    socket: PathBuf,
    /// Emptied by whoever is first: the task once a socket was handed over, or the drop.
    dir: Arc<Mutex<Option<SocketDir>>>,
    gate: Arc<Gate>,
    serving: JoinHandle<()>,
}

impl Gateway {
    /// Opens it, in a directory of its own below `base`. Must be called on a runtime, which serves
    /// it in a task of its own.
    pub(super) fn open(
        base: &Path,
        gate: Arc<Gate>,
        connections: Arc<Semaphore>,
    ) -> io::Result<Self> {
        let dir = SocketDir::make(base)?;
        let socket = dir.socket();
        let at = UnixListener::from_std(dir.listen()?)?;
        let dir = Arc::new(Mutex::new(Some(dir)));
        let serving = tokio::spawn({
            let (dir, gate) = (Arc::clone(&dir), Arc::clone(&gate));
            async move {
                let Ok(handed) = handover::receive(&at).await else {
                    return;
                };
                // Gone before the command starts: it cannot hand over another one.
                drop((at, dir.lock().take()));
                if let Ok(listener) = handed.accept().await {
                    serve(&listener, &gate, &connections).await;
                }
            }
        });
        Ok(Self {
            socket,
            dir,
            gate,
            serving,
        })
    }

    /// Where the command's listening socket is handed over.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// The hosts that were refused so far, as lines to show.
    pub(crate) fn blocked(&self) -> Vec<String> {
        self.gate.blocked.shown()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.serving.abort();
        drop(self.dir.lock().take());
    }
}

/// Accepts connections for as long as it is polled. When it is dropped, so is the set of
/// connections, which ends each of them.
///
/// A permit is taken before a connection is accepted: what is too much waits in the kernel's queue
/// and costs no descriptor.
async fn serve(listener: &TcpListener, gate: &Arc<Gate>, all: &Arc<Semaphore>) {
    let own = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let permits = async {
            (
                own.clone().acquire_owned().await,
                all.clone().acquire_owned().await,
            )
        };
        let next = async {
            let permits = permits.await;
            (listener.accept().await, permits)
        };
        tokio::select! {
            (accepted, permits) = next => match accepted {
                Ok((stream, _)) => {
                    let gate = Arc::clone(gate);
                    connections.spawn(async move {
                        // The client notices how its connection ended; nobody else cares.
                        let _ = connection(stream, &gate).await;
                        drop(permits);
                    });
                }
                // Out of file descriptors, or a connection gone before it was accepted.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Tells the protocols apart by their first byte. SOCKS5 begins with 5, which no method of HTTP
/// does. A client that sends nothing is closed after a while.
async fn connection(stream: TcpStream, gate: &Gate) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (reader, writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let first = tokio::time::timeout(super::tunnel::HEAD_TIME, reader.fill_buf()).await??;
    match first.first() {
        Some(&socks::VERSION) => socks::serve(reader, writer, gate).await,
        Some(_) => http::serve(reader, writer, gate).await,
        None => Ok(()),
    }
}
