//! Skills: instructions for a kind of work, in a directory of their own; and the tool to load one.
//!
//! ```text
//! .codespar/skills/pdf/SKILL.md     head: name, description, …; body: instructions
//! .codespar/skills/pdf/form.py      files the instructions may refer to
//! ```
//!
//! Names and descriptions are read when a project is opened and listed in the system prompt. The
//! body is read when the skill is used, so an edited skill takes effect at once and unused ones
//! cost no context. A skill is text only: loading it grants nothing and runs nothing.
//!
//! Heads are read leniently, since most were written for another tool: unknown fields are ignored,
//! a description that is no YAML is the text of its line, and there need not be a head at all.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use codespar_policy::Access;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, blocking,
    frontmatter::{self, Fields, FrontmatterError},
    input,
};

/// The file that makes a directory a skill.
const FILE: &str = "SKILL.md";
/// The most of it.
const MAX_BYTES: u64 = 1024 * 1024;
/// Fields that have a meaning here.
const KNOWN: [&str; 10] = [
    "name",
    "description",
    "argument-hint",
    "allowed-tools",
    "allowed_tools",
    "disable-model-invocation",
    "user-invocable",
    "context",
    "agent",
    "model",
];
/// Characters of a description in the listing. The listing is in every request.
const LISTED_CHARS: usize = 300;

/// A place where skills are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillDir {
    /// Each directory in it with a `SKILL.md` is a skill.
    pub path: PathBuf,
    /// Whose it is: `project`, `user`.
    pub origin: &'static str,
}

/// A skill, without its text, which is read when it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// What it is called by.
    pub name: String,
    /// What it is for and when to use it.
    pub description: String,
    /// What it takes where the user starts it, in words; empty where it does not say.
    pub argument_hint: String,
    /// The tools it says it needs. Nothing is granted by it, unless the user starts a skill of
    /// their own.
    pub allowed_tools: Vec<String>,
    /// Who may load it.
    pub audience: SkillAudience,
    /// The agent that is to carry it out apart from the conversation, if it wants one.
    pub fork: Option<String>,
    /// The model that it wants, by id or alias, where the user starts it.
    pub model: Option<String>,
    /// Told to the model with the text, so that it finds the files beside it.
    pub dir: PathBuf,
    /// Whose it is.
    pub origin: &'static str,
}

/// Who may load a skill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SkillAudience {
    #[default]
    Everybody,
    /// The user, as `/name` (`disable-model-invocation`).
    User,
    /// The model (`user-invocable: false`).
    Model,
}

/// A skill that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {message}", path.display())]
pub struct SkillProblem {
    pub path: PathBuf,
    /// The line in it, from 1.
    pub line: usize,
    pub message: String,
}

/// In the order of the directories they were found in, by name of directory within each. Names are
/// unique.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skills(Vec<Skill>);

impl Skills {
    /// Looks through the directories; of two skills with one name the first counts. What cannot
    /// be used comes back as problems. A directory that is not there is no problem.
    pub fn load(dirs: &[SkillDir]) -> (Self, Vec<SkillProblem>) {
        let mut found = (Self::default(), Vec::new());
        for SkillDir { path, origin } in dirs {
            found.0.add(&Self::places(path), origin, &mut found.1);
        }
        found
    }

    /// The same for directories that are skills themselves.
    pub fn of_places(places: &[PathBuf], origin: &'static str) -> (Self, Vec<SkillProblem>) {
        let mut found = (Self::default(), Vec::new());
        found.0.add(places, origin, &mut found.1);
        found
    }

    fn add(&mut self, places: &[PathBuf], origin: &'static str, problems: &mut Vec<SkillProblem>) {
        for place in places {
            match read(place, origin) {
                Ok(skill) if self.get(&skill.name).is_some() => {}
                Ok(skill) => self.0.push(skill),
                Err(problem) => problems.push(problem),
            }
        }
    }

