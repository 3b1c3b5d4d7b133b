//! Ids of resources and accounts, drawn from the run's seed.

use dormouse_ec2_wire::ApiError;
use dormouse_units::RandomStream;

/// Fails for a text that can't be the id of a resource with this prefix.
///
/// # Errors
///
/// The given code.
pub(crate) fn check_id(code: &str, id: &str, prefix: &str) -> Result<(), ApiError> {
    let rest = id.strip_prefix(prefix).unwrap_or_default();
    let is_id = rest.len() >= 8 && rest.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
    if is_id { Ok(()) } else { Err(ApiError::new(code, format!("Invalid id: \"{id}\""))) }
}

/// The id of the `number`-th resource of a kind, like `i-0a1b2c3d4e5f60718`.
pub(crate) fn resource_id(seed: u64, prefix: &str, number: u64) -> String {
    let mut stream = RandomStream::new(seed, &format!("ec2 {prefix}"), number);
    if !["fleet", "sfr"].contains(&prefix) {
        return format!("{prefix}-0{:016x}", stream.next_bits());
    }
    // Those of fleets are UUIDs.
    let (high, low) = (stream.next_bits(), stream.next_bits());
    format!("{prefix}-{}", uuid_of(high, low))
}

/// The id of a resource that an account has from the beginning, like its default VPC.
pub(crate) fn default_id(seed: u64, prefix: &str, owner: &str) -> String {
    let mut stream = RandomStream::named_stream(seed, &format!("ec2 {prefix}"), owner);
    format!("{prefix}-0{:016x}", stream.next_bits())
}

/// A UUID that an account has from the beginning.
pub(crate) fn default_uuid(seed: u64, kind: &str, owner: &str) -> String {
    let mut stream = RandomStream::named_stream(seed, &format!("ec2 {kind}"), owner);
    uuid_of(stream.next_bits(), stream.next_bits())
}

fn uuid_of(high: u64, low: u64) -> String {
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0xfff,
        low & 0xffff_ffff_ffff
    )
}

/// The twelve digits of an account, computed from its access key. An access key of twelve digits is the account number
/// itself.
pub(crate) fn account_number(account: &str) -> String {
    if account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit()) {
        return account.to_owned();
    }
    format!(
        "{:012}",
        RandomStream::named_stream(0, "ec2 account", account).next_bits() % 1_000_000_000_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_by_seed_kind_and_number_and_are_drawn_once() {
        let id = resource_id(1, "i", 0);
        assert!(id.starts_with("i-0") && id.len() == 19, "{id}");
        assert_eq!(id, resource_id(1, "i", 0));
        for other in [resource_id(2, "i", 0), resource_id(1, "i", 1)] {
            assert_ne!(id, other);
        }
        assert_eq!(resource_id(1, "fleet", 0).len(), 42);
        assert_eq!(account_number("123456789012"), "123456789012");
        assert_eq!(account_number("AKIA").len(), 12);
    }
}
