//! The page layout: a title, answers, cards, and sections of text, tables, figures and commands; then folded details.
//!
//! Pages are whole files that load nothing from other addresses: light or dark as the reader prefers, readable at 400
//! px, printable. Everything but [`PageBlock::Figure`]'s markup is escaped; characters that XML forbids or that change
//! the reading direction are escaped everywhere.

mod answers;
mod claim_strip;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use dormouse_units::printable;

use crate::plot;
use crate::table::{TextTone, TypedTable};
use crate::time_unit::TimeUnit;

pub use answers::{AnswerGauge, AnswerItem, PageAnswer};
pub use claim_strip::{ClaimMark, ClaimRange, ClaimVerdict};

const STYLE: &str = include_str!("page/style.css");
const VIEWER: &str = include_str!("page/viewer.js");
const TABLES: &str = include_str!("page/tables.js");
const SAVE: &str = include_str!("page/save.js");

/// An HTML page: a title, a lead, cards and sections.
#[derive(Clone, Debug, Default)]
pub struct HtmlPage {
    /// Title of the page.
    pub title: String,
    /// Lead of the page: its subject in a sentence or two.
    pub lead: String,
    /// Unit of the times in the page's tables. The caller writes the times in texts in the same unit.
    pub time_unit: TimeUnit,
    /// Answers to the questions that every reader has, at the beginning.
    pub answers: Vec<PageAnswer>,
    /// Cards with the most important figures.
    pub cards: Vec<FigureCard>,
    /// Sections in order: the heading and its blocks. Sections without content are left out.
    pub sections: Vec<(String, Vec<PageBlock>)>,
    /// Sections that are folded after the others until the reader opens them. While folded, they are printed only if
    /// `printed` has their title.
    pub details: Vec<(String, Vec<PageBlock>)>,
    /// Titles of folded sections that are printed all the same.
    pub printed: Vec<String>,
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

/// A block of content in a section of a page.
#[derive(Clone, Debug)]
pub enum PageBlock {
    /// A paragraph of text.
    Text(String),
    /// A paragraph on how to use the page on a screen; paper leaves it out.
    Hint(String),
    /// A table of figures or words.
    Table(TypedTable),
    /// Plots, side by side where there is room.
    Plots(Vec<Markup>),
    /// A wide figure that the reader can zoom, and filter by the text of its items.
    Figure(Markup),
    /// Blocks that are folded under a heading; a click on the heading shows them.
    Folded(String, Vec<Self>),
    /// Links to other files beside the page: the text and the relative path of each.
    Links(Vec<(String, String)>),
    /// Symbols of judged claims, each of which leads to its claim in the page's [`PageBlock::Claims`].
    ClaimStrip(Vec<ClaimMark>),
    /// Judged claims, each with a sentence that a click shows.
    Claims(Vec<ClaimMark>),
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

    /// Adds a section that is folded after the others.
    pub fn detail(
        &mut self,
        title: impl Into<String>,
        blocks: impl IntoIterator<Item = PageBlock>,
    ) {
        self.details.push((title.into(), blocks.into_iter().collect()));
    }

    /// Adds a section that is folded on the screen and open on paper.
    pub fn printed_detail(
        &mut self,
        title: impl Into<String>,
        blocks: impl IntoIterator<Item = PageBlock>,
    ) {
        let title = title.into();
        self.printed.push(title.clone());
        self.detail(title, blocks);
    }

    /// The sections that have content, the folded ones last, each with whether it is folded.
    fn shown_sections(&self) -> Vec<(&str, &[PageBlock], bool)> {
        let open = self.sections.iter().map(|(title, blocks)| (title, blocks, false));
        let folded = self.details.iter().map(|(title, blocks)| (title, blocks, true));
        let all = open.chain(folded).filter(|(_, blocks, _)| !are_empty(blocks));
        all.map(|(title, blocks, folded)| (title.as_str(), blocks.as_slice(), folded)).collect()
    }

