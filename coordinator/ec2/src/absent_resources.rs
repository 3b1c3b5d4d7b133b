//! Resources that no account has: reservations of capacity and placement groups are not supported.

use dormouse_ec2_wire::{ApiError, WireValue};

/// The answer for a kind of resource that nobody has: an empty list, or the error of a call that names a resource.
fn none_of(
    input: &WireValue,
    (named, list): (&str, &'static str),
    (code, what): (&str, &str),
) -> Result<WireValue, ApiError> {
    if let Some(id) = input.texts(named).first() {
        return Err(ApiError::new(code, format!("The {what} '{id}' does not exist.")));
    }
    Ok(WireValue::structure().with(list, WireValue::List(Vec::new())))
}

pub(crate) fn no_capacity_reservations(input: &WireValue) -> Result<WireValue, ApiError> {
    let error = ("InvalidCapacityReservationId.NotFound", "capacity reservation");
    none_of(input, ("CapacityReservationIds", "CapacityReservations"), error)
}

pub(crate) fn no_placement_groups(input: &WireValue) -> Result<WireValue, ApiError> {
    let error = ("InvalidPlacementGroup.Unknown", "placement group");
    let named = if input.list("GroupIds").is_empty() { "GroupNames" } else { "GroupIds" };
    none_of(input, (named, "PlacementGroups"), error)
}
