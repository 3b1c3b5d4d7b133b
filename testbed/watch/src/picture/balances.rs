//! The CPU credits of the burstable VMs of a picture, also between and beyond the reports of them.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::{Burstable, Catalogue};
use dormouse_units::{Credits, Mode, Span, TaskId, Time, TypeName, VmId};

/// Microseconds of an hour.
const HOUR: i128 = 3_600_000_000;

/// The balances of all burstable VMs that are alive: each goes on by the law of its type from what was
/// reported last, or from what a new VM has.
#[derive(Debug, Default)]
pub(super) struct Balances {
    types: BTreeMap<TypeName, Burstable>,
    accounts: BTreeMap<VmId, Account>,
    /// The times at which balances become full or empty, unless something happens before.
    bends: BTreeSet<(Time, VmId)>,
}

#[derive(Debug)]
struct Account {
    burstable: Burstable,
    at: Time,
    balance: Credits,
    is_frozen: bool,
    /// The modes of the tasks that have been sent to the VM, and whether they compute.
    tasks: BTreeMap<TaskId, (Mode, bool)>,
    /// The time of the last point that was drawn.
    drawn: Time,
}

impl Account {
    /// Change of the balance in vCPU-microseconds an hour.
    fn slope(&self) -> i128 {
        let full = |(mode, computes): &(Mode, bool)| match (computes, mode) {
            (false, _) => 0,
            (true, Mode::Burst) => 1_000_000,
            (true, Mode::Baseline) => i128::from(self.burstable.baseline.get()),
        };
        let spent: i128 = self.tasks.values().map(full).sum();
        // What draws on an overdraft has another law, and its account is told.
        if self.is_frozen || (self.burstable.surplus.is_some() && spent > 0) {
            return 0;
        }
        i128::from(self.burstable.earned_per_hour.as_vcpu_micros()) - spent * 3_600
    }

    /// The most that the account can hold in vCPU-microseconds.
    fn cap(&self) -> i128 {
        i128::from(self.burstable.cap.max(self.balance).as_vcpu_micros())
    }

    /// The account goes on to `now`.
    fn reckon(&mut self, now: Time) {
        let passed = i128::from(now.since(self.at).as_micros());
        let is = i128::from(self.balance.as_vcpu_micros()) + self.slope() * passed / HOUR;
        let is = u64::try_from(is.clamp(0, self.cap())).unwrap_or(0);
        (self.at, self.balance) = (now, Credits::from_vcpu_micros(is));
    }

    /// The time at which the balance becomes full or empty; `None` if it never does, as things are.
    fn bend(&self) -> Option<Time> {
        let slope = self.slope();
        let bound = if slope > 0 { self.cap() } else { 0 };
        let left = bound - i128::from(self.balance.as_vcpu_micros());
        let micros = (left * HOUR).checked_div(slope)?;
        (left != 0).then_some(self.at + Span::from_micros(u64::try_from(micros).ok()?))
    }
}

impl Balances {
    /// The balances of no VM yet, of VMs of these types.
    pub(super) fn new(catalogue: &Catalogue) -> Self {
        let types = catalogue.types.iter();
        let types = types.filter_map(|(name, kind)| Some((name.clone(), kind.burstable?)));
        Self { types: types.collect(), ..Self::default() }
    }

    /// A VM is launched. The answer is the balance that it begins with, if it is burstable.
    pub(super) fn launched(&mut self, now: Time, vm: VmId, kind: &TypeName) -> Option<Credits> {
        let burstable = *self.types.get(kind)?;
        let balance = burstable.initial.min(burstable.cap);
        let (tasks, is_frozen) = (BTreeMap::new(), false);
        let account = Account { burstable, at: now, balance, is_frozen, tasks, drawn: now };
        self.bends.extend(account.bend().map(|at| (at, vm)));
        self.accounts.insert(vm, account);
        Some(balance)
    }

    /// The balance was reported.
    pub(super) fn told(&mut self, now: Time, vm: VmId, balance: Credits) {
        self.change(now, vm, |it| (it.balance, it.drawn) = (balance, now));
    }

    /// A task was sent to the VM, in this mode; it does not compute yet.
    pub(super) fn sent(&mut self, now: Time, vm: VmId, task: TaskId, mode: Mode) {
        self.change(now, vm, |it| {
            it.tasks.insert(task, (mode, false));
        });
    }

    /// A task computes from now on.
    pub(super) fn computes(&mut self, now: Time, vm: VmId, task: TaskId) {
        self.change(now, vm, |it| {
            it.tasks.entry(task).or_default().1 = true;
        });
    }

    /// A task has another mode.
    pub(super) fn has_mode(&mut self, now: Time, vm: VmId, task: TaskId, mode: Mode) {
        self.change(now, vm, |it| {
            it.tasks.entry(task).and_modify(|(is, _)| *is = mode);
        });
    }

    /// A task has left the VM.
    pub(super) fn left(&mut self, now: Time, vm: VmId, task: TaskId) {
        self.change(now, vm, |it| {
            it.tasks.remove(&task);
        });
    }

    /// The VM is hibernated, in which it neither earns nor spends, or goes on; its balance, if it is burstable.
    pub(super) fn freezes(&mut self, now: Time, vm: VmId, is_frozen: bool) -> Option<Credits> {
        self.change(now, vm, |it| (it.is_frozen, it.drawn) = (is_frozen, now));
        self.accounts.get(&vm).map(|it| it.balance)
    }

    /// The VM is gone; its last balance, unless that has been drawn.
    pub(super) fn ended(&mut self, now: Time, vm: VmId) -> Option<Credits> {
        self.change(now, vm, |_| {});
        let account = self.accounts.remove(&vm)?;
        self.bends.extract_if(.., |(_, it)| *it == vm).for_each(drop);
        (account.drawn < now).then_some(account.balance)
    }

    /// The next balance that was full or empty before `now`, and when.
    pub(super) fn next_before(&mut self, now: Time) -> Option<(Time, VmId, Credits)> {
        let &(at, vm) = self.bends.first().filter(|(at, _)| *at < now)?;
        self.bends.pop_first();
        let account = self.accounts.get_mut(&vm)?;
        account.reckon(at);
        account.drawn = at;
        Some((at, vm, account.balance))
    }

    fn change(&mut self, now: Time, vm: VmId, change: impl FnOnce(&mut Account)) {
        let Some(account) = self.accounts.get_mut(&vm) else { return };
        let was = account.bend();
        account.reckon(now);
        change(account);
        if let Some(at) = was {
            self.bends.remove(&(at, vm));
        }
        self.bends.extend(account.bend().map(|at| (at, vm)));
    }
}
