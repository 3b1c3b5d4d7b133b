//! Parsing of instants in the notations of people and providers.

/// An instant as a file has it, with its time zone if one is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Seconds since 1970, or since the unknown origin of a bare number.
    pub second: i64,
    /// True if a time zone was written; `None` for a bare number.
    pub has_zone: Option<bool>,
    /// Offset of the time zone from UTC, in seconds east.
    pub east: i64,
}

impl Moment {
    /// Parses a number of seconds, or a date and time such as `2009-12-01 01:43:17`, `2020-01-02T03:04:05.000Z`,
    /// `2020-01-02T03:04:05+01:00` or `2020-01-02 03:04 UTC`, or a date alone, which stands for its midnight; fractions
    /// of a second are cut off. Without a time zone, UTC is assumed. `None`: the text is none of these.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        if let Some(second) = parse_number(text) {
            return Some(Self { second, has_zone: None, east: 0 });
        }
        let Some((date, rest)) = text.split_once([' ', 'T']) else {
            let second = second_of(text, "00:00:00")?;
            return Some(Self { second, has_zone: Some(false), east: 0 });
        };
        let utc = [" UTC", " GMT"].iter().find_map(|name| rest.strip_suffix(name));
        let (clock, zone) = match utc {
            Some(clock) => (clock, "Z"),
            None => rest.split_at(rest.find(['Z', '+', '-']).unwrap_or(rest.len())),
        };
        // A zone that is a number may have a blank before it.
        let clock = match zone.starts_with(['+', '-']) {
            true => clock.strip_suffix(' ').unwrap_or(clock),
            false => clock,
        };
        let clock = match clock.matches(':').count() {
            1 => format!("{clock}:00"),
            _ => clock.to_owned(),
        };
        let (clock, part) = clock.split_once('.').unwrap_or((&clock, "0"));
        if !is_digits(part) {
            return None;
        }
        let east = east_of_utc(zone)?;
        let second = second_of(date, clock)? - east;
        Some(Self { second, has_zone: Some(!zone.is_empty()), east })
    }

    /// Returns the instant; a bare number that is large enough counts as seconds or milliseconds since 1970. It can't
    /// count from another origin, since no record is thirty years long.
    #[must_use]
    pub const fn assume_dated(self) -> Self {
        let second = match self.second {
            _ if self.has_zone.is_some() => return self,
            milliseconds if milliseconds >= LEAST_MILLISECONDS => milliseconds / 1_000,
            second if second >= LEAST_DATED => second,
            _ => return self,
        };
        Self { second, has_zone: Some(true), east: 0 }
    }
}

/// The first ten-digit number of seconds, in 2001: bare numbers from here on count from 1970.
const LEAST_DATED: i64 = 1_000_000_000;
/// Bare numbers from here on count milliseconds since 1970, not seconds: as seconds this number would be in the year 33658.
const LEAST_MILLISECONDS: i64 = 1_000 * LEAST_DATED;

/// Parses a bare number of seconds. A fraction is cut off; a fraction is allowed only for numbers that must count from
/// 1970, since smaller numbers may mean something else.
fn parse_number(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').map_or((text, None), |(all, part)| (all, Some(part)));
    let least = if part.is_some() { LEAST_WITH_PART } else { 0 };
    let fine = part.is_none_or(is_digits);
    whole.parse().ok().filter(|second| fine && (least..=1 << 42).contains(second))
}

