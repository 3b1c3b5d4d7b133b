//! The groups of one emulated VM.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, Mutex, atomic::AtomicU64},
    time::{Duration, Instant},
};

pub use dormouse_vm::life::TierSlot;
use nix::sched::CpuSet;

use super::{
    CgroupController, CgroupError, CgroupHierarchy, CpuQuota, CpuThrottling, FreezeTimes, Result,
    bandwidth::VcpuBandwidth, cpu, delegate, entry, file, freezer, memory, pids, procs, tree,
};
use crate::{jail::JailCell, process::ProcessGroups};

/// The controllers that have a group for each slot.
const BY_SLOT: [CgroupController; 3] =
    [CgroupController::Cpu, CgroupController::Cpuacct, CgroupController::Freezer];

/// The groups of one VM. All methods block, and may be called from any thread.
///
/// Dropping this value leaves the groups in place; see [`VmGroups::remove`].
#[derive(Debug)]
pub struct VmGroups {
    pub(super) hierarchy: CgroupHierarchy,
    relative: PathBuf,
    vcpus: u32,
    period_us: u64,
    pub(super) memory_limit: Option<u64>,
    /// Number of kills for lack of memory that were already reported.
    pub(super) oom_kills_said: AtomicU64,
    /// Namespaces of the VM's tasks; `None`: the tasks aren't jailed.
    cell: Option<Arc<JailCell>>,
    /// The bandwidth of each vCPU; locked while it is written to the kernel.
    pub(super) bandwidths: Mutex<Vec<VcpuBandwidth>>,
}

impl VmGroups {
    /// Sets the period of the VM's quotas, in microseconds; it holds for each quota that is written from now on.
    #[must_use]
    pub fn with_period(self, period_us: u64) -> Self {
        Self { period_us, ..self }
    }

    /// Returns the quota of a vCPU with `ppm` millionths of a host core.
    #[must_use]
    pub fn core_quota(&self, ppm: u32) -> CpuQuota {
        CpuQuota::from_ppm(ppm, self.period_us)
    }

    pub(crate) fn create_groups(
        hierarchy: CgroupHierarchy,
        relative: PathBuf,
        vcpus: u32,
        memory_limit: Option<u64>,
        period_us: u64,
        cell: Option<Arc<JailCell>>,
    ) -> Result<Self> {
        tree::create_groups(&hierarchy, &tree::ALL, &relative)?;
        let vm = Self {
            hierarchy,
            relative,
            vcpus,
            period_us,
            memory_limit,
            cell,
            oom_kills_said: AtomicU64::new(0),
            bandwidths: Mutex::new(vec![VcpuBandwidth::default(); vcpus as usize]),
        };
        let v2 = vm.hierarchy.is_v2();
        if let Some(bytes) = memory_limit {
            memory::set_limit(&vm.group_path(CgroupController::Memory), v2, bytes)?;
        }
        vm.bound_processes(vcpus)?;
        if v2 {
            delegate::enable_controllers(&vm.group_path(CgroupController::Cpu), &["cpu"])?;
        }
        for vcpu in 0..vcpus {
            let relative = vm.relative.join(format!("cpu{vcpu}"));
            tree::create_groups(&vm.hierarchy, &BY_SLOT, &relative)?;
            if v2 {
                delegate::enable_controllers(
                    &vm.hierarchy.group_path(CgroupController::Cpu, &relative),
                    &["cpu"],
                )?;
            }
            for slot in TierSlot::BOTH {
                tree::create_groups(&vm.hierarchy, &BY_SLOT, &relative.join(slot.name()))?;
            }
            vm.set_foreground(vcpu, TierSlot::A)?;
        }
        Ok(vm)
    }

    /// Bounds the number of processes and threads of the VM to those of a VM with `vcpus` vCPUs, whether or not each of these has a
    /// group of its own.
    ///
    /// # Errors
    ///
    /// The bound can't be written.
    pub fn bound_processes(&self, vcpus: u32) -> Result<()> {
        let mount = self.hierarchy.mount_point(CgroupController::Pids);
        mount.map_or(Ok(()), |mount| pids::bound_processes(&mount.join(&self.relative), vcpus))
    }

    /// Returns the number of vCPUs of the VM.
    #[must_use]
    pub fn vcpu_count(&self) -> u32 {
        self.vcpus
    }

