//! Values of `--observe` that are refused.

use crate::call::throng;

#[test]
fn sources_of_metrics_that_cannot_be_read_are_refused_before_the_run() {
    for (observe, error, cure) in [
        ("nobody=1", "there is no profile `nobody`", "profiles are"),
        ("bind", "needs to know where", "bind=http://"),
        (
            "bind=http://127.0.0.1/,period=1ms",
            "the shortest",
            "bind=http://",
        ),
        ("prometheus=http://127.0.0.1/", "which series", "allow="),
    ] {
        throng(&format!("run --duration 1s --observe {observe}")).refused_with(error, cure);
    }
    throng("run --driver sim --duration 1s --observe host").refused_with("--observe", "--driver");
    let token = "--observe prometheus=http://127.0.0.1/,allow=up,token=/no/such/file";
    throng(&format!("run --duration 1s {token}")).refused_with("/no/such/file", "credential");
}
