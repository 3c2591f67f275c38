//! Which provider answers, from the environment and the settings.
//!
//! The choice, in this order: a recording to replay (`CODESPAR_CASSETTE=replay:FILE`), the
//! `provider` setting, the keys that are set. With keys of both, a model whose id does not begin
//! with `claude` goes to the OpenAI-compatible one. Without any key the provider is simulated,
//! which callers must check for: a missing key must not look like an answer. Nothing is sent here;
//! a wrong key shows with the first call.

use std::{path::PathBuf, sync::Arc};

use codespar_agent::ModelChoice;
use codespar_model::{
    AnthropicConfig, AnthropicModel, BaseUrl, CassettePlayer, CassetteRecorder, Catalogue,
    HttpClient, HttpOptions, Model, OpenAiConfig, OpenAiModel, RetryPolicy, SimulatedModel,
};
use codespar_policy::Redactor;
use codespar_tasks::ModelGate;
use secrecy::SecretString;

use crate::{
    environment::means_yes,
    error::RuntimeError,
    project_dir::ProjectDir,
    settings::{ProviderName, Settings},
};

/// An alias of the catalogue, so that a retired id does not break a default.
const DEFAULT_MODEL: &str = "sonnet";
/// For a model the catalogue does not know. Too small wastes context, too large makes requests
/// fail; the loop recovers from the latter.
const UNKNOWN_WINDOW: u64 = 128_000;
const UNKNOWN_OUTPUT: u32 = 8_192;
/// One answer rarely needs more; a file longer than this is better written in parts.
const USUAL_OUTPUT: u32 = 32_000;

/// A provider, ready to be asked.
pub struct Provider {
    /// Asks it.
    pub model: Arc<dyn Model>,
    /// Which model, and how it is asked.
    pub choice: ModelChoice,
    /// For small questions beside the conversation.
    pub small_model: String,
    /// Known models and their prices.
    pub catalogue: Arc<Catalogue>,
    /// Where requests are sent; `None` where none are (simulated or replayed). It is shown without
    /// credentials.
    pub base_url: Option<BaseUrl>,
    /// How it came to be chosen, in words.
    pub why: String,
    /// No model is called because no key is set; nobody asked for that.
    pub lacks_key: bool,
}

impl Provider {
    /// Another model of the same provider, asked in the same way. Aliases are Anthropic's; other
    /// providers keep the session's model for them.
    ///
    /// `wanted` is what an agent definition, a subagent call or a setting names; `None` keeps the
    /// model of the session. An id that the catalogue does not know is sent as it is.
    pub fn choice_for(&self, wanted: Option<&str>, settings: &Settings) -> ModelChoice {
        let Some(wanted) = wanted else {
            return self.choice.clone();
        };
        let Some(wanted) = model_name(wanted) else {
            return self.choice.clone();
        };
        let resolved = self.catalogue.resolve(&wanted);
        let is_alias = resolved.id != wanted;
        if is_alias && self.model.provider() != "anthropic" {
            return self.choice.clone();
        }
        choice(resolved.id, settings, &self.catalogue)
    }

    /// Refuses the name of a model that this provider cannot be asked for: what is neither in the
    /// catalogue nor of the form of its ids. An OpenAI-compatible provider has ids of any form.
    pub fn model_gate(&self) -> Arc<ModelGate> {
        let (catalogue, own) = (self.catalogue.clone(), self.choice.id.clone());
        let takes_any = self.model.provider() == "openai";
        Arc::new(move |name: &str| {
            let Some(plain) = model_name(name) else {
                return Ok(());
            };
            let is_listed = catalogue.resolve(&plain).entry.is_some() || name == own;
            let has_form = takes_any && !name.trim().is_empty() || name.starts_with("claude-");
            if is_listed || has_form {
                return Ok(());
            }
            Err(format!(
                "unknown model `{name}`: use one of {}, an id that begins with `claude-`, or leave \
                 `model` out; others are added in models.toml",
                catalogue.aliases().join(", ")
            ))
        })
    }

    /// Says which model is asked when the chosen one is overloaded.
    pub(crate) fn fall_back_to(
        &mut self,
        name: Option<&str>,
        settings: &Settings,
    ) -> Result<(), RuntimeError> {
        let Some(name) = name else {
            return Ok(());
        };
        (self.model_gate())(name)
            .map_err(|error| RuntimeError::Usage(format!("--fallback-model: {error}")))?;
        let other = self.choice_for(Some(name), settings);
        self.choice.fallback = (other.id != self.choice.id).then(|| Box::new(other));
        Ok(())
    }