    /// Returns the namespaces of the VM's tasks; `None`: the tasks aren't jailed.
    #[must_use]
    pub fn cell(&self) -> Option<&Arc<JailCell>> {
        self.cell.as_ref()
    }

    /// Gives vCPU `vcpu` the share of `ppm` millionths of one host core, or all of it (`None`).
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses the quota.
    pub fn set_quota(&self, vcpu: u32, ppm: Option<u32>) -> Result<()> {
        let quota = ppm.map(|ppm| self.core_quota(ppm));
        self.change_bandwidth(vcpu, |b| b.quota = quota)
    }

    /// Puts `slot` of vCPU `vcpu` in the foreground and the vCPU's other slot in the background.
    ///
    /// Each host core serves its own queue, so this means something only for tasks on the same
    /// core: see [`VmGroups::bind_vcpu`]. Measured on Linux 6.18 with both slots busy on one core, the
    /// background then gets less than 0.3 % of what the vCPU gets, under any quota or none, as
    /// long as `slot` is [`TierSlot::A`]. With `B` in the foreground it gets up to one scheduler tick
    /// (4 ms) per quota period where the quota is more than that (40 % of 10 ms in 20 ms): at
    /// the end of a throttling the kernel forgets what the group that is older owes.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses the priority.
    pub fn set_foreground(&self, vcpu: u32, slot: TierSlot) -> Result<()> {
        let v2 = self.hierarchy.is_v2();
        cpu::set_foreground(&self.slot_group(CgroupController::Cpu, vcpu, slot)?, v2, true)?;
        cpu::set_foreground(
            &self.slot_group(CgroupController::Cpu, vcpu, slot.other_slot())?,
            v2,
            false,
        )
    }

    /// Binds all tasks of vCPU `vcpu` to the host cores `cores`. Tasks that start later run where their parent runs, or where CRIU
    /// ran, until this is called again.
    ///
    /// # Errors
    ///
    /// No such vCPU, or the kernel refuses, such as for cores that don't exist.
    pub fn bind_vcpu(&self, vcpu: u32, cores: &CpuSet) -> Result<()> {
        for slot in TierSlot::BOTH {
            procs::bind_threads(
                &self.slot_group(CgroupController::Cpu, vcpu, slot)?,
                self.hierarchy.is_v2(),
                cores,
            )?;
        }
        Ok(())
    }

    /// Moves the whole process `pid` into `slot` of vCPU `vcpu`.
    ///
    /// Under version 1, memory that was already charged to the process's earlier group stays charged to that group.
    ///
    /// # Errors
    /// No such vCPU or process.
    pub fn attach_process(&self, vcpu: u32, slot: TierSlot, pid: i32) -> Result<()> {
        for group in self.member_groups(vcpu, slot)? {
            file::write(&group.join("cgroup.procs"), &pid.to_string())?;
        }
        Ok(())
    }

    /// Returns what a new process needs to be started in `slot` of vCPU `vcpu`; the result can be used several times.
    ///
    /// # Errors
    ///
    /// No such vCPU, or its files can't be opened.
    pub fn slot_groups(&self, vcpu: u32, slot: TierSlot) -> Result<ProcessGroups> {
        entry::open(&self.hierarchy, &self.member_groups(vcpu, slot)?, self.cell.clone())
    }

    /// Stops every task of the VM and waits until all are really stopped.
    ///
    /// A throttled task reaches the freezer only when it is given time to run (measured: 155 ms at a 2 % quota, 0.4 ms
    /// without one), so the quotas are lifted, but only once the freezer waits for it: then the task executes nothing
    /// of its own on its way there (measured at quotas of 5 to 50 %: .01 to .5 ms; in the other order .2 to 1.2, and 5
    /// at worst). The quotas are in force again before this returns, also on failure, which leaves the VM thawed.
    ///
    /// # Errors
    /// Where the tasks are not stopped before the deadline.
    pub fn freeze_vm(&self, deadline: Duration) -> Result<FreezeTimes> {
        let asked_at = Instant::now();
        let v2 = self.hierarchy.is_v2();
        let group = self.group_path(CgroupController::Freezer);
        let frozen = freezer::request_state(&group, v2, true).and_then(|()| {
            let slots = (0..self.vcpus).flat_map(|vcpu| TierSlot::BOTH.map(|slot| (vcpu, slot)));
            let lifted = slots.map(|(vcpu, slot)| self.lift_quota(vcpu, slot));
            let _lifted = lifted.collect::<Result<Vec<_>>>()?;
            freezer::set_frozen(&group, v2, true, deadline)
        });
        if frozen.is_err() {
            // What matters is the first error; a VM half frozen would be worse than a thawed one.
            let _ = freezer::request_state(&group, v2, false);
        }
        Ok(FreezeTimes { asked_at, ..frozen? })
    }

