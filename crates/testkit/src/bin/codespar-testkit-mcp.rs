//! Runs the small MCP server, for tests and by hand.
//!
//! Over HTTP the address is printed on the first line, so that a test that starts it with port 0
//! can read where it listens. What it does is described in `codespar_testkit::mcp`.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use codespar_testkit::mcp::{Era, Host, HostSetup, OAuthFault, serve_http, serve_stdio};

/// An MCP server that does as it is told.
#[derive(Parser)]
struct Args {
    /// Obey lines appended to this file: `update`, `log TEXT`, `tools`, `die`.
    #[arg(long)]
    control: Option<PathBuf>,
    /// Write down here what happens.
    #[arg(long)]
    journal: Option<PathBuf>,
    /// Do not start if this file is there.
    #[arg(long)]
    refuse: Option<PathBuf>,
    /// Understand the newer handshake and no other.
    #[arg(long)]
    newer: bool,
    /// Serve streamable HTTP on this port of 127.0.0.1 (0: a free one) instead of standard streams.
    #[arg(long)]
    http: Option<u16>,
    /// Want this bearer token.
    #[arg(long)]
    token: Option<String>,
    /// Want a login, at an authorization server that is right or has a fault.
    #[arg(long, value_enum)]
    oauth: Option<Login>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Login {
    Right,
    WrongIssuer,
    WrongResource,
    WrongEndpoint,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let host = Host::start(HostSetup {
        control: args.control,
        journal: args.journal,
        refuse: args.refuse,
        era: if args.newer { Era::Newer } else { Era::Older },
        token: args.token,
        oauth: args.oauth.map(|login| match login {
            Login::Right => OAuthFault::None,
            Login::WrongIssuer => OAuthFault::Issuer,
            Login::WrongResource => OAuthFault::Resource,
            Login::WrongEndpoint => OAuthFault::Endpoint,
        }),
    })?;
    match args.http {
        Some(port) => serve_http(&host, port, |address| println!("{address}"))?,
        None => serve_stdio(&host)?,
    }
    Ok(())
}
