//! Files of the page, which are part of the program.

/// A file of the page: name, media type, content.
type Asset = (&'static str, &'static str, &'static str);

/// The page itself.
pub(super) const INDEX: &str = include_str!("../../page/index.html");

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

macro_rules! assets {
    ($($name:literal: $kind:expr),+ $(,)?) => {
        /// All other files.
        const ASSETS: &[Asset] =
            &[$(($name, $kind, include_str!(concat!("../../page/", $name)))),+];
    };
}

assets! {
    "actions.js": SCRIPT,
    "charts.js": SCRIPT,
    "clock.js": SCRIPT,
    "columns.js": SCRIPT,
    "controls.js": SCRIPT,
    "dom.js": SCRIPT,
    "events.js": SCRIPT,
    "gantt.js": SCRIPT,
    "history.js": SCRIPT,
    "hit.js": SCRIPT,
    "icon.svg": IMAGE,
    "list.js": SCRIPT,
    "main.js": SCRIPT,
    "moment.js": SCRIPT,
    "page.css": STYLE,
    "panels.js": SCRIPT,
    "place.js": SCRIPT,
    "plot.js": SCRIPT,
    "rows.js": SCRIPT,
    "selection.js": SCRIPT,
    "status.js": SCRIPT,
    "stream.js": SCRIPT,
    "theme.js": SCRIPT,
    "view.js": SCRIPT,
    "words.js": SCRIPT,
}

/// Media type and content of the file with this name.
pub(super) fn named(name: &str) -> Option<(&'static str, &'static str)> {
    ASSETS.iter().find(|(it, ..)| *it == name).map(|(_, kind, text)| (*kind, *text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_in_the_program() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        let files = std::fs::read_dir(folder).expect("the page's folder");
        let mut names: Vec<String> = files
            .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
            .filter(|name| name != "index.html")
            .collect();
        names.sort_unstable();
        assert_eq!(names, ASSETS.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
    }
}