    /// Whether what the model costs is known.
    pub(crate) fn has_price(&self) -> bool {
        let usage = codespar_protocol::Usage::default();
        let cost = self.catalogue.cost(&self.choice.id, &usage);
        cost.known().is_some()
    }

    /// No model is called.
    pub fn is_simulated(&self) -> bool {
        self.model.provider() == "simulated"
    }
}

/// Where a recording is read from or written to.
///
/// From `CODESPAR_CASSETTE`: `record:FILE` or `replay:FILE`.
enum Tape {
    None,
    Record(PathBuf),
    Replay(PathBuf),
}

/// Chooses and sets up the provider.
pub fn choose(
    project_dir: &ProjectDir,
    settings: &Settings,
    asked_model: Option<&str>,
    redactor: &Arc<Redactor>,
) -> Result<Provider, RuntimeError> {
    let retry = RetryPolicy::default();
    choose_with_retry(project_dir, settings, asked_model, redactor, retry)
}

/// The same, with other patience for calls that fail.
///
/// `asked_model` wins over the settings. Recordings are redacted before they are written.
pub fn choose_with_retry(
    project_dir: &ProjectDir,
    settings: &Settings,
    asked_model: Option<&str>,
    redactor: &Arc<Redactor>,
    retry: RetryPolicy,
) -> Result<Provider, RuntimeError> {
    let catalogue = Arc::new(catalogue(project_dir)?);
    let asked = asked_model.or(settings.model.as_deref());
    let asked = asked.and_then(model_name);
    let asked = asked.as_deref();
    let id = catalogue.resolve(asked.unwrap_or(DEFAULT_MODEL)).id;
    let tape = tape(project_dir)?;
    if let Tape::Replay(path) = tape {
        let player = CassettePlayer::open(path.clone())
            .map_err(|error| RuntimeError::Usage(error.to_string()))?;
        let why = format!("replays {}", path.display());
        let player = Connected {
            model: Arc::new(player),
            base_url: None,
        };
        return Ok(provider(player, id, settings, catalogue, why));
    }
    let (name, why) = which(project_dir, settings, &id);
    let (Connected { model, base_url }, id) = match name {
        ProviderName::Anthropic => (anthropic(project_dir, retry)?, id),
        ProviderName::Openai => (
            openai(project_dir, retry)?,
            openai_model(project_dir, asked, id)?,
        ),
        ProviderName::Simulated => {
            let simulated = Connected {
                model: Arc::new(SimulatedModel),
                base_url: None,
            };
            (simulated, "simulated".to_owned())
        }
    };
    let model = match tape {
        Tape::Record(path) => {
            let redactor = redactor.clone();
            let redact = Arc::new(move |text: &str| redactor.redact(text).into_owned());
            Arc::new(CassetteRecorder::new(model, path, redact)) as Arc<dyn Model>
        }
        _ => model,
    };
    let connected = Connected { model, base_url };
    Ok(Provider {
        lacks_key: name == ProviderName::Simulated && settings.provider.is_none(),
        ..provider(connected, id, settings, catalogue, why)
    })
}

/// No model, whatever keys are set.
pub(crate) fn simulated(
    project_dir: &ProjectDir,
    settings: &Settings,
) -> Result<Provider, RuntimeError> {
    let catalogue = Arc::new(catalogue(project_dir)?);
    let simulated = Connected {
        model: Arc::new(SimulatedModel),
        base_url: None,
    };
    let why = "--simulate was given".to_owned();
    Ok(provider(
        simulated,
        SimulatedModel::NAME.to_owned(),
        settings,
        catalogue,
        why,
    ))
}

/// The name of a model as it is known here: a variant of a model is the model itself, and a name
/// that says how to choose one is none.
pub(crate) fn model_name(text: &str) -> Option<String> {
    /// Names that Claude Code has for other ways to choose.
    const NO_MODELS: [&str; 2] = ["default", "inherit"];
    let plain = text.split('[').next().unwrap_or_default().trim();
    match plain {
        "opusplan" => Some("opus".to_owned()),
        // Not in the catalogue: what it costs is not known here.
        "fable" => Some("claude-fable-5".to_owned()),
        plain if plain.is_empty() || NO_MODELS.contains(&plain) => None,
        plain => Some(plain.to_owned()),
    }
}