    /// Lets the tasks of a frozen VM run on.
    ///
    /// # Errors
    ///
    /// The group doesn't report itself thawed before the deadline.
    pub fn thaw_vm(&self, deadline: Duration) -> Result<FreezeTimes> {
        let group = self.group_path(CgroupController::Freezer);
        freezer::set_frozen(&group, self.hierarchy.is_v2(), false, deadline)
    }

    /// Returns whether every task of the VM is stopped.
    ///
    /// # Errors
    ///
    /// The freezer can't be read.
    pub fn is_frozen(&self) -> Result<bool> {
        freezer::is_frozen(&self.group_path(CgroupController::Freezer), self.hierarchy.is_v2())
    }

    /// Returns the CPU time that all of the VM's tasks have used since the VM was created, in nanoseconds.
    ///
    /// # Errors
    /// Where the counter cannot be read.
    pub fn cpu_ns(&self) -> Result<u64> {
        cpu::usage_ns(&self.group_path(CgroupController::Cpuacct), self.hierarchy.is_v2())
    }

    /// Returns the CPU time used on one vCPU, in nanoseconds.
    ///
    /// # Errors
    /// No such vCPU, or the counter cannot be read.
    pub fn vcpu_cpu_ns(&self, vcpu: u32) -> Result<u64> {
        let group = self.vcpu_group(CgroupController::Cpuacct, vcpu)?;
        cpu::usage_ns(&group, self.hierarchy.is_v2())
    }

    /// Returns the CPU time used in one slot of one vCPU, in nanoseconds.
    ///
    /// # Errors
    /// No such vCPU, or the counter cannot be read.
    pub fn slot_cpu_ns(&self, vcpu: u32, slot: TierSlot) -> Result<u64> {
        let group = self.slot_group(CgroupController::Cpuacct, vcpu, slot)?;
        cpu::usage_ns(&group, self.hierarchy.is_v2())
    }

    /// Returns how often and how long its quota has throttled vCPU `vcpu`.
    ///
    /// # Errors
    /// No such vCPU, or the statistics cannot be read.
    pub fn read_throttling(&self, vcpu: u32) -> Result<CpuThrottling> {
        let group = self.vcpu_group(CgroupController::Cpu, vcpu)?;
        cpu::read_throttling(&group, self.hierarchy.is_v2())
    }

    /// Returns the processes of the VM, as PIDs of the caller's PID namespace.
    ///
    /// # Errors
    /// Where the list cannot be read.
    pub fn list_pids(&self) -> Result<BTreeSet<i32>> {
        procs::list_processes(&self.group_path(CgroupController::Freezer))
    }

    /// Returns the processes in one slot of one vCPU, as PIDs of the caller's PID namespace.
    ///
    /// # Errors
    /// No such vCPU, or the list cannot be read.
    pub fn slot_pids(&self, vcpu: u32, slot: TierSlot) -> Result<BTreeSet<i32>> {
        procs::list_processes(&self.slot_group(CgroupController::Cpu, vcpu, slot)?)
    }

    /// Returns the threads in one slot of one vCPU, as in [`Self::slot_pids`].
    ///
    /// # Errors
    ///
    /// No such vCPU, or the list can't be read.
    pub fn slot_threads(&self, vcpu: u32, slot: TierSlot) -> Result<Vec<i32>> {
        let group = self.slot_group(CgroupController::Cpu, vcpu, slot)?;
        procs::list_threads(&group, self.hierarchy.is_v2())
    }

    /// Kills every process of the VM, frozen or not, and waits until none is left. Lifts the quotas for good: throttled
    /// tasks die late. Returns the number of processes that were killed.
    ///
    /// # Errors
    /// Where a process survives the deadline.
    pub fn kill_all(&self, deadline: Duration) -> Result<usize> {
        for vcpu in 0..self.vcpus {
            self.set_quota(vcpu, None)?;
        }
        let group = self.group_path(CgroupController::Freezer);
        procs::kill_all(&group, &group, self.hierarchy.is_v2(), deadline)
    }

