//! The instances of all accounts, each with its form in answers as long as nothing of the instance changes.

use std::sync::{Arc, OnceLock};

use dormouse_ec2_wire::{SharedValue, WireValue};

use crate::ec2_instance::Ec2Instance;

/// Table of instances in the order of their launch.
#[derive(Debug, Default)]
pub(crate) struct InstanceTable {
    instances: Vec<Ec2Instance>,
    /// What DescribeInstances answers about each instance; empty: it has to be made anew.
    described: Vec<OnceLock<Arc<SharedValue>>>,
}

impl InstanceTable {
    pub(crate) const fn len(&self) -> usize {
        self.instances.len()
    }

    pub(crate) fn push(&mut self, instance: Ec2Instance) {
        self.instances.push(instance);
        self.described.push(OnceLock::new());
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Ec2Instance> {
        self.instances.iter()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Ec2Instance> {
        self.instances.get(index)
    }

    /// The instance at an index, to be changed: what DescribeInstances answered about the instance is forgotten.
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut Ec2Instance> {
        self.forget_described(index);
        self.instances.get_mut(index)
    }

    /// Forgets what DescribeInstances answered about an instance, as the answer has to be made anew.
    pub(crate) fn forget_described(&mut self, index: usize) {
        if let Some(described) = self.described.get_mut(index) {
            described.take();
        }
    }

    /// Forgets what DescribeInstances answered about all instances, as the answers have to be made anew.
    pub(crate) fn forget_all_described(&mut self) {
        self.described.iter_mut().for_each(|described| {
            described.take();
        });
    }

    /// What DescribeInstances answers about an instance, which `describe` makes if it has to be made anew.
    pub(crate) fn described(
        &self,
        instance: &Ec2Instance,
        describe: impl FnOnce() -> WireValue,
    ) -> WireValue {
        let index = usize::try_from(instance.number).unwrap_or(usize::MAX);
        match self.described.get(index) {
            Some(kept) => {
                let shared = kept.get_or_init(|| Arc::new(SharedValue::new(describe())));
                WireValue::from(Arc::clone(shared))
            }
            None => describe(),
        }
    }
}
