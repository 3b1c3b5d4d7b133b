//! Valid experiments, for tests that damage them.

/// A valid experiment with a bag of tasks; each section has a line or two, which test cases name.
pub const BAG: &str = r#"name = "good"
seed = 1
[cloud]
catalogue = "ec2-2020"
[workload]
kind = "bag"
deadline = "45m"
[[workload.task]]
name = "small"
count = 4
memory = "10 MB"
runtime = "200s"
[scheduler]
name = "burst-hads"
"#;
