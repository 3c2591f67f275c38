//! `codespar doctor`.
//!
//! Each check gives findings and none stops the others: a broken settings file leaves out only what
//! depends on it. An error is what would keep a run from working, a warning what makes it different
//! from what was probably meant.
//!
//! ```text
//! ✓ model     anthropic with … (… in, … out per million tokens): ANTHROPIC_API_KEY is set
//! ! trust     … is not trusted: ignored .codespar/settings.json (…); to use them: …
//! ✗ settings  .codespar/settings.json:3:5: …
//! ```
//!
//! Nothing is changed but for the database, which is created if there is none. `findings` of
//! `--json` are the same lines.

use std::{collections::BTreeSet, process::ExitCode, time::Duration};

use clap::Args;
use codespar_model::RetryPolicy;
use codespar_store::{SessionFilter, check_object_store};
use serde::Serialize;

use crate::{args::SessionArgs, error::CommandError, printer::plain, style};
use codespar_runtime::{
    ProjectDir, Provider, Settings, choose_with_retry, engine_workers,
    mcp::{ServerList, ServerReach},
    trust::TrustFilter,
    unusable_engine,
};

/// Show configuration and problems: provider, model, sandbox, settings, state.
///
/// Exit 1 if something would keep a run from working. Nothing goes over the network unless --online
/// is given.
///
/// Examples:
///   codespar doctor --json
///   codespar doctor --online
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DoctorArgs {
    /// Test the key, the base URL and the model with one small request, which may be charged for.
    #[arg(long)]
    online: bool,

    /// How long --online waits for an answer, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "online", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,

    /// Print JSON: `ok`, and `findings` with `name`, `health` (ok, warning or error) and `says`.
    #[arg(long)]
    json: bool,
}

/// Only `Error` makes the command fail.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    Ok,
    Warning,
    Error,
}

/// An empty name continues the finding above.
#[derive(Serialize)]
struct Finding {
    name: &'static str,
    health: Health,
    says: String,
}

