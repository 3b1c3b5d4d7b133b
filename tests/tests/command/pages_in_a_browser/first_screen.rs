//! The questions of `first_screen.txt`, and what the first screen of each page says.

use std::path::Path;

use dormouse_tests::Browser;

use super::pages;

const QUESTIONS: &str = include_str!("first_screen.txt");
/// Width and height in pixels of a first screen.
const SCREEN: (u32, u32) = (1_400, 900);

/// A script that returns the words that are within the window, without scrolling.
const SHOWN: &str = r#"
const said = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const range = document.createRange();
while (walker.nextNode()) {
  const node = walker.currentNode;
  if (!node.textContent.trim() || node.parentElement.closest("style, script, title, .heard")) continue;
  range.selectNodeContents(node);
  const box = range.getBoundingClientRect();
  if (box.width > 1 && box.top >= 0 && box.bottom <= innerHeight) said.push(node.textContent.trim());
}
return said.join(" ").replace(/\s+/g, " ");
"#;

/// A kind of page, what is looked at, and its questions with their answers.
pub(super) struct QuestionedPage {
    pub(super) kind: &'static str,
    /// A sample report in `docs/samples`, or the kind of a live page.
    place: &'static str,
    /// Each question with the words that answer it.
    pub(super) questions: Vec<(&'static str, &'static str)>,
}

/// All pages with questions.
pub(super) fn pages() -> Vec<QuestionedPage> {
    let mut pages: Vec<QuestionedPage> = Vec::new();
    for line in QUESTIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((kind, place)) = line.strip_prefix('[').and_then(|line| line.split_once("] ")) {
            pages.push(QuestionedPage { kind, place, questions: Vec::new() });
            continue;
        }
        let (question, answer) = line.split_once(" | ").expect("a question and its answer");
        let page = pages.last_mut().expect("questions stand below the name of a page");
        page.questions.push((question.trim(), answer.trim()));
    }
    pages
}

impl QuestionedPage {
    /// The words on the first screen of this page.
    pub(super) fn shown(&self, browser: &Browser, folder: &Path) -> String {
        browser.look(SCREEN, false);
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(self.place);
        let live = pages::KINDS.iter().find(|(kind, _)| *kind == self.place);
        let page = live.map(|(kind, command)| pages::made(kind, command, folder));
        match &page {
            Some(page) => {
                browser.open(page.address());
                let whole = "return document.body.dataset.over === 'true' && Number(document.body.dataset.bars) > 0";
                browser.until("the run is there", whole, &[]);
                let said =
                    "return document.getElementById('selection-words').textContent.length > 10";
                browser.until("what is selected is explained", said, &[]);
            }
            None => browser.open(&format!("file://{}", sample.display())),
        }
        let shown = browser.script(SHOWN, &[]).as_str().unwrap_or_default().to_owned();
        // The browser leaves the page before its server ends.
        browser.open("about:blank");
        shown
    }
}
