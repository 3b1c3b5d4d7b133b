//! The directives at the head of a log.

/// `; Name: value` lines, in order; directives that matter are read on request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    directives: Vec<(String, String)>,
}

impl Header {
    /// Takes a comment line, without its semicolon, if it is a directive.
    pub(crate) fn add(&mut self, comment: &[u8]) {
        let text = String::from_utf8_lossy(comment);
        let Some((name, value)) = text.split_once(':') else { return };
        let (name, value) = (name.trim(), value.trim());
        if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()) {
            self.directives.push((name.to_owned(), value.to_owned()));
        }
    }

    /// The header of a log of `jobs` jobs made by a model for a machine of `machine` processors.
    #[must_use]
    pub fn of_model(model: &str, jobs: usize, machine: u32) -> Self {
        let mut header = Self::default();
        header.set("Version", "2.2");
        header.set("Computer", format!("model {model}"));
        header.set("MaxJobs", jobs);
        header.set("MaxRecords", jobs);
        header.set("UnixStartTime", 0);
        header.set("MaxNodes", machine);
        header.set("MaxProcs", machine);
        header
    }

    /// Adds a directive.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.directives.push((name.to_owned(), value.to_string()));
    }

    /// All directives in order.
    pub fn directives(&self) -> impl Iterator<Item = (&str, &str)> {
        self.directives.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of the first directive of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.directives().find(|d| d.0.eq_ignore_ascii_case(name)).map(|d| d.1)
    }

    /// Processors of the machine: `MaxProcs`, else `MaxNodes`.
    #[must_use]
    pub fn processors(&self) -> Option<u32> {
        let number = |name: &&str| self.number(name).and_then(Result::ok);
        match self.unread() {
            Some(_) => None,
            None => SIZES.iter().find_map(number),
        }
    }

    /// The flaw of the directive that should say how many processors there are, in words.
    #[must_use]
    pub fn unread(&self) -> Option<String> {
        let said = SIZES.iter().find(|name| self.number(name).is_some())?;
        let why = match self.number(said)? {
            Err(why) => why,
            Ok(0) => NONE,
            Ok(_) => return None,
        };
        let said = format!("its '{said}: {}'", self.get(said).unwrap_or_default());
        Some(match why {
            "" => format!("can't read {said}"),
            why => format!("{said} {why}"),
        })
    }

    /// Unix time in seconds of submission time 0: `UnixStartTime`.
    #[must_use]
    pub fn unix_start(&self) -> Option<u64> {
        leading(self.get("UnixStartTime")?).ok()
    }

    /// A directive's number, or what is wrong with it; `None`: it is not there, or not known.
    fn number(&self, name: &str) -> Option<Result<u32, &'static str>> {
        match self.get(name)? {
            "" | "-1" => None,
            value if value.eq_ignore_ascii_case("unknown") => None,
            value => Some(leading(value).and_then(|n| u32::try_from(n).map_err(|_| TOO_LARGE))),
        }
    }
}

/// Directives that say how large the machine is, the better first.
const SIZES: [&str; 2] = ["MaxProcs", "MaxNodes"];

/// What is wrong with a directive's number.
const UNREAD: &str = "";
const TOO_LARGE: &str = "is too large";
const NONE: &str = "is no number of processors";

/// The number that a value begins with: some logs write `128 (of 140)`, and people `93,312`. One that
/// goes on in another way is none.
fn leading(value: &str) -> Result<u64, &'static str> {
    let end = value.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(value.len());
    let (number, rest) = value.split_at(end);
    let number = number.trim_end_matches(',');
    let mut groups = number.split(',');
    let first = groups.next().unwrap_or_default();
    let is_grouped = number.contains(',');
    let fine = !first.is_empty()
        && (!is_grouped || first.len() <= 3)
        && groups.all(|group| group.len() == 3)
        && !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.' || c == '\'');
    if fine { number.replace(',', "").parse().map_err(|_| TOO_LARGE) } else { Err(UNREAD) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them_or_not_at_all() {
        for (value, processors) in [
            ("128", Some(128)),
            ("93,312", Some(93_312)),
            ("1,048,576", Some(1_048_576)),
            ("128 (of 140)", Some(128)),
            ("1024, 2048 since 2001", Some(1_024)),
            ("2048/4096", Some(2_048)),
            ("93,31", None),
            ("1234,567", None),
            ("1.5", None),
            ("4k", None),
            ("about 5", None),
            ("93'312", None),
            ("99999999999", None),
        ] {
            let mut header = Header::default();
            header.set("MaxProcs", value);
            header.set("MaxNodes", 7);
            assert_eq!(header.processors(), processors, "{value}");
            assert_eq!(header.unread().is_some(), processors.is_none(), "{value}");
        }
        for (value, why) in [
            ("4k", "can't read its 'MaxProcs: 4k'"),
            ("99999999999", "its 'MaxProcs: 99999999999' is too large"),
            ("99999999999999999999", "its 'MaxProcs: 99999999999999999999' is too large"),
            ("0", "its 'MaxProcs: 0' is no number of processors"),
        ] {
            let mut header = Header::default();
            header.set("MaxProcs", value);
            assert_eq!(header.unread().as_deref(), Some(why));
            assert_eq!(header.processors(), None);
        }
        let mut header = Header::default();
        header.set("MaxProcs", -1);
        header.set("MaxNodes", "1,000");
        assert_eq!((header.processors(), header.unread()), (Some(1_000), None));
    }
}
