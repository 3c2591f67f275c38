//! Which models there are: limits, aliases and prices, built in and overridable by the user.

use std::path::{Path, PathBuf};

use codespar_protocol::{Cost, Usage, Usd};
use serde::Deserialize;

const BUILTIN: &str = include_str!("catalogue.toml");
/// For entries that name none, such as a local model in the user's file.
const DEFAULT_CONTEXT_WINDOW: u64 = 200_000;
const DEFAULT_MAX_OUTPUT: u32 = 32_000;

/// What we know of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEntry {
    /// The provider's id.
    pub id: String,
    /// Short names for it.
    pub aliases: Vec<String>,
    /// Tokens of conversation and answer together.
    pub context_window: u64,
    /// Tokens of one answer.
    pub max_output: u32,
    /// What it costs, when that is known.
    pub prices: Option<Prices>,
}

impl ModelEntry {
    /// What this many tokens cost; `None` when the model has no known price.
    pub fn cost(&self, usage: &Usage) -> Option<Usd> {
        self.prices.map(|prices| prices.cost(usage))
    }
}

/// The lines of `models.toml` that give a model its price, to be shown to the user. The numbers are
/// an example.
pub fn price_lines(model: &str) -> String {
    let id = model.replace('\\', "\\\\").replace('"', "\\\"");
    format!(
        "[[model]]\nid = \"{id}\"\ninput = 3.0    # US dollars per million tokens: use the prices of \
         your provider\noutput = 15.0"
    )
}

/// Dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    /// Input outside the cache.
    pub input: Usd,
    pub output: Usd,
    /// Writing to the cache for five minutes.
    pub cache_write_5m: Usd,
    /// Writing to the cache for an hour.
    pub cache_write_1h: Usd,
    /// Reading from the cache.
    pub cache_read: Usd,
}

impl Prices {
    /// What this many tokens cost.
    pub fn cost(&self, usage: &Usage) -> Usd {
        let written_1h = usage.cache_creation_1h_input_tokens;
        let written_5m = usage.cache_creation_input_tokens.saturating_sub(written_1h);
        let mut sum = self.input.per_million(usage.input_tokens);
        sum += self.output.per_million(usage.output_tokens);
        sum += self.cache_write_5m.per_million(written_5m);
        sum += self.cache_write_1h.per_million(written_1h);
        sum += self.cache_read.per_million(usage.cache_read_input_tokens);
        sum += web_search_price(usage.web_search_requests);
        sum
    }
}

/// What searches of the web cost, the same for every model that has them: 10 dollars per thousand.
pub(crate) fn web_search_price(searches: u64) -> Usd {
    const ONE: u64 = 10_000_000;
    Usd::from_nanos(searches.saturating_mul(ONE))
}

/// A name made into an id. A name that the catalogue does not hold stays as it is: the provider
/// may know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved<'a> {
    /// What to send to the provider.
    pub id: String,
    /// What we know of it.
    pub entry: Option<&'a ModelEntry>,
}

/// A catalogue file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("model catalogue {}, line {line}: {message}", path.display())]
pub struct CatalogueError {
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

/// The models that we know. The last entry with a given alias has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalogue {
    entries: Vec<ModelEntry>,
}

impl Catalogue {
    /// The models that this version comes with.
    pub fn builtin() -> Self {
        // A test reads the embedded file, so an error here cannot reach a user.
        Self::default()
            .with_overrides(BUILTIN, Path::new("catalogue.toml"))
            .unwrap_or_default()
    }

    /// Adds the models of a TOML text to these. For a model that is already here, the fields
    /// given replace the earlier ones and the others stay.
    pub fn with_overrides(mut self, toml: &str, origin: &Path) -> Result<Self, CatalogueError> {
        let file: CatalogueFile = toml::from_str(toml).map_err(|error| CatalogueError {
            path: origin.to_owned(),
            line: error.span().map_or(1, |span| line_of(toml, span.start)),
            message: error.message().to_owned(),
        })?;
        for record in file.model {
            self.apply(record);
        }
        Ok(self)
    }