    /// The directories in this one that are skills, by name.
    pub fn places(dir: &Path) -> Vec<PathBuf> {
        let mut places: Vec<PathBuf> = fs::read_dir(dir)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|place| Self::is_place(place))
            .collect();
        places.sort_unstable();
        places
    }

    /// Whether a directory is a skill.
    pub fn is_place(dir: &Path) -> bool {
        dir.join(FILE).is_file()
    }

    /// Every skill in a directory, however deep, whatever it is called: to look for mistakes. Also
    /// what was not looked at.
    pub fn check(dir: &Path) -> (Vec<Skill>, Vec<SkillProblem>) {
        let nested = codespar_files::nested(dir, "md");
        let left_out = nested.left_out.into_iter();
        let mut problems: Vec<SkillProblem> = left_out
            .map(|(path, why)| SkillProblem {
                path,
                line: 1,
                message: format!("cannot be read: {why}"),
            })
            .collect();
        let mut skills = Vec::new();
        for file in nested.files.iter().filter(|file| file.ends_with(FILE)) {
            match read(file.parent().unwrap_or(dir), "checked") {
                Ok(skill) => skills.push(skill),
                Err(problem) => problems.push(problem),
            }
        }
        (skills, problems)
    }

    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.0.iter().find(|skill| skill.name == name)
    }

    /// The text of the skill of that name.
    pub fn text(&self, name: &str) -> Result<String, ToolError> {
        text(self.named(name)?, "")
    }

    /// Adds the skills of a plugin, whose names begin with its own.
    pub fn add_plugin(&mut self, plugin: &str, others: Self) {
        for mut skill in others.0 {
            skill.name = format!("{plugin}:{}", skill.name);
            if self.get(&skill.name).is_none() {
                self.0.push(skill);
            }
        }
    }

    /// Leaves out those whose name is not wanted.
    pub fn keep(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.0.retain(|skill| is_wanted(&skill.name));
    }

    /// The same with its place for arguments left open (`$ARGUMENTS`).
    pub fn body(&self, name: &str) -> Result<String, ToolError> {
        text(self.named(name)?, "$ARGUMENTS")
    }

    /// The skill, or an error that lists the names there are.
    fn named(&self, name: &str) -> Result<&Skill, ToolError> {
        self.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.iter().map(|skill| skill.name.as_str()).collect();
            ToolError(if names.is_empty() {
                format!("there is no skill `{name}`; there are none")
            } else {
                format!(
                    "there is no skill `{name}`; there are: {}",
                    names.join(", ")
                )
            })
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Skill> {
        self.0.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One line for each skill that the model may load, for the system prompt; empty when there are
    /// none.
    pub fn listing(&self) -> String {
        let listed = self
            .0
            .iter()
            .filter(|skill| skill.audience != SkillAudience::User);
        let lines = listed.map(|skill| {
            let words: Vec<&str> = skill.description.split_whitespace().collect();
            let description = words.join(" ");
            let short: String = description.chars().take(LISTED_CHARS).collect();
            let mark = if short.len() < description.len() {
                "…"
            } else {
                ""
            };
            format!("- {}: {short}{mark}", skill.name)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The name in the form in which it can be typed: what is not of it separates words.
fn usual_name(written: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if written.chars().all(plain) {
        return written.to_owned();
    }
    let lower = written.to_lowercase();
    let words = lower.split(|c| !plain(c)).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// Reads the head of a skill. Without a name it has that of its directory. The name is restricted
/// because users and models type it, and because it appears in rules and messages.
fn read(dir: &Path, origin: &'static str) -> Result<Skill, SkillProblem> {
    let path = dir.join(FILE);
    let problem = |line, message: String| SkillProblem {
        path: path.clone(),
        line,
        message,
    };
    let text = codespar_files::read_text(&path, MAX_BYTES)
        .map_err(|error| problem(1, format!("cannot be read: {error}")))?;
    let (fields, body) = head_and_body(&text).map_err(|it| problem(it.line, it.message))?;
    let at = |key: &str| {
        let found = text.lines().position(|line| line.starts_with(key));
        found.map_or(1, |index| index + 1)
    };
    let word = |key: &str| match fields.get(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        _ => None,
    };
    let is = |key: &str, wanted: bool| match fields.get(key) {
        Some(Value::Bool(value)) => *value == wanted,
        Some(Value::String(text)) => text.trim() == wanted.to_string(),
        _ => false,
    };
    let own_name = || {
        dir.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let written = word("name").unwrap_or_else(own_name);
    let name = usual_name(&written);
    if name.is_empty() {
        return Err(problem(
            at("name:"),
            format!("`{written}` is not a name: use letters, digits and hyphens"),
        ));
    }
    // Without one, the text says what it is about.
    let Some(description) = word("description").or_else(|| first_paragraph(body)) else {
        let message = "the description is empty: say when to use this skill".to_owned();
        return Err(problem(at("description:"), message));
    };
    let tools = fields.get("allowed-tools").or(fields.get("allowed_tools"));
    let agent = || word("agent").unwrap_or_else(|| "general-purpose".to_owned());
    let argument_hint = match fields.get("argument-hint") {
        Some(Value::String(text)) => text.trim().to_owned(),
        // `[file]` is a list for YAML.
        Some(list @ Value::Array(_)) => format!("[{}]", frontmatter::names(list).join(", ")),
        _ => String::new(),
    };
    Ok(Skill {
        description,
        argument_hint,
        allowed_tools: tools.map(frontmatter::names).unwrap_or_default(),
        audience: if is("disable-model-invocation", true) {
            SkillAudience::User
        } else if is("user-invocable", false) {
            SkillAudience::Model
        } else {
            SkillAudience::Everybody
        },
        fork: (word("context").as_deref() == Some("fork")).then(agent),
        model: word("model").filter(|model| model != "inherit"),
        name,
        dir: dir.to_owned(),
        origin,
    })
}

/// All fields are optional, and so is the head.
fn head_and_body(text: &str) -> Result<(Fields, &str), FrontmatterError> {
    if !frontmatter::has_head(text) {
        return Ok((Fields::new(), text));
    }
    let (fields, body, _) = frontmatter::parse_loosely(text, &KNOWN)?;
    Ok((fields, body))
}

/// The first lines that belong together, on one line. A heading says less than what follows it, and
/// is taken where nothing does.
fn first_paragraph(body: &str) -> Option<String> {
    let body = body.trim_start_matches('\u{feff}');
    let lines = || body.lines().map(str::trim);
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let text: Vec<&str> = lines()
        .skip_while(|line| !is_text(line))
        .take_while(is_text)
        .collect();
    if !text.is_empty() {
        return Some(text.join(" "));
    }
    let headings = lines().map(|line| line.trim_start_matches('#').trim());
    headings
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .next()
}

pub(crate) struct UseSkill;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    name: String,
    args: Option<String>,
}

#[async_trait]
impl Tool for UseSkill {
    fn name(&self) -> &str {
        "Skill"
    }

    fn description(&self) -> &str {
        "Loads a skill: instructions to follow for a kind of work. Load it before you start such \
         work."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    fn inspect(&self, input: &RawValue, context: &Context) -> Result<Intent, ToolError> {
        let input: Input = input::parse(input)?;
        let skill = wanted(&input, context)?;
        Ok(Intent {
            summary: skill.name.clone(),
            access: vec![Access::Named(skill.name.clone())],
        })
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        let load = async {
            let input: Input = input::parse(&call.input)?;
            let skill = wanted(&input, context)?.clone();
            let args = input.args.unwrap_or_default();
            blocking::look(call.cancel, move |_| text(&skill, &args)).await
        };
        load.await.map_or_else(ToolOutput::from, ToolOutput::text)
    }
}

/// A leading slash is dropped, since users write `/name`.
fn wanted<'a>(input: &Input, context: &'a Context) -> Result<&'a Skill, ToolError> {
    let name = input.name.trim_start_matches('/');
    let skill = context.skills().named(name)?;
    match skill.audience {
        SkillAudience::User => Err(ToolError(format!(
            "only the user can start the skill `{name}`, with /{name}"
        ))),
        _ => Ok(skill),
    }
}

/// `$ARGUMENTS` in the body is replaced wherever it stands; a body without it gets the arguments at
/// its end. The arguments are inserted as they are and not expanded again. A skill that wants an
/// agent of its own says so first.
fn text(skill: &Skill, args: &str) -> Result<String, ToolError> {
    let dir = &skill.dir;
    let path = dir.join(FILE);
    let wrong = |error: &dyn std::fmt::Display| ToolError(format!("{}: {error}", path.display()));
    let text = codespar_files::read_text(&path, MAX_BYTES).map_err(|error| wrong(&error))?;
    let body = match frontmatter::has_head(&text) {
        true => {
            frontmatter::split(&text)
                .map_err(|error| wrong(&error))?
                .body
        }
        false => text.as_str(),
    };
    let body = body.trim_start_matches('\u{feff}').trim();
    let body = if body.contains("$ARGUMENTS") {
        body.replace("$ARGUMENTS", args)
    } else if args.is_empty() || args == "$ARGUMENTS" {
        body.to_owned()
    } else {
        format!("{body}\n\nArguments: {args}")
    };
    let apart = skill.fork.as_ref().map(|agent| {
        format!(
            "Let a subagent carry this skill out: call Task with subagent_type `{agent}` and the \
             text below as its prompt, and report its result. Do it yourself only if there is no \
             Task tool.\n\n"
        )
    });
    Ok(format!(
        "{}Base directory of this skill: {}\n\n{body}",
        apart.unwrap_or_default(),
        dir.display()
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Bench;

    fn load(bench: &Bench, dirs: &[&str]) -> (Skills, Vec<SkillProblem>) {
        let dir = |name: &&str| SkillDir {
            path: bench.path(name),
            origin: "project",
        };
        Skills::load(&dirs.iter().map(dir).collect::<Vec<_>>())
    }

    #[test]
    fn a_name_that_cannot_be_typed_is_made_one_that_can() {
        for (written, name) in [
            ("pdf", "pdf"),
            ("guard:look_2", "guard:look_2"),
            ("Customer.io Automation", "customer.io-automation"),
            ("../../etc", "..-..-etc"),
            ("a\u{1b}[31m b", "a-31m-b"),
            ("!?", ""),
        ] {
            assert_eq!(usual_name(written), name);
        }
    }

    #[test]
    fn skills_are_found_the_first_directory_wins_and_problems_have_a_line() {
        let bench = Bench::new();
        bench.write("near/pdf/SKILL.md", "---\nname: pdf\ndescription: Near\n  one\nallowed-tools: Read, Bash(git add, git log)\nlicense: MIT\n---\nBody");
        bench.write(
            "near/broken/SKILL.md",
            "---\nname: broken\ndescription: d\n",
        );
        bench.write(
            "near/blank/SKILL.md",
            "---\nname: blank\ndescription: ' '\n---\n",
        );
        bench.write("near/no-skill/README.md", "");
        bench.write(
            "far/pdf/SKILL.md",
            "---\nname: pdf\ndescription: Far one\n---\n",
        );
        bench.write(
            "far/unnamed/SKILL.md",
            "---\ndescription: Named by its directory\nallowed-tools: [Read]\n---\n",
        );
        let (skills, problems) = load(&bench, &["near", "far", "absent"]);
        let skill = |name: &str, description: &str, tools: &[&str], dir: &str| Skill {
            name: name.into(),
            description: description.into(),
            argument_hint: String::new(),
            allowed_tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
            audience: SkillAudience::Everybody,
            fork: None,
            model: None,
            dir: bench.path(dir),
            origin: "project",
        };
        assert_eq!(
            skills,
            Skills(vec![
                skill(
                    "pdf",
                    "Near one",
                    &["Read", "Bash(git add, git log)"],
                    "near/pdf"
                ),
                skill(
                    "unnamed",
                    "Named by its directory",
                    &["Read"],
                    "far/unnamed"
                ),
            ])
        );
        assert_eq!(
            skills.listing(),
            "- pdf: Near one\n- unnamed: Named by its directory"
        );
        let blank = SkillProblem {
            path: bench.path("near/blank/SKILL.md"),
            line: 3,
            message: "the description is empty: say when to use this skill".into(),
        };
        assert_eq!(problems[0], blank);
        assert_eq!(problems[1].path, bench.path("near/broken/SKILL.md"));
        assert_eq!(problems.len(), 2);
    }

    #[tokio::test]
    async fn fields_say_who_may_load_a_skill_and_who_carries_it_out() {
        let files = Bench::new();
        files.write(
            "s/deploy/SKILL.md",
            "---\ndescription: Use this: when asked\ndisable-model-invocation: true\nmodel: haiku\n---\nGo",
        );
        files.write(
            "s/look/SKILL.md",
            "---\nuser-invocable: false\ncontext: fork\nagent: Explore\n---\n# Look\n\nLooks\naround\n\nMore",
        );
        let skills = load(&files, &["s"]).0;
        assert_eq!(skills.listing(), "- look: Looks around");
        let deploy = skills.get("deploy").unwrap();
        assert_eq!(deploy.description, "Use this: when asked");
        assert_eq!(
            (deploy.audience, deploy.model.as_deref()),
            (SkillAudience::User, Some("haiku"))
        );
        let look = skills.get("look").unwrap();
        assert_eq!(
            (look.audience, look.fork.as_deref()),
            (SkillAudience::Model, Some("Explore"))
        );
        assert!(skills.text("deploy").unwrap().ends_with("Go"));
        let bench = Bench::with_skills(skills);
        assert_eq!(
            bench.fail(&UseSkill, json!({"name": "deploy"})).await,
            "only the user can start the skill `deploy`, with /deploy"
        );
        let told = bench.run(&UseSkill, json!({"name": "look"})).await;
        assert!(told.starts_with(
            "Let a subagent carry this skill out: call Task with subagent_type `Explore`"
        ));
    }

    #[tokio::test]
    async fn a_skill_needs_no_head() {
        let files = Bench::new();
        files.write(
            "s/tidy/SKILL.md",
            "# Tidy up\n\nSorts\nimports.\n\nThen more.\n",
        );
        files.write("s/title/SKILL.md", "\u{feff}# A title alone\n");
        files.write("s/empty/SKILL.md", "\n");
        files.write(
            "s/blank/SKILL.md",
            "---\ndescription: ''\n---\nOf the text\n",
        );
        let (skills, problems) = load(&files, &["s"]);
        assert_eq!(
            skills.listing(),
            "- blank: Of the text\n- tidy: Sorts imports.\n- title: A title alone"
        );
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].path.ends_with("s/empty/SKILL.md"));
        let text = skills.text("tidy").unwrap();
        assert!(
            text.ends_with("# Tidy up\n\nSorts\nimports.\n\nThen more."),
            "{text}"
        );
        let (checked, problems) = Skills::check(&files.path("."));
        assert_eq!((checked.len(), problems.len()), (3, 1));
    }

    #[test]
    fn no_skills_are_listed_as_nothing() {
        assert_eq!(Skills::default().listing(), "");
        assert!(Skills::default().is_empty());
    }

    #[tokio::test]
    async fn a_skill_comes_with_its_arguments_and_directory() {
        let files = Bench::new();
        files.write(
            "s/fix/SKILL.md",
            "---\ndescription: d\n---\nFix $ARGUMENTS. Again: $ARGUMENTS\n",
        );
        files.write("s/plain/SKILL.md", "---\ndescription: d\n---\nJust do\n");
        let bench = Bench::with_skills(load(&files, &["s"]).0);
        let base = |name: &str| {
            let dir = files.path("s").join(name);
            format!("Base directory of this skill: {}\n\n", dir.display())
        };
        assert_eq!(
            bench
                .run(&UseSkill, json!({"name": "fix", "args": "$1 bug"}))
                .await,
            base("fix") + "Fix $1 bug. Again: $1 bug"
        );
        assert_eq!(
            bench
                .run(&UseSkill, json!({"name": "/plain", "args": "it"}))
                .await,
            base("plain") + "Just do\n\nArguments: it"
        );
        assert_eq!(
            bench.run(&UseSkill, json!({"name": "plain"})).await,
            base("plain") + "Just do"
        );
        assert_eq!(
            bench
                .inspect(&UseSkill, &json!({"name": "fix"}))
                .unwrap()
                .access,
            [Access::Named("fix".into())]
        );
        assert_eq!(
            bench.fail(&UseSkill, json!({"name": "other"})).await,
            "there is no skill `other`; there are: fix, plain"
        );
        assert_eq!(
            Bench::new().fail(&UseSkill, json!({"name": "other"})).await,
            "there is no skill `other`; there are none"
        );
    }
}
