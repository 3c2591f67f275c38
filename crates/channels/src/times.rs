//! When something is to be done again: `every day at 9:00`, `every 2 hours`, `"0 9 * * 1-5"`.
//!
//! Times of the day are those of a time zone. One that a change of the clocks skips is an hour
//! later on that day; one that comes twice counts once, the first time. An interval knows no clock:
//! two hours are two hours.
//!
//! Everything here is computed from a time that is handed in, so a schedule gives the same times
//! whenever it is asked, and a process that was away knows how many it has missed. What comes more
//! often than every quarter of an hour is refused: each time costs a run.

use jiff::{SignedDuration, Timestamp, ToSpan, civil::Date, tz::TimeZone};

/// The shortest time between two runs.
const LEAST_MINUTES: i64 = 15;
/// A year and a bit; longer waits are mistakes.
const MOST_MINUTES: i64 = 400 * 24 * 60;
/// 29 February can be eight years away.
const MOST_DAYS: i32 = 8 * 366 + 2;
/// As many missed times as are counted.
const MOST_COUNTED: usize = 1_000;

const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// What a person wrote, as a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Times {
    /// At times of the day on some days.
    Calendar(Calendar),
    Every(SignedDuration),
    /// So many days from the day on which it was said.
    Once {
        days: i32,
        hour: i8,
        minute: i8,
    },
}

/// The five fields of cron, as sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Calendar {
    minutes: Vec<i8>,
    hours: Vec<i8>,
    days: Vec<i8>,
    months: Vec<i8>,
    /// 0 is Sunday.
    weekdays: Vec<i8>,
    /// As cron does: if both are limited, one of them is enough.
    either_day: bool,
}

impl Times {
    /// Reads what a person wrote. The error says what can be written.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let quotes = ['"', '\'', '`', '“', '”', '„', '‘', '’'];
        let text = text.trim();
        let times = match text.strip_prefix(quotes) {
            Some(rest) => Self::Calendar(Calendar::cron(rest.trim_end_matches(quotes))?),
            None => Self::sentence(&text.to_lowercase()).ok_or_else(|| {
                format!(
                    "`{text}` is no time; write `every day at 9:00`, `every monday 9:00`, `every \
                     2 hours`, `tomorrow 9:00`, or five fields of cron in quotes"
                )
            })?,
        };
        match times.least_minutes() {
            Some(least) if least < LEAST_MINUTES => Err(format!(
                "that is every {least} minutes; at most every {LEAST_MINUTES} minutes is possible"
            )),
            _ => Ok(times),
        }
    }

    /// The forms that people use, in English; nothing for any other. The fields of cron stand in
    /// quotes and do not get here.
    fn sentence(text: &str) -> Option<Self> {
        let words: Vec<&str> = text
            .split_whitespace()
            .filter(|word| *word != "at")
            .collect();
        let at = |days: Vec<i8>, time: &str| {
            let (hour, minute) = clock(time)?;
            Some(Self::Calendar(Calendar::at(days, hour, minute)))
        };
        match words.as_slice() {
            ["today", time] => once(0, time),
            ["tomorrow", time] => once(1, time),
            ["daily", time] | ["every", "day", time] => at((0..7).collect(), time),
            ["every", "weekday", time] => at((1..6).collect(), time),
            ["every", unit @ ("hour" | "minute")] => interval("1", unit),
            ["every", count, unit] if count.bytes().all(|byte| byte.is_ascii_digit()) => {
                interval(count, unit)
            }
            ["every", day, time] => at(vec![weekday(day)?], time),
            _ => None,
        }
    }

    /// The first time after `now` for something that is said now.
    pub(crate) fn first(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Calendar(calendar) => calendar.after(now, zone),
            Self::Every(interval) => now.checked_add(*interval).ok(),
            Self::Once { days, hour, minute } => {
                let day = now.to_zoned(zone.clone()).date().checked_add(days.days());
                let at = instant(day.ok()?, *hour, *minute, zone)?;
                (at > now).then_some(at)
            }
        }
    }

    /// The first time after `now` of something that was due at `due`, if it is done again at all.
    pub(crate) fn next(
        &self,
        due: Timestamp,
        now: Timestamp,
        zone: &TimeZone,
    ) -> Option<Timestamp> {
        match self {
            Self::Calendar(calendar) => calendar.after(due.max(now), zone),
            Self::Every(interval) => {
                let step = interval.as_secs().max(1);
                let passed = now.duration_since(due).as_secs().max(0) / step;
                let ahead = step.checked_mul(passed + 1)?;
                due.checked_add(SignedDuration::from_secs(ahead)).ok()
            }
            Self::Once { .. } => None,
        }
    }

    /// How many further times came and went between `due` and `now`.
    pub(crate) fn missed(&self, due: Timestamp, now: Timestamp, zone: &TimeZone) -> usize {
        let mut count = 0;
        let mut at = due;
        while let Some(next) = self.next(at, at, zone)
            && next <= now
            && count < MOST_COUNTED
        {
            at = next;
            count += 1;
        }
        count
    }

    fn least_minutes(&self) -> Option<i64> {
        match self {
            Self::Calendar(calendar) => calendar.least_minutes(),
            Self::Every(interval) => Some(interval.as_mins()),
            Self::Once { .. } => None,
        }
    }
}

