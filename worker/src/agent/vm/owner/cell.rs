//! The cell of a VM that runs programs of its own, as an instance does, from the end of its boot to its shutdown.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use dormouse_metadata::{VmAnnouncement, address_of_vm};
use dormouse_proto::v1::{CreateVm, CreditBalance, SetNetwork, VmConsole, VmRef, VmShare, report};
use dormouse_units::{Attempt, TaskId, Time};
use dormouse_vm::{
    CreditSpec,
    life::{TierSlot, VmEvent},
};
use tokio::time::Instant;

use super::VmOwner;
use crate::{
    agent::{
        cell::{
            self, CellLaunch, CellNetwork, CellPace, CellQuota, CellRelays, ConsoleReader,
            RelayOrder, api_url,
        },
        machine::TaskProcess,
        own::wanted_by,
        report::{Key, make_report},
        threads::await_outcome,
        vm::{CpuAccount, message::OwnerMessage, resources::VmResources},
    },
    metadata::{METADATA_ADDRESS, METADATA_VARIABLE, own_address},
    process::ProcessEnd,
    workspace::TaskName,
};

/// Interval at which a cell's CPU time and console are looked at, in real time.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Real time beyond the limit of a shutdown after which the worker itself kills the cell.
const MORE: Duration = Duration::from_secs(1);
/// Most bytes of a cell's files, if its VM's memory is not given.
const DIRECTORY_BYTES: u64 = 512 << 20;
/// Most reports of new console output that are sent each time the worker looks at the console; what is left is sent the next time.
const PARTS: usize = 8;
/// Most parts of a console that are reported once its cell ends: all that a console holds.
const LAST_PARTS: usize = 80;

/// Stage of a cell.
#[derive(Debug)]
enum CellStage {
    /// The VM boots.
    Booting,
    /// The cell's first process is being started.
    Starting,
    /// The cell has its first process.
    Running(Arc<dyn TaskProcess>),
    /// The cell's first process has ended.
    Over,
}

/// The cell of a VM: the jail in which an EC2 instance's programs run, with its network, files and console.
#[derive(Debug)]
pub(super) struct VmCell {
    order: dormouse_proto::v1::InstanceCell,
    /// The instance's private network; `None`: it has none.
    network: Option<CellNetwork>,
    /// Address of the VM.
    own: Ipv4Addr,
    /// Relays of connections into and out of the cell; `None` until the VM has booted, or if there are none.
    relays: Option<CellRelays>,
    name: TaskName,
    key: Key,
    directory_bytes: u64,
    stage: CellStage,
    pace: CellPace,
    console: ConsoleReader,
    /// True if the console can't be read any more.
    has_lost_console: bool,
    look_at: Instant,
    /// True if the cell has been given notice of its VM's end: it gets no more time after that.
    has_notice: bool,
    /// Time at which the worker kills a cell that was told to end; `None`: it was not told to.
    end_by: Option<Instant>,
}

impl VmCell {
    /// Makes the cell of a VM that is being created; `None`: the VM has none.
    ///
    /// # Errors
    ///
    /// The run's name can't be that of a folder.
    pub(super) fn of_vm(
        context: &crate::agent::machine::LifeContext,
        create: &CreateVm,
        credits: Option<CreditSpec>,
    ) -> Result<Option<Self>, String> {
        let Some(order) = create.cell.clone() else { return Ok(None) };
        let name = cell::folder_name(&context.run, order.first_vm);
        let network = order.network.as_ref().map(CellNetwork::read).transpose()?;
        let quota = CellQuota { vcpus: create.vcpus, core_ppm: order.core_ppm };
        Ok(Some(Self {
            name: name.map_err(|error| error.to_string())?,
            network,
            // A run whose VMs have cells has no tasks.
            key: (TaskId::new(create.vm), Attempt::new(0)),
            // The programs need memory, too: a full directory is to be an error of theirs, not the end of all of them.
            directory_bytes: create.memory_bytes.map_or(DIRECTORY_BYTES, |bytes| bytes / 4 * 3),
            stage: CellStage::Booting,
            pace: CellPace::new(context.speedup, quota, credits),
            console: ConsoleReader::default(),
            has_lost_console: false,
            look_at: Instant::now(),
            has_notice: false,
            end_by: None,
            own: create
                .metadata
                .as_ref()
                .map_or_else(|| address_of_vm(create.vm), |of| own_address(create.vm, of)),
            relays: None,
            order,
        }))
    }

    fn process(&self) -> Option<&Arc<dyn TaskProcess>> {
        match &self.stage {
            CellStage::Running(process) => Some(process),
            CellStage::Booting | CellStage::Starting | CellStage::Over => None,
        }
    }

