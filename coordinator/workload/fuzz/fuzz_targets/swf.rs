//! Any bytes are read without a panic; skipping what is malformed never fails; and what
//! is read in order is what a simulation wants: sizes of the machine, times in order.
#![no_main]

use std::io::Cursor;
use std::path::Path;

use dormouse_workload::{OnMalformed, SwfError, SwfReader, Trace};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for on_malformed in [OnMalformed::Fail, OnMalformed::Skip] {
        let input = Box::new(Cursor::new(bytes.to_vec()));
        // What looks like sacct's output may lack a column that it needs.
        let Ok(reader) = SwfReader::new(Path::new("fuzz"), input, on_malformed) else { return };
        let machine = reader.header().processors();
        let trace = Trace::new(reader, machine.or(Some(64))).expect("the machine is given");
        let (machine, mut last) = (trace.machine(), None);
        for job in trace {
            let job = match job {
                Ok(job) => job,
                Err(SwfError::Empty { .. }) => break,
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
});
