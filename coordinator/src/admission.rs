//! Whether the hosts can hold an experiment at its speed-up, and how much CPU time each task gets. Pure.
//!
//! A vCPU of the reference speed is given a *share* s of a host core. A task that takes
//! e_ij on type j is given s × e_i / speed-up of CPU time, e_i being its shortest run time
//! over all types; its quota on type j then is s × e_i / e_ij of a core, never more than s.

use dormouse_cloud::ResourceVector;
use dormouse_model::{Bag, Setup};
use dormouse_units::{Bytes, Ppm, Span, Speedup, TypeName};

pub use demand::RunDemand;
pub use peak::VcpuPeak;
pub use takes::{TooLong, describe_duration};
pub(crate) use worker::{LateWorker, check_capabilities, jail_lacks};

mod demand;
mod fastest;
mod peak;
mod takes;
mod worker;

/// Least CPU time of a task, in microseconds: with less, starting its process would be most of what is measured.
const LEAST_CPU_US: u64 = 20_000;
/// Smallest quota that the kernel's bandwidth control keeps well: 1 ms, its smallest slice, in a period that is still
/// short beside a task's length.
const LEAST_QUOTA: Ppm = Ppm::new(2_500);

/// Capacity that a worker offers to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerOffer {
    /// Name of the worker.
    pub name: String,
    /// Number of the worker's cores, in thousandths of a core.
    pub millicores: u32,
    /// Memory of the worker.
    pub memory: Bytes,
}

/// Question whether a run fits on hosts at a speed-up; [`AdmissionRequest::admit_run`] answers it.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionRequest<'a> {
    /// Offers of the hosts that will hold the experiment.
    pub hosts: &'a [WorkerOffer],
    /// Ratio of emulated to real time.
    pub speedup: Speedup,
    /// VMs that the scheduler may want at once.
    pub demand: &'a RunDemand,
    /// Fraction of the cores kept for the agents and CRIU.
    pub reserve: Ppm,
    /// Share of a core per vCPU; `None`: the largest that fits.
    pub share: Option<Ppm>,
    /// Setup of the run, with its tasks and types.
    pub setup: &'a Setup,
    /// CPU time of one repetition of each task's program, in microseconds; zero: any amount is enough.
    pub repetition_us: &'a [u64],
    /// True if nothing is computed, so that no amount of CPU time is too small.
    pub noop: bool,
}

/// Result of a successful admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAdmission {
    /// Share of a host's core that a vCPU gets for a task on the instance type on which the task is fastest; on
    /// slower types it gets less.
    pub share: Ppm,
    /// Room that each host offers to VMs, in the order of the request.
    pub offers: Vec<ResourceVector>,
    /// CPU time of each task, in real microseconds.
    pub cpu_us: Vec<u64>,
}

