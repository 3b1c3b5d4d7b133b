//! Metric families as values, and their encoding.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::histogram::HistogramCounts;

/// Prefix of the names of all metrics.
const PREFIX: &str = "dormouse";

/// Names and values of the labels of a sample.
pub(super) type Labels = Vec<(&'static str, String)>;

/// A metric family: all samples with one name.
#[derive(Clone, Debug)]
pub(super) struct MetricFamily {
    /// Name of the metric without prefix, unit and suffix.
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) unit: Option<&'static str>,
    pub(super) samples: FamilySamples,
}

/// Values of a metric family, by labels.
#[derive(Clone, Debug)]
pub(super) enum FamilySamples {
    Info(Labels),
    Counter(Vec<(Labels, f64)>),
    Gauge(Vec<(Labels, f64)>),
    Histogram(HistogramCounts),
}

impl MetricFamily {
    const fn kind(&self) -> MetricType {
        match self.samples {
            FamilySamples::Info(_) => MetricType::Info,
            FamilySamples::Counter(_) => MetricType::Counter,
            FamilySamples::Gauge(_) => MetricType::Gauge,
            FamilySamples::Histogram(_) => MetricType::Histogram,
        }
    }

    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let unit = self.unit.map(|unit| Unit::Other(unit.to_owned()));
        let mut encoder =
            encoder.encode_descriptor(self.name, self.help, unit.as_ref(), self.kind())?;
        match &self.samples {
            FamilySamples::Info(labels) => encoder.encode_info(&escape_labels(labels)),
            FamilySamples::Counter(samples) => {
                encode_each(&mut encoder, samples, |encoder, value| {
                    if value.fract() == 0.0 && value < MOST_EXACT {
                        encoder.encode_counter::<NoLabelSet, _, f64>(&whole_number(value), None)
                    } else {
                        encoder.encode_counter::<NoLabelSet, _, f64>(&value, None)
                    }
                })
            }
            FamilySamples::Gauge(samples) => {
                encode_each(&mut encoder, samples, |encoder, value| {
                    if value.fract() == 0.0 && value.abs() < MOST_EXACT {
                        #[expect(
                            clippy::cast_possible_truncation,
                            reason = "it is whole and small"
                        )]
                        let whole = value as i64;
                        encoder.encode_gauge(&whole)
                    } else {
                        encoder.encode_gauge(&value)
                    }
                })
            }
            FamilySamples::Histogram(HistogramCounts { sum, buckets }) => {
                let count = buckets.iter().map(|(_, count)| count).sum();
                encoder.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
            }
        }
    }
}

/// Whole numbers below this are exact as floats.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a counter is not negative, and this one is whole and small"
)]
const fn whole_number(value: f64) -> u64 {
    value as u64
}

fn encode_each(
    encoder: &mut MetricEncoder<'_>,
    samples: &[(Labels, f64)],
    mut encode: impl FnMut(&mut MetricEncoder<'_>, f64) -> fmt::Result,
) -> fmt::Result {
    for (labels, value) in samples {
        let labels = escape_labels(labels);
        if labels.is_empty() {
            encode(encoder, *value)?;
        } else {
            encode(&mut encoder.encode_family(&labels)?, *value)?;
        }
    }
    Ok(())
}

/// Escapes label values, which the library writes unchanged.
fn escape_labels(labels: &Labels) -> Labels {
    let escape =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    labels.iter().map(|(name, value)| (*name, escape(value))).collect()
}

/// Collector that encodes given metric families.
#[derive(Debug)]
struct FamilyCollector(Vec<MetricFamily>);

impl Collector for FamilyCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|family| family.encode(&mut encoder))
    }
}

/// Returns metric families as text in OpenMetrics format.
pub(super) fn open_metrics(families: Vec<MetricFamily>) -> String {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(FamilyCollector(families)));
    let mut text = String::new();
    // Writing to memory does not fail, and nothing else here does.
    let _ = encode(&mut text, &registry);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_written_with_their_types_units_and_labels() {
        let family = |name, unit, samples| MetricFamily { name, help: "Help.", unit, samples };
        let label = |name, value: &str| vec![(name, value.to_owned())];
        let text = open_metrics(vec![
            family("run", None, FamilySamples::Info(label("run", "a\"b\\c\nd"))),
            family("x", None, FamilySamples::Counter(vec![(label("kind", "task"), 3.0)])),
            family("took", Some("seconds"), FamilySamples::Counter(vec![(Vec::new(), 2.5)])),
            family("empty", None, FamilySamples::Gauge(Vec::new())),
            family("cost", Some("usd"), FamilySamples::Gauge(vec![(Vec::new(), 2.0)])),
            family(
                "hold",
                Some("seconds"),
                FamilySamples::Histogram(HistogramCounts {
                    sum: 1.5,
                    buckets: vec![(1.0, 2), (f64::MAX, 1)],
                }),
            ),
        ]);
        let expected = r#"# HELP dormouse_run Help.
# TYPE dormouse_run info
dormouse_run_info{run="a\"b\\c\nd"} 1
# HELP dormouse_x Help.
# TYPE dormouse_x counter
dormouse_x_total{kind="task"} 3
# HELP dormouse_took_seconds Help.
# TYPE dormouse_took_seconds counter
# UNIT dormouse_took_seconds seconds
dormouse_took_seconds_total 2.5
# HELP dormouse_empty Help.
# TYPE dormouse_empty gauge
# HELP dormouse_cost_usd Help.
# TYPE dormouse_cost_usd gauge
# UNIT dormouse_cost_usd usd
dormouse_cost_usd 2
# HELP dormouse_hold_seconds Help.
# TYPE dormouse_hold_seconds histogram
# UNIT dormouse_hold_seconds seconds
dormouse_hold_seconds_sum 1.5
dormouse_hold_seconds_count 3
dormouse_hold_seconds_bucket{le="1.0"} 2
dormouse_hold_seconds_bucket{le="+Inf"} 3
# EOF
"#;
        assert_eq!(text, expected);
    }
}
