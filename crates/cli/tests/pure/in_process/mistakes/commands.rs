//! Commands that do not exist, or are spelt wrongly.

pub(super) const TABLE: &str = "
rnu                 | `rnu` is not a command       | throng run
runn                | `runn` is not a command      | throng run
capcity             | `capcity` is not a command   | throng capacity
repot               | `repot` is not a command     | throng report
version             | `version` is not a command   | throng --version
bench               | `bench` is not a command     | throng run
test                | `test` is not a command      | throng run
attack              | `attack` is not a command    | throng run
kxdpgun             | `kxdpgun` is not a command   | throng run
flame               | `flame` is not a command     | throng run
stress              | `stress` is not a command    | throng ramp
max                 | `max` is not a command       | throng capacity
mock                | `mock` is not a command      | throng responder
diff                | `diff` is not a command      | throng compare
dig                 | `dig` is not a command       | throng ping
traceroute          | `traceroute` is not a command | throng trace
dnseval             | `dnseval` is not a command   | throng eval
tcpreplay           | `tcpreplay` is not a command | throng replay
plot                | `plot` is not a command      | throng report
ls                  | `ls` is not a command        | throng history list
k8s                 | `k8s` is not a command       | throng fleet
status              | `status` is not a command    | throng doctor
nonsense            | unrecognized subcommand      | throng --help
127.0.0.1           | `127.0.0.1` is not a command | throng run --server 127.0.0.1
x.toml              | `x.toml` is not a command    | throng run x.toml
x.json              | `x.json` is not a command    | throng report x.json
x.pcap              | `x.pcap` is not a command    | throng replay x.pcap
--server 127.0.0.1  | comes before any command     | throng run --server
--rate 5            | comes before any command     | throng run --rate
-s 127.0.0.1        | comes before any command     | throng run -s
--qps 5             | comes before any command     | give --rate
-v                  | comes before any command     | throng --version
lab start           | `throng lab start` is not    | throng lab up
lab stop x          | `throng lab stop` is not     | throng lab down
lab ps              | `throng lab ps` is not       | throng lab list
lab frobnicate      | `throng lab frobnicate` is   | up, list, logs
experiment start x  | `throng experiment start` is | throng experiment run
experiment x.toml   | `throng experiment x.toml`   | throng experiment run x.toml
experiment report x | `throng experiment report`   | experiment results
experiment run      | <FILE>                       | throng experiment
history ls          | `throng history ls` is not   | throng history list
history trnd        | `throng history trnd` is not | throng history trend
fleet start         | `throng fleet start` is not  | throng fleet run
fleet ls            | `throng fleet ls` is not     | throng fleet status
names generate      | `throng names generate` is   | throng names records
script run x        | `throng script run` is not   | throng script check
serve               | <FOLDER>                     | throng serve --help
merge               | <RECORD>                     | throng merge --help
report missing.json | cannot read missing.json     | check that the file
experiment run missing.toml | cannot read the experiment | TOML file
compare one.json    | <B>                          | throng compare
completions tcsh    | invalid value 'tcsh'         | zsh
";
