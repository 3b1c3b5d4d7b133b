//! Plays pages of the book: types their commands, and compares the output with that on the page.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use dormouse_tests::page::{Need, Player};

const USAGE: &str = "usage: play-page PAGE... [--live] [--python] [--containers] [--write]
  Types the commands of pages of the book and compares what they print. Those that need more than the command are
  left out, unless the option for it is given.
  --in FOLDER   plays in this folder, which is there, and leaves it
  --write   puts what is printed into the pages, in the place of what they say
  DORMOUSE=PATH   another command than the one beside this program";

/// Exit status 0: all pages are right; 1: a page is wrong; 2: a wrong option, or a page that can't be played.
#[expect(clippy::print_stderr, clippy::print_stdout, reason = "a program for whoever writes pages")]
fn main() -> ExitCode {
    let mut has = vec![Need::Nothing];
    let (mut write, mut folder, mut pages) = (false, None, Vec::new());
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--live" => has.push(Need::Live),
            "--python" => has.push(Need::Python),
            "--containers" => has.push(Need::Containers),
            "--write" => write = true,
            "--in" => folder = arguments.next().map(PathBuf::from),
            option if option.starts_with('-') => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
            page => pages.push(PathBuf::from(page)),
        }
    }
    if pages.is_empty() {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let beside = env::current_exe().unwrap_or_default().with_file_name("dormouse");
    let dormouse = env::var_os("DORMOUSE").map_or(beside, PathBuf::from);
    let mut player = Player { repository: PathBuf::new(), dormouse, has, folder };
    let mut status = ExitCode::SUCCESS;
    for page in pages {
        let Some(repository) = repository_of(&page) else {
            eprintln!("play-page: {} is in no clone of the repository", page.display());
            return ExitCode::from(2);
        };
        player.repository = repository;
        match player.play(&page) {
            Ok(played) => {
                println!("{}: {}", page.display(), played.said());
                for wrong in &played.wrong {
                    println!("{wrong}");
                    status = ExitCode::FAILURE;
                }
                if let Err(error) = write.then(|| fs::write(&page, &played.text)).transpose() {
                    eprintln!("play-page: can't write {}: {error}", page.display());
                    return ExitCode::from(2);
                }
            }
            Err(error) => {
                eprintln!("play-page: {error}");
                return ExitCode::from(2);
            }
        }
    }
    status
}

/// The root folder of the clone that contains a page.
fn repository_of(page: &Path) -> Option<PathBuf> {
    let page = page.canonicalize().ok()?;
    page.ancestors().find(|folder| folder.join("Cargo.lock").is_file()).map(Path::to_owned)
}
