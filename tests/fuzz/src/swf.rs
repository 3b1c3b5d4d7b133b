//! Logs of parallel jobs: SWF, and the other formats that are accepted in its place.

use std::io::Cursor;
use std::path::Path;

use dormouse_workload::{OnMalformed, SwfError, Trace};

/// Reads any bytes without a panic. Reading that skips malformed lines never fails, and a log that is accepted has
/// what a simulation needs: sizes that fit the machine, and times in order.
pub(crate) fn swf(bytes: &[u8]) {
    for on_malformed in [OnMalformed::Fail, OnMalformed::Skip] {
        let input = Ok(Cursor::new(bytes.to_vec()));
        // What looks like the output of sacct may lack a column that it needs.
        let Ok(trace) = Trace::from_file(Path::new("fuzz"), input, Some(64), on_malformed) else {
            return;
        };
        let (machine, mut last) = (trace.machine(), None);
        for job in trace {
            let job = match job {
                Ok(job) => job,
                Err(SwfError::Empty { .. } | SwfError::Io { .. }) => break,
                Err(_) => {
                    assert_eq!(on_malformed, OnMalformed::Fail);
                    break;
                }
            };
            assert!(job.processes > 0 && job.processes <= machine);
            assert!(last.is_none_or(|last| last <= job.submitted));
            last = Some(job.submitted);
        }
    }
}
