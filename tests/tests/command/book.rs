//! The book as a reader meets it: its commands are typed, their output is compared with that on the page, and a test
//! types every command.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Instant,
};

use dormouse_tests::{
    dormouse,
    page::{Need, Page, Player},
};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The paths of all pages: the README and those of the book, in order.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![repository().join("README.md")];
    let mut folders = vec![repository().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// What a page's commands need, or `None` if it has no commands.
fn needs(page: &Path) -> Option<Vec<Need>> {
    let needs = Page::read(page).unwrap_or_else(|error| panic!("{error}")).needs();
    (!needs.is_empty()).then_some(needs)
}

#[test]
fn commands_print_what_the_pages_say() {
    let virtual_pages = pages().into_iter().filter(|page| {
        needs(page)
            .is_some_and(|needs| !needs.contains(&Need::Live) && !needs.contains(&Need::Python))
    });
    let has = vec![Need::Nothing];
    let player =
        Player { repository: repository(), dormouse: dormouse().clone(), has, folder: None };
    let left: Mutex<Vec<PathBuf>> = Mutex::new(virtual_pages.collect());
    let wrong: Mutex<Vec<String>> = Mutex::default();
    let play_all = || loop {
        let next = left.lock().unwrap().pop();
        let Some(page) = next else { break };
        let begun = Instant::now();
        let played = player.play(&page).unwrap_or_else(|error| panic!("{error}"));
        println!("{:5.1} s  {}: {}", begun.elapsed().as_secs_f64(), page.display(), played.said());
        wrong.lock().unwrap().extend(played.wrong);
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(play_all);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every command is typed by a test: this file types those that need nothing, `book_live.rs` pages that run live, and
/// `scripts/test-python` and `scripts/test-compose` the others.
#[test]
fn every_command_is_typed_by_a_test() {
    let root = repository();
    let scripts = ["scripts/test-python", "scripts/test-compose"].map(|script| {
        let text = fs::read_to_string(root.join(script)).unwrap();
        (script, text)
    });
    let live = fs::read_to_string(root.join("tests/tests/live/book_live.rs")).unwrap();
    let (mut all, mut not_typed) = (0, 0);
    for path in pages() {
        let page = Page::read(&path).unwrap_or_else(|error| panic!("{error}"));
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        for (need, (script, text)) in [Need::Python, Need::Containers].iter().zip(&scripts) {
            let typed = !page.needs().contains(need) || text.contains(&name);
            assert!(typed, "{name} needs {need}, and {script} does not play it");
        }
        let played = live.contains(&format!("play(\"{}\")", name.trim_start_matches("docs/")));
        let typed = !page.needs().contains(&Need::Live) || played;
        assert!(typed, "{name} runs live, and book_live.rs does not play it");
        all +=
            page.blocks.iter().filter(|b| b.need().is_some()).map(|b| b.commands()).sum::<usize>();
        let cluster = page.blocks.iter().filter(|block| block.need() == Some(Need::Cluster));
        for block in cluster {
            println!("{name}:{}: not typed: {}", block.line, block.text.trim());
            not_typed += block.commands();
        }
    }
    println!("{all} commands, {not_typed} of them not typed by any test");
    assert!(all > 0 && not_typed * 10 <= all, "{not_typed} of {all} commands are not typed");
}