    /// Removes the VM's groups, which must be empty ([`VmGroups::kill_all`]).
    ///
    /// # Errors
    /// Where a group stays busy until the deadline.
    pub fn remove(&self, deadline: Duration) -> Result<()> {
        for group in self.hierarchy.group_paths(&tree::ALL, &self.relative) {
            procs::remove(&group, deadline)?;
        }
        Ok(())
    }

    pub(super) fn group_path(&self, controller: CgroupController) -> PathBuf {
        self.hierarchy.group_path(controller, &self.relative)
    }

    pub(super) fn vcpu_relative(&self, vcpu: u32) -> Result<PathBuf> {
        if vcpu >= self.vcpus {
            return Err(CgroupError::NoSuchVcpu {
                path: self.group_path(CgroupController::Cpu),
                vcpu,
                vcpus: self.vcpus,
            });
        }
        Ok(self.relative.join(format!("cpu{vcpu}")))
    }

    pub(super) fn vcpu_group(&self, controller: CgroupController, vcpu: u32) -> Result<PathBuf> {
        Ok(self.hierarchy.group_path(controller, &self.vcpu_relative(vcpu)?))
    }

    pub(super) fn slot_group(
        &self,
        controller: CgroupController,
        vcpu: u32,
        slot: TierSlot,
    ) -> Result<PathBuf> {
        Ok(self.vcpu_group(controller, vcpu)?.join(slot.name()))
    }

    /// Returns the paths of all control groups that a process in `slot` of vCPU `vcpu` belongs to.
    fn member_groups(&self, vcpu: u32, slot: TierSlot) -> Result<Vec<PathBuf>> {
        let deep = self.vcpu_relative(vcpu)?.join(slot.name());
        let mut groups = self.hierarchy.group_paths(&BY_SLOT, &deep);
        if !self.hierarchy.is_v2() {
            let shallow = [CgroupController::Memory, CgroupController::Pids];
            groups.extend(self.hierarchy.group_paths(&shallow, &self.relative));
        }
        Ok(groups)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::{
        cgroup::{GroupTree, InstanceName, V1Mounts},
        process::ProcessIdentity,
    };
    use std::{fs, path::Path};

    const NAME: InstanceName =
        InstanceName { pid_namespace: 1, owner: ProcessIdentity { pid: 2, start_ticks: 3 } };

    fn text(path: impl AsRef<Path>) -> String {
        fs::read_to_string(path).unwrap()
    }

    /// Creates the files of version 1 that the kernel would create, if the code under test writes them without creating
    /// them.
    fn v1_fixture(root: &Path) -> CgroupHierarchy {
        let mounts = V1Mounts {
            cpu: root.join("cpu"),
            cpuacct: root.join("cpuacct"),
            memory: root.join("memory"),
            freezer: root.join("freezer"),
            pids: None,
        };
        let vm = Path::new("dormouse-1-2-3/vm7");
        for slot in ["a", "b"] {
            for mount in [&mounts.cpu, &mounts.cpuacct] {
                let group = mount.join(vm).join("cpu0").join(slot);
                fs::create_dir_all(&group).unwrap();
                for name in ["tasks", "cgroup.procs", "cpu.shares", "cpu.idle"] {
                    fs::write(group.join(name), "").unwrap();
                }
            }
        }
        fs::write(mounts.cpu.join("dormouse-1-2-3/cpu.shares"), "1024").unwrap();
        let slots = ["cpu0/a", "cpu0/b"].map(|slot| mounts.freezer.join(vm).join(slot));
        for group in [mounts.memory.join(vm), mounts.freezer.join(vm)].iter().chain(&slots) {
            fs::create_dir_all(group).unwrap();
            for name in ["tasks", "cgroup.procs", "freezer.state"] {
                fs::write(group.join(name), "").unwrap();
            }
        }
        CgroupHierarchy::V1(mounts)
    }

    #[test]
    fn a_version_1_vm() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        let tree = GroupTree::create_tree(v1_fixture(dir.path()), NAME, 20_000).unwrap();
        let vm = tree.create_vm(7, 1, Some(64 << 20)).unwrap();
        assert_eq!(text(at("memory/dormouse-1-2-3/vm7/memory.limit_in_bytes")), "67108864");
        assert_eq!(text(at("cpu/dormouse-1-2-3/cpu.shares")), "16384");
        assert_eq!(text(at("cpu/dormouse-1-2-3/vm7/cpu0/a/cpu.idle")), "0");
        assert_eq!(text(at("cpu/dormouse-1-2-3/vm7/cpu0/b/cpu.idle")), "1");

        vm.set_quota(0, Some(250_000)).unwrap();
        assert_eq!(text(at("cpu/dormouse-1-2-3/vm7/cpu0/cpu.cfs_quota_us")), "5000");
        vm.set_foreground(0, TierSlot::B).unwrap();
        assert_eq!(text(at("cpu/dormouse-1-2-3/vm7/cpu0/a/cpu.idle")), "1");
        assert_eq!(text(at("cpu/dormouse-1-2-3/vm7/cpu0/b/cpu.idle")), "0");

        vm.attach_process(0, TierSlot::B, 4711).unwrap();
        for group in [
            "cpu/dormouse-1-2-3/vm7/cpu0/b",
            "cpuacct/dormouse-1-2-3/vm7/cpu0/b",
            "memory/dormouse-1-2-3/vm7",
            "freezer/dormouse-1-2-3/vm7/cpu0/b",
        ] {
            assert_eq!(text(at(group).join("cgroup.procs")), "4711", "{group}");
        }
        assert_eq!(vm.list_pids().unwrap(), BTreeSet::from([4711]));
        assert_eq!(vm.slot_groups(0, TierSlot::A).unwrap().files.len(), 4);

        let oom = at("memory/dormouse-1-2-3/vm7/memory.oom_control");
        fs::write(&oom, "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n").unwrap();
        let kills = |n: u64| {
            fs::write(&oom, format!("oom_kill_disable 0\nunder_oom 0\noom_kill {n}\n")).unwrap();
        };
        kills(0);
        assert!(!vm.has_lost_one_for_memory(0).unwrap());
        kills(2);
        let lost = [(); 3].map(|()| vm.has_lost_one_for_memory(0).unwrap());
        assert_eq!(lost, [true, true, false]);
        kill_is_told_of_who_was_there(&vm, 2, kills);

        vm.freeze_vm(Duration::from_secs(1)).unwrap();
        assert!(vm.is_frozen().unwrap());
        assert_eq!(text(at("cpu/dormouse-1-2-3/vm7/cpu0/cpu.cfs_quota_us")), "5000");

        let error = vm.set_quota(1, None).unwrap_err().to_string();
        assert!(error.ends_with("has 1 vCPUs, but no vCPU 1"), "{error}");
    }

