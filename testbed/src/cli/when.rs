//! Instants of a run in the forms that users type: a time since the run's beginning, or a date.

use std::str::FromStr;

use dormouse_input::Moment;
use dormouse_model::Calendar;
use dormouse_units::{Span, Time};

/// An instant of a run, as the user gave it, before it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// The instant at this time after the beginning of the run.
    After(Span),
    /// The instant at this date.
    Date(Moment),
}

impl When {
    /// Converts the instant to the run's clock; `None`: the instant is a date, and the run has no dates.
    pub(super) fn on(self, calendar: Calendar) -> Option<Time> {
        match self {
            Self::After(span) => Some(Time::ZERO + span),
            Self::Date(date) => calendar.time_at(date),
        }
    }
}

impl FromStr for When {
    type Err = String;

    /// Reads a length of time such as `2h`, or a date such as `2024-09-22`, `2024-09-22T10:00` or `2024-09-22
    /// 10:00:00+02:00`; a date without a time zone is in UTC.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let has_day = text.split('-').next().is_some_and(|year| year.len() == 4);
        if !has_day || !text.contains('-') {
            return match text.parse() {
                Ok(span) => Ok(Self::After(span)),
                Err(error) => Err(format!("{error}; or a date like 2024-09-22T10:00:00")),
            };
        }
        let whole = [text.to_owned(), format!("{text}:00"), format!("{text}T00:00:00")];
        let date = whole.iter().find_map(|text| Moment::read(text));
        let wrong =
            "it is not a date; write it like 2024-09-22T10:00:00, in UTC or with its time zone";
        date.map(Self::Date).ok_or_else(|| wrong.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGAN: Calendar = Calendar { began: Some(1_726_996_147), log_time: Span::ZERO };

    #[test]
    fn an_instant_is_a_time_or_a_date() {
        for (text, s) in [
            ("0h", 0),
            ("1h30m", 5_400),
            // The run begins on 2024-09-22 09:09:07.
            ("2024-09-22T09:09:08", 1),
            ("2024-09-22 09:10:07Z", 60),
            ("2024-09-22T12:09:07+02:00", 3_600),
            ("2024-09-22T09:10", 53),
            ("2024-09-23", 53_453),
            ("2024-09-22", 0),
        ] {
            let when: When = text.parse().expect(text);
            assert_eq!(when.on(BEGAN), Some(Time::from_secs(s)), "{text}");
        }
        let date: When = "2024-09-22".parse().expect("a date");
        assert_eq!(date.on(Calendar::UNKNOWN), None);
        for text in ["", "x", "10", "-1h", "2024-13-01", "2024-09-22T25:00", "24-09-22"] {
            assert!(text.parse::<When>().is_err(), "{text}");
        }
    }
}
