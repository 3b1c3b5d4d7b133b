//! Tests that run live.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::dormouse;

/// Live runs share the processors: one at a time in this process.
static ONE: Mutex<()> = Mutex::new(());

/// Names a folder. A live test is left for later then: its name is put into a file there, `alone/MODULE`, `timed/MODULE` or
/// `shared/MODULE`, from which `scripts/test` runs it. The other tests of its module need no turn and run at once.
const LATER: &str = "DORMOUSE_LIVE_LATER";

/// Set where this host was proved already, so that not every process of tests does it once more.
const PROVED: &str = "DORMOUSE_HOST_PROVED";

/// The turn of a live test that judges this host, or how exactly a run keeps time on it, or `None`, having said why, where this
/// host can't run one or the test is left for later. Nothing should run beside it.
///
/// # Panics
///
/// With `CI=true`, where the host can't: there it must.
#[must_use]
pub fn live_turn() -> Option<MutexGuard<'static, ()>> {
    turn("alone")
}

/// As [`live_turn`], for a test whose run keeps time as it promised, but for what others do on this host
/// ([`is_faithful`](crate::is_faithful)): two more such may run beside it where none sees the others (`scripts/lane`). Its VMs
/// ask for a third of the host's processors at most, by `live.share`.
///
/// # Panics
///
/// As [`live_turn`].
#[must_use]
pub fn timed_live_turn() -> Option<MutexGuard<'static, ()>> {
    turn("timed")
}

/// As [`live_turn`], for a test of what becomes of a run, however late: others may run beside it where none sees the others
/// (`scripts/lane`).
///
/// # Panics
///
/// As [`live_turn`].
#[must_use]
pub fn shared_live_turn() -> Option<MutexGuard<'static, ()>> {
    turn("shared")
}

fn turn(company: &str) -> Option<MutexGuard<'static, ()>> {
    if let Some(folder) = std::env::var_os(LATER) {
        leave_for_later(&Path::new(&folder).join(company));
        return None;
    }
    let turn = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    match host_is_proved() {
        Ok(()) => Some(turn),
        Err(why) => {
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "this host can't run live:\n{why}"
            );
            println!("skipped: this host can't run live, as `dormouse doctor` says");
            None
        }
    }
}

/// Whether `dormouse doctor` finds that this host can run live; it is asked once.
fn host_is_proved() -> &'static Result<(), String> {
    static PROOF: OnceLock<Result<(), String>> = OnceLock::new();
    PROOF.get_or_init(|| {
        if std::env::var_os(PROVED).is_some() {
            return Ok(());
        }
        let said = Command::new(dormouse()).arg("doctor").output().map_err(|e| e.to_string())?;
        if said.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&said.stdout).into_owned())
    })
}

/// Puts the name of the running test into the file of its module in this folder.
fn leave_for_later(folder: &Path) {
    let thread = std::thread::current();
    let test = thread.name().filter(|name| *name != "main");
    let test = test.expect("a test runs on a thread of its name");
    // PROGRAM::MODULE::TEST, as `scripts/run-tests` takes them apart.
    let module = test.match_indices("::").nth(1).map_or(test, |(end, _)| &test[..end]);
    let noted = fs::create_dir_all(folder).and_then(|()| {
        let mut file = File::options().create(true).append(true).open(folder.join(module))?;
        file.write_all(format!("{test}\n").as_bytes())
    });
    noted.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    println!("left for later: it runs live");
}
