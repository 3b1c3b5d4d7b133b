//! Files that tasks leave, which anybody's program may have written.

use dormouse_tasks::answer::{check, check_job};
use dormouse_tasks::cli::check_remote;
use dormouse_tasks::progress::ProgressReader;

use super::scratch::Scratch;

/// Reads the bytes as the progress page of a running task and as the answer of one that has ended; the first line has
/// the program's arguments.
pub(crate) fn task(bytes: &[u8]) {
    page(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (arguments, answer) = text.split_once('\n').unwrap_or((text, ""));
    let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
    let _ = check_remote(arguments.iter().map(String::as_str));
    let _ = check(&arguments, 7, answer);
    let _ = check_job(2, 3, (1, 7), answer);
}

fn page(bytes: &[u8]) {
    Scratch::with(|scratch| {
        let path = scratch.write("progress", bytes);
        let Ok(page) = ProgressReader::open(&path) else { return };
        let _ = (page.read(), page.clock(), page.work(4));
        if let Ok(ranks) = page.ranks() {
            assert!(ranks.iter().all(|pid| *pid >= 0));
        }
    });
}