    /// Checks that one of three killed processes of a job is reported, that a task that begins later isn't told of
    /// these kills, and that it is told of a process that is killed after its beginning.
    fn kill_is_told_of_who_was_there(vm: &VmGroups, told: u64, kills: impl Fn(u64)) {
        let lost = |before| vm.has_lost_one_for_memory(before).unwrap();
        kills(told + 3);
        assert!(lost(told));
        let before = vm.kills_for_memory().unwrap();
        assert_eq!(before, told + 3);
        assert!(!lost(before), "it was killed before this one began");
        kills(before + 1);
        assert_eq!([lost(before), lost(before)], [true, false]);
    }

    /// Makes all writes to a file fail, until the directory that takes its place is removed.
    fn refuse(file: &Path) {
        let _ = fs::remove_file(file);
        fs::create_dir(file).unwrap();
    }

    #[test]
    fn a_quota_that_was_refused_is_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let tree = GroupTree::create_tree(v1_fixture(dir.path()), NAME, 20_000).unwrap();
        let vm = tree.create_vm(7, 1, None).unwrap();
        let quota = dir.path().join("cpu/dormouse-1-2-3/vm7/cpu0/cpu.cfs_quota_us");
        vm.set_quota(0, Some(250_000)).unwrap();
        refuse(&quota);
        vm.set_quota(0, Some(500_000)).unwrap_err();
        fs::remove_dir(&quota).unwrap();
        vm.set_quota(0, Some(500_000)).unwrap();
        assert_eq!(text(&quota), "10000");
    }

    #[test]
    fn an_exemption_that_was_refused_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let tree = GroupTree::create_tree(v1_fixture(dir.path()), NAME, 20_000).unwrap();
        let vm = tree.create_vm(7, 1, None).unwrap();
        let cpu0 = dir.path().join("cpu/dormouse-1-2-3/vm7/cpu0");
        let [all, a, b] = ["", "a", "b"].map(|slot| cpu0.join(slot).join("cpu.cfs_quota_us"));
        vm.set_quota(0, Some(250_000)).unwrap();
        // The neighbour's is set before the vCPU's is lifted.
        refuse(&all);
        vm.lift_quota(0, TierSlot::A).unwrap_err();
        assert_eq!(text(&b), "5000");
        fs::remove_dir(&all).unwrap();
        vm.set_quota(0, Some(250_000)).unwrap();
        assert_eq!([text(&all), text(&b)], ["5000", "-1"]);
        // One that could not be ended is ended by the next change.
        let lifted = vm.lift_quota(0, TierSlot::A).unwrap();
        assert_eq!([text(&all), text(&b)], ["-1", "5000"]);
        refuse(&all);
        drop(lifted);
        fs::remove_dir(&all).unwrap();
        vm.set_quota(0, Some(250_000)).unwrap();
        assert_eq!([text(&all), text(&b)], ["5000", "-1"]);
        assert!(!a.exists(), "the exempt slot never had a quota of its own");
    }

    #[test]
    fn a_version_2_vm() {
        let dir = tempfile::tempdir().unwrap();
        let vm_dir = dir.path().join("dormouse-1-2-3/vm7");
        for slot in ["a", "b"] {
            let group = vm_dir.join("cpu0").join(slot);
            fs::create_dir_all(&group).unwrap();
            for name in ["cgroup.procs", "cpu.weight"] {
                fs::write(group.join(name), "").unwrap();
            }
            fs::write(group.join("cpu.max"), "max 100000").unwrap();
        }
        for group in [dir.path(), vm_dir.parent().unwrap(), &vm_dir, &vm_dir.join("cpu0")] {
            fs::write(group.join("cgroup.subtree_control"), "cpu memory").unwrap();
        }
        fs::write(dir.path().join("dormouse-1-2-3/cpu.weight"), "100").unwrap();
        fs::write(vm_dir.join("cpu0/cpu.max"), "max 100000").unwrap();
        fs::write(vm_dir.join("cgroup.freeze"), "0").unwrap();
        fs::write(vm_dir.join("cgroup.events"), "frozen 1").unwrap();
        fs::write(vm_dir.join("memory.current"), "4096\n").unwrap();

        let hierarchy = CgroupHierarchy::V2(dir.path().to_owned());
        let tree = GroupTree::create_tree(hierarchy, NAME, 20_000).unwrap();
        let vm = tree.create_vm(7, 1, Some(64 << 20)).unwrap();
        assert_eq!(text(dir.path().join("dormouse-1-2-3/cpu.weight")), "1600");
        assert_eq!(text(vm_dir.join("memory.max")), "67108864");
        assert_eq!(text(vm_dir.join("cpu0/a/cpu.weight")), "10000");
        assert_eq!(text(vm_dir.join("cpu0/b/cpu.weight")), "1");
        vm.set_quota(0, Some(250_000)).unwrap();
        assert_eq!(text(vm_dir.join("cpu0/cpu.max")), "5000 20000");
        let lifted = vm.lift_quota(0, TierSlot::A).unwrap();
        let max = |group: &str| text(vm_dir.join(group).join("cpu.max"));
        assert_eq!(
            [max("cpu0"), max("cpu0/a"), max("cpu0/b")],
            ["max 20000", "max 100000", "5000 20000"]
        );
        drop(lifted);
        assert_eq!(
            [max("cpu0"), max("cpu0/a"), max("cpu0/b")],
            ["5000 20000", "max 100000", "max 20000"]
        );
        vm.attach_process(0, TierSlot::A, 4711).unwrap();
        assert_eq!(text(vm_dir.join("cpu0/a/cgroup.procs")), "4711");
        assert!(vm.slot_groups(0, TierSlot::A).unwrap().born_in.is_some());
        vm.freeze_vm(Duration::from_secs(1)).unwrap();
        assert_eq!(text(vm_dir.join("cgroup.freeze")), "1");
        assert_eq!(text(vm_dir.join("cpu0/cpu.max")), "5000 20000");
        assert_eq!(vm.memory_bytes().unwrap(), 4096);
        let kills = |n: u64| {
            let events = format!("low 0\nhigh 0\nmax 9\noom 1\noom_kill {n}\noom_group_kill 0\n");
            fs::write(vm_dir.join("memory.events"), events).unwrap();
        };
        kills(1);
        assert!(vm.has_lost_one_for_memory(0).unwrap());
        assert!(!vm.has_lost_one_for_memory(0).unwrap());
        kill_is_told_of_who_was_there(&vm, 1, kills);
    }
}
