//! The two text formats that Prometheus reads.

use std::fmt::Write as _;

/// A text format for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricFormat {
    /// OpenMetrics 1.0.0, with units and the type `info`.
    OpenMetrics,
    /// The older text format 0.0.4, for `promtool check metrics` and for people.
    Plain,
}

const OPEN_METRICS: &str = "application/openmetrics-text";

impl MetricFormat {
    /// The format for a client with this `Accept` header: OpenMetrics if the header names it and does not prefer plain
    /// text.
    #[must_use]
    pub fn accepted(accept: Option<&str>) -> Self {
        let liked = |name: &str| -> f64 {
            let entries = accept.unwrap_or_default().split(',');
            let of_name = entries.filter(|entry| media_type(entry).eq_ignore_ascii_case(name));
            of_name.map(quality).fold(0.0, f64::max)
        };
        let open = liked(OPEN_METRICS);
        if open > 0.0 && open >= liked("text/plain") { Self::OpenMetrics } else { Self::Plain }
    }

    /// The `Content-Type` header of this format.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

fn media_type(entry: &str) -> &str {
    entry.split(';').next().unwrap_or_default().trim()
}

fn quality(entry: &str) -> f64 {
    let said = entry.split(';').find_map(|part| part.trim().strip_prefix("q="));
    said.map_or(1.0, |q| q.trim().parse().unwrap_or(0.0))
}

/// Translates OpenMetrics into the older format: a counter's name ends with `_total` in its type
/// line as well, an info metric becomes a gauge, and units are dropped.
pub(super) fn plain(open: &str) -> String {
    let mut plain = String::with_capacity(open.len());
    let mut help = None;
    for line in open.lines() {
        if let Some(said) = line.strip_prefix("# HELP ") {
            help = said.split_once(' ').map(|(_, help)| help);
        } else if let Some(said) = line.strip_prefix("# TYPE ") {
            let (name, kind) = said.rsplit_once(' ').unwrap_or((said, "untyped"));
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                _ => ("", kind),
            };
            // Writing to memory can't fail.
            let _ = writeln!(plain, "# HELP {name}{suffix} {}", help.take().unwrap_or_default());
            let _ = writeln!(plain, "# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with('#') {
            let _ = writeln!(plain, "{line}");
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_names_open_metrics_gets_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0,\
                          application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(MetricFormat::accepted(Some(prometheus)), MetricFormat::OpenMetrics);
        let newer = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                     text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,*/*;q=0.2";
        assert_eq!(MetricFormat::accepted(Some(newer)), MetricFormat::OpenMetrics);
        for plain in [
            None,
            Some("*/*"),
            Some("text/html,text/plain;q=0.8"),
            Some("application/openmetrics-text;q=0"),
            Some("application/openmetrics-text;q=0.1, text/plain"),
        ] {
            assert_eq!(MetricFormat::accepted(plain), MetricFormat::Plain, "{plain:?}");
        }
    }

    #[test]
    fn the_older_format_says_the_same() {
        let open = "# HELP d_run Run.\n# TYPE d_run info\nd_run_info{run=\"r\"} 1\n\
                    # HELP d_x Events.\n# TYPE d_x counter\nd_x_total 3\n\
                    # HELP d_s_seconds Time.\n# TYPE d_s_seconds gauge\n# UNIT d_s_seconds seconds\n\
                    d_s_seconds 1.5\n# EOF\n";
        let expected = "# HELP d_run_info Run.\n# TYPE d_run_info gauge\nd_run_info{run=\"r\"} 1\n\
                        # HELP d_x_total Events.\n# TYPE d_x_total counter\nd_x_total 3\n\
                        # HELP d_s_seconds Time.\n# TYPE d_s_seconds gauge\nd_s_seconds 1.5\n";
        assert_eq!(plain(open), expected);
    }
}
