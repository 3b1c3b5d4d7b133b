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
        ["MaxProcs", "MaxNodes"].iter().find_map(|name| self.number(name)).filter(|&n| n > 0)
    }

    /// Unix time in seconds of submission time 0: `UnixStartTime`.
    #[must_use]
    pub fn unix_start(&self) -> Option<u64> {
        self.get("UnixStartTime")?.parse().ok()
    }

    /// A directive's leading number: some logs write `MaxNodes: 128 (of 140)`.
    fn number(&self, name: &str) -> Option<u32> {
        self.get(name)?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    }
}
