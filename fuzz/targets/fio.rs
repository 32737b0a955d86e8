#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| benchmaster_fuzz::files::run("fio", bytes));
