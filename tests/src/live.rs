//! Turns for tests that run live.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::dormouse;

/// Lock of the live tests in this process: they share the processors and run one at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Name of an environment variable with a folder. If it is set, a live test is postponed: its name is written to a
/// file there, `alone/MODULE`, `timed/MODULE` or `shared/MODULE`, from which `scripts/test` runs it. The other tests
/// of the module need no turn and run at once.
const LATER: &str = "DORMOUSE_LIVE_LATER";

/// Name of an environment variable that is set if this host is known to run live, so that not every test process
/// proves it again.
const PROVED: &str = "DORMOUSE_HOST_PROVED";

/// The turn of a live test that judges this host, or how exactly a run keeps time on it; nothing should run beside
/// such a test. `None`, after printing why, if this host can't run live or the test is postponed.
///
/// # Panics
///
/// With `CI=true`, where the host can't: there it must.
#[must_use]
pub fn live_turn() -> Option<MutexGuard<'static, ()>> {
    turn("alone")
}

/// As [`live_turn`], for a test whose run must keep time apart from the influence of other load
/// ([`is_faithful`](crate::is_faithful)): two more such tests may run beside it if none of them sees the others
/// (`scripts/lane`). Its VMs ask for at most a third of the host's processors, by `live.share`.
///
/// # Panics
///
/// As [`live_turn`].
#[must_use]
pub fn timed_live_turn() -> Option<MutexGuard<'static, ()>> {
    turn("timed")
}

/// As [`live_turn`], for a test of the outcome of a run, however late: other tests may run beside it if none of them
/// sees the others (`scripts/lane`).
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

/// Whether `dormouse doctor` finds that this host can run live; the result is kept.
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

/// Writes the name of the running test to the file of its module in this folder.
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
