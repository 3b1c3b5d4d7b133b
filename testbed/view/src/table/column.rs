//! Columns of a table.

/// Kind of the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Cells of text, such as names.
    Text,
    /// Cells of whole numbers.
    Count,
    /// Cells of numbers in any unit.
    Number,
    /// Cells of emulated or real times, in seconds.
    Seconds,
    /// Cells of amounts of money, in dollars.
    Dollars,
    /// Cells of fractions, shown in per cent.
    Percent,
    /// Cells of means with their 95 % confidence interval and number of samples. Files have four columns for each such column:
    /// `NAME_mean`, `NAME_ci95_low`, `NAME_ci95_high`, `n`.
    Mean,
}

/// A column: its heading for people, its name in files, and how its cells are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// Heading for people, with the unit where the cells do not show it.
    pub heading: String,
    /// Name of the column in CSV and JSON.
    pub name: String,
    /// Kind of the column's cells.
    pub kind: ColumnKind,
    /// Number of decimals with which cells are shown to people.
    pub digits: usize,
    /// Number of decimals in files; `None`: as many as there are.
    pub file_digits: Option<usize>,
    /// True if the column's whole numbers name things, such as VMs and seeds: they are shown as they are typed.
    pub is_name: bool,
}

impl TableColumn {
    /// A column of this kind; `name` is the heading with blanks as underscores until
    /// [`Self::named`].
    #[must_use]
    pub fn new(kind: ColumnKind, heading: impl Into<String>) -> Self {
        let heading = heading.into();
        let name = heading.replace([' ', '-'], "_").to_lowercase();
        let digits = match kind {
            ColumnKind::Text | ColumnKind::Count => 0,
            ColumnKind::Seconds | ColumnKind::Percent => 1,
            ColumnKind::Number | ColumnKind::Mean => 2,
            ColumnKind::Dollars => 4,
        };
        Self { heading, name, kind, digits, file_digits: None, is_name: false }
    }

    /// This column with the name `name` in files.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// This column with `digits` decimals for people.
    #[must_use]
    pub fn digits(self, digits: usize) -> Self {
        Self { digits, ..self }
    }

    /// This column with `digits` decimals in files.
    #[must_use]
    pub fn file_digits(self, digits: usize) -> Self {
        Self { file_digits: Some(digits), ..self }
    }

    /// This column, whose whole numbers name things and so have no thousands marks.
    #[must_use]
    pub fn as_name(self) -> Self {
        Self { is_name: true, ..self }
    }

    /// Whether the column's cells are aligned at their right.
    pub(crate) fn is_numeric(&self) -> bool {
        self.kind != ColumnKind::Text
    }
}

macro_rules! constructors {
    ($($(#[$about:meta])+ $name:ident: $kind:ident,)+) => {
        impl TableColumn {
            $($(#[$about])+ #[must_use] pub fn $name(heading: impl Into<String>) -> Self {
                Self::new(ColumnKind::$kind, heading)
            })+
        }
    };
}

constructors! {
    /// Makes a column of words.
    text: Text,
    /// Makes a column of whole numbers.
    count: Count,
    /// Makes a column of numbers.
    number: Number,
    /// Makes a column of times in seconds.
    seconds: Seconds,
    /// Makes a column of amounts in dollars.
    dollars: Dollars,
    /// Makes a column of fractions, shown in per cent.
    percent: Percent,
    /// Makes a column of means with intervals.
    mean: Mean,
}
