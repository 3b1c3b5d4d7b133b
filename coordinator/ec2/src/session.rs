//! A run of EC2's API in virtual time: its machines are modelled, and its time advances only when the caller says so.

use dormouse_cloud::ResourceVector;
use dormouse_ec2_wire::{ApiError, ApiRequest, WireValue};
use dormouse_engine::Run;
use dormouse_engine::drive::{
    BOUNDLESS, MachineWorld, ModelledMachines, Reports, beginning_events,
};
use dormouse_model::{Bag, Command, Event, Setup, Step};
use dormouse_units::{Money, Span, Time};

use crate::announcements::InstanceAnnouncement;
use crate::cells::call_event;
use crate::desk::{ApiDesk, DeskConfig};
use crate::desk_policy::DeskPolicy;

/// The bill of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceBill {
    /// Id of the instance.
    pub instance: String,
    /// The account that owes the cost.
    pub account: String,
    /// The instance type as EC2 names it.
    pub kind: String,
    /// The zone of the instance.
    pub zone: String,
    /// Whether the instance is a spot instance.
    pub is_spot: bool,
    /// What the instance has cost until now, by the run's tariff.
    pub owed: Money,
}

/// A run of EC2's API in virtual time, with its log.
#[derive(Debug)]
pub struct Ec2Session {
    run: Run,
    world: ModelledMachines,
    policy: DeskPolicy,
    reports: Reports,
    now: Time,
    steps: Vec<Step>,
}

impl Ec2Session {
    /// The setup of a run that only serves callers of the API: the experiment's tasks, jobs and requests are left out.
    #[must_use]
    pub fn setup_of(setup: Setup) -> Setup {
        let bag = Bag { tasks: [].into(), deadline: Span::ZERO };
        Setup { bag, jobs: None, requests: true, ..setup }
    }

    /// The policy and the run of a session, for a replay, too; `setup` is the result of [`Self::setup_of`].
    #[must_use]
    pub fn run_of(setup: Setup, config: DeskConfig) -> (Run, DeskPolicy) {
        let policy = DeskPolicy::new(ApiDesk::new(&setup, config));
        (Run::new(setup, Box::new(policy.clone())), policy)
    }

    /// A run with this provider, before any call. If `hosts` is empty there is one host, which holds all that the
    /// limits allow.
    #[must_use]
    pub fn new(setup: Setup, hosts: &[ResourceVector], config: DeskConfig) -> Self {
        let (run, policy) = Self::run_of(Self::setup_of(setup), config);
        let (world, reports) = (ModelledMachines::default(), Reports::new());
        let mut session = Self { run, world, policy, reports, now: Time::ZERO, steps: Vec::new() };
        let hosts = if hosts.is_empty() { &[BOUNDLESS] } else { hosts };
        for (at, event) in beginning_events(hosts) {
            session.feed(at, event);
        }
        session.play_until(Time::ZERO);
        session
    }

    /// The setup of the run, as its log has it.
    #[must_use]
    pub const fn setup(&self) -> &Setup {
        self.run.setup()
    }

    /// The run, for reading.
    #[must_use]
    pub const fn run(&self) -> &Run {
        &self.run
    }

    /// Answers a call. A call that changes something is a step of the run: the step has to be durable before the answer
    /// is sent.
    ///
    /// # Errors
    ///
    /// The error that EC2 returns.
    pub fn call(
        &mut self,
        account: &str,
        region: &str,
        request: &ApiRequest,
    ) -> Result<WireValue, ApiError> {
        let Some(event) = call_event(account, region, request) else {
            let ApiRequest { action, input, .. } = request;
            return self.policy.with_desk(|desk| {
                desk.set_now(self.now);
                desk.read(account, region, action, input)
            });
        };
        self.feed(self.now, event);
        self.play_until(self.now);
        let answer = self.policy.with_desk(ApiDesk::take_answer);
        answer.unwrap_or_else(|| Err(ApiError::new("ServiceUnavailable", "The run is over.")))
    }

    /// Repeats an external event of a log at this instant: a call that was answered, or an interruption. All other
    /// events follow by themselves.
    pub fn repeat(&mut self, event: &Event) {
        match event {
            Event::Called { .. } => {
                self.feed(self.now, event.clone());
                self.play_until(self.now);
                // Its client asks again with the same token if it did not get it.
                let _ = self.policy.with_desk(ApiDesk::take_answer);
            }
            Event::Interrupt { .. } => {
                self.feed(self.now, event.clone());
                self.play_until(self.now);
            }
            _ => {}
        }
    }

