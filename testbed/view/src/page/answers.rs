//! The answers at the beginning of a page: each a question, a sentence, and what is counted for it.

use maud::{Markup, html};

use crate::number::unbroken;
use crate::table::TextTone;

/// A question that every reader of a page has, and its answer.
#[derive(Clone, Debug, Default)]
pub struct PageAnswer {
    /// The question, which is the heading.
    pub question: String,
    /// The answer in a sentence or two.
    pub sentence: String,
    /// Whether the answer is good or bad news.
    pub tone: TextTone,
    /// Shares of a whole that are drawn below the sentence.
    pub gauges: Vec<AnswerGauge>,
    /// Things that the answer lists below its sentence.
    pub items: Vec<AnswerItem>,
    /// Command that tells more, at the end; empty for none.
    pub command: String,
}

/// A share of a whole, drawn as a bar with its name and its figure.
#[derive(Clone, Debug, Default)]
pub struct AnswerGauge {
    /// Name of the share, such as `time to the deadline`.
    pub name: String,
    /// The figure in words, such as `863 s of 2700 s`.
    pub figure: String,
    /// The share, from 0 to 1.
    pub share: f64,
    /// Whether the share is good or bad news.
    pub tone: TextTone,
}

/// One thing that an answer lists: a figure and its noun.
#[derive(Clone, Debug, Default)]
pub struct AnswerItem {
    /// The figure, such as `3` or `88 s`.
    pub figure: String,
    /// What the figure counts or measures.
    pub noun: String,
}

impl PageAnswer {
    /// An answer that is neither good nor bad news, and lists nothing.
    #[must_use]
    pub fn new(question: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self { question: question.into(), sentence: sentence.into(), ..Self::default() }
    }

    /// This answer, marked as good or bad news.
    #[must_use]
    pub fn verdict(self, is_good: bool) -> Self {
        Self { tone: TextTone::verdict(is_good), ..self }
    }

    /// This answer with a share of a whole drawn below its sentence.
    #[must_use]
    pub fn gauge(
        mut self,
        name: impl Into<String>,
        figure: impl Into<String>,
        share: f64,
        tone: TextTone,
    ) -> Self {
        self.gauges.push(AnswerGauge { name: name.into(), figure: figure.into(), share, tone });
        self
    }

    /// This answer with a command that tells more.
    #[must_use]
    pub fn command(self, command: impl Into<String>) -> Self {
        Self { command: command.into(), ..self }
    }

    /// This answer with one more thing that it lists.
    #[must_use]
    pub fn item(mut self, figure: impl Into<String>, noun: impl Into<String>) -> Self {
        self.items.push(AnswerItem { figure: figure.into(), noun: noun.into() });
        self
    }

    /// This answer with one more thing that it lists, unless its number is 0.
    #[must_use]
    pub fn count(self, number: impl Into<u64>, [one, more]: [&str; 2]) -> Self {
        match number.into() {
            0 => self,
            1 => self.item("1", one),
            n => self.item(crate::number::grouped(&n.to_string()), more),
        }
    }

    pub(super) fn to_html(&self) -> Markup {
        html! {
            div class=(format!("answer {}", self.tone.class()).trim_end()) {
                h2 { (self.question) }
                @if !self.sentence.is_empty() { p { (unbroken(&self.sentence)) } }
                @for gauge in &self.gauges { (gauge.to_html()) }
                @if !self.items.is_empty() {
                    ul {
                        @for item in &self.items {
                            li { b { (unbroken(&item.figure)) } " " (unbroken(&item.noun)) }
                        }
                    }
                }
                @if !self.command.is_empty() { p { code { @for word in self.command.split(' ') { span { (word) } " " } } } }
            }
        }
    }
}

impl AnswerGauge {
    fn to_html(&self) -> Markup {
        let width = format!("width:{:.1}%", self.share.clamp(0.0, 1.0) * 100.0);
        html! {
            div class=(format!("gauge {}", self.tone.class()).trim_end()) {
                span { (self.name) " " b { (unbroken(&self.figure)) } }
                i aria-hidden="true" { b style=(width) {} }
            }
        }
    }
}
