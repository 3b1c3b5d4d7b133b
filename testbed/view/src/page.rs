//! The page layout: a title, cards, and sections of text, tables, figures and commands.
//!
//! Pages are whole files that load nothing from other addresses: light or dark as the reader prefers, readable at 400
//! px, printable. Everything but [`PageBlock::Figure`]'s markup is escaped; characters that XML forbids or that change
//! the reading direction are escaped everywhere.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use dormouse_units::printable;

use crate::plot;
use crate::table::{TextTone, TypedTable};
use crate::time_unit::TimeUnit;

const STYLE: &str = include_str!("page/style.css");
const VIEWER: &str = include_str!("page/viewer.js");

/// An HTML page: a title, a lead, cards and sections.
#[derive(Clone, Debug, Default)]
pub struct HtmlPage {
    /// Title of the page.
    pub title: String,
    /// Lead of the page: its subject in a sentence or two.
    pub lead: String,
    /// Unit of the times in the page's tables. The caller writes the times in texts in the same unit.
    pub time_unit: TimeUnit,
    /// Cards with the most important figures.
    pub cards: Vec<FigureCard>,
    /// Sections in order: the heading and its blocks. Sections without content are left out.
    pub sections: Vec<(String, Vec<PageBlock>)>,
}

/// A figure with its name and a remark.
#[derive(Clone, Debug, Default)]
pub struct FigureCard {
    /// Name of the figure.
    pub name: String,
    /// Value of the figure, as text.
    pub value: String,
    /// Remark on the figure, such as the value that it is compared with.
    pub remark: String,
    /// Whether the figure is good or bad news.
    pub tone: TextTone,
}

/// A piece of a section.
#[derive(Clone, Debug)]
pub enum PageBlock {
    /// A paragraph of text.
    Text(String),
    /// A table of figures or words.
    Table(TypedTable),
    /// Plots, side by side where there is room.
    Plots(Vec<Markup>),
    /// A wide figure that the reader can zoom, and filter by the text of its items.
    Figure(Markup),
    /// Blocks that are folded under a heading; a click on the heading shows them.
    Folded(String, Vec<Self>),
    /// A command or a digest, to be copied.
    Command(String),
}

impl HtmlPage {
    /// A page without content.
    #[must_use]
    pub fn new(title: impl Into<String>, lead: impl Into<String>) -> Self {
        Self { title: title.into(), lead: lead.into(), ..Self::default() }
    }

    /// Adds a section.
    pub fn section(
        &mut self,
        title: impl Into<String>,
        blocks: impl IntoIterator<Item = PageBlock>,
    ) {
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
                    main {
                        @if !self.cards.is_empty() {
                            section.cards aria-label="Key figures" {
                                @for card in &self.cards { (card.to_html()) }
                            }
                        }
                        @for (n, (title, blocks)) in self.sections.iter().enumerate() {
                            @if !blocks.iter().all(PageBlock::is_empty) { (section_markup(n, title, blocks, self.time_unit)) }
                        }
                    }
                    script { (PreEscaped(VIEWER)) }
                }
            }
        };
        printable(&page.into_string()).into_owned() + "\n"
    }
}

fn section_markup(n: usize, title: &str, blocks: &[PageBlock], unit: TimeUnit) -> Markup {
    let id = format!("section-{}", n + 1);
    let mut names = BlockNames::under(title);
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (title) }
            @for block in blocks { (block.to_html(&mut names, unit)) }
        }
    }
}

/// Distinct names of the blocks below a heading, for screen readers.
struct BlockNames<'a> {
    heading: &'a str,
    given: usize,
}

impl<'a> BlockNames<'a> {
    fn under(heading: &'a str) -> Self {
        Self { heading, given: 0 }
    }

    fn next(&mut self) -> String {
        self.given += 1;
        match self.given {
            1 => self.heading.to_owned(),
            n => format!("{}, {n}", self.heading),
        }
    }
}

impl FigureCard {
    /// A card that is neither good nor bad news.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        value: impl Into<String>,
        remark: impl Into<String>,
    ) -> Self {
        let (name, value, remark) = (name.into(), value.into(), remark.into());
        Self { name, value, remark, tone: TextTone::Plain }
    }

    /// Marks the card as good or bad news.
    #[must_use]
    pub fn verdict(self, is_good: bool) -> Self {
        Self { tone: TextTone::verdict(is_good), ..self }
    }

    fn to_html(&self) -> Markup {
        html! {
            div class=(format!("card {}", self.tone.class()).trim_end()) {
                span { (self.name) } b { (self.value) } small { (self.remark) }
            }
        }
    }
}

impl PageBlock {
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

    fn to_html(&self, names: &mut BlockNames<'_>, unit: TimeUnit) -> Markup {
        if self.is_empty() {
            return Markup::default();
        }
        match self {
            Self::Text(text) => html! { p { (text) } },
            Self::Table(table) => table.to_html(&names.next(), unit),
            Self::Plots(plots) => {
                html! { div.plots { @for plot in plots { figure.plot { (plot) } } } }
            }
            Self::Figure(markup) => html! {
                figure.explore {
                    div.view tabindex="0" role="region" aria-label=(names.next()) { (markup) }
                }
            },
            Self::Folded(summary, blocks) => {
                let mut names = BlockNames::under(summary);
                html! {
                    details {
                        summary { (summary) }
                        @for block in blocks { (block.to_html(&mut names, unit)) }
                    }
                }
            }
            Self::Command(text) => html! { pre { (text) } },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{TableCell, TableColumn};

    #[test]
    fn what_is_said_is_escaped_and_nothing_is_fetched() {
        let mut page = HtmlPage::new("a <b> & c", "about");
        page.cards.push(FigureCard::new("cost", "$1", "of <2>").verdict(false));
        let table =
            TypedTable::new([TableColumn::text("name")]).with([TableCell::text("<script>")]);
        let folded = PageBlock::Folded("more".into(), vec![PageBlock::Table(table)]);
        page.section("one", [folded, PageBlock::Command("x < 'y z'".into())]);
        let named =
            |name: &str| TypedTable::new([TableColumn::text(name)]).with([TableCell::text("x")]);
        page.section("two", ["a", "b"].map(|name| PageBlock::Table(named(name))));
        page.section("empty", [PageBlock::text("")]);
        let html = page.to_html();
        assert!(html.contains("<h1>a &lt;b&gt; &amp; c</h1>") && html.contains("card bad"));
        assert!(html.contains("&lt;script&gt;") && html.contains("x &lt; 'y z'"));
        assert!(!html.contains(">empty</h2>"), "an empty section is left out");
        for name in ["more", "two", "two, 2"] {
            assert!(html.contains(&format!("role=\"region\" aria-label=\"{name}\"")), "{html}");
        }
        for outside in ["src=\"http", "href=", "url(http", "@import"] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}