fn once(days: i32, time: &str) -> Option<Times> {
    let (hour, minute) = clock(time)?;
    Some(Times::Once { days, hour, minute })
}

fn interval(count: &str, unit: &str) -> Option<Times> {
    let minutes: i64 = match unit.trim_end_matches('s') {
        "minute" => 1,
        "hour" => 60,
        "day" => 24 * 60,
        _ => return None,
    };
    let all = count.parse::<i64>().ok()?.checked_mul(minutes)?;
    (1..=MOST_MINUTES)
        .contains(&all)
        .then(|| Times::Every(SignedDuration::from_mins(all)))
}

/// A zone by its name in the database of this machine, or by a rule of POSIX.
pub(crate) fn time_zone(name: &str) -> Result<TimeZone, String> {
    if name.eq_ignore_ascii_case("UTC") {
        return Ok(TimeZone::UTC);
    }
    TimeZone::get(name)
        .or_else(|_| TimeZone::posix(name))
        .map_err(|_| format!("the time zone `{name}` of the settings is not known on this machine"))
}

/// `9:00`, `09:30`, `9` or `9am`.
fn clock(text: &str) -> Option<(i8, i8)> {
    let (text, noon) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(text), _) => (text, Some(0)),
        (_, Some(text)) => (text, Some(12)),
        (None, None) => (text, None),
    };
    let (hour, minute) = text.split_once(':').unwrap_or((text, "0"));
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match noon {
        Some(add) if (1..=12).contains(&hour) => hour % 12 + add,
        Some(_) => return None,
        None => hour,
    };
    ((0..24).contains(&hour) && (0..60).contains(&minute)).then_some((hour, minute))
}

fn weekday(word: &str) -> Option<i8> {
    let names = [
        "sunday",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
    ];
    let is_it = |name: &&str| *name == word || (word.len() >= 3 && name.starts_with(word));
    let place = names.iter().position(is_it)?;
    i8::try_from(place).ok()
}

fn instant(date: Date, hour: i8, minute: i8, zone: &TimeZone) -> Option<Timestamp> {
    let zoned = date.at(hour, minute, 0, 0).to_zoned(zone.clone()).ok()?;
    Some(zoned.timestamp())
}

impl Calendar {
    fn at(weekdays: Vec<i8>, hour: i8, minute: i8) -> Self {
        Self {
            minutes: vec![minute],
            hours: vec![hour],
            days: (1..=31).collect(),
            months: (1..=12).collect(),
            weekdays,
            either_day: false,
        }
    }

