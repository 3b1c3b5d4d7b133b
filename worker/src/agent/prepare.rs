//! Preparing this process to be a worker, before any thread starts.

use std::{path::PathBuf, sync::Arc, time::Duration};

use rustix::process::setpriority_process;

use super::{AgentConfig, AgentError, Result, report::explain_error};
use crate::{
    cgroup::{CgroupHierarchy, CpuQuota, GroupTree, InstanceName, own_low_weight},
    checkpointer::Checkpointer,
    cleanup,
    contents::ContentCache,
    criu::{CriuProgram, CriuRelease},
    guardian::GroupGuardian,
    jail::{self, JailDemand, JailPart, TaskJail},
    place::ProcessPlace,
    process::{ProcessIdentity, pid_namespace},
    store::LocalCheckpoints,
    workspace::{Workspace, make_kernel_files_writable},
};

/// Time that cleaning up after a crashed worker may take.
const CLEAN_UP: Duration = Duration::from_secs(10);
const PROBE: Duration = Duration::from_secs(10);
/// Period of CPU quotas: the shortest in which a vCPU of 5 % of a core still gets the kernel's smallest quota of 1
/// ms. Smaller shares get longer periods.
const PERIOD_US: u64 = CpuQuota::DEFAULT_PERIOD_US;

/// Niceness of the worker: it has next to nothing to do, but its heartbeats and its timing must not depend on what
/// else runs on the host. Tasks inherit it without effect, as each is alone in its control group.
const NICE: i32 = -10;

/// A process prepared to be a worker.
#[derive(Debug)]
pub struct PreparedWorker {
    pub(crate) tree: GroupTree,
    pub(crate) workspace: Workspace,
    pub(crate) store: LocalCheckpoints,
    /// Cache of the contents of tasks' input files.
    pub(crate) contents: ContentCache,
    pub(crate) criu: Option<(CriuProgram, CriuRelease)>,
    /// Cores that the worker offers, in thousandths.
    pub(crate) millicores: u32,
    /// Folders of this host that tasks may read.
    pub(crate) mounts: Vec<PathBuf>,
    /// Address of the coordinator, `host:port`.
    pub(crate) coordinator: String,
    /// Path of the program that runs tasks, the same path on every worker.
    pub(crate) program: PathBuf,
    /// Handle of the guardian, a child process that cleans up when the worker ends, so that its exit can be told from that of other
    /// children; the guardian ends after this process.
    _guardian: GroupGuardian,
}

/// Makes this process a worker, with a mount namespace, control groups and a guardian (a process that cleans up when the worker
/// ends), and cleans up after a crashed worker.
///
/// Must be called first in `main`, before any thread is started (so not below `#[tokio::main]`).
///
/// # Errors
///
/// There is no root, control group or directory for it; each error says which.
pub fn prepare_process(config: &AgentConfig) -> Result<PreparedWorker> {
    let hierarchy = CgroupHierarchy::detect_version().map_err(AgentError::Cgroup)?;
    let name = InstanceName {
        pid_namespace: pid_namespace().map_err(AgentError::Process)?,
        owner: ProcessIdentity::current_process().map_err(AgentError::Process)?,
    };
    raise_priority();
    warn_of_low_weight(&hierarchy);
    // Before the guardian, which is to see them so, too.
    make_kernel_files_writable(&hierarchy).map_err(AgentError::Workspace)?;
    // Before the mount namespace: the guardian must not keep it alive.
    let guardian = GroupGuardian::start_guardian(&hierarchy, name).map_err(AgentError::Process)?;
    let workspace = Workspace::enter_workspace(&config.root).map_err(AgentError::Workspace)?;
    let program = workspace.install_program(&config.task_program).map_err(AgentError::Workspace)?;
    let store =
        LocalCheckpoints::open(workspace.checkpoints_directory()).map_err(AgentError::Store)?;
    let contents =
        ContentCache::open(&workspace.contents_directory()).map_err(AgentError::Contents)?;
    let cleaned =
        cleanup::clean_up(&hierarchy, &workspace, &store, CLEAN_UP).map_err(AgentError::CleanUp)?;
    if !cleaned.groups.trees.is_empty() || !cleaned.checkpoints.is_empty() {
        tracing::warn!(
            ?cleaned,
            "an earlier worker had left processes or files behind: they are \
                 cleaned up"
        );
    }
    let tree = GroupTree::create_tree(hierarchy, name, PERIOD_US).map_err(AgentError::Cgroup)?;
    let criu = config.criu.as_ref().and_then(|path| usable_criu(path));
    let (jail, workspace) =
        build_jail(config, &tree, workspace, criu.as_ref().map(|(criu, _)| criu))?;
    let tree = tree.with_jail(jail);
    let (millicores, mounts) = (config.millicores, config.jail.mounts.clone());
    Ok(PreparedWorker {
        tree,
        workspace,
        store,
        contents,
        criu,
        millicores,
        mounts,
        coordinator: config.coordinator.clone(),
        program,
        _guardian: guardian,
    })
}

