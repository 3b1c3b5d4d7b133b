//! The pages that the program makes, checked in Chromium: wide, narrow, dark and printed.
//!
//! It needs Debian's `chromium` and `chromium-driver`, and axe-core (`scripts/get-axe`). Without a browser it
//! is skipped and says so; with `CI=true` that is a failure. With `PAGE_LOOKS=FOLDER` the pictures are left there.

#[path = "pages_in_a_browser/axe.rs"]
mod axe;
#[path = "pages_in_a_browser/findings.rs"]
mod findings;
#[path = "pages_in_a_browser/look.rs"]
mod look;
#[path = "pages_in_a_browser/pages.rs"]
mod pages;

use std::fs;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use axe::Axe;
use dormouse_tests::{Browser, dormouse};
use findings::Findings;
use look::{LOOKS, Reader};

#[test]
fn pages_are_readable_wide_narrow_dark_and_printed() {
    let browsers: Option<Vec<_>> = (0..2).map(|_| Browser::start()).collect();
    let Some(browsers) = browsers else { return };
    let folder = tempfile::tempdir().unwrap();
    // Built before two of them want it.
    let _ = dormouse();
    let begun = Instant::now();
    let kinds = Mutex::new(pages::KINDS.iter());
    let look_at_some = |browser: Browser| {
        let reader = Reader::new(&browser, Axe::found());
        let mut findings = Findings::default();
        let mut errors = Vec::new();
        loop {
            let next = kinds.lock().unwrap().next();
            let Some(&(kind, command)) = next else { break };
            let page = pages::made(kind, command, folder.path());
            let made = begun.elapsed();
            for look in &LOOKS {
                findings.add(kind, look.name, reader.finds(kind, page.address(), look));
            }
            // What serves the page ends before its browser does.
            errors.extend(browser.errors());
            browser.open("about:blank");
            let (made, looked) = (made.as_secs_f64(), begun.elapsed().as_secs_f64());
            println!("{kind}: made at {made:.1} s, looked at until {looked:.1} s");
        }
        (findings, errors)
    };
    let mut findings = Findings::default();
    let mut errors = Vec::new();
    thread::scope(|scope| {
        let look_at_some = &look_at_some;
        let looking: Vec<_> =
            browsers.into_iter().map(|it| scope.spawn(move || look_at_some(it))).collect();
        for looked in looking {
            let (found, said) = looked.join().unwrap();
            findings.join(found);
            errors.extend(said);
        }
    });
    println!("{findings}");
    assert_eq!(errors, Vec::<String>::new(), "the console has errors");
    assert_eq!(findings.pages(), pages::KINDS.len(), "all pages were looked at");
    assert!(findings.is_empty(), "{}", findings.in_full());
}

/// A page with one fault of each kind: the checks of pages find each at its place.
#[test]
fn each_kind_of_fault_is_found() {
    let Some(browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("faults.html");
    fs::write(&file, include_str!("pages_in_a_browser/faults.html")).unwrap();
    let address = format!("file://{}", file.display());
    let axe = Axe::found();
    let has_axe = axe.is_some();
    let reader = Reader::new(&browser, axe);
    let mut findings = Findings::default();
    for look in &LOOKS {
        findings.add("faults", look.name, reader.finds("faults", &address, look));
    }
    let found = findings.in_full();
    for words in [
        "overlap wide: “written first” and “written over it”",
        "overlap wide: “in a drawing” and “over it”",
        "overflow narrow: 900 pixels wide in 375",
        "clipped text wide: “cut off by its box”",
        "clipped text wide: “beyond the drawing”",
        "clipped text printed: “what has to be scrolled to”",
        "dark paper printed: it is printed on 17,17,17",
        "empty panel wide: a plot of nothing",
        "empty panel wide: A heading of nothing",
        "contrast wide: 2.85 of “pale”",
        "of “on stripes”",
        "of “on a canvas”",
        "of “dark on dark” (p.as-by-day)",
        "small text wide: text.tiny",
        "keyboard wide: no focus is seen on button#unseen",
        "keyboard wide: Tab does not come to button#passed-over",
        "names wide: the page says no language",
        "names wide: 2 headings of the first level",
        "names wide: no single <main>",
        "names wide: the table of “headcell” has no caption",
        "names wide: button#unnamed has no name",
    ] {
        assert!(found.contains(words), "{words} is not among what is found:\n{found}");
    }
    for innocent in ["“on a halo”", "“over stripes that are hidden”", "“a second line”"]
    {
        assert!(!found.contains(innocent), "{innocent} is among what is found:\n{found}");
    }
    assert!(!has_axe || found.contains("axe button-name wide"), "{found}");
}
