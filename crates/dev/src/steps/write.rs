//! Generate and apply: the model's answer becomes a change that fits the files, or nothing.
//!
//! ```text
//! answer → parse → asks to see more     show it, ask again (twice, then it must answer)
//!                  no change            ask the user once, if there is one
//!                  does not fit         say what does not, ask again (`limits.repairs`)
//!                  fits                 the change
//! ```
//!
//! Every block of an answer applies or none does. Each question and answer is recorded under its
//! number in the conversation, so a later attempt replays it without a call.

use codespar_agent::Asked;
use codespar_change::{
    answer::{self, AnswerContext, AnswerEnding, ContextRequest},
    apply::{self, MapSource, ProtectedFiles, Refusal, Rules, SourceFile},
    verify::submodules,
};
use codespar_protocol::{Answer, ChangeSet, ClarificationRequest, QuestionRequest, RepoPath};
use codespar_pulls::{Forge, shorten};
use serde::{Deserialize, Serialize};

use super::{Base, Reading, Shown, blocking};
use crate::{
    Consent, Failure, RepositoryRef, images,
    run::{Conversation, Run},
};

const SYSTEM: &str = include_str!("../prompts/generate.md");
const REPAIR: &str = include_str!("../prompts/repair_apply.md");
const MORE: &str = include_str!("../prompts/more.md");
const ANSWER_NOW: &str = include_str!("../prompts/answer_now.md");
/// How often the model may ask to see more before it answers. Then it is told to answer with what
/// it has. A further request ends the run without a change.
const MOST_ASKED: u32 = 2;

/// A change that fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Written {
    pub(crate) changes: ChangeSet,
    pub(crate) title: String,
    pub(crate) summary: String,
    /// The model that wrote it.
    pub(crate) model: String,
    /// The answer it came from.
    pub(crate) answer: String,
    pub(crate) is_simulated: bool,
    /// Why no model was asked, if none was.
    #[serde(default)]
    pub(crate) why_simulated: Option<String>,
}

/// What became of an answer.
pub(super) enum Tried {
    Fits(ChangeSet, answer::ParsedAnswer),
    /// It does not; the words are for the model.
    Refused(String),
    /// It is none yet: the model wants to see more.
    Asks(Vec<ContextRequest>),
}

/// What the model has seen: at first, and after it asked for more.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) reading: &'a Reading,
    pub(super) more: &'a [Shown],
}

impl<'a> Seen<'a> {
    fn files(self) -> impl Iterator<Item = &'a Shown> {
        self.reading.files.iter().chain(self.more)
    }

    /// Whether it has seen all of a file. Only then may it replace the file whole: what it has not
    /// seen would be lost.
    fn has_whole(self, path: &str) -> bool {
        self.files()
            .any(|file| file.path == path && file.is_whole())
    }

    /// Whether it has seen marks in place of secrets.
    fn hides_secrets(self) -> bool {
        self.files().any(|file| file.is_redacted)
    }
}

impl Run {
    /// What stands in for a change when no model can be asked.
    pub(crate) fn simulate(&self) -> Written {
        let text = self.redacted(&format!("[Simulated] Would fix: {}", self.order.subject()));
        Written {
            changes: ChangeSet::default(),
            title: shorten(&text),
            summary: text,
            model: "simulated".to_owned(),
            answer: String::new(),
            is_simulated: true,
            why_simulated: Some(self.setup.provider_choice.clone()),
        }
    }

    /// The conversation with the model that writes.
    pub(crate) fn begin(&self, base: &Base, reading: &Reading) -> Result<Conversation, Failure> {
        let pictures = images::blocks(&self.order.images)?;
        let text = format!(
            "<repository>{}</repository>\n{}",
            self.place(base),
            reading.prompt(&self.order.instruction)
        );
        Ok(Conversation::new(text, pictures))
    }

    /// The repository, the branch and the commit, for the model. Of a local repository its name
    /// alone: where it is on this machine is nobody's business.
    pub(crate) fn place(&self, base: &Base) -> String {
        let name = match &self.order.repository {
            RepositoryRef::GitHub { owner, name } => format!("{owner}/{name}"),
            RepositoryRef::Local { path } => path.file_name().map_or_else(
                || "local".to_owned(),
                |name| name.to_string_lossy().into_owned(),
            ),
        };
        let commit = base.commit.short();
        match base.pull_request {
            Some(number) => format!(
                "{name}, branch {} of pull request #{number} at {commit}",
                base.branch
            ),
            None => format!("{name}, branch {} at {commit}", base.base),
        }
    }

