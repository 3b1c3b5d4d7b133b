//! What has to be done before the first thread.

use std::{path::PathBuf, sync::Arc, time::Duration};

use rustix::process::setpriority_process;

use super::{AgentError, Config, Result, report::explain};
use crate::{
    cgroup::{CpuQuota, Hierarchy, InstanceName, Tree, own_low_weight},
    checkpointer::Checkpointer,
    cleanup,
    contents::Cache,
    criu::{Criu, Version},
    guardian::Guardian,
    jail::{self, Demand, Jail, Part},
    place::Place,
    process::{Identity, pid_namespace},
    store::Store,
    workspace::{Workspace, make_kernel_files_writable},
};

/// The time that what a crashed worker left may take to go away.
const CLEAN_UP: Duration = Duration::from_secs(10);
const PROBE: Duration = Duration::from_secs(10);
/// Period of the CPU quotas: the shortest in which a vCPU of 5 % of a core still has the
/// kernel's least quota of 1 ms. Smaller shares get longer ones.
const PERIOD_US: u64 = CpuQuota::DEFAULT_PERIOD_US;

/// How much nicer to itself than others the worker is: it has next to nothing to do, but its
/// heartbeats and its timing must not depend on what else runs on the host. Tasks inherit it,
/// to whom it means nothing, since each is alone in its control group.
const NICE: i32 = -10;

/// A process made ready to be a worker.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) tree: Tree,
    pub(crate) workspace: Workspace,
    pub(crate) store: Store,
    /// The contents of files with which tasks begin.
    pub(crate) contents: Cache,
    pub(crate) criu: Option<(Criu, Version)>,
    /// The cores that it offers, in thousandths.
    pub(crate) millicores: u32,
    /// The folders of this host that tasks may read.
    pub(crate) mounts: Vec<PathBuf>,
    /// The program of tasks, at the path where it is on every worker.
    pub(crate) program: PathBuf,
    /// Kept to be told apart from other children; it ends by itself after this process.
    _guardian: Guardian,
}

/// Makes this process a worker: its guardian, its mount namespace, its control groups; and takes
/// away what a crashed one left.
///
/// To be called first thing in `main`, before any thread is started (so not below
/// `#[tokio::main]`).
///
/// # Errors
/// Without root, control groups or a directory of its own; each says which.
pub fn prepare_process(config: &Config) -> Result<Prepared> {
    let hierarchy = Hierarchy::detect().map_err(AgentError::Cgroup)?;
    let name = InstanceName {
        pid_namespace: pid_namespace().map_err(AgentError::Process)?,
        owner: Identity::current().map_err(AgentError::Process)?,
    };
    raise_priority();
    warn_of_low_weight(&hierarchy);
    // Before the guardian, which is to see them so, too.
    make_kernel_files_writable(&hierarchy).map_err(AgentError::Workspace)?;
    // Before the mount namespace: the guardian must not keep it alive.
    let guardian = Guardian::start(&hierarchy, name).map_err(AgentError::Process)?;
    let workspace = Workspace::enter(&config.root).map_err(AgentError::Workspace)?;
    let program = workspace.install_program(&config.task_program).map_err(AgentError::Workspace)?;
    let store = Store::open(workspace.checkpoints()).map_err(AgentError::Store)?;
    let contents = Cache::open(&workspace.contents()).map_err(AgentError::Contents)?;
    let cleaned =
        cleanup::clean_up(&hierarchy, &workspace, &store, CLEAN_UP).map_err(AgentError::CleanUp)?;
    if !cleaned.groups.trees.is_empty() || !cleaned.checkpoints.is_empty() {
        tracing::warn!(
            ?cleaned,
            "an earlier worker had left processes or files behind: they are \
                 cleaned up"
        );
    }
    let tree = Tree::create(hierarchy, name, PERIOD_US).map_err(AgentError::Cgroup)?;
    let criu = config.criu.as_ref().and_then(|path| usable(path));
    let (jail, workspace) = jail(config, &tree, workspace, criu.as_ref().map(|(criu, _)| criu))?;
    let tree = tree.with_jail(jail);
    let (millicores, mounts) = (config.millicores, config.jail.mounts.clone());
    Ok(Prepared {
        tree,
        workspace,
        store,
        contents,
        criu,
        millicores,
        mounts,
        program,
        _guardian: guardian,
    })
}

