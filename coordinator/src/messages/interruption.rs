//! Interruptions that an observer requests, checked as far as is possible without the run.

use dormouse_cloud::{InterruptionAction, InterruptionTarget};
use dormouse_proto::v1;
use dormouse_units::{TypeName, VmId, ZoneName};

/// Longest reason for an action on a run, in bytes, as it goes into the log.
const LONGEST_REASON: usize = 255;

/// A requested action of the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InjectedInterruption {
    pub(crate) target: InterruptionTarget,
    pub(crate) action: InterruptionAction,
    pub(crate) why: String,
}

impl InjectedInterruption {
    /// Reads a request.
    ///
    /// # Errors
    ///
    /// What is wrong with the request.
    pub(crate) fn from_request(request: v1::InterruptRequest) -> Result<Self, String> {
        use v1::interrupt_request::{Action as Asked, Target as Meant};
        let action = match Asked::try_from(request.action) {
            Ok(Asked::Hibernate) => InterruptionAction::Hibernate,
            Ok(Asked::Resume) => InterruptionAction::Resume,
            Ok(Asked::Preempt) => InterruptionAction::Preempt,
            Ok(Asked::Rebalance) => InterruptionAction::Rebalance,
            Ok(Asked::Unspecified) | Err(_) => {
                return Err(
                    "the request names no action: give hibernate, resume, preempt or rebalance"
                        .to_owned(),
                );
            }
        };
        let target = match request.target {
            Some(Meant::Vm(vm)) => InterruptionTarget::Vm(VmId::new(vm)),
            Some(Meant::Type(kind)) => InterruptionTarget::Type(TypeName::from(kind.as_str())),
            Some(Meant::Zone(zone)) => InterruptionTarget::Zone(ZoneName::from(zone.as_str())),
            Some(Meant::All(true)) => InterruptionTarget::All,
            Some(Meant::All(false)) | None => {
                return Err(
                    "the request names no VMs: give one VM, a type, a zone, or all".to_owned()
                );
            }
        };
        let why = read_reason(request.why, "no reason was given")?;
        Ok(Self { target, action, why })
    }
}

/// Describes the VMs to which an action applies.
pub(crate) const fn fitting_vms(action: InterruptionAction) -> &'static str {
    match action {
        InterruptionAction::Hibernate => "only spot VMs that run hibernate",
        InterruptionAction::Resume => {
            "only spot VMs that the provider has hibernated for long enough resume"
        }
        InterruptionAction::Preempt => {
            "only spot VMs that boot, run or are hibernated, without notice, are preempted"
        }
        InterruptionAction::Rebalance => {
            "it is recommended to replace only spot VMs that run, without notice"
        }
    }
}

/// Returns a reason for the log: the given one, or `or` if it is empty.
///
/// # Errors
///
/// The reason isn't a single line of text.
pub(crate) fn read_reason(given: String, or: &str) -> Result<String, String> {
    if given.len() > LONGEST_REASON || given.chars().any(char::is_control) {
        return Err(format!(
            "a reason has at most {LONGEST_REASON} bytes and no control characters"
        ));
    }
    Ok(if given.is_empty() { or.to_owned() } else { given })
}

#[cfg(test)]
mod tests {
    use v1::interrupt_request::{Action as Asked, Target as Meant};

    use super::*;

    #[test]
    fn what_can_be_no_interruption_is_refused_with_what_is_wrong() {
        let request = v1::InterruptRequest {
            action: Asked::Hibernate.into(),
            target: Some(Meant::Vm(3)),
            why: "to see".to_owned(),
        };
        let wanted = InjectedInterruption::from_request(request.clone()).expect("it can be");
        let target = InterruptionTarget::Vm(VmId::new(3));
        let why = "to see".to_owned();
        assert_eq!(
            wanted,
            InjectedInterruption { target, action: InterruptionAction::Hibernate, why }
        );
        for (change, word) in [
            ((|it| it.action = 0) as fn(&mut v1::InterruptRequest), "no action"),
            (|it| it.action = 77, "no action"),
            (|it| it.target = None, "no VMs"),
            (|it| it.target = Some(Meant::All(false)), "no VMs"),
            (|it| it.why = "a\u{1b}[31m".to_owned(), "control characters"),
            (|it| it.why = "x".repeat(256), "at most 255 bytes"),
        ] {
            let mut request = request.clone();
            change(&mut request);
            let no = InjectedInterruption::from_request(request).expect_err(word);
            assert!(no.contains(word), "{no}");
        }
    }
}
