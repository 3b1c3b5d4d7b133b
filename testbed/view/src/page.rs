//! The one page layout: a title, cards, and sections of text, tables, figures and commands.
//!
//! Pages are whole files without outside addresses: light or dark as the reader prefers, readable
//! at 400 px, printable. Everything but [`Block::Figure`]'s markup is escaped.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::plot;
use crate::table::{Table, Tone};

const STYLE: &str = include_str!("page/style.css");
const VIEWER: &str = include_str!("page/viewer.js");

/// An HTML page: a title, a lead, cards and sections.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Title of the page.
    pub title: String,
    /// Lead of the page: what it is about, in a sentence or two.
    pub lead: String,
    /// The figures that matter most.
    pub cards: Vec<Card>,
    /// The sections in order: the heading, and the blocks under it. Empty ones are left out.
    pub sections: Vec<(String, Vec<Block>)>,
}

/// A figure with its name and a remark.
#[derive(Clone, Debug, Default)]
pub struct Card {
    /// Name of the figure.
    pub name: String,
    /// The figure, with its unit.
    pub value: String,
    /// Remark on the figure, such as what it is to be compared with.
    pub remark: String,
    /// Whether the figure is good or bad news.
    pub tone: Tone,
}

/// A piece of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A paragraph of text.
    Text(String),
    /// A table of figures or words.
    Table(Table),
    /// Plots, side by side where there is room.
    Plots(Vec<Markup>),
    /// A wide figure to look around in: it can be zoomed, and filtered by the text of its items.
    Figure(Markup),
    /// Blocks under a heading, shown when asked for.
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

    /// The whole page as an HTML file.
    #[must_use]
    pub fn to_html(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) }
                    style { (PreEscaped(STYLE)) (PreEscaped(plot::STYLE)) }
                }
                body {
                    (plot::definitions())
                    header { h1 { (self.title) } p { (self.lead) } }
                    @if !self.cards.is_empty() {
                        div.cards { @for card in &self.cards { (card.to_html()) } }
                    }
                    @for (title, blocks) in &self.sections {
                        @if !blocks.iter().all(Block::is_empty) {
                            section { h2 { (title) } @for block in blocks { (block.to_html()) } }
                        }
                    }
                    script { (PreEscaped(VIEWER)) }
                }
            }
        };
        page.into_string() + "\n"
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

    /// This card as good or bad news.
    #[must_use]
    pub fn verdict(self, is_good: bool) -> Self {
        Self { tone: Tone::verdict(is_good), ..self }
    }

    fn to_html(&self) -> Markup {
        html! {
            div class=(format!("card {}", self.tone.class()).trim_end()) {
                span { (self.name) } b { (self.value) } small { (self.remark) }
            }
        }
    }
}

impl Block {
    /// A paragraph of this text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Whether the block has nothing to show.
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) | Self::Command(text) => text.is_empty(),
            Self::Table(table) => table.is_empty(),
            Self::Plots(plots) => plots.is_empty(),
            Self::Figure(markup) => markup.0.is_empty(),
            Self::Folded(_, blocks) => blocks.iter().all(Self::is_empty),
        }
    }

    fn to_html(&self) -> Markup {
        if self.is_empty() {
            return Markup::default();
        }
        match self {
            Self::Text(text) => html! { p { (text) } },
            Self::Table(table) => table.to_html(),
            Self::Plots(plots) => {
                html! { div.plots { @for plot in plots { figure.plot { (plot) } } } }
            }
            Self::Figure(markup) => html! { figure.explore { div.view { (markup) } } },
            Self::Folded(summary, blocks) => {
                html! { details { summary { (summary) } @for b in blocks { (b.to_html()) } } }
            }
            Self::Command(text) => html! { pre { (text) } },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Cell, Column};

    #[test]
    fn what_is_said_is_escaped_and_nothing_is_fetched() {
        let mut page = Page::new("a <b> & c", "about");
        page.cards.push(Card::new("cost", "$1", "of <2>").verdict(false));
        let table = Table::new([Column::text("name")]).with([Cell::text("<script>")]);
        let folded = Block::Folded("more".into(), vec![Block::Table(table)]);
        page.section("one", [folded, Block::Command("x < 'y z'".into())]);
        page.section("empty", [Block::text("")]);
        let html = page.to_html();
        assert!(html.contains("<h1>a &lt;b&gt; &amp; c</h1>") && html.contains("card bad"));
        assert!(html.contains("&lt;script&gt;") && html.contains("x &lt; 'y z'"));
        assert!(!html.contains("<h2>empty"), "an empty section is left out");
        for outside in ["src=\"http", "href=", "url(http", "@import"] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}
