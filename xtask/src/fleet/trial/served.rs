//! A server of ours on the host of the people, and requests to it.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::world::World;

const PORT: u16 = 4180;
const PATIENCE: Duration = Duration::from_secs(60);

/// `codespar serve` without a worker of its own. Dropping it kills it.
pub(super) struct ServedApi {
    process: Child,
    address: SocketAddr,
    token: String,
}

impl ServedApi {
    pub(super) fn start(world: &World) -> Result<Self> {
        let (environment, client) = (&world.environment, &world.client);
        let create = ["token", "create", "--role", "write", "--name", "trial"];
        let printed = environment.run(client, &create)?;
        let token = printed.split_whitespace().find(|word| word.len() > 30);
        let token = token.context("no token was printed")?.to_owned();
        let address = SocketAddr::from((client.address, PORT));
        let listen = address.to_string();
        let serve = [
            "serve",
            "--no-worker",
            "--behind-proxy",
            "--listen",
            &listen,
        ];
        let mut command = environment.command(client, &serve);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let server = Self {
            process: command.spawn().context("cannot start a server")?,
            address,
            token,
        };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(self.address).is_err() {
            ensure!(Instant::now() < deadline, "the server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Each on a connection of its own, as from a script.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<()> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            self.token,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        match answer.starts_with("HTTP/1.1 2") {
            true => Ok(()),
            false => bail!("POST {path}: {answer}"),
        }
    }
}

impl Drop for ServedApi {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