    /// Asks until the answer fits, or the repairs are used up. Never returns a change that was not
    /// tried on the files of the base commit.
    pub(crate) async fn write(
        &self,
        base: &Base,
        reading: &Reading,
        conversation: &mut Conversation,
    ) -> Result<Written, Failure> {
        let model = (self.setup.names)(&self.order.task_model);
        self.say("generate", &format!("🤖 Analysing with {model}…"));
        let (mut repairs, mut asked_more) = (0, 0);
        loop {
            conversation.answers += 1;
            let step = format!("write-{}", conversation.answers);
            let asked = self
                .ask(
                    &step,
                    &self.order.task_model,
                    SYSTEM.trim(),
                    conversation.messages.clone(),
                )
                .await?;
            if asked.rounds > 1 {
                self.say(
                    "generate",
                    &format!("   the answer came in {} parts", asked.rounds),
                );
            }
            let seen = Seen {
                reading,
                more: &conversation.shown,
            };
            let unchanged = ChangeSet::default();
            let tried = match self.try_answer(&asked, base, seen, &unchanged).await {
                Err(Failure::NoChanges(explanation)) => {
                    let reply = self.ask_person(explanation, conversation).await?;
                    conversation.reply(&asked.text, reply);
                    continue;
                }
                other => other?,
            };
            let problem = match tried {
                Tried::Fits(changes, answer) => {
                    return Ok(self.written(asked, changes, answer));
                }
                Tried::Refused(problem) => problem,
                Tried::Asks(requests) => {
                    asked_more += 1;
                    let reply = self
                        .answer_request(base, reading, conversation, &requests, asked_more)
                        .await?;
                    let Some(reply) = reply else {
                        return Err(Failure::NoChanges(asked.text));
                    };
                    conversation.reply(&asked.text, reply);
                    continue;
                }
            };
            if repairs == self.order.limits.repairs {
                return Err(Failure::NotApplied(problem));
            }
            repairs += 1;
            self.say(
                "apply",
                &format!(
                    "🔧 The change does not fit the files; repair {repairs} of {}…",
                    self.order.limits.repairs
                ),
            );
            conversation.reply(&asked.text, format!("{}\n\n{problem}", REPAIR.trim()));
        }
    }

    fn written(&self, asked: Asked, changes: ChangeSet, answer: answer::ParsedAnswer) -> Written {
        let answer = answer::ParsedAnswer {
            summary: self.redacted(&answer.summary),
            ..answer
        };
        let title = answer.title();
        Written {
            changes,
            title: title.unwrap_or_else(|| shorten(&self.redacted(self.order.subject()))),
            summary: answer.summary,
            model: asked.model,
            answer: asked.text,
            is_simulated: false,
            why_simulated: None,
        }
    }

    /// What is said to a model that wants to see more, for the `times`-th time. Nothing to one that
    /// was told to answer and asks again.
    pub(super) async fn answer_request(
        &self,
        base: &Base,
        reading: &Reading,
        conversation: &mut Conversation,
        requests: &[ContextRequest],
        times: u32,
    ) -> Result<Option<String>, Failure> {
        if times > MOST_ASKED {
            let is_first = times == MOST_ASKED + 1;
            return Ok(is_first.then(|| ANSWER_NOW.trim().to_owned()));
        }
        let wanted: Vec<String> = requests.iter().map(ToString::to_string).collect();
        self.say(
            "generate",
            &format!("   the model asks for more: {}", wanted.join(", ")),
        );
        let shown = self
            .show_more(base, reading, conversation, requests)
            .await?;
        Ok(Some(format!("{}\n\n{shown}", MORE.trim())))
    }

    /// An answer without a change may be a question. The user is asked once; without them, or
    /// without their answer, there is no change. The question is stored, so an answer may come from
    /// another process, or after a restart. While it waits, a stop ends it.
    async fn ask_person(
        &self,
        explanation: String,
        conversation: &mut Conversation,
    ) -> Result<String, Failure> {
        const STEP: &str = "reply";
        if conversation.person_was_asked {
            return Err(Failure::NoChanges(explanation));
        }
        conversation.person_was_asked = true;
        let reply: Option<String> = match self.ledger.known(STEP)? {
            Some(known) => known,
            None => {
                let text = self.redacted(&explanation);
                let request = QuestionRequest::Clarification(ClarificationRequest { text });
                let source = self.question_source()?;
                let answer = tokio::select! {
                    answer = self.hub.questions().ask(&source, STEP, request) => answer,
                    () = self.stop.token().cancelled() => return Err(Failure::Stopped),
                };
                // A no is not recorded: whoever resumes the run may have an answer.
                let Answer::Text { text } = answer else {
                    return Err(Failure::NoChanges(explanation));
                };
                let reply = Some(text);
                self.ledger.record(STEP, &reply).await?;
                reply
            }
        };
        reply.ok_or(Failure::NoChanges(explanation))
    }