/// A model, and where its requests go.
struct Connected {
    model: Arc<dyn Model>,
    base_url: Option<BaseUrl>,
}

/// Providers other than Anthropic have no known small model, so side questions go to the same one.
fn provider(
    Connected { model, base_url }: Connected,
    id: String,
    settings: &Settings,
    catalogue: Arc<Catalogue>,
    why: String,
) -> Provider {
    let small_model = match model.provider() {
        "anthropic" => catalogue.resolve("haiku").id,
        _ => id.clone(),
    };
    let choice = choice(id, settings, &catalogue);
    Provider {
        model,
        choice,
        small_model,
        catalogue,
        base_url,
        why,
        lacks_key: false,
    }
}

/// How a model is asked.
///
/// Compaction begins at 95% of what the window leaves for input, unless `compactAt` says otherwise.
fn choice(id: String, settings: &Settings, catalogue: &Catalogue) -> ModelChoice {
    let entry = catalogue.resolve(&id).entry;
    let context_window = entry.map_or(UNKNOWN_WINDOW, |entry| entry.context_window);
    let most = entry.map_or(UNKNOWN_OUTPUT, |entry| entry.max_output);
    let max_tokens = settings.max_output_tokens.unwrap_or(USUAL_OUTPUT).min(most);
    let full = context_window.saturating_sub(u64::from(max_tokens)) * 95 / 100;
    ModelChoice {
        id,
        context_window,
        max_tokens,
        effort: settings.effort,
        thinking: settings.thinking,
        fallback: None,
        compact_at: settings.compact_at.unwrap_or(full),
    }
}

/// The provider that [`choose`] finds, by its name, without setting it up.
pub fn provider_in_use(
    project_dir: &ProjectDir,
    settings: &Settings,
    asked_model: Option<&str>,
) -> Result<&'static str, RuntimeError> {
    let asked = asked_model.or(settings.model.as_deref());
    let asked = asked.and_then(model_name);
    let catalogue = catalogue(project_dir)?;
    let id = catalogue
        .resolve(asked.as_deref().unwrap_or(DEFAULT_MODEL))
        .id;
    Ok(match which(project_dir, settings, &id).0 {
        ProviderName::Anthropic => "anthropic",
        ProviderName::Openai => "openai",
        ProviderName::Simulated => "simulated",
    })
}

/// The variable with the key of a provider; `None` where none is set, or none is needed.
pub fn key_variable(project_dir: &ProjectDir, provider: &str) -> Option<&'static str> {
    let variables: &[&str] = match provider {
        "anthropic" => &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
        "openai" => &["OPENAI_API_KEY"],
        _ => &[],
    };
    let mut variables = variables.iter().copied();
    variables.find(|name| project_dir.var(name).is_some())
}

/// The second part says why, for `codespar doctor`.
fn which(project_dir: &ProjectDir, settings: &Settings, id: &str) -> (ProviderName, String) {
    if let Some(name) = settings.provider {
        return (name, "chosen by `provider` in the settings".to_owned());
    }
    let anthropic = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"]
        .into_iter()
        .find(|name| project_dir.var(name).is_some());
    let openai = ["OPENAI_API_KEY", "OPENAI_BASE_URL"]
        .into_iter()
        .find(|name| project_dir.var(name).is_some());
    match (anthropic, openai) {
        (Some(_), Some(variable)) if !id.starts_with("claude") => (
            ProviderName::Openai,
            format!("{variable} is set, and `{id}` is not a Claude model"),
        ),
        (Some(variable), _) => (ProviderName::Anthropic, format!("{variable} is set")),
        (None, Some(variable)) => (ProviderName::Openai, format!("{variable} is set")),
        (None, None) => (
            ProviderName::Simulated,
            "no key is set; set ANTHROPIC_API_KEY, or OPENAI_API_KEY / OPENAI_BASE_URL".to_owned(),
        ),
    }
}

