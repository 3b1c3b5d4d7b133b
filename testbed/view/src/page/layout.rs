//! A page as HTML.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Block, Card, Page};
use crate::plot;

const STYLE: &str = include_str!("style.css");
const VIEWER: &str = include_str!("viewer.js");

impl Page {
    /// The whole file.
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
    fn to_html(&self) -> Markup {
        html! {
            div class=(format!("card {}", self.tone.class()).trim_end()) {
                span { (self.name) } b { (self.value) } small { (self.remark) }
            }
        }
    }
}

impl Block {
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
    use crate::table::{Cell, Column, Table};

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