/// Trust comes before settings, because it decides which of them count.
pub(crate) async fn run(
    args: &DoctorArgs,
    session: &SessionArgs,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let mut findings = vec![
        Finding {
            name: "version",
            health: Health::Ok,
            says: format!("codespar {}", env!("CARGO_PKG_VERSION")),
        },
        Finding {
            name: "project",
            health: Health::Ok,
            says: format!(
                "{} (working in {})",
                project_dir.root.display(),
                project_dir.cwd.display()
            ),
        },
        state(project_dir).await,
    ];
    findings.extend(objects(project_dir).await);
    findings.extend(dispatch(project_dir).await);
    findings.extend(trust(project_dir));
    match Settings::load(project_dir) {
        Ok(settings) => {
            findings.push(files(&settings, project_dir));
            findings.extend(settings.warnings.iter().map(|warning| Finding {
                name: "settings",
                health: Health::Warning,
                says: warning.clone(),
            }));
            findings.extend(provider(args, project_dir, &settings, session).await);
            findings.extend(sandbox(project_dir, &settings));
            findings.extend(network(project_dir, &settings).await);
            findings.extend(servers(project_dir, &settings));
        }
        Err(error) => findings.push(Finding {
            name: "settings",
            health: Health::Error,
            says: error.to_string(),
        }),
    }
    findings.extend(agents(project_dir));
    findings.push(git());
    let is_sick = findings
        .iter()
        .any(|finding| finding.health == Health::Error);
    if args.json {
        super::print_json(&serde_json::json!({ "ok": !is_sick, "findings": findings }))?;
    } else {
        for finding in &findings {
            let mark = match finding.health {
                Health::Ok => style::good("✓"),
                Health::Warning => style::warning("!"),
                Health::Error => style::error("✗"),
            };
            super::print(format_args!(
                "{mark} {:<9} {}\n",
                finding.name, finding.says
            ))?;
        }
    }
    Ok(if is_sick {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Opens the database, so that a state directory that cannot be written is noticed, or a server that
/// does not answer.
async fn state(project_dir: &ProjectDir) -> Finding {
    let looked = async {
        let store = project_dir.environment.open_database().await?;
        let sessions = store.sessions(SessionFilter::default()).await?.len();
        let place = store.describe();
        store.close().await?;
        Ok::<_, codespar_store::StoreError>((place, sessions))
    };
    match looked.await {
        Ok((place, sessions)) => Finding {
            name: "state",
            health: Health::Ok,
            says: format!("{place}, {sessions} sessions"),
        },
        Err(error) => Finding {
            name: "state",
            health: Health::Error,
            says: error.to_string(),
        },
    }
}

/// The object store, if one is named: an object is written to it, read and removed.
async fn objects(project_dir: &ProjectDir) -> Option<Finding> {
    let environment = &project_dir.environment;
    let tried = match environment.object_store() {
        Ok(None) => return None,
        Ok(Some(objects)) => {
            let checked = check_object_store(&*objects).await;
            checked.map(|()| objects.describe())
        }
        Err(error) => Err(error),
    };
    let (health, says) = match tried {
        Err(error) => (Health::Error, error.to_string()),
        Ok(place) if environment.database_url().is_none() => (
            Health::Warning,
            format!("{place}, not used: records are not shared (CODESPAR_DATABASE_URL)"),
        ),
        Ok(place) => (Health::Ok, format!("{place}, can be written")),
    };
    Some(Finding {
        name: "objects",
        health,
        says,
    })
}

/// What dispatches tasks besides the database, if it is set up: it is asked who takes tasks from it.
async fn dispatch(project_dir: &ProjectDir) -> Option<Finding> {
    let environment = &project_dir.environment;
    if let Some(engine) = unusable_engine(environment) {
        return Some(Finding {
            name: "dispatch",
            health: Health::Warning,
            says: format!(
                "{}; until then `codespar worker` and `codespar serve` do not start, and all else \
                 pays no attention to it",
                engine.why
            ),
        });
    }
    let (health, says) = match engine_workers(environment).await? {
        Err(error) => (Health::Error, error.to_string()),
        Ok(workers) => {
            let names: BTreeSet<&str> = workers.iter().map(|one| one.identity.as_str()).collect();
            match names.len() {
                0 => (
                    Health::Warning,
                    "Temporal answers, and no worker takes tasks from it: codespar worker"
                        .to_owned(),
                ),
                workers => (Health::Ok, format!("Temporal answers; {workers} workers")),
            }
        }
    };
    Some(Finding {
        name: "dispatch",
        health,
        says,
    })
}

/// Whether the project's files count, where there are any that grant something. `None` where no
/// file would grant anything. Ignored files are a warning: the run works without them.
fn trust(project_dir: &ProjectDir) -> Option<Finding> {
    let files = project_dir.trust.files().iter();
    let trusted: Vec<String> = files
        .filter(|file| !file.grants.is_empty() && project_dir.trust.trusts(file))
        .map(|file| plain(&file.name).replace('\n', "\\n"))
        .collect();
    let (health, says) = match project_dir.trust.notice() {
        Some(notice) => (Health::Warning, notice),
        None if trusted.is_empty() => return None,
        None => (Health::Ok, format!("trusted: {}", trusted.join(", "))),
    };
    Some(Finding {
        name: "trust",
        health,
        says,
    })
}

/// Only files that exist, in the order in which they were read: later ones win.
fn files(settings: &Settings, project_dir: &ProjectDir) -> Finding {
    let files: Vec<String> = settings
        .files
        .iter()
        .map(|path| project_dir.shown(path))
        .collect();
    let says = if files.is_empty() {
        "none".to_owned()
    } else {
        files.join(", ")
    };
    Finding {
        name: "settings",
        health: Health::Ok,
        says,
    }
}

/// Who answers, where, and with --online whether it does.
///
/// Retries are off: with `--online` the first answer is what the user wants to know.
async fn provider(
    args: &DoctorArgs,
    project_dir: &ProjectDir,
    settings: &Settings,
    session: &SessionArgs,
) -> Vec<Finding> {
    let redactor = std::sync::Arc::new(project_dir.environment.redactor());
    let once = RetryPolicy {
        max_tries: 1,
        ..RetryPolicy::default()
    };
    let asked = session.model.as_deref();
    let provider = match choose_with_retry(project_dir, settings, asked, &redactor, once) {
        Ok(provider) => provider,
        Err(error) => {
            return vec![Finding {
                name: "model",
                health: Health::Error,
                says: error.to_string(),
            }];
        }
    };
    let mut findings = vec![model(&provider)];
    findings.extend(provider.base_url.as_ref().map(|url| Finding {
        name: "base URL",
        health: Health::Ok,
        says: url.to_string(),
    }));
    if args.online {
        let limit = Duration::from_secs(args.timeout);
        let (health, says) = match super::doctor_online::probe(&provider, limit).await {
            Ok(says) => (Health::Ok, says),
            Err(says) => (Health::Error, says),
        };
        findings.push(Finding {
            name: "online",
            health,
            says,
        });
    }
    findings
}

/// No key is a warning and not an error: simulation works.
fn model(provider: &Provider) -> Finding {
    let prices = provider.catalogue.resolve(&provider.choice.id).entry;
    let price = match prices.and_then(|entry| entry.prices.as_ref()) {
        Some(prices) => format!(
            "{} in, {} out per million tokens",
            prices.input, prices.output
        ),
        None if provider.is_simulated() => "free".to_owned(),
        None => "price unknown".to_owned(),
    };
    Finding {
        name: "model",
        health: match provider.is_simulated() {
            true => Health::Warning,
            false => Health::Ok,
        },
        says: format!(
            "{} with {} ({price}): {}",
            provider.model.provider(),
            provider.choice.id,
            provider.why
        ),
    }
}

/// Each kind that was tried is reported with why it does not work. No working sandbox is an error,
/// since unattended commands are then refused; switching it off is the user's decision.
fn sandbox(project_dir: &ProjectDir, settings: &Settings) -> Vec<Finding> {
    let sandbox = match codespar_runtime::sandbox(project_dir, settings) {
        Ok(sandbox) => sandbox,
        Err(error) => {
            let says = error.to_string();
            return vec![Finding {
                name: "sandbox",
                health: Health::Error,
                says,
            }];
        }
    };
    let health = match sandbox.sandbox_state() {
        codespar_policy::SandboxState::Sandboxed => Health::Ok,
        codespar_policy::SandboxState::SwitchedOff => Health::Warning,
        // Unattended commands are refused.
        codespar_policy::SandboxState::Unavailable => Health::Error,
    };
    let mut findings = vec![Finding {
        name: "sandbox",
        health,
        says: sandbox.describe(),
    }];
    for (kind, tried) in sandbox.report() {
        let says = match tried {
            Ok(()) => format!("{kind:?}: works"),
            Err(why) => format!("{kind:?}: {why}"),
        };
        findings.push(Finding {
            name: "",
            health: Health::Ok,
            says,
        });
    }
    findings
}

/// The hosts that commands reach, where settings name any.
async fn network(project_dir: &ProjectDir, settings: &Settings) -> Vec<Finding> {
    let Ok(sandbox) = codespar_runtime::sandbox(project_dir, settings) else {
        return Vec::new();
    };
    let Some(report) = codespar_runtime::network_report(settings, &sandbox).await else {
        return Vec::new();
    };
    let finding = |health, says| Finding {
        name: "network",
        health,
        says,
    };
    let problems = report.problems.into_iter();
    std::iter::once(finding(Health::Ok, report.says))
        .chain(problems.map(|problem| finding(Health::Warning, problem)))
        .collect()
}

/// What is configured; `codespar mcp list` connects. Nothing is started: a server of the repository
/// may not be approved yet.
fn servers(project_dir: &ProjectDir, settings: &Settings) -> Vec<Finding> {
    let finding = |health, says| Finding {
        name: "mcp",
        health,
        says,
    };
    let found = match ServerList::read(project_dir, settings, &[], ServerReach::All) {
        Ok(found) => found,
        Err(error) => return vec![finding(Health::Error, error.to_string())],
    };
    let approved = found.approved.iter().map(|server| server.name.clone());
    let waiting = found.unapproved.iter();
    let waiting = waiting.map(|server| format!("{} (needs approval)", server.name));
    let names: Vec<String> = approved.chain(waiting).collect();
    let says = if names.is_empty() {
        "no MCP servers".to_owned()
    } else {
        names.join(", ")
    };
    let problems = found.problems.iter();
    let problems = problems.map(|problem| finding(Health::Warning, problem.to_string()));
    std::iter::once(finding(Health::Ok, says))
        .chain(problems)
        .collect()
}

/// Definitions that cannot be used are warnings; `codespar agents check` exits with an error for
/// them.
fn agents(project_dir: &ProjectDir) -> Vec<Finding> {
    let found = codespar_runtime::definitions(project_dir, TrustFilter::Needed);
    let names: Vec<&str> = found.agents.keys().map(String::as_str).collect();
    let says = if names.is_empty() {
        "no custom agents".to_owned()
    } else {
        names.join(", ")
    };
    let mut findings = vec![Finding {
        name: "agents",
        health: Health::Ok,
        says,
    }];
    findings.extend(found.problems.iter().map(|problem| Finding {
        name: "agents",
        health: Health::Warning,
        says: problem.to_string(),
    }));
    findings
}

/// Only repositories need it. The version is shown as git prints it.
fn git() -> Finding {
    match codespar_git::version() {
        Ok(says) => Finding {
            name: "git",
            health: Health::Ok,
            says,
        },
        _ => Finding {
            name: "git",
            health: Health::Warning,
            says: "not found; install it to work with repositories".to_owned(),
        },
    }
}