    /// Minute, hour, day of the month, month, day of the week.
    fn cron(text: &str) -> Result<Self, String> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields.as_slice() else {
            return Err(format!(
                "`{text}` has {} fields; cron has five: minute, hour, day, month, day of the week",
                fields.len()
            ));
        };
        let mut weekdays = field(weekday, 0, 7, &DAYS)?;
        // Sunday is 0 and 7.
        if weekdays.contains(&7) {
            weekdays.retain(|day| *day != 7 && *day != 0);
            weekdays.insert(0, 0);
        }
        let calendar = Self {
            minutes: field(minute, 0, 59, &[])?,
            hours: field(hour, 0, 23, &[])?,
            days: field(day, 1, 31, &[])?,
            months: field(month, 1, 12, &MONTHS)?,
            weekdays,
            either_day: !day.starts_with('*') && !weekday.starts_with('*'),
        };
        let epoch = Timestamp::UNIX_EPOCH;
        match calendar.after(epoch, &TimeZone::UTC) {
            Some(_) => Ok(calendar),
            None => Err(format!("`{text}` never comes")),
        }
    }

    fn is_day(&self, date: Date) -> bool {
        let by_month = self.days.contains(&date.day());
        let weekday = date.weekday().to_sunday_zero_offset();
        let by_week = self.weekdays.contains(&weekday);
        let is_day = match self.either_day {
            true => by_month || by_week,
            false => by_month && by_week,
        };
        is_day && self.months.contains(&date.month())
    }

    fn after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let from = after.to_zoned(zone.clone()).date();
        // The day before, for times that a change of the clocks moves over midnight.
        (-1..MOST_DAYS).find_map(|days| {
            let date = from.checked_add(days.days()).ok()?;
            self.is_day(date)
                .then(|| self.first_of(date, after, zone))
                .flatten()
        })
    }

    /// The earliest time of a day that is after another. In the order of the clock they need not be
    /// in the order of time.
    fn first_of(&self, date: Date, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let clocks = self
            .hours
            .iter()
            .flat_map(|hour| self.minutes.iter().map(move |minute| (*hour, *minute)));
        clocks
            .filter_map(|(hour, minute)| instant(date, hour, minute, zone))
            .filter(|at| *at > after)
            .min()
    }

    /// The shortest time between two, if there can be two on a day or at midnight.
    fn least_minutes(&self) -> Option<i64> {
        let in_hour = self
            .minutes
            .windows(2)
            .map(|pair| i64::from(pair[1] - pair[0]));
        let is_next = |hour: &i8| self.hours.contains(&((hour + 1) % 24));
        let over_hour = match (self.minutes.first(), self.minutes.last()) {
            (Some(first), Some(last)) if self.hours.iter().any(is_next) => {
                Some(i64::from(60 - last + first))
            }
            _ => None,
        };
        in_hour.chain(over_hour).min()
    }
}