    /// The whole page as an HTML file.
    #[must_use]
    pub fn to_html(&self) -> String {
        let sections = self.shown_sections();
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
                    header { h1 { (self.title) } p { (self.lead) } (contents(&sections)) }
                    main {
                        @if !self.answers.is_empty() {
                            section.answers aria-label="In short" {
                                @for answer in &self.answers { (answer.to_html()) }
                            }
                        }
                        @if !self.cards.is_empty() {
                            section.cards aria-label="Key figures" {
                                @for card in &self.cards { (card.to_html()) }
                            }
                        }
                        @for (n, (title, blocks, is_folded)) in sections.iter().enumerate() {
                            @let is_printed = self.printed.iter().any(|printed| printed == title);
                            (section_markup((n, *is_folded, is_printed), title, blocks, self.time_unit))
                        }
                    }
                    script { (PreEscaped(VIEWER)) }
                    script { (PreEscaped(TABLES)) }
                    script { (PreEscaped(SAVE)) }
                }
            }
        };
        printable(&page.into_string()).into_owned() + "\n"
    }
}

/// Whether none of these blocks has anything to show.
fn are_empty(blocks: &[PageBlock]) -> bool {
    blocks.iter().all(PageBlock::is_empty)
}

/// Id of the heading of the section with this number, from 0 on.
fn section_id(n: usize) -> String {
    format!("section-{}", n + 1)
}

/// Links to the sections, if there are at least three.
fn contents(sections: &[(&str, &[PageBlock], bool)]) -> Markup {
    html! {
        @if sections.len() >= 3 {
            nav.contents aria-label="Contents" {
                @for (n, (title, ..)) in sections.iter().enumerate() {
                    a href={ "#" (section_id(n)) } { (title) }
                }
            }
        }
    }
}

fn section_markup(
    (n, is_folded, is_printed): (usize, bool, bool),
    title: &str,
    blocks: &[PageBlock],
    unit: TimeUnit,
) -> Markup {
    let id = section_id(n);
    let mut names = BlockNames::under(title);
    let content = html! { @for block in blocks { (block.to_html(&mut names, unit)) } };
    html! {
        section aria-labelledby=(id) {
            @if is_folded {
                details.section.printed[is_printed] { summary { h2 id=(id) { (title) } } (content) }
            } @else {
                h2 id=(id) { (title) }
                (content)
            }
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
            Self::Text(text) | Self::Hint(text) | Self::Command(text) => text.is_empty(),
            Self::Table(table) => table.is_empty(),
            Self::Plots(plots) => plots.is_empty(),
            Self::Figure(markup) => markup.0.is_empty(),
            Self::Folded(_, blocks) => are_empty(blocks),
            Self::Links(links) => links.is_empty(),
            Self::ClaimStrip(claims) | Self::Claims(claims) => claims.is_empty(),
        }
    }

    fn to_html(&self, names: &mut BlockNames<'_>, unit: TimeUnit) -> Markup {
        if self.is_empty() {
            return Markup::default();
        }
        match self {
            Self::Text(text) => html! { p { (text) } },
            Self::Hint(text) => html! { p.dim.on-screen { (text) } },
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
            Self::Links(links) => html! {
                ul { @for (text, path) in links { li { a href=(path) { (text) } } } }
            },
            Self::ClaimStrip(claims) => claim_strip::claim_strip(claims),
            Self::Claims(claims) => claim_strip::claim_list(claims),
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
        page.detail("folded <section>", [PageBlock::text("more")]);
        page.printed_detail("folded, printed", [PageBlock::text("more")]);
        page.answers.push(PageAnswer::new("What went <wrong>?", "").count(0_u64, ["VM", "VMs"]));
        page.answers.push(PageAnswer::new("And?", "").count(12_000_u64, ["VM lost", "VMs lost"]));
        let html = page.to_html();
        assert!(html.contains("<h1>a &lt;b&gt; &amp; c</h1>") && html.contains("card bad"));
        assert!(html.contains("&lt;script&gt;") && html.contains("x &lt; 'y z'"));
        assert!(!html.contains(">empty</h2>"), "an empty section is left out");
        assert!(
            html.contains("<details class=\"section\"><summary><h2 id=\"section-3\">folded &lt;")
        );
        assert!(html.contains("<a href=\"#section-3\">folded &lt;section&gt;</a>"), "{html}");
        assert!(html.contains("What went &lt;wrong&gt;?") && !html.contains(">0</b>"), "{html}");
        assert!(html.contains("<li><b>12,000</b> VMs lost</li>"), "{html}");
        assert!(
            html.contains(
                "<details class=\"section printed\"><summary><h2 id=\"section-4\">folded, printed"
            ),
            "{html}"
        );
        for name in ["more", "two", "two, 2"] {
            assert!(html.contains(&format!("role=\"region\" aria-label=\"{name}\"")), "{html}");
        }
        for outside in ["src=\"http", "href=\"http", "url(http", "@import"] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}
