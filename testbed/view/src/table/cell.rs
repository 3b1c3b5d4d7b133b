//! A cell: a typed value, and whether it is good or bad news.

use dormouse_units::{Money, Span, Time};

use super::column::{ColumnKind, TableColumn};
use crate::number::{decimals_of_dollars, fixed, grouped};
use crate::time_unit::TimeUnit;

/// Value of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum CellValue {
    /// An absent value: empty for people and in CSV, `null` in JSON.
    #[default]
    Missing,
    /// Text, such as a name.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A number in the column's unit; with [`ColumnKind::Percent`], a fraction of 1.
    Number(f64),
    /// A length of time, or a time since the beginning, exact to the microsecond.
    Seconds(Span),
    /// Money, exact to the nano-dollar.
    Dollars(Money),
    /// A mean, with its 95 % confidence interval if there is one, and its number of samples.
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
pub enum TextTone {
    /// The cell is neither good nor bad news.
    #[default]
    Plain,
    /// The cell is good news, such as a claim that holds.
    Good,
    /// The cell is bad news, such as a claim that fails.
    Bad,
    /// The cell is unimportant text, shown faintly.
    Dim,
}

impl CellValue {
    /// The cell's value as a number: times in seconds, money in dollars, a mean without its interval; `None` for text.
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

impl TextTone {
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
pub struct TableCell {
    /// Value of the cell.
    pub value: CellValue,
    /// Whether the cell is good or bad news, which decides its colour.
    pub tone: TextTone,
}

impl TableCell {
    /// A cell without a value.
    #[must_use]
    pub fn missing() -> Self {
        Self::default()
    }

    /// A cell of words.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        CellValue::Text(text.into()).into()
    }

    /// A cell with a whole number; the cell is empty if the number is out of range.
    #[must_use]
    pub fn count(n: impl TryInto<u64>) -> Self {
        n.try_into().map_or(CellValue::Missing, CellValue::Count).into()
    }

    /// A cell with a number; the cell is missing if the number is not finite.
    #[must_use]
    pub fn number(x: f64) -> Self {
        if x.is_finite() { CellValue::Number(x).into() } else { Self::missing() }
    }

    /// A cell of a mean with its 95 % confidence interval, of `n` samples.
    #[must_use]
    pub fn mean(mean: f64, interval: Option<(f64, f64)>, n: usize) -> Self {
        CellValue::Mean { mean, interval, n }.into()
    }

    /// The cell that `of` makes of a value; a missing cell without a value.
    #[must_use]
    pub fn maybe<T>(value: Option<T>, of: impl FnOnce(T) -> Self) -> Self {
        value.map_or_else(Self::missing, of)
    }

    /// This cell with another tone.
    #[must_use]
    pub fn toned(self, tone: TextTone) -> Self {
        Self { tone, ..self }
    }

    /// This cell, marked as good or bad news.
    #[must_use]
    pub fn verdict(self, is_good: bool) -> Self {
        self.toned(TextTone::verdict(is_good))
    }

    /// Text of the cell for people, with its unit; times in `unit`.
    pub(crate) fn words(&self, column: &TableColumn, unit: TimeUnit) -> String {
        let d = column.digits;
        let (kind, ends) = match &self.value {
            CellValue::Count(n) if !column.is_name => return grouped(&n.to_string()),
            CellValue::Count(n) => return n.to_string(),
            CellValue::Missing | CellValue::Text(_) => return self.exact(column),
            CellValue::Seconds(_) => (ColumnKind::Seconds, None),
            CellValue::Dollars(_) => (ColumnKind::Dollars, None),
            CellValue::Number(_) => (column.kind, None),
            CellValue::Mean { interval, .. } => (column.kind, *interval),
        };
        let x = self.value.as_number().unwrap_or_default();
        let ends = ends.map(|(low, high)| {
            format!(" [{}, {}]", grouped(&fixed(low, d)), grouped(&fixed(high, d)))
        });
        let number = match kind {
            ColumnKind::Percent => format!("{} %", grouped(&fixed(x * 100.0, d))),
            ColumnKind::Dollars => {
                // Four decimals are those of a column that asks for no others.
                let d = if d == 4 { decimals_of_dollars(x) } else { d };
                format!("${}", grouped(&fixed(x, d)))
            }
            ColumnKind::Seconds => unit.words(x, d),
            _ => grouped(&fixed(x, d)),
        };
        number + &ends.unwrap_or_default()
    }

    /// Text of the cell in files: exact, without a unit. A mean is its mean alone.
    pub(crate) fn exact(&self, column: &TableColumn) -> String {
        match &self.value {
            CellValue::Missing => String::new(),
            CellValue::Text(text) => text.clone(),
            CellValue::Count(n) => n.to_string(),
            CellValue::Number(x) | CellValue::Mean { mean: x, .. } => {
                column.file_digits.map_or_else(|| x.to_string(), |digits| fixed(*x, digits))
            }
            CellValue::Seconds(span) => span.exact_seconds(),
            CellValue::Dollars(money) => money.exact_dollars(),
        }
    }
}

impl From<CellValue> for TableCell {
    fn from(value: CellValue) -> Self {
        Self { value, tone: TextTone::Plain }
    }
}

impl<T: Into<Self>> From<Option<T>> for TableCell {
    fn from(value: Option<T>) -> Self {
        Self::maybe(value, Into::into)
    }
}

macro_rules! from {
    ($($type:ty: |$value:ident| $cell:expr,)+) => {
        $(impl From<$type> for TableCell {
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
    Span: |span| CellValue::Seconds(span).into(),
    // A time is shown as the time since the beginning.
    Time: |at| at.since(Time::ZERO).into(),
    Money: |money| CellValue::Dollars(money).into(),
}
