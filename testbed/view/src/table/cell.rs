//! A cell: a typed value, and whether it is good or bad news.

use dormouse_units::{Money, Span, Time};

use super::column::{Column, Kind};
use crate::number::fixed;
use crate::time_unit::TimeUnit;

/// Value of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Nothing: empty for people and in CSV, `null` in JSON.
    #[default]
    Missing,
    /// Text, such as a name.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A number in the column's unit; with [`Kind::Percent`], a part of one.
    Number(f64),
    /// A length of time, or a time since the beginning, exact to the microsecond.
    Seconds(Span),
    /// Money, exact to the nano-dollar.
    Dollars(Money),
    /// A mean, its 95 % confidence interval if there is one, and the number of samples.
    Mean {
        /// Mean of the samples.
        mean: f64,
        /// The 95 % confidence interval, low and high, if there is one.
        interval: Option<(f64, f64)>,
        /// Number of samples that the mean is of.
        n: usize,
    },
}

/// Whether a cell is good or bad news.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Neither good nor bad news.
    #[default]
    Plain,
    /// Good news, such as a claim that holds.
    Good,
    /// Bad news, such as a claim that fails.
    Bad,
    /// Of little importance, and shown faintly.
    Dim,
}

impl Value {
    /// The value as a number: times in seconds, money in dollars, the mean of a mean; `None` for text.
    pub(crate) fn as_number(&self) -> Option<f64> {
        match self {
            Self::Missing | Self::Text(_) => None,
            #[expect(clippy::cast_precision_loss, reason = "a column of numbers")]
            Self::Count(n) => Some(*n as f64),
            Self::Number(x) | Self::Mean { mean: x, .. } => Some(*x),
            Self::Seconds(span) => Some(span.as_secs_f64()),
            Self::Dollars(money) => Some(money.as_usd()),
        }
    }
}

impl Tone {
    /// The tone of good or of bad news.
    #[must_use]
    pub const fn verdict(is_good: bool) -> Self {
        if is_good { Self::Good } else { Self::Bad }
    }

    /// The tone's CSS class in pages; empty for a plain one.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Dim => "dim",
        }
    }
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Value of the cell.
    pub value: Value,
    /// Whether the cell is good or bad news, by which it has its colour.
    pub tone: Tone,
}

impl Cell {
    /// A cell without a value.
    #[must_use]
    pub fn missing() -> Self {
        Self::default()
    }

    /// A cell of words.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Value::Text(text.into()).into()
    }

    /// A cell of a whole number; one that is out of range is missing.
    #[must_use]
    pub fn count(n: impl TryInto<u64>) -> Self {
        n.try_into().map_or(Value::Missing, Value::Count).into()
    }

    /// A cell of a number; one that is not finite is missing.
    #[must_use]
    pub fn number(x: f64) -> Self {
        if x.is_finite() { Value::Number(x).into() } else { Self::missing() }
    }

    /// A cell of a mean with its 95 % confidence interval, of `n` samples.
    #[must_use]
    pub fn mean(mean: f64, interval: Option<(f64, f64)>, n: usize) -> Self {
        Value::Mean { mean, interval, n }.into()
    }

    /// The cell that `of` makes of a value; a missing cell without a value.
    #[must_use]
    pub fn maybe<T>(value: Option<T>, of: impl FnOnce(T) -> Self) -> Self {
        value.map_or_else(Self::missing, of)
    }

    /// This cell with another tone.
    #[must_use]
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// This cell as good or bad news.
    #[must_use]
    pub fn verdict(self, is_good: bool) -> Self {
        self.toned(Tone::verdict(is_good))
    }

    /// Text of the cell for people, with its unit; times in `unit`.
    pub(crate) fn words(&self, column: &Column, unit: TimeUnit) -> String {
        let d = column.digits;
        let (kind, ends) = match &self.value {
            Value::Missing | Value::Text(_) | Value::Count(_) => return self.exact(column),
            Value::Seconds(_) => (Kind::Seconds, None),
            Value::Dollars(_) => (Kind::Dollars, None),
            Value::Number(_) => (column.kind, None),
            Value::Mean { interval, .. } => (column.kind, *interval),
        };
        let x = self.value.as_number().unwrap_or_default();
        let ends = ends.map(|(low, high)| format!(" [{}, {}]", fixed(low, d), fixed(high, d)));
        let number = match kind {
            Kind::Percent => format!("{} %", fixed(x * 100.0, d)),
            Kind::Dollars => format!("${}", fixed(x, d)),
            Kind::Seconds => unit.words(x, d),
            _ => fixed(x, d),
        };
        number + &ends.unwrap_or_default()
    }

    /// Text of the cell in files: exact, without a unit. A mean is its mean alone.
    pub(crate) fn exact(&self, column: &Column) -> String {
        match &self.value {
            Value::Missing => String::new(),
            Value::Text(text) => text.clone(),
            Value::Count(n) => n.to_string(),
            Value::Number(x) | Value::Mean { mean: x, .. } => {
                column.file_digits.map_or_else(|| x.to_string(), |digits| fixed(*x, digits))
            }
            Value::Seconds(span) => span.exact_seconds(),
            Value::Dollars(money) => money.exact_dollars(),
        }
    }
}

impl From<Value> for Cell {
    fn from(value: Value) -> Self {
        Self { value, tone: Tone::Plain }
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        Self::maybe(value, Into::into)
    }
}

macro_rules! from {
    ($($type:ty: |$value:ident| $cell:expr,)+) => {
        $(impl From<$type> for Cell {
            fn from($value: $type) -> Self {
                $cell
            }
        })+
    };
}

from! {
    &str: |text| Self::text(text),
    String: |text| Self::text(text),
    u32: |n| Self::count(n),
    u64: |n| Self::count(n),
    usize: |n| Self::count(n),
    f64: |x| Self::number(x),
    Span: |span| Value::Seconds(span).into(),
    // A time is shown as the time since the beginning.
    Time: |at| at.since(Time::ZERO).into(),
    Money: |money| Value::Dollars(money).into(),
}