    /// Calls `look` with the desk.
    #[cfg(test)]
    pub(crate) fn with_desk<T>(&self, look: impl FnOnce(&mut ApiDesk) -> T) -> T {
        self.policy.with_desk(look)
    }

    /// What the worker of a VM would have to know of the VM's instance.
    #[cfg(test)]
    pub(crate) fn cell_of(&self, vm: dormouse_units::VmId) -> Option<crate::InstanceFacts> {
        self.policy.with_desk(|desk| desk.cell_of(vm))
    }

    /// Adds output of the instance on a VM, as a worker reports it.
    #[cfg(test)]
    pub(crate) fn add_console(
        &self,
        now: Time,
        vm: dormouse_units::VmId,
        text: &str,
    ) -> Option<String> {
        self.policy.with_desk(|desk| desk.add_console(now, vm, text))
    }

    /// Tells the desk of a change to a VM that takes no time on modelled machines; its decisions are dropped.
    #[cfg(test)]
    pub(crate) fn hear(&self, notice: &dormouse_model::Notice) {
        self.policy.with_desk(|desk| desk.hear(notice, &mut Vec::new()));
    }

    /// The call of an instance that shuts itself down.
    #[cfg(test)]
    pub(crate) fn shutdown_call(&self, vm: dormouse_units::VmId) -> Option<Event> {
        self.policy.with_desk(|desk| desk.shutdown_call(vm))
    }

    /// Interrupts an instance now, as an act of the provider that the experiment does not foresee; false if the
    /// instance is not a spot instance that is up.
    pub fn interrupt(&mut self, instance: &str, why: &str) -> bool {
        let vm = self.policy.with_desk(|desk| desk.interruptible(instance));
        let Some(vm) = vm else { return false };
        let (target, action) = (
            dormouse_cloud::InterruptionTarget::Vm(vm),
            dormouse_cloud::InterruptionAction::Preempt,
        );
        self.feed(self.now, Event::Interrupt { target, action, why: why.to_owned() });
        self.play_until(self.now);
        true
    }

    /// Announcements about instances from the `from`-th on.
    #[must_use]
    pub fn announced(&self, from: usize) -> Vec<InstanceAnnouncement> {
        self.policy.with_desk(|desk| desk.announced(from).to_vec())
    }

    /// The present instant of the run.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The next instant at which something happens without a call; `None`: nothing will.
    pub fn next_event_at(&mut self) -> Option<Time> {
        let next = Time::sooner_of(self.run.next_wakeup(), self.world.next_at());
        next.map(|at| at.max(self.now))
    }

    /// Advances the time to an instant, with all events until then. An earlier instant changes nothing.
    pub fn advance_to(&mut self, at: Time) {
        self.play_until(at);
        if self.run.over_at().is_none() {
            self.now = self.now.max(at);
        }
    }

    /// Ends the run: its instances end and are charged until now, and from now on only calls that read are answered.
    pub fn close(&mut self) {
        self.feed(self.now, Event::AllRequested);
        self.play_until(self.now);
    }

    /// The steps since the last call of this function, as the log has them.
    pub fn take_steps(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    /// The cost of each instance until now, in the order of launches.
    #[must_use]
    pub fn bills(&self) -> Vec<InstanceBill> {
        let provider = self.run.provider();
        self.policy.with_desk(|desk| {
            desk.bills(|vm| provider.find_vm(vm).map_or(Money::ZERO, |vm| vm.owed_at(self.now)))
        })
    }

    fn play_until(&mut self, until: Time) {
        loop {
            while let Some((host, report)) = self.reports.pop_front() {
                self.feed(self.now, Event::Machine { host, number: 0, report });
            }
            if self.run.over_at().is_some() {
                return;
            }
            let tick = self.run.next_wakeup().map(|at| at.max(self.now));
            let machine = self.world.next_at();
            match (tick, machine) {
                (Some(tick), machine) if tick <= until && machine.is_none_or(|at| tick <= at) => {
                    self.feed(tick, Event::Tick);
                }
                (_, Some(machine)) if machine <= until => {
                    self.now = self.now.max(machine);
                    self.world.step_machines(self.now, &mut self.reports);
                }
                _ => return,
            }
        }
    }

    fn feed(&mut self, at: Time, event: Event) {
        self.now = self.now.max(at);
        let (step, commands): (Step, Vec<Command>) = self.run.handle_event(self.now, event);
        self.steps.push(step);
        for command in commands {
            self.world.execute_command(self.now, command, &mut self.reports);
        }
    }
}
