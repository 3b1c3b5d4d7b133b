#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dormouse_fuzz::run("ec2-config", input));