/// Builds the jail of the tasks, and says what of it is lacking; where all of it is demanded that is an
/// error.
fn jail(
    config: &Config,
    tree: &Tree,
    workspace: Workspace,
    criu: Option<&Criu>,
) -> Result<(Option<Arc<Jail>>, Workspace)> {
    let lacks =
        |error: jail::Error| {
            let remedy = match error.part.capabilities() {
            [] => "have the engine, or the kernel, offer control groups that count processes (pids)"
                .to_owned(),
            names => Place::detect().to_add_capabilities(names),
        };
            AgentError::Jail { remedy, source: error }
        };
    let layout = workspace.jail_layout(criu.map(Criu::program));
    let Some(jail) = Jail::build(&config.jail, &layout).map_err(lacks)? else {
        tracing::warn!("--jail none: tasks run as this user, with all of its rights");
        return Ok((None, workspace));
    };
    if !tree.hierarchy().counts_pids() {
        let source = std::io::Error::from(std::io::ErrorKind::Unsupported);
        let part = Part::Pids;
        let error = jail::Error { part, step: "finding who counts processes".to_owned(), source };
        match config.jail.demand {
            Demand::Full => return Err(lacks(error)),
            _ => tracing::warn!(why = explain(&error), "the jail of tasks is incomplete"),
        }
    }
    for error in jail.lacking() {
        tracing::warn!(why = explain(error), "the jail of tasks is incomplete");
    }
    if let Some(criu) = criu {
        let cell = jail.cell("dormouse").map_err(lacks)?;
        criu.settle_in(&cell, PROBE).map_err(|e| AgentError::JailCriu(Box::new(e)))?;
    }
    let workspace = workspace.with_users(jail.users()).map_err(AgentError::Workspace)?;
    Ok((Some(jail), workspace))
}

/// Says that others have the processors before this worker's tasks, where that is so: tasks are late
/// then whenever the host is busy, whatever quota they have.
fn warn_of_low_weight(hierarchy: &Hierarchy) {
    match own_low_weight(hierarchy) {
        Ok(Some(low)) => {
            tracing::warn!(
                remedy = Place::detect().to_weigh_more(),
                "{low}: its tasks will be late"
            );
        }
        Ok(None) => {}
        Err(error) => tracing::debug!(%error, "the weight of its group is not known"),
    }
}

/// Raises the priority of this thread, and of those that it starts, where it may: for who must be
/// on time and has next to nothing to do, as a worker or a coordinator beside busy VMs.
pub fn raise_priority() {
    if let Err(error) = setpriority_process(None, NICE) {
        tracing::warn!(%error, "the worker runs at ordinary priority: timing may suffer under load");
    }
}

/// The CRIU at `path`, if it works here.
fn usable(path: &std::path::Path) -> Option<(Criu, Version)> {
    let criu = Criu::new(path);
    let probe = criu.probe(PROBE);
    match (probe.check, probe.version) {
        (Ok(()), Some(version)) => Some((criu, version)),
        (Ok(()), None) => None,
        (Err(error), _) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                path = %path.display(),
                "this CRIU does not work, so there are no checkpoints: scripts/get-criu gets one \
                 that does"
            );
            None
        }
    }
}

impl Prepared {
    /// CPU time that CRIU used outside the tree's groups, in nanoseconds.
    pub(crate) fn criu_cpu_ns(&self) -> u64 {
        self.criu.as_ref().map_or(0, |(criu, _)| criu.cpu_ns())
    }

    /// Takes checkpoints into this store.
    pub(crate) fn checkpointer(&self, store: &Store) -> Option<Checkpointer> {
        let (criu, version) = self.criu.clone()?;
        Some(Checkpointer::new(criu, version, store.clone(), &self.workspace))
    }
}
