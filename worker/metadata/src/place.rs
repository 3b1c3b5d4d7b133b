//! Zones and regions by their names.

/// The place of a VM: a zone of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmPlace {
    /// The zone, such as `us-east-1a`.
    pub zone: String,
    /// The region of the zone, such as `us-east-1`.
    pub region: String,
}

impl VmPlace {
    /// The place for a zone name: EC2's zones are the region with a letter (`us-east-1a`), Google's have a hyphen
    /// before the letter (`us-central1-a`). Any other zone name is its own region.
    #[must_use]
    pub fn of_zone(zone: &str) -> Self {
        let region = match zone.strip_suffix(|last: char| last.is_ascii_lowercase()) {
            Some(rest) if rest.ends_with('-') => rest.trim_end_matches('-'),
            Some(rest) if rest.ends_with(|last: char| last.is_ascii_digit()) => rest,
            _ => zone,
        };
        Self { zone: zone.to_owned(), region: region.to_owned() }
    }

    /// EC2's zone id, which is the same for all accounts: `use1-az1` for `us-east-1a`. Real
    /// accounts map letters to ids differently; here `a` is always 1.
    #[must_use]
    pub fn zone_id(&self) -> String {
        let short: String = self
            .region
            .split('-')
            .enumerate()
            .map(|(n, part)| if n == 0 { part.to_owned() } else { abbreviate_part(part) })
            .collect();
        let letter = self.zone.bytes().last().filter(u8::is_ascii_lowercase).unwrap_or(b'a');
        format!("{short}-az{}", letter - b'a' + 1)
    }
}

/// Part of a region's name abbreviated for zone ids: directions become their first letters.
fn abbreviate_part(part: &str) -> String {
    const WORDS: [(&str, &str); 5] =
        [("north", "n"), ("south", "s"), ("central", "c"), ("east", "e"), ("west", "w")];
    WORDS.iter().fold(part.to_owned(), |short, (word, letter)| short.replace(word, letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_has_its_region() {
        for (zone, region) in [
            ("us-east-1a", "us-east-1"),
            ("us-central1-a", "us-central1"),
            ("somewhere", "somewhere"),
        ] {
            assert_eq!(VmPlace::of_zone(zone).region, region);
        }
    }

    #[test]
    fn ids_of_zones_abbreviate_their_region() {
        for (zone, id) in [
            ("us-east-1a", "use1-az1"),
            ("ap-southeast-2c", "apse2-az3"),
            ("eu-central-1b", "euc1-az2"),
        ] {
            assert_eq!(VmPlace::of_zone(zone).zone_id(), id);
        }
    }
}