    /// Returns when the cell is to be looked at next, on a VM that is not to be destroyed.
    fn next_look(&self) -> Option<Instant> {
        self.process().map(|_| self.look_at)
    }
}

impl VmOwner {
    /// Sets the quota of a VM that has just been created, if the VM has a cell.
    pub(super) fn prepare_cell(&mut self) {
        let Some(cell) = &self.cell else { return };
        let set = self.machine.set_quota(0, Some(cell.pace.quota_ppm()));
        self.note_set(set);
    }

    /// Starts the cell of a VM whose boot is over.
    pub(super) fn begin_cell(&mut self) {
        let (mut env, id) = (self.own_env(), self.id);
        let context = Arc::clone(&self.context);
        let Some(cell) = self.cell.as_mut().filter(|it| matches!(it.stage, CellStage::Booting))
        else {
            tracing::warn!(vm = id, "a VM without a cell, or with one that runs, has booted");
            return;
        };
        if self.is_destroyed {
            return;
        }
        cell.stage = CellStage::Starting;
        let ways = relay_order(id, cell, !env.is_empty());
        // Clients look there without a variable, and AWS's CLI 2.9 can't read one without a path.
        let default = format!("http://{METADATA_ADDRESS}");
        env.retain(|(name, value)| name != METADATA_VARIABLE || *value != default);
        if let Some(api) = cell.order.api.as_ref().filter(|_| ways.api.is_some()) {
            env.push(("AWS_ENDPOINT_URL".to_owned(), api_url()));
            for name in ["AWS_REGION", "AWS_DEFAULT_REGION"] {
                env.push((name.to_owned(), api.region.clone()));
            }
        }
        let launch = CellLaunch {
            vm: id,
            name: cell.name.clone(),
            cell: cell.order.clone(),
            env,
            directory_bytes: cell.directory_bytes,
            pass: self.gate.make_pass(),
        };
        self.remains.cell_begins(cell.key, cell.name.clone());
        let (machine, tell) = (Arc::clone(&self.machine), self.tell.clone());
        let (remains, key) = (Arc::clone(&self.remains), cell.key);
        let warn = Box::new(move |text: String| {
            let console = VmConsole { vm: id, text: format!("[dormouse: {text}]\n") };
            context.send_report(make_report(report::Report::VmConsole(console)));
        });
        let needs_ways = ways.api.is_some() || ways.network.is_some();
        let opening = needs_ways.then(|| Arc::clone(&machine).open_relays(ways, warn));
        let launching = machine.launch_cell(launch);
        tokio::spawn(async move {
            // Programs find them open.
            if let Some(opening) = opening {
                let opened = await_outcome(opening).await;
                let _ = tell.cast(OwnerMessage::CellRelayed(opened));
            }
            let began = await_outcome(launching).await;
            note_born(&remains, key, &began);
            // Where its owner is gone, the process is with what remains of the VM.
            let _ = tell.cast(OwnerMessage::CellBegan(began));
        });
    }

    /// Handles the result of opening the ways into and out of the cell.
    pub(super) fn cell_relayed(&mut self, opened: Result<CellRelays, String>) {
        let is_frozen = self.is_frozen();
        match (opened, &mut self.cell) {
            (Ok(relays), Some(cell)) => {
                // They may have changed while it was opened.
                if let Some(network) = cell.network.clone() {
                    relays.set_network(network);
                }
                relays.set_open(!is_frozen);
                cell.relays = Some(relays);
            }
            (Ok(_), None) => {}
            (Err(why), _) => self.vm_broken(&format!("its cell can't be reached: {why}")),
        }
    }

    /// Handles that the security groups of the VM's instance allow other connections than before.
    pub(super) fn set_network(&mut self, of: &SetNetwork) {
        let read = of.network.as_ref().map(CellNetwork::read).transpose();
        let network = match read {
            Ok(Some(network)) => network,
            Ok(None) => return,
            Err(why) => return tracing::warn!(vm = self.id, why, "a network is refused"),
        };
        let names = VmAnnouncement::SecurityGroups(network.group_names.clone());
        self.metadata.iter().for_each(|metadata| metadata.announce(names.clone()));
        if let Some(cell) = &mut self.cell {
            if let Some(relays) = &cell.relays {
                relays.set_network(network.clone());
            }
            cell.network = Some(network);
        }
    }

