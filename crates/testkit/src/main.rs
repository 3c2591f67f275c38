//! Runs the scripted model server by hand.
//!
//! It prints one line for each request, with the turn or fault that it met, and keeps none of them.
//! The format of scripts is in the documentation of the crate; examples are in `scripts/`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use codespar_testkit::{RequestCapture, Script, ScriptedModel, Setup};

/// A model that answers by script, over HTTP, in the formats of Anthropic and OpenAI.
#[derive(Parser)]
#[command(name = "codespar-testkit")]
struct Args {
    /// The script, a JSON file.
    script: PathBuf,
    /// The port on 127.0.0.1; a free one if not given.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let script = Script::from_file(&args.script)?;
    let setup = Setup {
        port: args.port,
        capture: RequestCapture::Off,
        log: Some(Box::new(|line| println!("{line}"))),
        ..Setup::default()
    };
    let server = ScriptedModel::start_with(script, setup)
        .await
        .with_context(|| format!("cannot listen on 127.0.0.1:{}", args.port))?;
    println!("{}", server.url());
    println!();
    println!("Point codespar at it:");
    println!(
        "  ANTHROPIC_API_KEY=scripted ANTHROPIC_BASE_URL={} codespar -p \"hello\"",
        server.url()
    );
    println!(
        "  OPENAI_API_KEY=scripted OPENAI_BASE_URL={} codespar -p \"hello\" --model <an OpenAI model>",
        server.openai_url()
    );
    println!("Ctrl-C ends it.");
    println!();
    tokio::signal::ctrl_c()
        .await
        .context("cannot listen for Ctrl-C")?;
    println!("{} requests", server.request_count());
    Ok(())
}
