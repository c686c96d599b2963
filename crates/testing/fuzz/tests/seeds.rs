//! Every kept seed of every target, among them all inputs that ever failed.

use std::process::Command;

#[test]
fn stored_seeds_do_not_panic() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_fl-fuzz")).args(["--seconds", "0"]).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.lines().filter(|line| line.ends_with("no crash")).count() >= 20, "{said}");
}