/// `*`, `*/15`, `1-5`, `mon-fri`, `1,3,5`, `0-30/10`.
fn field(text: &str, least: i8, most: i8, names: &[&str]) -> Result<Vec<i8>, String> {
    let wrong = || format!("`{text}` is no field of cron between {least} and {most}");
    let value = |word: &str| -> Option<i8> {
        let lower = word.to_lowercase();
        let named = names.iter().position(|name| *name == lower);
        let number = match named {
            Some(place) => i8::try_from(place).ok()? + i8::from(names.len() == 12),
            None => word.parse().ok()?,
        };
        (least..=most).contains(&number).then_some(number)
    };
    let mut values = Vec::new();
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, step.parse::<usize>().map_err(|_| wrong())?),
            None => (part, 1),
        };
        let (first, last) = match (range, range.split_once('-')) {
            ("*", _) => (least, most),
            (_, Some((first, last))) => (
                value(first).ok_or_else(wrong)?,
                value(last).ok_or_else(wrong)?,
            ),
            (one, None) => {
                let one = value(one).ok_or_else(wrong)?;
                // `5/10` goes on to the end, as in cron.
                (one, if part.contains('/') { most } else { one })
            }
        };
        if step == 0 || first > last {
            return Err(wrong());
        }
        values.extend((first..=last).step_by(step));
    }
    values.sort_unstable();
    values.dedup();
    Ok(values)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// Berlin, without a database of time zones.
    fn berlin() -> TimeZone {
        time_zone("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    fn first(text: &str, now: &str, zone: &TimeZone) -> String {
        let times = Times::parse(text).unwrap();
        times.first(at(now), zone).unwrap().to_string()
    }

    #[test]
    fn what_people_write_is_the_time_they_mean() {
        // A Tuesday.
        let now = "2026-11-17T10:00:00Z";
        for (text, expected) in [
            ("every day at 9:00", "2026-11-18T09:00:00Z"),
            ("daily 17:30", "2026-11-17T17:30:00Z"),
            ("every Monday 9:00", "2026-11-23T09:00:00Z"),
            ("every tue at 9am", "2026-11-24T09:00:00Z"),
            ("every weekday at 9:00", "2026-11-18T09:00:00Z"),
            ("every 2 hours", "2026-11-17T12:00:00Z"),
            ("every 30 minutes", "2026-11-17T10:30:00Z"),
            ("tomorrow 9:00", "2026-11-18T09:00:00Z"),
            ("today at 12pm", "2026-11-17T12:00:00Z"),
            ("\"0 9 * * 1-5\"", "2026-11-18T09:00:00Z"),
            ("“30 8 1 jan *”", "2027-01-01T08:30:00Z"),
            ("'0 0 29 2 *'", "2028-02-29T00:00:00Z"),
            ("\"0 9 13 * fri\"", "2026-11-20T09:00:00Z"),
            ("\"0 12 * * 7\"", "2026-11-22T12:00:00Z"),
        ] {
            assert_eq!(first(text, now, &TimeZone::UTC), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_time_or_too_often_is_refused() {
        for text in [
            "",
            "every",
            "soon",
            "every 5 minutes",
            "every 0 hours",
            "every day at 25:00",
            "every 99999999999999999999 hours",
            "\"* * * * *\"",
            "\"*/10 9 * * *\"",
            "\"0,50 * * * *\"",
            "\"0 9 30 2 *\"",
            "\"0 9 * *\"",
            "\"61 9 * * *\"",
            "\"0 9 * * 1-8\"",
            "\"0 9 5-1 * *\"",
            "\"*/0 9 * * *\"",
        ] {
            assert!(Times::parse(text).is_err(), "{text}");
        }
        assert!(Times::parse("\"*/15 * * * *\"").is_ok());
    }

    #[test]
    fn the_clock_of_the_zone_counts_when_it_is_changed() {
        let zone = berlin();
        let daily = Times::parse("every day at 9:00").unwrap();
        // Summer time ends on 25 October 2026 and begins on 28 March 2027.
        let before = at("2026-10-24T07:00:00Z");
        let after = daily.next(before, before, &zone).unwrap();
        assert_eq!(after.to_string(), "2026-10-25T08:00:00Z");
        assert_eq!(
            first("every day at 2:30", "2027-03-28T00:00:00Z", &zone),
            "2027-03-28T01:30:00Z",
            "2:30 does not exist on that day: it is 3:30"
        );
        let twice = Times::parse("every day at 2:30").unwrap();
        let one = twice.first(at("2026-10-24T23:00:00Z"), &zone).unwrap();
        assert_eq!(one.to_string(), "2026-10-25T00:30:00Z");
        let next = twice.next(one, one, &zone).unwrap();
        assert_eq!(next.to_string(), "2026-10-26T01:30:00Z", "once a day");
    }

    #[test]
    fn times_that_were_missed_are_counted_and_skipped() {
        let times = Times::parse("every day at 9:00").unwrap();
        let (due, now) = (at("2026-11-10T09:00:00Z"), at("2026-11-17T10:00:00Z"));
        assert_eq!(times.missed(due, now, &TimeZone::UTC), 7);
        let next = times.next(due, now, &TimeZone::UTC).unwrap();
        assert_eq!(next.to_string(), "2026-11-18T09:00:00Z");
        let times = Times::parse("every 2 hours").unwrap();
        let next = times.next(due, now, &TimeZone::UTC).unwrap();
        assert_eq!(next.to_string(), "2026-11-17T11:00:00Z");
        let once = Times::parse("tomorrow 9:00").unwrap();
        assert_eq!(once.next(due, now, &TimeZone::UTC), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,40}") {
            let _ = Times::parse(&text);
            let _ = Times::parse(&format!("\"{text}\""));
            let _ = Times::parse(&format!("every {text}"));
        }

        #[test]
        fn the_next_time_is_later_and_not_too_soon(
            minute in 0_i8..60,
            hours in proptest::collection::btree_set(0_i8..24, 1..5),
            weekday in 0_i8..7,
            start in 1_700_000_000_i64..2_000_000_000,
        ) {
            let hours: Vec<String> = hours.iter().map(ToString::to_string).collect();
            let text = format!("\"{minute} {} * * {weekday}\"", hours.join(","));
            let times = Times::parse(&text).unwrap();
            let zone = berlin();
            let mut at = Timestamp::from_second(start).unwrap();
            for round in 0..6 {
                let next = times.next(at, at, &zone).unwrap();
                prop_assert!(next > at);
                if round > 0 {
                    let apart = next.duration_since(at).as_mins();
                    prop_assert!(apart >= LEAST_MINUTES, "{apart}");
                }
                let zoned = next.to_zoned(zone.clone());
                prop_assert_eq!(zoned.weekday().to_sunday_zero_offset(), weekday);
                prop_assert_eq!(zoned.minute(), minute);
                at = next;
            }
        }
    }
}