    /// Handles the result of the start of the cell.
    pub(super) fn cell_began(&mut self, began: Result<Arc<dyn TaskProcess>, String>) {
        let used_ns = self.cell_cpu_ns();
        let is_frozen = self.is_frozen();
        let Some(cell) = &mut self.cell else { return };
        match began {
            Ok(process) => {
                let tell = self.tell.clone();
                let ended = Box::new(move || drop(tell.cast(OwnerMessage::CellEnded)));
                let watched = process.watch(ended);
                cell.stage = CellStage::Running(process);
                if !is_frozen {
                    cell.pace.begin_measure(Instant::now(), used_ns);
                }
                if let Err(error) = watched {
                    self.vm_broken(&format!("its cell can't be watched: {error}"));
                }
            }
            Err(why) => {
                cell.stage = CellStage::Over;
                if !self.is_destroyed {
                    self.vm_broken(&format!("its cell can't be started: {why}"));
                }
            }
        }
    }

    /// Returns the CPU time of the cell, in nanoseconds; 0 if the kernel doesn't report it.
    fn cell_cpu_ns(&self) -> u64 {
        self.machine.slot_cpu_ns(0, TierSlot::A).unwrap_or_default()
    }

    /// Returns when the cell needs its owner next; `None`: it does not.
    pub(super) fn cell_wakes_at(&self) -> Option<Instant> {
        let cell = self.cell.as_ref()?;
        if self.is_destroyed { cell.end_by } else { cell.next_look() }
    }

    /// Does what the cell needs at `now`: measures its CPU time, reports its console, and ends it if it has not ended in time.
    pub(super) fn see_to_cell(&mut self, now: Instant) {
        let Some(cell) = &self.cell else { return };
        if cell.end_by.is_some_and(|by| by <= now) {
            tracing::warn!(vm = self.id, "a cell has not ended in time, and is killed");
            return self.cell_must_end();
        }
        if self.is_frozen() || cell.next_look().is_none_or(|at| at > now) {
            return;
        }
        self.measure_cell(now);
        self.report_console(false);
        if let Some(cell) = &mut self.cell {
            cell.look_at = now + LOOK_EVERY;
        }
    }

    /// Measures the CPU time of the cell, and sets the quota that its credits allow.
    fn measure_cell(&mut self, now: Instant) {
        let used_ns = self.cell_cpu_ns();
        let threads = self.machine.slot_threads(0, TierSlot::A);
        let Some(cell) = self.cell.as_mut().filter(|cell| cell.process().is_some()) else { return };
        let change = cell.pace.note_use(now, used_ns, threads.into_iter().filter_map(wanted_by));
        if let Some(quota) = change.quota_ppm {
            let set = self.machine.set_quota(0, Some(quota));
            self.note_set(set);
            self.say_cell_credits();
        }
    }

    /// Reports the credits of the cell, if it has any.
    fn say_cell_credits(&self) {
        let Some(balance) = self.cell.as_ref().and_then(|cell| cell.pace.credits_left()) else {
            return;
        };
        let at = self.clock.of_run(self.clock.now());
        self.context.send_report(make_report(report::Report::Credits(CreditBalance {
            vm: self.id,
            emulated_us: balance.as_vcpu_micros(),
            emulated_at_us: at.map(Time::as_micros),
        })));
    }

    /// Reports what the cell has written to its console since the last report; `is_last`: the cell has ended.
    fn report_console(&mut self, is_last: bool) {
        for _ in 0..if is_last { LAST_PARTS } else { PARTS } {
            let Some(cell) = &mut self.cell else { return };
            if cell.has_lost_console {
                return;
            }
            let bytes = match self.machine.read_console(&cell.name, cell.console.next_byte()) {
                Ok(bytes) => bytes,
                Err(error) => {
                    // Programs of the cell have put something else in its place.
                    cell.has_lost_console = true;
                    tracing::warn!(vm = self.id, %error, "the console of a cell can't be read");
                    return;
                }
            };
            let Some(text) = cell.console.take_text(&bytes, is_last) else { return };
            let console = VmConsole { vm: self.id, text };
            self.context.send_report(make_report(report::Report::VmConsole(console)));
        }
    }

    /// Reports the CPU time that the cell was promised and has received, and its credits; false if the VM has no cell.
    pub(super) fn report_cell_share(&mut self) -> bool {
        if self.cell.is_none() {
            return false;
        }
        self.measure_cell(Instant::now());
        self.say_cell_credits();
        let account = self.cell.as_ref().map(|cell| cell.pace.cpu_account());
        let CpuAccount { promised, received } = account.unwrap_or_default();
        self.context.send_report(make_report(report::Report::VmShare(VmShare {
            vm: self.id,
            real_promised_us: promised / 1000,
            real_received_us: received / 1000,
        })));
        true
    }

