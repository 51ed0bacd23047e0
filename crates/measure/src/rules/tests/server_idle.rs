//! An observed server that fell behind although it was not busy: it waited for something.

use crate::rules::observed_situations::*;
use crate::rules::situations::*;

#[test]
fn an_idle_server_that_fell_behind_waited_for_something() {
    let record = observing(saturated(), &[program(0.2, 0.1, &[])]);
    tells(&record, &["had CPU to spare: it waited for something else"]);
    let record = observing(in_time(10_000.0), &[program(0.2, 0.1, &[])]);
    assert!(!said(&record).contains("had CPU to spare"));
}
