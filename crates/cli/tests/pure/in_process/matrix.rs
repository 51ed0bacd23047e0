//! An experiment in simulation.

/// Two transports, two numbers of clients, twice each, in virtual time.
pub(crate) const MATRIX: &str = r#"
name = "small"
repeat = 2

[run]
driver = "sim"
duration = "100ms"
rate = 500

[matrix]
transport = ["udp", "tcp"]
clients = [1, 5]
"#;