/// Reasons why the hosts can't hold an experiment, each with its arithmetic and the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AdmissionError {
    /// The hosts have too few processors at any speed-up.
    #[error(
        "{demand} vCPUs may be busy at once, but the hosts hold {held} at a share of {} of a core \
         each ({hosts}): {remedy}",
        .share.as_f64()
    )]
    Cores {
        /// Number of vCPUs that may be busy at once.
        demand: u32,
        /// Number of vCPUs that the hosts hold at this share.
        held: u64,
        /// Share of a core that each vCPU is given.
        share: Ppm,
        /// The hosts, and the part of their cores that is kept free, in words.
        hosts: String,
        /// Change that would make the experiment fit.
        remedy: String,
    },
    /// A task would get less CPU time than its program's smallest amount of work takes.
    #[error("{task} would be given {given_us} µs of CPU time ({sums}), less than {why}: {remedy}")]
    TooFast {
        /// The task's index and name.
        task: String,
        /// CPU time that the task would get, in microseconds.
        given_us: u64,
        /// Arithmetic of the CPU time that the task would get.
        sums: String,
        /// The least CPU time, and which program needs it.
        why: String,
        /// Speed-up that would fit.
        remedy: String,
    },
    /// The CPU quota of a task would be smaller than the kernel can enforce.
    #[error(
        "{task} would get {} % of a core ({sums}), but the kernel can't enforce less than {} %: {remedy}",
        to_percent(*.quota),
        to_percent(LEAST_QUOTA)
    )]
    Quota {
        /// Name of the task, its type and its mode.
        task: String,
        /// Fraction of a core that the task would get.
        quota: Ppm,
        /// Arithmetic of the fraction of a core that the task would get.
        sums: String,
        /// Change that would make the quota large enough.
        remedy: String,
    },
    /// A type of VM fits on no host.
    #[error(
        "a VM of type {kind} has {vcpus} vCPUs, but no host holds more than {most} ({sums}): {remedy}"
    )]
    Kind {
        /// Instance type of the VM.
        kind: TypeName,
        /// Number of vCPUs of the VM.
        vcpus: u32,
        /// Greatest number of vCPUs that a host holds.
        most: u32,
        /// Arithmetic of the most vCPUs that a host holds, in words.
        sums: String,
        /// Change that would make the VM fit on a host.
        remedy: &'static str,
    },
    /// The hosts have enough vCPUs in total, but some VM fits on none of them.
    #[error(
        "{vms} VMs of {demand} vCPUs together may run at once, but placed one after the other only \
         {placed} of them find a host: the next has {vcpus} vCPUs, and the hosts hold {held} at a \
         share of {} of a core each ({hosts}): give fewer and larger hosts, or a smaller share",
        .share.as_f64()
    )]
    Packing {
        /// Number of VMs that may run at once.
        vms: usize,
        /// Number of vCPUs that the VMs that may run at once have in total.
        demand: u32,
        /// Number of VMs that fit on a host.
        placed: usize,
        /// Number of vCPUs of the first VM that fits on no host.
        vcpus: u32,
        /// Capacity of each host, in words.
        held: String,
        /// Share of a core that each vCPU is given.
        share: Ppm,
        /// The hosts, and the part of their cores that is kept free, in words.
        hosts: String,
    },
    /// The tasks' memory doesn't fit.
    #[error(
        "{demand} tasks at once, the largest of {largest}, may need {need} of memory, but the hosts \
         have {have}: add memory or limit the number of VMs"
    )]
    Memory {
        /// Number of vCPUs that may be busy at once.
        demand: u32,
        /// Memory of the largest task.
        largest: Bytes,
        /// Memory that all tasks that may run at once need in total, each counted as large as the largest.
        need: Bytes,
        /// Memory of all hosts in total, without that of the machine for parallel jobs.
        have: Bytes,
    },
    /// The machine for parallel jobs needs more memory than any host has.
    #[error(
        "the machine for parallel jobs has {need} of memory, but no host has more than {most}: give \
         a host more, or its processors less (memory-per-processor)"
    )]
    MachineMemory {
        /// Memory of the machine.
        need: Bytes,
        /// Memory of the largest host.
        most: Bytes,
    },
    /// Some hosts have the processors that the machine for parallel jobs needs and others its memory, but no host has
    /// both.
    #[error(
        "the machine for parallel jobs has {vcpus} processors and {need} of memory, but no host holds \
         both at a share of {} of a core for each processor ({hosts}): give one of them more of what \
         it lacks, or the processors less memory (memory-per-processor)", .share.as_f64()
    )]
    MachineRoom {
        /// Number of processors of the machine.
        vcpus: u32,
        /// Memory of the machine.
        need: Bytes,
        /// Share of a core that each processor of the machine is given.
        share: Ppm,
        /// The hosts, and the part of their cores that is kept free, in words.
        hosts: String,
    },
    /// A task has no run times.
    #[error("{task} has no run time on any type")]
    NoRuntime {
        /// The task's index and name.
        task: String,
    },
}

fn to_percent(quota: Ppm) -> f64 {
    quota.as_f64() * 100.0
}