    /// Every model, in the order of the files.
    pub fn entries(&self) -> &[ModelEntry] {
        &self.entries
    }

    /// Makes an alias or a name into an id.
    pub fn resolve(&self, name: &str) -> Resolved<'_> {
        let by_alias = || {
            let has = |entry: &&ModelEntry| entry.aliases.iter().any(|alias| alias == name);
            self.entries.iter().rev().find(has)
        };
        if let Some(entry) = self.exact(name).or_else(by_alias) {
            return Resolved {
                id: entry.id.clone(),
                entry: Some(entry),
            };
        }
        Resolved {
            id: name.to_owned(),
            entry: undated(name).and_then(|id| self.exact(id)),
        }
    }

    /// The short names, each once.
    pub fn aliases(&self) -> Vec<&str> {
        let aliases = self.entries.iter().flat_map(|entry| &entry.aliases);
        let mut aliases: Vec<&str> = aliases.map(String::as_str).collect();
        aliases.sort_unstable();
        aliases.dedup();
        aliases
    }

    /// What a call cost. Without a known price that is "unknown", never nothing.
    pub fn cost(&self, model: &str, usage: &Usage) -> Cost {
        match self
            .resolve(model)
            .entry
            .and_then(|entry| entry.cost(usage))
        {
            Some(usd) => Cost::Known(usd),
            None => Cost::Unknown(Usd::ZERO),
        }
    }

    fn exact(&self, id: &str) -> Option<&ModelEntry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// A model keeps its place in the order when it is overridden.
    fn apply(&mut self, record: Record) {
        let prices = |earlier: Option<Prices>| record.prices(earlier);
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == record.id) {
            entry.prices = prices(entry.prices);
            entry.context_window = record.context_window.unwrap_or(entry.context_window);
            entry.max_output = record.max_output.unwrap_or(entry.max_output);
            if let Some(aliases) = record.aliases {
                entry.aliases = aliases;
            }
            return;
        }
        self.entries.push(ModelEntry {
            prices: prices(None),
            id: record.id,
            aliases: record.aliases.unwrap_or_default(),
            context_window: record.context_window.unwrap_or(DEFAULT_CONTEXT_WINDOW),
            max_output: record.max_output.unwrap_or(DEFAULT_MAX_OUTPUT),
        });
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogueFile {
    #[serde(default)]
    model: Vec<Record>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    id: String,
    aliases: Option<Vec<String>>,
    context_window: Option<u64>,
    max_output: Option<u32>,
    input: Option<Usd>,
    output: Option<Usd>,
    cache_write_5m: Option<Usd>,
    cache_write_1h: Option<Usd>,
    cache_read: Option<Usd>,
}

impl Record {
    /// Prices need an input and an output price. A new input price also moves the cache prices
    /// that follow from it, unless they are given.
    fn prices(&self, earlier: Option<Prices>) -> Option<Prices> {
        let input = self.input.or(earlier.map(|prices| prices.input))?;
        let output = self.output.or(earlier.map(|prices| prices.output))?;
        let kept = earlier.filter(|_| self.input.is_none());
        let share = |percent: u64| Usd::from_nanos(input.nanos() / 100 * percent);
        let or = |given: Option<Usd>, field: fn(Prices) -> Usd, percent: u64| {
            given.or(kept.map(field)).unwrap_or(share(percent))
        };
        Some(Prices {
            input,
            output,
            cache_write_5m: or(self.cache_write_5m, |prices| prices.cache_write_5m, 125),
            cache_write_1h: or(self.cache_write_1h, |prices| prices.cache_write_1h, 200),
            cache_read: or(self.cache_read, |prices| prices.cache_read, 10),
        })
    }
}

