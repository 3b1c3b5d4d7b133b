//! Whether a worker suits a run: by its capabilities and, if the run is already under way, by its measurements.

use dormouse_cloud::ResourceVector;
use dormouse_model::Setup;
use dormouse_proto::{CELLS, CRIU, NO_JAIL, PARTIAL_JAIL, TRAILS, v1};
use dormouse_units::Ppm;

use super::{RunDemand, WorkerOffer, make_offer, to_percent};

/// Checks that a worker has the capabilities that the run needs of every worker.
///
/// # Errors
///
/// The missing capability, and the remedy.
pub(crate) fn check_capabilities(hello: &v1::Hello, needs: &[&str]) -> Result<(), String> {
    let can = |need: &&&str| hello.capabilities.iter().any(|can| can == **need);
    let Some(&lacks) = needs.iter().find(|need| !can(need)) else { return Ok(()) };
    let worker = &hello.worker;
    Err(match lacks {
        CRIU => format!(
            "worker {worker} has no working CRIU, and this run takes checkpoints; run \
             scripts/get-criu there, or name one with --criu (`dormouse doctor` says what is \
             missing)"
        ),
        TRAILS => format!(
            "worker {worker} is of an older version whose results no other host can check; use the \
             same version of worker and coordinator, or switch the checks off (--set \
             live.spot-checks=0)"
        ),
        CELLS => format!(
            "worker {worker} runs no programs of instances: it needs a whole jail (no --jail none or partial; \
             `dormouse doctor` says what is missing) and the version of this coordinator"
        ),
        other => format!(
            "worker {worker} does not offer '{other}', which this run needs; use the same version \
             of worker and coordinator"
        ),
    })
}

/// The missing part of the jail that a worker puts its tasks into, by its own hello, worded as the object of a sentence;
/// `None`: the jail is whole.
pub(crate) fn jail_lacks(hello: &v1::Hello) -> Option<&'static str> {
    let says = |name: &str| hello.capabilities.iter().any(|says| says == name);
    match (says(NO_JAIL), says(PARTIAL_JAIL)) {
        (true, _) => Some("a jail (--jail none)"),
        (false, true) => Some("a part of their jail (--jail partial)"),
        (false, false) => None,
    }
}

/// A worker that joins a run whose share is already fixed.
#[derive(Debug)]
pub(crate) struct LateWorker<'a> {
    pub(crate) room: &'a WorkerOffer,
    pub(crate) reserve: Ppm,
    /// Share of a core per vCPU, as fixed when the run began.
    pub(crate) share: Ppm,
    pub(crate) cpu_us: &'a [u64],
    pub(crate) demand: &'a RunDemand,
    /// Index in `demand.hosts` of the specified host whose place the worker would take; unused if that list is empty.
    pub(crate) place: usize,
    pub(crate) setup: &'a Setup,
    /// CPU time of one repetition of each task's program on the worker, in microseconds.
    pub(crate) repetition_us: &'a [u64],
    pub(crate) noop: bool,
}

impl LateWorker<'_> {
    /// Returns the room that the worker adds to the run.
    ///
    /// # Errors
    ///
    /// The worker is too slow for a task or holds no VM; the text has the arithmetic.
    pub(crate) fn admit_worker(&self) -> Result<ResourceVector, String> {
        let Self { room, share, setup, .. } = *self;
        let times = self.repetition_us.iter().zip(self.cpu_us).zip(setup.bag.tasks.iter());
        let mut too_slow = times.filter(|((takes, given), _)| takes > given && !self.noop);
        if let Some(((takes, given), task)) = too_slow.next() {
            return Err(format!(
                "one repetition of the program of '{}' takes it {takes} µs of CPU time, but the run \
                 gives that task {given} µs for all its work; offer a faster host",
                task.name
            ));
        }
        let offer = make_offer(room, self.reserve, share, (!self.noop).then_some(setup));
        if self.place >= self.demand.hosts.len() && !self.demand.hosts.is_empty() {
            return Err(format!(
                "all {} hosts of cloud.hosts have joined already; add one there, or start fewer workers",
                self.demand.hosts.len()
            ));
        }
        let offer = self.demand.offer_nth(self.place, offer, room.memory);
        if let Some(said) =
            self.demand.hosts.get(self.place).filter(|_| !self.demand.is_whole(self.place, &offer))
        {
            return Err(format!(
                "it holds {} vCPUs and {} of memory at the run's share, but the next host of \
                 cloud.hosts has {} and {}; offer as much",
                offer.vcpus, offer.memory, said.vcpus, said.memory
            ));
        }
        let machine = setup.memory_of_machine();
        if machine > offer.memory {
            return Err(format!(
                "it has {} of memory, but the machine for parallel jobs has {machine}; offer a host \
                 with more",
                room.memory
            ));
        }
        let kinds = self.demand.kinds.iter().filter_map(|kind| setup.catalogue.get(kind));
        let least = kinds.map(|kind| kind.vcpus).min().unwrap_or(1);
        if offer.vcpus < least {
            let (cores, kept) = (f64::from(room.millicores) / 1_000.0, to_percent(self.reserve));
            return Err(format!(
                "it holds {} vCPUs ({cores} cores, {kept} % kept for agents and CRIU, {} of a core \
                 for each; {} of memory), but the smallest VM has {least}; offer a larger host",
                offer.vcpus,
                share.as_f64(),
                room.memory
            ));
        }
        Ok(offer)
    }
}