impl AdmissionRequest<'_> {
    /// Finds the share of a core per vCPU at which the hosts hold the run.
    ///
    /// # Errors
    ///
    /// The hosts can't hold it; see [`AdmissionError`].
    pub fn admit_run(&self) -> Result<RunAdmission, AdmissionError> {
        let share = self.find_share()?;
        self.check_jobs(share)?;
        let mut cpu_us = Vec::with_capacity(self.setup.bag.tasks.len());
        for index in 0..self.setup.bag.tasks.len() {
            cpu_us.push(self.check_task(index, share)?);
        }
        Ok(RunAdmission { share, offers: self.list_offers(share), cpu_us })
    }

    /// Finds the largest share at which the hosts hold the demand, VM by VM; fractions of a vCPU that are left on a
    /// host are lost.
    fn find_share(&self) -> Result<Ppm, AdmissionError> {
        let share = self.share.unwrap_or_else(|| {
            let (mut low, mut high) = (1, Ppm::ONE.get());
            while low < high {
                let middle = (low + high).div_ceil(2);
                if self.fits_offers(&self.list_offers(Ppm::new(middle))) {
                    low = middle;
                } else {
                    high = middle - 1;
                }
            }
            Ppm::new(low)
        });
        let has_memory =
            self.setup.memory_of_machine() == Bytes::ZERO || self.memory_refusal().is_none();
        let possible = share > Ppm::ZERO && share <= Ppm::ONE && has_memory;
        if possible && self.fits_offers(&self.list_offers(share)) {
            Ok(share)
        } else {
            Err(self.explain_refusal(share))
        }
    }

    fn list_offers(&self, share: Ppm) -> Vec<ResourceVector> {
        let setup = (!self.noop).then_some(self.setup);
        let offers = self.hosts.iter().map(|host| make_offer(host, self.reserve, share, setup));
        let offers = offers.zip(self.hosts).enumerate();
        offers.map(|(n, (offer, host))| self.demand.offer_nth(n, offer, host.memory)).collect()
    }

    fn fits_offers(&self, offers: &[ResourceVector]) -> bool {
        held_vcpus(offers) >= u64::from(self.demand.busy_vcpus())
            && self.homeless_type(offers).is_none()
            && self.demand.count_placed(offers, self.setup) == self.demand.vms.len()
    }

    /// Returns the largest type that may be launched and fits on no host, with its vCPUs; `None`: all types fit.
    fn homeless_type(&self, offers: &[ResourceVector]) -> Option<(&TypeName, u32)> {
        let kinds = self.demand.kinds.iter().filter_map(|kind| self.setup.catalogue.get(kind));
        let homeless = kinds.filter(|kind| {
            let is_machine = self.setup.is_two_tier(&kind.name) && !self.noop;
            let memory = if is_machine { kind.memory } else { Bytes::ZERO };
            let room =
                ResourceVector { memory, filled: memory, ..ResourceVector::of_vcpus(kind.vcpus) };
            !offers.iter().any(|offer| offer.holds(&room))
        });
        homeless.max_by_key(|kind| kind.vcpus).map(|kind| (&kind.name, kind.vcpus))
    }

    /// Explains why the hosts don't hold the demand at this share.
    fn explain_refusal(&self, share: Ppm) -> AdmissionError {
        let (offers, hosts) = (self.list_offers(share), self.describe_hosts());
        let (demand, held) = (self.demand.busy_vcpus(), held_vcpus(&offers));
        let cores = |remedy: String| AdmissionError::Cores {
            demand,
            held,
            share,
            hosts: hosts.clone(),
            remedy,
        };
        match share {
            Ppm::ZERO => return cores("a share must be above 0".to_owned()),
            _ if share > Ppm::ONE => return cores("a share can't be more than a core".to_owned()),
            _ => {}
        }
        if let Some(refused) = self.memory_refusal() {
            return refused;
        }
        if let Some((kind, vcpus)) = self.homeless_type(&offers) {
            let (kind, most) = (kind.clone(), most_vcpus(&offers));
            if most >= vcpus {
                let need = self.setup.memory_of_machine();
                return AdmissionError::MachineRoom { vcpus, need, share, hosts };
            }
            let (sums, remedy) = self.sums_of_the_largest(share);
            return AdmissionError::Kind { kind, vcpus, most, sums, remedy };
        }
        if held < u64::from(demand) {
            return cores(format!(
                "{} are missing, or give a smaller share",
                self.missing_cores(share)
            ));
        }
        let (vms, placed) = (self.demand.vms.len(), self.demand.count_placed(&offers, self.setup));
        let vcpus = self.demand.vms.get(placed).copied().unwrap_or_default();
        let held = offers.iter().map(|offer| offer.vcpus.to_string()).collect::<Vec<_>>();
        let held = held.join(", ");
        AdmissionError::Packing { vms, demand, placed, vcpus, held, share, hosts }
    }

    /// Describes the arithmetic of the vCPUs of the largest host, and what would raise them.
    fn sums_of_the_largest(&self, share: Ppm) -> (String, &'static str) {
        let by_cores = |host: &WorkerOffer| vcpus_of(host.millicores, self.reserve, share);
        let by_memory = |host: &WorkerOffer| memory_vcpus(host, &self.setup.bag);
        let holds = |host: &&WorkerOffer| by_cores(host).min(by_memory(host));
        let Some(host) = self.hosts.iter().max_by_key(holds) else {
            return ("there are no hosts".to_owned(), "add one");
        };
        if !self.noop && by_memory(host) < by_cores(host) {
            let (memory, largest) = (host.memory, largest_memory(&self.setup.bag));
            let sums = format!("{} has {memory}, and a task needs up to {largest}", host.name);
            return (sums, "add memory to a host, or take the type off the catalogue");
        }
        let (cores, kept) = (f64::from(host.millicores) / 1_000.0, to_percent(self.reserve));
        let sums = format!(
            "{} has {cores} cores, {kept} % kept for agents and CRIU, {} of a core for each vCPU",
            host.name,
            share.as_f64()
        );
        (sums, "give a smaller share or a larger host, or take the type off the catalogue")
    }

    /// Describes in words how many more cores would be needed at this share.
    fn missing_cores(&self, share: Ppm) -> String {
        let need_ppm = u128::from(self.demand.busy_vcpus()) * u128::from(share.get());
        let kept = u128::from(self.reserve.rest_of_whole().get()).max(1);
        let need_millicores = (need_ppm * 1_000).div_ceil(kept);
        let have: u128 = self.hosts.iter().map(|h| u128::from(h.millicores)).sum();
        let more = need_millicores.saturating_sub(have).div_ceil(10).max(1);
        format!("{}.{:02} more cores", more / 100, more % 100)
    }

    fn describe_hosts(&self) -> String {
        let millicores: u64 = self.hosts.iter().map(|h| u64::from(h.millicores)).sum();
        format!(
            "{} host{} of {}.{:02} cores together, {} % kept for agents and CRIU, {} vCPUs busy at once",
            self.hosts.len(),
            if self.hosts.len() == 1 { "" } else { "s" },
            millicores / 1_000,
            millicores % 1_000 / 10,
            to_percent(self.reserve),
            self.demand.busy_vcpus()
        )
    }

    /// Checks that the kernel can enforce the CPU quotas of parallel jobs even when their machine has no credits.
    fn check_jobs(&self, share: Ppm) -> Result<(), AdmissionError> {
        let Some(burstable) = self.setup.credits_of_jobs().filter(|_| !self.noop) else {
            return Ok(());
        };
        let factor = burstable.baseline;
        let quota = Ppm::new(clamp_number(factor.scale_number(u64::from(share.get()))));
        if quota >= LEAST_QUOTA {
            return Ok(());
        }
        let sums = format!(
            "{} of a core × {}; {}",
            share.as_f64(),
            factor.as_f64(),
            self.describe_hosts()
        );
        let task = "a processor of the parallel jobs at its baseline".to_owned();
        Err(AdmissionError::Quota { task, quota, sums, remedy: self.quota_remedy(factor) })
    }

    /// Returns the CPU time of a task, or an error if that time or one of the task's CPU quotas is too small.
    fn check_task(&self, index: usize, share: Ppm) -> Result<u64, AdmissionError> {
        let task = &self.setup.bag.tasks[index];
        let name = || format!("task {index} ('{}')", task.name);
        let Some(&shortest) = task.runtime.values().min() else {
            return Err(AdmissionError::NoRuntime { task: name() });
        };
        let given_us = cpu_time(shortest, share, self.speedup);
        if self.noop {
            return Ok(given_us);
        }
        let repetition = self.repetition_us.get(index).copied().unwrap_or(0);
        let least = repetition.max(LEAST_CPU_US);
        if given_us < least {
            let why = if repetition > LEAST_CPU_US {
                format!("the {repetition} µs that one repetition of its program takes")
            } else {
                format!("the {LEAST_CPU_US} µs below which starting it is most of what it does")
            };
            let sums = format!(
                "{} of a core × {shortest} / speed-up {}; {}",
                share.as_f64(),
                self.speedup.as_f64(),
                self.describe_hosts()
            );
            let remedy = self.speedup_that_fits(share);
            return Err(AdmissionError::TooFast { task: name(), given_us, sums, why, remedy });
        }
        for (kind, &runtime) in &task.runtime {
            let at_full = shortest.fraction_of(runtime);
            let baseline =
                self.setup.catalogue.get(kind).and_then(|t| t.burstable).map(|b| b.baseline);
            let factor = Ppm::new(clamp_number(
                baseline.unwrap_or(Ppm::ONE).scale_number(u64::from(at_full.get())),
            ));
            let quota = Ppm::new(clamp_number(factor.scale_number(u64::from(share.get()))));
            if quota < LEAST_QUOTA {
                let mode = if baseline.is_some() { " in baseline mode" } else { "" };
                let times = baseline.map_or_else(String::new, |b| format!(" × {}", b.as_f64()));
                let sums = format!(
                    "{} of a core × {shortest} / {runtime}{times}; {}",
                    share.as_f64(),
                    self.describe_hosts()
                );
                let task = format!("{} on {kind}{mode}", name());
                let remedy = self.quota_remedy(factor);
                return Err(AdmissionError::Quota { task, quota, sums, remedy });
            }
        }
        Ok(given_us)
    }

    /// Returns the largest whole speed-up at which every task gets enough CPU time.
    fn speedup_that_fits(&self, share: Ppm) -> String {
        let fits = self.setup.bag.tasks.iter().enumerate().filter_map(|(index, task)| {
            let shortest = task.runtime.values().min()?;
            let least = self.repetition_us.get(index).copied().unwrap_or(0).max(LEAST_CPU_US);
            Some(share.scale_number(shortest.as_micros()) * 1_000 / least)
        });
        match fits.min() {
            // A factor in thousandths.
            Some(fit @ 1_000..) => format!("use --speedup {} or less", fit / 1_000),
            Some(fit @ 1..) => format!("use --speedup 0.{fit:03} or less"),
            _ => format!("at no speed-up it fits; {}", self.missing_cores(Ppm::ONE)),
        }
    }

    /// Describes how many cores would make the smallest quota large enough.
    fn quota_remedy(&self, factor: Ppm) -> String {
        if factor < LEAST_QUOTA {
            return "it would be below that even with a core for each vCPU; take a type off the \
                    catalogue, or raise its baseline"
                .to_owned();
        }
        let share = (u64::from(LEAST_QUOTA.get()) * 1_000_000).div_ceil(u64::from(factor.get()));
        let share = Ppm::new(clamp_number(share));
        format!("{} are missing, or limit the number of VMs", self.missing_cores(share))
    }

    /// Returns an error if the tasks that may run at once need more memory than all hosts have.
    fn memory_refusal(&self) -> Option<AdmissionError> {
        let (demand, largest) = (self.demand.busy_vcpus(), largest_memory(&self.setup.bag));
        let at_once = u64::from(demand).min(self.setup.bag.tasks.len() as u64);
        let need = Bytes::new(largest.get().saturating_mul(at_once));
        let machine = self.setup.memory_of_machine();
        let most = self.hosts.iter().map(|host| host.memory).max().unwrap_or_default();
        let have: Bytes = self.hosts.iter().map(|h| h.memory).sum();
        let have = have.saturating_sub(machine);
        match () {
            () if self.noop => None,
            () if machine > most => Some(AdmissionError::MachineMemory { need: machine, most }),
            () if need > have => Some(AdmissionError::Memory { demand, largest, need, have }),
            () => None,
        }
    }
}

