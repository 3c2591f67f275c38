//! `schedule`, `schedules`, `unschedule`, and what is done when the time of a schedule has come.
//!
//! A run is a message of the person who made the schedule, put on record in one transaction with the
//! next time; it is decided on like any other, so their rights count as they are at that moment.

use codespar_runtime::RuntimeError;
use codespar_store::{ChannelTimer, StoreError, TimerChange, TimerKind, TimerState};
use jiff::{Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};

use super::{ChannelCore, decide::Turn, pulls::Said, timers::message_of};
use crate::{
    ForgeOrigin, Outbound, OutboundKind, Speaker,
    message::Origin,
    times::{Times, time_zone},
};

/// More than a conversation needs, and fewer than do harm.
const MOST: usize = 20;

/// What is kept of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ScheduleBody {
    speaker: Speaker,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forge: Option<ForgeOrigin>,
    /// As the person wrote it.
    times: String,
    /// The zone of the settings when it was made.
    zone: String,
    command: String,
}

impl ChannelCore {
    /// The id is that of the message, so a command that a crash interrupted makes no second one.
    pub(crate) async fn schedule(
        &self,
        turn: &Turn,
        when: &str,
        line: &str,
    ) -> Result<Said, RuntimeError> {
        let id = format!("s{}", turn.message.seq);
        if let Some(made) = self.store().timer(&id).await? {
            return Ok(Said::text(format!(
                "{id} is scheduled: {}",
                described(&made)
            )));
        }
        let times = Times::parse(when).map_err(RuntimeError::Usage)?;
        let zone_name = self
            .settings()
            .time_zone
            .unwrap_or_else(|| "UTC".to_owned());
        let zone = time_zone(&zone_name).map_err(RuntimeError::Usage)?;
        let at = &turn.message.at;
        let known = self.schedules_here(turn).await?;
        if known.len() >= MOST {
            return Err(RuntimeError::Usage(format!(
                "this conversation has {MOST} schedules; remove one with `unschedule <id>`"
            )));
        }
        let next_at = times.first(Timestamp::now(), &zone).ok_or_else(|| {
            RuntimeError::Usage(format!("`{when}` has passed already ({zone_name})"))
        })?;
        let body = ScheduleBody {
            speaker: turn.kept.speaker.clone(),
            forge: turn.kept.forge.as_ref().map(ForgeOrigin::for_later),
            times: when.to_owned(),
            zone: zone_name,
            command: line.to_owned(),
        };
        let timer = ChannelTimer {
            id: id.clone(),
            kind: TimerKind::Schedule,
            at: at.clone(),
            body: serde_json::to_string(&body).unwrap_or_default(),
            state: TimerState::Active,
            next_at,
        };
        let said = format!("{id} is scheduled: {}", described(&timer));
        self.store().put_timer(timer).await?;
        self.reach("scheduled");
        Ok(Said::text(said))
    }

    /// Also the paused ones: somebody looks for them because they do not run.
    async fn schedules_here(&self, turn: &Turn) -> Result<Vec<ChannelTimer>, StoreError> {
        let at = &turn.message.at;
        let all = self
            .store()
            .timers_of(&at.channel, &at.conversation, TimerKind::Schedule)
            .await?;
        let is_there = |timer: &ChannelTimer| timer.state != TimerState::Ended;
        Ok(all.into_iter().filter(is_there).collect())
    }

    /// Those of this conversation, with their ids, which `unschedule` takes.
    pub(crate) async fn list_schedules(&self, turn: &Turn) -> Result<Said, RuntimeError> {
        let known = self.schedules_here(turn).await?;
        let lines: Vec<String> = known
            .iter()
            .map(|timer| format!("{} {}", timer.id, described(timer)))
            .collect();
        Ok(Said::text(match lines.is_empty() {
            true => "nothing is scheduled here".to_owned(),
            false => lines.join("\n"),
        }))
    }

    /// Removes one of this conversation; one that is removed already is fine.
    pub(crate) async fn unschedule(&self, turn: &Turn, id: &str) -> Result<Said, RuntimeError> {
        let at = &turn.message.at;
        let here = self
            .store()
            .timers_of(&at.channel, &at.conversation, TimerKind::Schedule)
            .await?;
        if !here.iter().any(|timer| timer.id == id) {
            return Err(RuntimeError::Usage(format!(
                "there is no schedule `{id}` here; `schedules` lists them"
            )));
        }
        self.store().stop_timer(id, TimerState::Ended).await?;
        Ok(Said::text(format!("{id} is removed")))
    }

    /// Puts the command of a schedule on record. After a time without a process it is run once for
    /// all times that were missed.
    pub(crate) async fn run_schedule(
        &self,
        timer: &ChannelTimer,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let read = serde_json::from_str::<ScheduleBody>(&timer.body).map_err(|e| e.to_string());
        let read = read.and_then(|body| {
            let times = Times::parse(&body.times)?;
            let zone = time_zone(&body.zone)?;
            Ok((body, times, zone))
        });
        let (body, times, zone) = match read {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!("the schedule {} is paused: {error}", timer.id);
                return self.store().stop_timer(&timer.id, TimerState::Paused).await;
            }
        };
        let identity = format!("schedule/{}/{}", timer.id, timer.next_at);
        let next = times.next(timer.next_at, now, &zone);
        let note = Outbound {
            kind: OutboundKind::Text,
            mention: None,
            text: due_text(timer, &body, times.missed(timer.next_at, now, &zone)),
            choices: Vec::new(),
        };
        let origin = Origin::Schedule {
            timer: timer.id.clone(),
        };
        let message = message_of(
            timer,
            identity.clone(),
            (body.speaker, body.forge),
            body.command,
            origin,
        )?;
        let change = TimerChange {
            body: timer.body.clone(),
            state: match next {
                Some(_) => TimerState::Active,
                None => TimerState::Ended,
            },
            next_at: next.unwrap_or(timer.next_at),
            message: Some(message),
            outbound: vec![self.outbound(format!("{identity}/due"), &timer.at, note)],
            audit: Vec::new(),
        };
        self.store().change_timer(timer, change).await?;
        self.reach("due");
        Ok(())
    }
}

fn due_text(timer: &ChannelTimer, body: &ScheduleBody, missed: usize) -> String {
    let mut text = format!("⏰ {}: {}", timer.id, body.command);
    if missed > 0 {
        let zone = time_zone(&body.zone).unwrap_or(TimeZone::UTC);
        text.push_str(&format!(
            "\n   due {}; it was missed {missed} more times and is run once",
            clock(timer.next_at, &zone)
        ));
    }
    text
}

/// `2026-11-18 09:00 UTC`
fn clock(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone())
        .strftime("%Y-%m-%d %H:%M %Z")
        .to_string()
}

/// What it runs, when, for whom, and when next.
fn described(timer: &ChannelTimer) -> String {
    let Ok(body) = serde_json::from_str::<ScheduleBody>(&timer.body) else {
        return "its record cannot be read".to_owned();
    };
    let zone = time_zone(&body.zone).unwrap_or(TimeZone::UTC);
    let next = match timer.state {
        TimerState::Active => format!("next {}", clock(timer.next_at, &zone)),
        TimerState::Paused => "paused".to_owned(),
        TimerState::Ended => "ended".to_owned(),
    };
    format!(
        "`{}` {} ({}) for {}; {next}",
        body.command, body.times, body.zone, body.speaker.name
    )
}
