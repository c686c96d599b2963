//! Links the program at a fixed address where that is possible.
//!
//! Moving thirty megabytes to a place of the day's choice takes the loader 31,000 corrections before anything is done: longer than
//! rendering a small chart, and a megabyte of memory in every process. The programs this one is measured against do the same.
//! Static binaries (the image) keep their start-up code, which expects to be moved.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |key: &str, value: &str| var(key).is_ok_and(|found| found.split(',').any(|one| one == value));
    let gnu = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if gnu && !is("CARGO_CFG_TARGET_FEATURE", "crt-static") && is("PROFILE", "release") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