fn held_vcpus(offers: &[ResourceVector]) -> u64 {
    offers.iter().map(|offer| u64::from(offer.vcpus)).sum()
}

fn most_vcpus(offers: &[ResourceVector]) -> u32 {
    offers.iter().map(|offer| offer.vcpus).max().unwrap_or(0)
}

fn largest_memory(bag: &Bag) -> Bytes {
    bag.tasks.iter().map(|task| task.memory).max().unwrap_or(Bytes::ZERO)
}

/// Returns the number of vCPUs for which a host has memory, with one task of the bag on each.
fn memory_vcpus(host: &WorkerOffer, bag: &Bag) -> u32 {
    let vcpus = host.memory.get().checked_div(largest_memory(bag).get()).unwrap_or(u64::MAX);
    // More tasks than there are it never has.
    if vcpus < bag.tasks.len() as u64 { clamp_number(vcpus) } else { u32::MAX }
}

/// Returns the number of vCPUs that these cores hold at this share.
#[must_use]
pub fn vcpus_of(millicores: u32, reserve: Ppm, share: Ppm) -> u32 {
    let usable =
        u64::from(millicores) * 1_000 * u64::from(reserve.rest_of_whole().get()) / 1_000_000;
    clamp_number(usable.checked_div(u64::from(share.get())).unwrap_or(0))
}

