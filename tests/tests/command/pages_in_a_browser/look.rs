//! A page in one of its looks, and its faults there.

use std::fs;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dormouse_tests::Browser;
use serde_json::{Value, json};

use super::axe::Axe;
use super::findings::Finding;

const CANVAS: &str = include_str!("canvas.js");
const TEXTS: &str = include_str!("texts.js");
const APPEARANCE: &str = include_str!("looks.js");
const CONTRAST: &str = include_str!("contrast.js");
const KEYS: &str = include_str!("keys.js");

/// The key Tab.
const TAB: &str = "\u{e004}";
/// Height in pixels of one picture of a page; the next constant is that of all its pictures together, the limit of
/// textures.
const TILE: u32 = 8_000;
const MAX_HEIGHT: u32 = 16_000;

/// A look of a page: its size, light or dark, on a screen or on paper.
pub(super) struct Look {
    pub(super) name: &'static str,
    /// Width and height in pixels.
    size: (u32, u32),
    is_dark: bool,
    is_printed: bool,
}

/// The looks of every page. Paper is A4 between margins of 1 cm, for a reader who wants screens dark.
pub(super) const LOOKS: [Look; 4] = [
    Look { name: "wide", size: (1_400, 900), is_dark: false, is_printed: false },
    Look { name: "narrow", size: (390, 844), is_dark: false, is_printed: false },
    Look { name: "dark", size: (1_400, 900), is_dark: true, is_printed: false },
    Look { name: "printed", size: (718, 1_047), is_dark: true, is_printed: true },
];

/// A script that opens all folded parts and waits for two frames.
const OPENED: &str = "
const done = arguments[arguments.length - 1];
document.querySelectorAll('details').forEach((it) => { it.open = true; });
scrollTo(0, document.documentElement.scrollHeight);
requestAnimationFrame(() => requestAnimationFrame(() => { scrollTo(0, 0); requestAnimationFrame(() => done(true)); }));
";

/// A script that hides all letters and leaves what is behind them; with `false` it shows them again.
const LETTERLESS: &str = "
document.adoptedStyleSheets = [];
if (!arguments[0]) return;
const sheet = new CSSStyleSheet();
sheet.replaceSync('* { -webkit-text-fill-color: transparent !important; text-decoration-color: transparent !important; } svg text, svg tspan { fill: transparent !important; } ::marker { color: transparent; }');
document.adoptedStyleSheets = [sheet];
";

/// A checker of pages, with a browser.
pub(super) struct Reader<'a> {
    browser: &'a Browser,
    axe: Option<Axe>,
    /// Folder in which pictures are kept; `None`: they are not kept.
    pictures: Option<PathBuf>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(browser: &'a Browser, axe: Option<Axe>) -> Self {
        browser.before_pages(CANVAS);
        let pictures = std::env::var_os("PAGE_LOOKS").map(PathBuf::from);
        Self { browser, axe, pictures }
    }

    /// Faults of the page at this address, in one look.
    pub(super) fn finds(&self, page: &str, address: &str, look: &Look) -> Vec<Finding> {
        let browser = self.browser;
        browser.look_as(look.size, look.is_dark, look.is_printed);
        // An address that differs in nothing or in its end alone is not loaded again.
        browser.open("about:blank");
        browser.open(address);
        if address.starts_with("http") {
            self.waits_for_the_run(look);
        }
        let _ = browser.script_until(OPENED, &[]);
        let printed = Value::Bool(look.is_printed);
        let mut found = Finding::all(
            &browser.script(&format!("{TEXTS}\n{APPEARANCE}"), std::slice::from_ref(&printed)),
        );
        let tiles = self.tiles(page, look);
        found.extend(Finding::all(
            &browser.script_until(&format!("{TEXTS}\n{CONTRAST}"), &[printed, tiles]),
        ));
        // Names and keys are the same by day and night, and paper has no keys.
        if !look.is_dark {
            browser.look_as(look.size, false, false);
            found.extend(self.axe.iter().flat_map(|axe| axe.finds(browser)));
            found.extend(self.keys());
        }
        found
    }

    /// Waits until the live page shows the whole run and has drawn its charts, which it does when they become visible.
    fn waits_for_the_run(&self, look: &Look) {
        let whole =
            "const d = document.body.dataset; return d.over === 'true' && Number(d.bars) > 0";
        self.browser.until("the run is there", whole, &[]);
        self.browser.look_as((look.size.0, 8_000), look.is_dark, look.is_printed);
        self.browser.until(
            "all charts are drawn and events listed",
            "return [...document.querySelectorAll('#charts canvas')].every((c) => c.hidden || c.height > 50) \
             && document.querySelectorAll('#events [data-seq]').length > 0 \
             && document.getElementById('selection-words').textContent.length > 10",
            &[],
        );
    }

    /// Pictures of the page with and without letters, in tiles from top to bottom. The window is made as high as the
    /// whole page, since parts beyond the window might be laid out in another way.
    fn tiles(&self, page: &str, look: &Look) -> Value {
        let browser = self.browser;
        let height = || {
            let told = browser.script("return document.documentElement.scrollHeight", &[]);
            u32::try_from(told.as_u64().unwrap_or(0)).unwrap_or(MAX_HEIGHT).min(MAX_HEIGHT)
        };
        let width = look.size.0;
        browser.look_as((width, height()), look.is_dark, look.is_printed);
        let _ = browser.script_until(OPENED, &[]);
        let height = height();
        browser.look_as((width, height), look.is_dark, look.is_printed);
        let _ = browser.script_until(OPENED, &[]);
        let tops: Vec<u32> = (0..height).step_by(TILE as usize).collect();
        let pictures = || -> Vec<Vec<u8>> {
            let tile = |top: &u32| browser.picture([0, *top, width, TILE.min(height - top)]);
            tops.iter().map(tile).collect()
        };
        let whole = pictures();
        let _ = browser.script(LETTERLESS, &[Value::Bool(true)]);
        let letterless = pictures();
        let _ = browser.script(LETTERLESS, &[Value::Bool(false)]);
        if let Some(folder) = &self.pictures {
            fs::create_dir_all(folder).unwrap();
            for (n, picture) in whole.iter().enumerate() {
                fs::write(folder.join(format!("{page}-{}-{n}.png", look.name)), picture).unwrap();
            }
        }
        let encoded = |picture: &Vec<u8>| BASE64.encode(picture);
        tops.iter()
            .zip(whole.iter().zip(&letterless))
            .map(|(top, (with, without))| json!([top, encoded(with), encoded(without)]))
            .collect()
    }

    /// Faults found by going through the page with the key Tab.
    fn keys(&self) -> Vec<Finding> {
        let acts = self.browser.script(KEYS, &["begin".into()]).as_u64().unwrap_or(0);
        let tabs = usize::try_from(acts).unwrap_or(0) + 2;
        self.browser.type_into("body", &TAB.repeat(tabs));
        Finding::all(&self.browser.script(KEYS, &["end".into()]))
    }
}