    /// Tries an answer on the files as they are at the commit with an earlier change. What comes
    /// out is the change from there on. `Err(NoChanges)` if it has no blocks, or if all of them
    /// leave their files as they are. Marks in place of secrets become the secrets again before the
    /// blocks are applied.
    pub(super) async fn try_answer(
        &self,
        asked: &Asked,
        base: &Base,
        seen: Seen<'_>,
        earlier: &ChangeSet,
    ) -> Result<Tried, Failure> {
        let text = asked.text.as_str();
        let mut shown: Vec<&str> = seen.files().map(|file| file.path.as_str()).collect();
        shown.sort_unstable();
        shown.dedup();
        let context = AnswerContext {
            shown: &shown,
            ending: if asked.is_complete {
                AnswerEnding::Complete
            } else {
                AnswerEnding::Unknown
            },
        };
        let mut answer = match answer::parse(text, &context) {
            Ok(answer) => answer,
            Err(error) => return Ok(Tried::Refused(Refusal::from(error).for_model())),
        };
        if !answer.requests.is_empty() {
            return Ok(Tried::Asks(answer.requests));
        }
        if answer.ops.is_empty() {
            return Err(Failure::NoChanges(text.trim().to_owned()));
        }
        let source = self.source(&answer, base, seen, earlier).await?;
        if seen.hides_secrets() {
            match apply::restored(answer, &source, &self.setup.redactor) {
                Ok(meant) => answer = meant,
                Err(refusal) => return Ok(Tried::Refused(refusal.for_model())),
            }
        }
        match apply::apply(&answer, &source, &self.rules()?) {
            Ok(applied) if applied.changes.is_empty() => Err(Failure::NoChanges(format!(
                "{}\n\n(Every block leaves its file as it is.)",
                text.trim()
            ))),
            Ok(applied) => Ok(Tried::Fits(applied.changes, answer)),
            Err(refusal) => Ok(Tried::Refused(refusal.for_model())),
        }
    }

    /// The tree at the commit with an earlier change, and the content of the files that the answer
    /// names. All paths of the commit are listed, since a new file must not collide with any of
    /// them; contents are read only of files that the answer names.
    async fn source(
        &self,
        answer: &answer::ParsedAnswer,
        base: &Base,
        seen: Seen<'_>,
        earlier: &ChangeSet,
    ) -> Result<MapSource, Failure> {
        let mut source = MapSource::new();
        for entry in self.link.forge.tree(&base.commit).await? {
            // A name that could not be changed cannot be in the way either.
            if let Ok(path) = RepoPath::new(&entry.path) {
                source.list(path, entry.mode);
            }
        }
        // The forge leaves them out, and a file below one would take its place.
        if let Some(clone) = self.link.clone.clone() {
            let commit = base.commit.clone();
            for path in blocking(move || Ok(submodules(&clone, &commit)?)).await? {
                if let Ok(path) = RepoPath::new(&path) {
                    source.insert_repository(path);
                }
            }
        }
        for path in answer.paths() {
            let Ok(path) = RepoPath::new(path) else {
                continue;
            };
            if let Some(file) = self.link.forge.file(&base.commit, &path).await? {
                // What was not shown is as good as shown in part.
                let partial = !seen.has_whole(path.as_str());
                source.insert(
                    path,
                    SourceFile {
                        content: file.content,
                        mode: file.mode,
                        partial,
                    },
                );
            }
        }
        source.change(earlier, |path| seen.has_whole(path));
        Ok(source)
    }

    /// What the change may touch. Patterns of the settings replace the usual ones; some files are
    /// protected whatever they say.
    pub(crate) fn rules(&self) -> Result<Rules, Failure> {
        let patterns = self
            .order
            .protected_globs
            .clone()
            .unwrap_or_else(Rules::default_patterns);
        let protected = match self.order.protected {
            Consent::Granted => ProtectedFiles::Allowed,
            Consent::Withheld => ProtectedFiles::Refused,
        };
        Rules::new(patterns, protected).map_err(|error| Failure::Refused(error.to_string()))
    }
}