/// Returns the room that a host offers to VMs at this share of a core per vCPU. With a setup there are no more vCPUs
/// than the host has memory for, with one task of the bag on each. The nominal memory of a bag's VMs doesn't count; the
/// host's memory limits the offer only if the machine for parallel jobs has a specified memory.
pub(crate) fn make_offer(
    host: &WorkerOffer,
    reserve: Ppm,
    share: Ppm,
    setup: Option<&Setup>,
) -> ResourceVector {
    let most = setup.map_or(u32::MAX, |setup| memory_vcpus(host, &setup.bag));
    let vcpus = vcpus_of(host.millicores, reserve, share).min(most);
    let endless = ResourceVector::new(vcpus, Bytes::new(u64::MAX));
    match setup.filter(|setup| setup.memory_of_machine() > Bytes::ZERO) {
        Some(setup) if setup.bag.tasks.is_empty() => {
            ResourceVector { memory: host.memory, ..endless }
        }
        Some(_) => ResourceVector { filled: host.memory, ..endless },
        None => endless,
    }
}

/// Returns the CPU time that a task with this shortest run time gets for all its work.
fn cpu_time(shortest: Span, share: Ppm, speedup: Speedup) -> u64 {
    u64::try_from(speedup.cpu_time(shortest, share).as_micros()).unwrap_or(u64::MAX)
}

/// Returns the CPU time of every task of an experiment admitted at this share.
pub(crate) fn cpu_times(setup: &Setup, share: Ppm, speedup: Speedup) -> Vec<u64> {
    let shortest = |task: &dormouse_model::Task| task.runtime.values().min().copied();
    let tasks = setup.bag.tasks.iter();
    tasks.map(|task| cpu_time(shortest(task).unwrap_or_default(), share, speedup)).collect()
}

fn clamp_number(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
