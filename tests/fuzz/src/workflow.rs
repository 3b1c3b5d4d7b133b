//! Files of workflows: DAGMan with its submit files, and WfCommons.

use dormouse_units::{Bytes, Span, TypeName};
use dormouse_workload::{Workflow, WorkflowFormat};

/// Reads the bytes up to the first form feed as a workflow, and the rest as the content of every submit file that it
/// names.
pub(crate) fn workflow(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (text, submit) = text.split_once('\x0c').unwrap_or((text, ""));
    let _ = WorkflowFormat::detect(text);
    let mut open = |_: &str| Ok(submit.to_owned());
    let Ok(read) = Workflow::read("fuzz", text, &mut open) else { return };
    let tasks = read.tasks.len();
    for task in &read.tasks {
        assert!(task.after.iter().all(|before| (before.get() as usize) < tasks));
    }
    let runtime = Some(Span::from_secs(60));
    let _ = read.shape(runtime);
    let kind = TypeName::from("c3.large");
    let bag = read.bag([&kind].into_iter(), (runtime, Some(Bytes::new(1 << 20))));
    assert!(bag.is_ok_and(|bag| bag.len() == tasks), "all have a run time");
}