/// Least number of seconds, in 1973, that may have a fraction.
const LEAST_WITH_PART: i64 = 100_000_000;

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Date and time of a second since 1970, in a notation that [`Moment::read`] accepts.
#[must_use]
pub fn written(second: i64) -> String {
    let (days, of_day) = (second.div_euclid(86_400), second.rem_euclid(86_400));
    // Years begin in March, so that the leap day is the last of its year; eras of 400 years are alike.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next;
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

fn second_of(date: &str, clock: &str) -> Option<i64> {
    let [year, month, day] = parse_numbers(date, '-')?;
    let [hour, minute, second] = parse_numbers(clock, ':')?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let fine = (1970..10_000).contains(&year)
        && (1..=days).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    fine.then(|| days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Offset from UTC in seconds east, parsed from an empty text, `Z`, `+01:00`, `-0530` or `+01`.
fn east_of_utc(zone: &str) -> Option<i64> {
    let (sign, digits) = match zone.as_bytes().first() {
        None => return Some(0),
        Some(_) if zone == "+00:00" => return Some(0),
        Some(b'Z') => return (zone.len() == 1).then_some(0),
        Some(b'-') => (-1, zone.get(1..)?),
        Some(_) => (1, zone.get(1..)?),
    };
    let digits = digits.replacen(':', "", 1);
    if !matches!(digits.len(), 2 | 4) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = digits.split_at(2);
    let hours: i64 = hours.parse().ok()?;
    let minutes: i64 = if minutes.is_empty() { 0 } else { minutes.parse().ok()? };
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Parses exactly three unsigned numbers separated by `between`; `None` for anything else.
fn parse_numbers(text: &str, between: char) -> Option<[i64; 3]> {
    let (mut parts, mut all) = (text.split(between), [0; 3]);
    for number in &mut all {
        let part = parts.next()?;
        if !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(all)
}

/// Days from 1970 to a date of the Gregorian calendar. Internally years begin in March, so that the
/// leap day is the last of its year.
const fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_years = 365 * year + year / 4 - year / 100 + year / 400;
    of_years + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_seconds_of_1970_whatever_their_zone() {
        for (text, second, has_zone) in [
            ("1970-01-01 00:00:00", 0, Some(false)),
            ("2000-02-29 23:59:59", 951_868_799, Some(false)),
            ("2009-12-01 01:43:17", 1_259_631_797, Some(false)),
            ("2009-12-01T01:43:17Z", 1_259_631_797, Some(true)),
            ("2009-12-01T01:43:17.999Z", 1_259_631_797, Some(true)),
            ("2009-12-01 02:43:17+01:00", 1_259_631_797, Some(true)),
            ("2009-11-30T20:13:17-0530", 1_259_631_797, Some(true)),
            ("2009-12-01T03:43:17+02", 1_259_631_797, Some(true)),
            ("2100-03-01T00:00:00", 4_107_542_400, Some(false)),
            ("6000", 6_000, None),
            ("2009-12-01", 1_259_625_600, Some(false)),
            ("2009-12-01 01:43", 1_259_631_780, Some(false)),
            ("2009-12-01T01:43Z", 1_259_631_780, Some(true)),
            ("2009-12-01 01:43:17 UTC", 1_259_631_797, Some(true)),
            ("2009-12-01 01:43:17.5 GMT", 1_259_631_797, Some(true)),
            ("2009-12-01 02:43:17 +0100", 1_259_631_797, Some(true)),
            ("2009-12-01 00:43:17 -01:00", 1_259_631_797, Some(true)),
            ("1259631797.999", 1_259_631_797, None),
        ] {
            let read = Moment::read(text).map(|it| (it.second, it.has_zone));
            assert_eq!(read, Some((second, has_zone)), "{text}");
        }
        for text in [
            "",
            "x",
            "-1",
            "2009-02-29 00:00:00",
            "2009-13-01 00:00:00",
            "2009-01-01 24:00:00",
            "2009-01",
            "2009-02-30",
            "2009-01-01T",
            "2009-01-01 00",
            "2009-01-01 00:60",
            "2009-01-01 00:00.5",
            "2009-01-01 UTC",
            "2009-01-01 00:00:00  +01:00",
            "0.5",
            "1259631797.",
            "1259631797.5.5",
            "+2009-01-01 00:00:00",
            "1e3",
            "1969-12-31 00:00:00",
            "2009-01-01 00:00:00 CET",
            "2009-01-01 00:00:00+1",
            "2009-01-01 00:00:00+15:00",
            "2009-01-01 00:00:00Zulu",
            "2009-01-01 00:00:00.x",
        ] {
            assert_eq!(Moment::read(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for second in [0, 951_868_799, 951_868_800, 1_259_631_797, 4_107_542_399, 4_107_542_400] {
            let text = written(second);
            assert_eq!(Moment::read(&text).map(|it| it.second), Some(second), "{text}");
        }
        assert_eq!(written(1_259_631_797), "2009-12-01 01:43:17");
    }
}
