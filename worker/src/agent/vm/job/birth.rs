//! Bringing a job to life: from scratch, or from a checkpoint.

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_tasks::progress::{self, ProgressReader};
use dormouse_vm::life::Seat;

use super::{
    ranks::{self, Rank},
    signals,
};
use crate::{
    agent::{
        gate::Pass,
        host::{Host, limit},
        launch::{PROGRESS, RESULT, bring_to_life, put_down, turn_at_criu},
        report::{Key, explain},
    },
    cgroup::{self, Slot},
    process::{self, Program, Task},
    workspace::TaskName,
};

/// Where and what is to live.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) key: Key,
    pub(crate) name: TaskName,
    pub(crate) args: Vec<String>,
    pub(crate) groups: Arc<cgroup::Vm>,
    /// The lane of the jobs' parents.
    pub(crate) lane: u32,
    /// By rank.
    pub(crate) seats: Vec<Seat>,
    /// From its newest checkpoint.
    pub(crate) restore: bool,
}

/// A job that has come to life.
#[derive(Debug)]
pub(crate) struct Birth {
    pub(crate) process: Task,
    pub(crate) page: ProgressReader,
    pub(crate) ranks: Vec<Rank>,
    pub(crate) at: Instant,
    /// What CRIU took of it.
    pub(crate) restore: Duration,
}

/// Starts or restores a job; what went wrong, in words, otherwise. Nothing runs then.
///
/// Where the VM freezes meanwhile it goes on with the thaw, and what failed for that is tried
/// again.
pub(crate) async fn launch(host: Arc<Host>, pass: Pass, order: Order) -> Result<Birth, String> {
    loop {
        pass.thawed().await.map_err(|e| explain(&e))?;
        let permit = match order.restore {
            true => Some(turn_at_criu(&host, &pass).await?),
            false => None,
        };
        let Some(inside) = pass.birth() else { continue };
        let meanwhile = pass.stopwatch();
        let work = {
            let (host, pass, order) = (Arc::clone(&host), pass.clone(), order.clone());
            move || match order.restore {
                true => restore(&host, &pass, &order),
                false => start(&host, &pass, &order),
            }
        };
        match bring_to_life(&pass, inside, permit, work).await {
            Err(why) if pass.check().is_ok() && !meanwhile.stood().is_zero() => {
                tracing::warn!(why, job = %order.name, "a freeze was in the way of its start");
            }
            born => return born,
        }
    }
}

fn start(host: &Host, pass: &Pass, order: &Order) -> Result<Birth, String> {
    claim(host, order)?;
    let directory = host.workspace().task(&order.name);
    let progress = directory.join(PROGRESS);
    // No rank does any work before it is in its slot.
    progress::create_held(&progress).map_err(|e| explain(&e))?;
    let page = ProgressReader::open(&progress).map_err(|e| explain(&e))?;
    let entry = order.groups.entry(order.lane, Slot::A).map_err(|e| explain(&e))?;
    let process = Program::new(host.program(), &directory)
        .args(&order.args)
        .arg("--progress")
        .arg(&progress)
        .arg("--result")
        .arg(directory.join(RESULT))
        .start(&entry, limit::BIRTH)
        .map_err(|e| explain(&e))?;
    let placed = ranks::find(process.pid(), pass, &page, order.seats.len(), limit::BIRTH)
        .and_then(|ranks| {
            ranks::place(&order.groups, host.cores.all(), &ranks, &order.seats).map(|()| ranks)
        })
        .map_err(|e| match last_words(host, order) {
            Some(words) => format!("{}; it said: {words}", explain(&e)),
            None => explain(&e),
        });
    let going = placed
        .and_then(|ranks| progress::let_go(&progress).map(|()| ranks).map_err(|e| explain(&e)));
    match going {
        Ok(ranks) => {
            Ok(Birth { process, page, ranks, at: Instant::now(), restore: Duration::ZERO })
        }
        Err(why) => {
            put_down(&process, pass);
            Err(why)
        }
    }
}

/// What a job that did not come to life wrote.
fn last_words(host: &Host, order: &Order) -> Option<String> {
    let words = fs::read_to_string(host.workspace().task(&order.name).join("stderr")).ok()?;
    words.lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned)
}

fn restore(host: &Host, pass: &Pass, order: &Order) -> Result<Birth, String> {
    let Some(checkpointer) = &host.checkpointer else {
        return Err("this worker has no CRIU that works".to_owned());
    };
    claim(host, order)?;
    let progress = host.workspace().task(&order.name).join(PROGRESS);
    let mut found = Vec::new();
    let restored = checkpointer
        .restore_with(&order.name, &order.groups, order.lane, Slot::A, limit::RESTORE, &mut || {
            pass.check()?;
            // Beside it this thread has only CRIU, which has made all that it will.
            let parent = process::init_among_children()?.ok_or("its parent is not there")?;
            let page = ProgressReader::open(&progress)?;
            let ranks = ranks::present(parent, &page)?;
            ranks::place(&order.groups, host.cores.all(), &ranks, &order.seats)?;
            found = ranks;
            Ok(())
        })
        .map_err(|e| explain(&e))?;
    let page = ProgressReader::open(&progress).map_err(|e| explain(&e))?;
    // They were dumped as stopped, and come back so.
    signals::go_on(&found).map_err(|e| explain(&e))?;
    let (at, restore) = (Instant::now(), restored.took);
    Ok(Birth { process: restored.task, page, ranks: found, at, restore })
}

fn claim(host: &Host, order: &Order) -> Result<(), String> {
    let (task, attempt) = order.key;
    host.places.claim(host.workspace(), &order.name, task, attempt).map_err(|e| explain(&e))
}