/// Builds the jail of the tasks, and logs what it lacks; an error if a full jail is demanded.
fn build_jail(
    config: &AgentConfig,
    tree: &GroupTree,
    workspace: Workspace,
    criu: Option<&CriuProgram>,
) -> Result<(Option<Arc<TaskJail>>, Workspace)> {
    let lacks =
        |error: jail::JailError| {
            let remedy = match error.part.needed_capabilities() {
            [] => "have the engine, or the kernel, offer control groups that count processes (pids)"
                .to_owned(),
            names => ProcessPlace::detect_place().to_add_capabilities(names),
        };
            AgentError::Jail { remedy, source: error }
        };
    let layout = workspace.jail_layout(criu.map(CriuProgram::program));
    let Some(jail) = TaskJail::build_jail(&config.jail, &layout).map_err(lacks)? else {
        tracing::warn!("--jail none: tasks run as this user, with all of its rights");
        return Ok((None, workspace));
    };
    if !tree.hierarchy().counts_pids() {
        let source = std::io::Error::from(std::io::ErrorKind::Unsupported);
        let part = JailPart::Pids;
        let error =
            jail::JailError { part, step: "finding who counts processes".to_owned(), source };
        match config.jail.demand {
            JailDemand::Full => return Err(lacks(error)),
            _ => tracing::warn!(why = explain_error(&error), "the jail of tasks is incomplete"),
        }
    }
    for error in jail.lacking_parts() {
        tracing::warn!(why = explain_error(error), "the jail of tasks is incomplete");
    }
    if let Some(criu) = criu {
        let cell = jail.make_cell("dormouse").map_err(lacks)?;
        criu.settle_in(&cell, PROBE).map_err(|e| AgentError::JailCriu(Box::new(e)))?;
    }
    let workspace = workspace.with_users(jail.user_range()).map_err(AgentError::Workspace)?;
    Ok((Some(jail), workspace))
}

/// Logs a warning if other processes get processors before this worker's tasks, which are then late whenever the host
/// is busy.
fn warn_of_low_weight(hierarchy: &CgroupHierarchy) {
    match own_low_weight(hierarchy) {
        Ok(Some(low)) => {
            tracing::warn!(
                remedy = ProcessPlace::detect_place().to_weigh_more(),
                "{low}: its tasks will be late"
            );
        }
        Ok(None) => {}
        Err(error) => tracing::debug!(%error, "the weight of its group is not known"),
    }
}

/// Raises the priority of this thread and of those that it starts, if that is allowed: for processes that must be on
/// time and have next to nothing to do, such as a worker, or a coordinator beside busy VMs.
pub fn raise_priority() {
    if let Err(error) = setpriority_process(None, NICE) {
        tracing::warn!(%error, "the worker runs at ordinary priority: timing may suffer under load");
    }
}

/// Returns the CRIU program at `path`, with its version; `None`: it doesn't work on this host.
fn usable_criu(path: &std::path::Path) -> Option<(CriuProgram, CriuRelease)> {
    let criu = CriuProgram::new(path);
    let probe = criu.probe_host(PROBE);
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

impl PreparedWorker {
    /// Returns the CPU time that CRIU used outside this worker's control groups, in nanoseconds; 0 without CRIU.
    pub(crate) fn criu_cpu_ns(&self) -> u64 {
        self.criu.as_ref().map_or(0, |(criu, _)| criu.cpu_ns())
    }

    /// Makes the checkpointer for this store; `None` without CRIU.
    pub(crate) fn make_checkpointer(&self, store: &LocalCheckpoints) -> Option<Checkpointer> {
        let (criu, version) = self.criu.clone()?;
        Some(Checkpointer::new(criu, version, store.clone(), &self.workspace))
    }
}