/// `claude-haiku-4-5-20251001` and `gpt-4o-2024-08-06` without their dates.
fn undated(name: &str) -> Option<&str> {
    let is_number = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let (id, last) = name.rsplit_once('-')?;
    if is_number(last, 8) {
        return Some(id);
    }
    let (id, month) = id.rsplit_once('-')?;
    let (id, year) = id.rsplit_once('-')?;
    (is_number(year, 4) && is_number(month, 2) && is_number(last, 2)).then_some(id)
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(dollars: f64) -> Usd {
        Usd::from_dollars(dollars).unwrap()
    }

    fn million_of_each() -> Usage {
        Usage {
            web_search_requests: 0,
            input_tokens: 1_000_000,
            output_tokens: 1_000_000,
            cache_creation_input_tokens: 3_000_000,
            cache_read_input_tokens: 1_000_000,
            cache_creation_1h_input_tokens: 1_000_000,
        }
    }

    #[test]
    fn every_known_model_has_its_published_price() {
        let catalogue = Catalogue::builtin();
        let listed = |id: &str| {
            let prices = catalogue.resolve(id).entry.unwrap().prices.unwrap();
            [
                prices.input,
                prices.output,
                prices.cache_write_5m,
                prices.cache_write_1h,
                prices.cache_read,
            ]
            .map(Usd::dollars)
        };
        assert_eq!(listed("claude-opus-5-5"), [4.0, 20.0, 5.0, 8.0, 0.2]);
        assert_eq!(listed("claude-sonnet-5-5"), [2.0, 10.0, 2.5, 4.0, 0.1]);
        assert_eq!(listed("claude-haiku-4-5"), [1.0, 5.0, 1.25, 2.0, 0.1]);
        assert_eq!(listed("claude-haiku-5-5"), [0.1, 0.5, 0.125, 0.2, 0.01]);
        assert_eq!(listed("claude-opus-5"), [5.0, 25.0, 6.25, 10.0, 0.5]);
        assert_eq!(listed("claude-sonnet-5"), [2.0, 10.0, 2.5, 4.0, 0.2]);
        assert_eq!(
            listed("claude-sonnet-4-20250514"),
            [3.0, 15.0, 3.75, 6.0, 0.3]
        );
        // Retired ones, by the ids that people have in their configuration.
        for (id, input, output) in [
            ("claude-opus-4-20250514", 15.0, 75.0),
            ("claude-opus-4-1-20250805", 15.0, 75.0),
            ("claude-sonnet-4-5-20250929", 3.0, 15.0),
            ("claude-3-7-sonnet-20250219", 3.0, 15.0),
            ("claude-3-5-sonnet-20241022", 3.0, 15.0),
            ("claude-3-5-haiku-20241022", 0.8, 4.0),
            ("claude-3-opus-20240229", 15.0, 75.0),
            ("claude-3-haiku-20240307", 0.25, 1.25),
        ] {
            assert_eq!(listed(id)[..2], [input, output], "{id}");
            assert_eq!(catalogue.resolve(id).id, id);
            let entry = catalogue.resolve(id).entry.unwrap();
            assert_eq!(entry.context_window, 200_000, "{id}");
        }
        assert_eq!(catalogue.entries().len(), 44);
    }

    #[test]
    fn aliases_name_the_newest_and_unknown_names_pass_through() {
        let catalogue = Catalogue::builtin();
        let id = |name: &str| catalogue.resolve(name).id;
        assert_eq!(id("opus"), "claude-opus-5-5");
        assert_eq!(id("sonnet"), "claude-sonnet-5-5");
        assert_eq!(id("haiku"), "claude-haiku-5-5");
        assert_eq!(
            catalogue.resolve("qwen3-coder"),
            Resolved {
                id: "qwen3-coder".to_owned(),
                entry: None
            }
        );
    }

    #[test]
    fn a_dated_id_is_sent_as_given_and_priced_as_its_undated_entry() {
        let catalogue = Catalogue::builtin();
        let resolved = catalogue.resolve("claude-haiku-4-5-20251001");
        assert_eq!(resolved.id, "claude-haiku-4-5-20251001");
        assert_eq!(resolved.entry.unwrap().id, "claude-haiku-4-5");
        assert_eq!(catalogue.resolve("claude-haiku-4-5-2025x001").entry, None);
        let resolved = catalogue.resolve("gpt-4o-2024-08-06");
        assert_eq!(resolved.id, "gpt-4o-2024-08-06");
        assert_eq!(resolved.entry.unwrap().id, "gpt-4o");
        assert_eq!(catalogue.resolve("gpt-4o-2024-8-06").entry, None);
    }

    #[test]
    fn models_of_openai_have_prices_and_their_cached_input_its_own() {
        let catalogue = Catalogue::builtin();
        let usage = Usage {
            input_tokens: 1_000_000,
            output_tokens: 100_000,
            cache_read_input_tokens: 2_000_000,
            ..Usage::default()
        };
        // 1.25 + 1 + 2 x 0.125, and 0.15 + 0.06 + 2 x 0.075
        assert_eq!(catalogue.cost("gpt-5", &usage), Cost::Known(usd(2.5)));
        assert_eq!(
            catalogue.cost("gpt-4o-mini-2024-07-18", &usage),
            Cost::Known(usd(0.36))
        );
    }

    #[test]
    fn both_cache_lifetimes_are_charged_at_their_own_price() {
        let cost = Catalogue::builtin().cost("opus", &million_of_each());
        // 4 + 20 + 2 x 5 + 1 x 8 + 0.2
        assert_eq!(cost, Cost::Known(usd(42.2)));
    }

    #[test]
    fn an_unknown_model_costs_an_unknown_amount_and_the_simulated_one_nothing() {
        let catalogue = Catalogue::builtin();
        let usage = million_of_each();
        assert_eq!(catalogue.cost("gpt-x", &usage), Cost::Unknown(Usd::ZERO));
        assert_eq!(catalogue.cost("simulated", &usage), Cost::Known(Usd::ZERO));
    }

    #[test]
    fn a_users_file_changes_the_fields_it_names_and_adds_models() {
        let text = r#"
            [[model]]
            id = "claude-opus-5-5"
            context_window = 1_000_000

            [[model]]
            id = "local"
            aliases = ["haiku"]
        "#;
        let catalogue = Catalogue::builtin()
            .with_overrides(text, Path::new("models.toml"))
            .unwrap();
        let opus = catalogue.resolve("opus").entry.unwrap();
        assert_eq!(opus.context_window, 1_000_000);
        assert_eq!(opus.prices.unwrap().cache_read, usd(0.2));
        let local = catalogue.resolve("haiku").entry.unwrap();
        assert_eq!(local.id, "local");
        assert_eq!(local.cost(&million_of_each()), None);
    }

    #[test]
    fn a_new_input_price_moves_the_cache_prices_that_follow_from_it() {
        let text = "[[model]]\nid = \"claude-opus-5-5\"\ninput = 10\ncache_read = 3\n";
        let catalogue = Catalogue::builtin()
            .with_overrides(text, Path::new("models.toml"))
            .unwrap();
        let expected = Prices {
            input: usd(10.0),
            output: usd(20.0),
            cache_write_5m: usd(12.5),
            cache_write_1h: usd(20.0),
            cache_read: usd(3.0),
        };
        assert_eq!(
            catalogue.resolve("opus").entry.unwrap().prices,
            Some(expected)
        );
    }

    #[test]
    fn a_bad_file_is_refused_with_its_name_and_line() {
        let refused = |text: &str| {
            Catalogue::builtin()
                .with_overrides(text, Path::new("/home/me/models.toml"))
                .unwrap_err()
        };
        let negative = refused("[[model]]\nid = \"a\"\ninput = -1.0\n");
        assert_eq!(
            negative.to_string(),
            "model catalogue /home/me/models.toml, line 3: -1 is not an amount of dollars"
        );
        let typo = refused("\n[[model]]\nid = \"a\"\ncontextwindow = 1\n");
        assert_eq!(typo.line, 4);
        assert_eq!(refused("[[model]\n").line, 1);
        assert_eq!(
            refused("[[model]]\nid = \"a\"\nmax_output = \"x\"\n").line,
            3
        );
    }
}