    /// Stops the measurement of the cell, as its VM is about to freeze.
    pub(super) fn cell_freezes(&mut self) {
        self.measure_cell(Instant::now());
        if let Some(cell) = &mut self.cell {
            cell.pace.stop_measure();
            cell.relays.iter().for_each(|relays| relays.set_open(false));
        }
    }

    /// Continues the measurement of the cell, as its VM has thawed.
    pub(super) fn cell_thaws(&mut self) {
        let used_ns = self.cell_cpu_ns();
        let relays = self.cell.as_ref().and_then(|cell| cell.relays.as_ref());
        relays.iter().for_each(|relays| relays.set_open(true));
        if let Some(cell) = self.cell.as_mut().filter(|cell| cell.process().is_some()) {
            cell.pace.begin_measure(Instant::now(), used_ns);
            cell.look_at = Instant::now() + LOOK_EVERY;
        }
    }

    /// Records that the cell's programs have been given notice of their VM's end.
    pub(super) fn cell_has_notice(&mut self) {
        if let Some(cell) = &mut self.cell {
            cell.has_notice = true;
        }
    }

    /// Begins the shutdown of the cell, as its VM is destroyed; false if nothing is waited for: there is no process that could end
    /// by itself, or the cell has had a notice.
    pub(super) fn begin_shutdown(&mut self) -> bool {
        let is_frozen = self.is_frozen();
        let Some(cell) = self.cell.as_mut().filter(|_| !is_frozen) else { return false };
        let limit = Duration::from_millis(cell.order.shutdown_real_ms.into());
        if cell.process().is_none() {
            return false;
        }
        if cell.has_notice || limit.is_zero() {
            self.report_console(true);
            return false;
        }
        cell.end_by = Some(Instant::now() + limit + MORE);
        self.tell_cell_to_end();
        true
    }

    /// Tells the cell's first process to end the cell.
    fn tell_cell_to_end(&self) {
        if let Some(process) = self.cell.as_ref().and_then(VmCell::process) {
            self.machine.end_cell(&**process);
        }
    }

    /// Handles the end of the cell's first process.
    pub(super) fn cell_ended(&mut self) {
        let Some(cell) = &self.cell else { return };
        let Some(process) = cell.process().cloned() else { return };
        let ended = match process.try_wait() {
            Ok(Some(ended)) => ended,
            Ok(None) => return,
            Err(error) => return self.vm_broken(&format!("its cell can't be waited for: {error}")),
        };
        self.measure_cell(Instant::now());
        self.report_console(true);
        if let Some(cell) = &mut self.cell {
            cell.stage = CellStage::Over;
        }
        if self.is_destroyed {
            return self.cell_must_end();
        }
        // Status 0: a program inside has sent SIGTERM to the first process, which nobody outside did.
        let own = [0, i32::from(dormouse_tasks::cell_init::POWERED_OFF)];
        if own.iter().any(|status| ended == ProcessEnd::Exited(*status)) {
            let vm = self.id;
            self.context.send_report(make_report(report::Report::VmPoweredOff(VmRef { vm })));
        } else {
            let why = match self.machine.kills_for_memory() {
                0 => format!("the first process of its cell has ended: {ended}"),
                _ => format!(
                    "the first process of its cell has ended: {ended}; processes of it were killed for lack of memory"
                ),
            };
            self.vm_broken(&why);
        }
    }

    /// Destroys the VM, whose cell has ended or is out of time.
    fn cell_must_end(&mut self) {
        if let Some(cell) = &mut self.cell
            && cell.end_by.take().is_some()
        {
            self.report_console(true);
            self.apply_event(VmEvent::Destroy);
        }
    }
}

/// Returns the ways into and out of a cell; the API is called only with credentials of the cell's metadata.
fn relay_order(vm: u32, cell: &VmCell, has_metadata: bool) -> RelayOrder {
    let api = cell.order.api.as_ref().filter(|_| has_metadata);
    let public = cell.order.public_address.as_ref().and_then(|address| address.parse().ok());
    RelayOrder {
        vm,
        own: cell.own,
        api: api.and_then(|api| api.address.parse().ok()),
        public,
        network: cell.network.clone(),
        has_ssh: !cell.order.ssh_keys.is_empty(),
    }
}

/// Records the first process of a cell with what remains of its VM.
fn note_born(remains: &VmResources, key: Key, began: &Result<Arc<dyn TaskProcess>, String>) {
    if let Ok(process) = began {
        remains.process_born(key, process);
    }
}