fn anthropic(project_dir: &ProjectDir, retry: RetryPolicy) -> Result<Connected, RuntimeError> {
    let mut config = AnthropicConfig::new(base_url(
        project_dir,
        "ANTHROPIC_BASE_URL",
        AnthropicConfig::DEFAULT_BASE_URL,
    )?);
    config.api_key = project_dir.var("ANTHROPIC_API_KEY").map(SecretString::from);
    config.auth_token = project_dir
        .var("ANTHROPIC_AUTH_TOKEN")
        .map(SecretString::from);
    if let Some(version) = project_dir.var("ANTHROPIC_VERSION") {
        config.version = version.to_owned();
    }
    config.retry = retry;
    // For a server that passes searches on, or one that does not have them.
    if let Some(value) = project_dir.var("ANTHROPIC_WEB_SEARCH") {
        config.web_search = means_yes(value);
    }
    let model = AnthropicModel::new(&config, &http(project_dir)?)
        .map_err(|error| RuntimeError::Usage(error.to_string()))?;
    Ok(Connected {
        model: Arc::new(model),
        base_url: Some(config.base_url),
    })
}

fn openai(project_dir: &ProjectDir, retry: RetryPolicy) -> Result<Connected, RuntimeError> {
    let mut config = OpenAiConfig::new(base_url(
        project_dir,
        "OPENAI_BASE_URL",
        OpenAiConfig::DEFAULT_BASE_URL,
    )?);
    config.api_key = project_dir.var("OPENAI_API_KEY").map(SecretString::from);
    config.retry = retry;
    let model = OpenAiModel::new(&config, &http(project_dir)?)
        .map_err(|error| RuntimeError::Usage(error.to_string()))?;
    Ok(Connected {
        model: Arc::new(model),
        base_url: Some(config.base_url),
    })
}

/// Other vendors have no default that would be right for all.
fn openai_model(
    project_dir: &ProjectDir,
    asked: Option<&str>,
    id: String,
) -> Result<String, RuntimeError> {
    match (asked, project_dir.var("OPENAI_MODEL")) {
        (Some(_), _) => Ok(id),
        (None, Some(model)) => Ok(model.to_owned()),
        (None, None) => Err(RuntimeError::Usage(
            "an OpenAI-compatible provider needs a model: give --model, set OPENAI_MODEL, or set \
             `model` in the settings"
                .to_owned(),
        )),
    }
}

fn base_url(
    project_dir: &ProjectDir,
    variable: &str,
    default: &str,
) -> Result<BaseUrl, RuntimeError> {
    project_dir
        .var(variable)
        .unwrap_or(default)
        .parse()
        .map_err(|error| RuntimeError::Usage(format!("{variable}: {error}")))
}

fn http(project_dir: &ProjectDir) -> Result<HttpClient, RuntimeError> {
    let mut options = HttpOptions::default();
    // A proxy is for reaching the outside; servers on this machine are reached directly.
    let local = ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"]
        .iter()
        .filter_map(|name| project_dir.var(name))
        .any(|url| {
            url.contains("://127.") || url.contains("://localhost") || url.contains("://[::1]")
        });
    if !local {
        options.proxy = project_dir.proxy()?;
    }
    Ok(HttpClient::new(options))
}

/// The built-in catalogue with the user's `models.toml` over it.
pub(crate) fn catalogue(project_dir: &ProjectDir) -> Result<Catalogue, RuntimeError> {
    let path = project_dir.state().join("models.toml");
    match std::fs::read_to_string(&path) {
        Ok(text) => Catalogue::builtin()
            .with_overrides(&text, &path)
            .map_err(|error| RuntimeError::Usage(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Catalogue::builtin()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(Catalogue::builtin()),
        Err(error) => Err(RuntimeError::Usage(format!("{}: {error}", path.display()))),
    }
}

/// Whether the catalogue has a model of this id or alias. False also where the user's own
/// catalogue cannot be read; whoever opens a project is told of that.
pub fn is_model(project_dir: &ProjectDir, name: &str) -> bool {
    catalogue(project_dir).is_ok_and(|catalogue| catalogue.resolve(name).entry.is_some())
}

fn tape(project_dir: &ProjectDir) -> Result<Tape, RuntimeError> {
    let Some(value) = project_dir.var("CODESPAR_CASSETTE") else {
        return Ok(Tape::None);
    };
    match value.split_once(':') {
        Some(("record", path)) if !path.is_empty() => Ok(Tape::Record(path.into())),
        Some(("replay", path)) if !path.is_empty() => Ok(Tape::Replay(path.into())),
        _ => Err(RuntimeError::Usage(format!(
            "CODESPAR_CASSETTE={value}: expected record:FILE or replay:FILE"
        ))),
    }
}
