//! The pages that the program makes, checked in Chromium: wide, narrow, dark and printed.
//!
//! It needs Debian's `chromium` and `chromium-driver`, and axe-core (`scripts/get-axe`). Without a browser it
//! is skipped and says so; with `CI=true` that is a failure. With `PAGE_LOOKS=FOLDER` the pictures are left there.

#[path = "pages_in_a_browser/axe.rs"]
mod axe;
#[path = "pages_in_a_browser/findings.rs"]
mod findings;
#[path = "pages_in_a_browser/first_screen.rs"]
mod first_screen;
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

/// Who sees a page for the first time finds the answers to eight questions without scrolling.
#[test]
fn the_first_screen_of_a_page_answers_eight_questions() {
    let Some(browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut missing = Vec::new();
    for page in first_screen::pages() {
        assert_eq!(page.questions.len(), 8, "{}", page.kind);
        let shown = page.shown(&browser, folder.path());
        for (question, answer) in page.questions {
            if !shown.contains(answer) {
                missing.push(format!("{}: {question} “{answer}” is not in: {shown}", page.kind));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// A reader who wants screens dark prints a live page: the charts are drawn light, as wide as a sheet and with all rows, and
/// as before when it is done.
#[test]
fn a_live_page_is_printed_light_and_whole() {
    /// Size of the chart in pixels of the page and the colour of its corner, with the width of a chart below it.
    const CHART: &str = "const canvas = document.getElementById('gantt-canvas');
        const corner = [...canvas.getContext('2d').getImageData(0, 0, 1, 1).data].slice(0, 3);
        const below = document.querySelector('#chart-cost canvas');
        return [canvas.style.width, canvas.style.height, corner, below.style.width, canvas.width]";
    let Some(browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.look((1_400, 900), true);
    let page = pages::made("watch", "run j60-sc2 --virtual", folder.path());
    browser.open(page.address());
    let whole = "const d = document.body.dataset; return d.over === 'true' && Number(d.bars) > 0";
    browser.until("the run is there", whole, &[]);
    let _ = browser.script("document.getElementById('charts').scrollIntoView()", &[]);
    let is_drawn = "return document.querySelector('#chart-cost canvas').width > 300";
    browser.until("the charts are drawn", is_drawn, &[]);
    let screen = browser.script(CHART, &[]);
    assert_eq!(screen[2], serde_json::json!([18, 22, 31]), "{screen}");
    let printed = browser.script(&format!("dispatchEvent(new Event('beforeprint')); {CHART}"), &[]);
    assert_eq!(printed[0], "718px", "{printed}");
    assert_eq!(printed[2], serde_json::json!([255, 255, 255]), "{printed}");
    assert_eq!((&printed[3], &printed[4]), (&"230px".into(), &(718 * 3).into()), "{printed}");
    let left_out = "return document.getElementById('gantt-printed').textContent";
    assert_eq!(browser.script(left_out, &[]), "", "a sheet has room for all rows");
    let after = browser.script(&format!("dispatchEvent(new Event('afterprint')); {CHART}"), &[]);
    assert_eq!(after, screen);
    browser.open("about:blank");
}

/// A reader who looks back at the beginning of a run that is complete sees what came later faintly, and no word says that the
/// run is complete now.
#[test]
fn what_comes_after_the_playhead_is_faint() {
    /// Pixels of the chart that have the colour of a bar, which is dark enough for a label.
    const BARS: &str = "const canvas = document.getElementById('gantt-canvas');
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let n = 0;
        for (let at = 0; at < data.length; at += 4) if (data[at] === 0x0a && data[at + 1] === 0x81 && data[at + 2] === 0x71) n += 1;
        return n";
    let Some(browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.look((1_400, 900), false);
    let page = pages::made("watch", "run j60-sc2 --virtual", folder.path());
    let (root, _) = page.address().split_once('#').expect("the page has a place");
    let seen = |place: &str| {
        browser.open("about:blank");
        browser.open(&format!("{root}#{place}"));
        let whole =
            "const d = document.body.dataset; return d.over === 'true' && Number(d.bars) > 0";
        browser.until("the run is there", whole, &[]);
        let shown = "return document.getElementById('state').textContent !== 'loading'";
        browser.until("the state is said", shown, &[]);
        let state = browser.script("return document.getElementById('state').textContent", &[]);
        (state, browser.script(BARS, &[]).as_u64().unwrap_or(0))
    };
    let (state, bars) = seen("at=1");
    assert_eq!((state, bars), ("looking back".into(), 0), "all bars are in the future");
    let (state, bars) = seen("at=600");
    assert_eq!(state, "looking back");
    let (over, all) = seen("selected=task3");
    assert_eq!(over, "complete");
    assert!(bars > 1_000 && all > bars, "{bars} of {all} pixels");
    browser.open("about:blank");
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
