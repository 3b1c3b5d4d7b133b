//! What a page is made of.

use maud::Markup;

use crate::table::{Table, Tone};

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Its title.
    pub title: String,
    /// What it is about, in a sentence or two.
    pub lead: String,
    /// The figures that matter most.
    pub cards: Vec<Card>,
    /// Its sections, in order: the heading, and what stands under it. Empty ones are left out.
    pub sections: Vec<(String, Vec<Block>)>,
}

/// A figure with its name and a remark.
#[derive(Clone, Debug, Default)]
pub struct Card {
    /// What it is.
    pub name: String,
    /// The figure, with its unit.
    pub value: String,
    /// What it is to be compared with.
    pub remark: String,
    /// Whether it is good or bad news.
    pub tone: Tone,
}

/// A piece of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// A table.
    Table(Table),
    /// Plots, side by side where there is room.
    Plots(Vec<Markup>),
    /// A wide figure to look around in: it can be zoomed, and filtered by the text of its items.
    Figure(Markup),
    /// What is shown when asked for.
    Folded(String, Vec<Self>),
    /// A command or a digest, to be copied.
    Command(String),
}

impl Page {
    /// A page without content.
    #[must_use]
    pub fn new(title: impl Into<String>, lead: impl Into<String>) -> Self {
        Self { title: title.into(), lead: lead.into(), ..Self::default() }
    }

    /// Adds a section.
    pub fn section(&mut self, title: impl Into<String>, blocks: impl IntoIterator<Item = Block>) {
        self.sections.push((title.into(), blocks.into_iter().collect()));
    }
}

impl Card {
    /// A card that is neither good nor bad news.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        value: impl Into<String>,
        remark: impl Into<String>,
    ) -> Self {
        let (name, value, remark) = (name.into(), value.into(), remark.into());
        Self { name, value, remark, tone: Tone::Plain }
    }

    /// The same as good or bad news.
    #[must_use]
    pub fn verdict(self, is_good: bool) -> Self {
        Self { tone: if is_good { Tone::Good } else { Tone::Bad }, ..self }
    }
}

impl Block {
    /// A paragraph.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Whether there is nothing to show.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) | Self::Command(text) => text.is_empty(),
            Self::Table(table) => table.is_empty(),
            Self::Plots(plots) => plots.is_empty(),
            Self::Figure(markup) => markup.0.is_empty(),
            Self::Folded(_, blocks) => blocks.iter().all(Self::is_empty),
        }
    }
}
