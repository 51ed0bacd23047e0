//! The tables: groups of commands, examples, what comes first, topics.

/// Examples of the overview.
pub(super) const OVERVIEW: &[&str] = &[
    "throng run                                           test Throng against its own responder",
    "throng run --server 192.0.2.1 --names names.txt      measure a server",
    "throng capacity --server 192.0.2.1 --names names.txt find the highest rate that it sustains",
];

/// Commands by what they are for.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
    ("Measure", &["run", "replay", "ping", "eval", "trace"]),
    ("Find limits", &["capacity", "ramp", "doctor"]),
    (
        "Compare and report",
        &[
            "compare",
            "compare-transports",
            "experiment",
            "report",
            "history",
            "serve",
            "merge",
        ],
    ),
    ("Populations and captures", &["names", "fit", "script"]),
    ("Servers and fleets", &["responder", "lab", "line", "fleet"]),
    ("In place of others", &["dnsperf", "resperf", "queryperf"]),
    (
        "Helpers",
        &["init", "config", "schema", "man", "completions", "licenses"],
    ),
];

/// Examples of each command, by its name; of one that has commands itself, of these.
pub(super) const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "run",
        &[
            "throng run                                                self-test",
            "throng run --server 192.0.2.1 --names names.txt           as fast as it answers",
            "throng run --server 192.0.2.1 --names names.txt --rate 20k --duration 60s",
            "throng run --server tls://ns.example.org --names names.txt --clients 200",
        ],
    ),
    (
        "replay",
        &[
            "throng replay capture.pcap --server 192.0.2.1",
            "throng replay queries.log --server 192.0.2.1 --speed 10 --duration 60s",
            "throng replay capture.pcap --server 192.0.2.1 --transport dot --only-qtypes A,AAAA",
        ],
    ),
    (
        "ping",
        &[
            "throng ping www.example.org --server 192.0.2.1",
            "throng ping www.example.org --server tls://ns.example.org --type A,AAAA --count 0",
            "throng ping www.example.org --server 192.0.2.1 --interval 200ms --format json",
        ],
    ),
    (
        "eval",
        &[
            "throng eval www.example.org --server 192.0.2.1 --server 192.0.2.2 --sorted",
            "throng eval www.example.org --servers servers.txt --transport doq",
            "throng eval www.example.org --servers servers.txt --format markdown",
        ],
    ),
    (
        "trace",
        &[
            "throng trace www.example.org --server 192.0.2.1",
            "throng trace www.example.org --server 192.0.2.1 --max-hops 12",
            "throng trace www.example.org --server 192.0.2.1 --probes 5",
        ],
    ),
    (
        "capacity",
        &[
            "throng capacity --server 192.0.2.1 --names names.txt",
            "throng capacity --server 192.0.2.1 --names names.txt --max-p99 5ms --max-loss 0.001",
            "throng capacity --server tls://ns.example.org --names names.txt --search clients",
        ],
    ),
    (
        "ramp",
        &[
            "throng ramp --server 192.0.2.1 --names names.txt --to 50k --over 30s",
            "throng ramp --server 192.0.2.1 --names names.txt --to 50k --sustain 60s",
            "throng ramp --server 192.0.2.1 --names names.txt --max-loss 0.01 --plot ramp.gnuplot",
        ],
    ),
    (
        "doctor",
        &[
            "throng doctor                        what limits load on this host",
            "throng doctor run.json               what limited a run",
            "throng doctor --clients 20000        whether this host can be that many clients",
        ],
    ),
    (
        "compare",
        &[
            "throng compare before.json after.json",
            "throng compare --a '--server 192.0.2.1 --names names.txt' --b '--server 192.0.2.2 \
             --names names.txt'",
            "throng compare before after --fail-if slower --junit result.xml",
        ],
    ),
    (
        "compare-transports",
        &[
            "throng compare-transports --server 192.0.2.1 --names names.txt",
            "throng compare-transports --server 192.0.2.1 --names names.txt --rate 5k",
            "throng compare-transports --server 192.0.2.1 --names names.txt --transports udp,dot",
        ],
    ),
    (
        "experiment",
        &[
            "throng experiment plan experiment.toml",
            "throng experiment run experiment.toml --output results",
            "throng experiment results results",
            "throng experiment claims results claims.toml --fail-if not-supported",
        ],
    ),
    (
        "report",
        &[
            "throng report run.json -o run.html",
            "throng report results -o results.html",
            "throng report run.json --format csv",
        ],
    ),
    (
        "history",
        &[
            "throng history list --records records",
            "throng history show run.json",
            "throng history trend p99 --records records",
        ],
    ),
    (
        "serve",
        &[
            "throng serve records                             at a free port, which it prints",
            "throng serve records --web 127.0.0.1:8053        at this port of this host",
            "throng serve records --web 0.0.0.0:8053          for other hosts, with a token",
        ],
    ),
    (
        "merge",
        &[
            "throng merge host-1.json host-2.json --record both.json",
            "throng merge host-1.json host-2.json --force --record both.json",
        ],
    ),
    (
        "names",
        &[
            "throng names records --zone example.org > names.txt",
            "throng names records --zone example.org --format zone > zone.db",
            "throng names shuffle names.txt --seed 7",
        ],
    ),
    (
        "fit",
        &[
            "throng fit capture.pcap -o clients.profile",
            "throng fit queries.log -o clients.profile",
        ],
    ),
    ("script", &["throng script check clients.lua"]),
    (
        "responder",
        &[
            "throng responder --listen udp:127.0.0.1:5300",
            "throng responder --listen dot:127.0.0.1:8853 --delay 5ms --loss 0.01",
            "throng responder --listen udp:127.0.0.1:5300 --zone zone.db",
        ],
    ),
    (
        "lab",
        &[
            "throng lab products",
            "throng lab up bind --cpus 1",
            "throng lab down --all",
        ],
    ),
    (
        "line",
        &[
            "throng line --between client,server --delay 10ms",
            "throng line --between client,server --delay 10ms --loss 0.001 --duration 60s",
        ],
    ),
    (
        "fleet",
        &[
            "throng fleet run --agents 3 --image throng:0.1.0 -- run -s 192.0.2.1 -n names.txt",
            "throng fleet manifest --agents 3 --image throng:0.1.0 -- run scenario.toml",
            "throng fleet status",
        ],
    ),
    (
        "schema",
        &[
            "throng schema > record.schema.json",
            "throng schema verdict",
        ],
    ),
    (
        "init",
        &[
            "throng init                      the questions, with what is written for each",
            "throng init sla                  writes sla.toml",
            "throng init encryption --output transports.toml",
        ],
    ),
    (
        "config",
        &[
            "throng config                    the defaults of all commands",
            "throng config run                those of one",
        ],
    ),
    ("man", &["throng man --output man1"]),
    ("completions", &["throng completions bash"]),
];

const AIM: &str = "-s, --server HOST[:PORT] or tls://HOST, https://HOST/PATH, ...   \
                   -t, --transport udp|tcp|dot|doh2|doh3|doq   --allow-public";
const ASK: &str = "-n, --names FILE|-   --random-labels ZONE   --qtypes A=60,AAAA=40   --zipf 1   \
                   --cache-hit-ratio SHARE";
const KEEP: &str = "--record FILE   --format text|markdown|json|csv   --details";
const JUDGE: &str = "--undecided fail   --junit FILE";
const WATCH: &str = "--observe auto   --tui   --web ADDRESS:PORT   --metrics ADDRESS:PORT   \
                     --grafana URL";

/// Flags that most people need first, by kind, of commands with many.
pub(super) const FIRST: &[(&str, &[(&str, &str)])] = &[
    (
        "run",
        &[
            ("Aim", AIM),
            ("Ask", ASK),
            (
                "Load",
                "-r, --rate QPS (open loop)   --outstanding N (closed loop)   -c, --clients N",
            ),
            (
                "Length",
                "-l, --duration TIME   --queries N   --warmup TIME",
            ),
            (
                "Judge",
                "--fail-if 'p99 > 5ms'   --abort-if 'p99 > 50ms for 5s'",
            ),
            ("Watch", WATCH),
            ("Keep", KEEP),
        ],
    ),
    (
        "replay",
        &[
            ("Aim", AIM),
            (
                "Choose",
                "--from TIME   --until TIME   --only-clients ADDRESS   --only-names NAME   \
                 --only-qtypes QTYPE",
            ),
            ("Load", "--speed FACTOR   --loops N"),
            ("Length", "-l, --duration TIME   --queries N"),
            (
                "Judge",
                "--fail-if 'p99 > 5ms'   --abort-if 'loss > 1% for 5s'",
            ),
            ("Watch", WATCH),
            ("Keep", KEEP),
        ],
    ),
    (
        "capacity",
        &[
            ("Aim", AIM),
            ("Ask", ASK),
            (
                "Search",
                "--start N   --max N   --search rate|clients   --precision SHARE",
            ),
            (
                "Accept",
                "--max-loss SHARE   --max-p99 TIME   --min-goodput SHARE",
            ),
            (
                "Length",
                "--trial-duration TIME   --repeat N   --max-duration TIME",
            ),
            ("Load", "-c, --clients N   --timeout TIME"),
            ("Watch", WATCH),
            ("Judge", JUDGE),
            ("Keep", "--records FOLDER   --format text|markdown|json"),
        ],
    ),
    (
        "ramp",
        &[
            ("Aim", AIM),
            ("Ask", ASK),
            ("Ramp", "--to QPS   --over TIME   --sustain TIME"),
            (
                "Stop",
                "--max-loss SHARE   --max-outstanding N   --max-behind N",
            ),
            ("Load", "-c, --clients N   --timeout TIME"),
            ("Watch", WATCH),
            ("Judge", JUDGE),
            (
                "Keep",
                "--record FILE   --plot FILE   --format text|markdown|json",
            ),
        ],
    ),
    (
        "compare-transports",
        &[
            (
                "Aim",
                "-s, --server HOST   --transports udp,tcp,dot   --allow-public",
            ),
            ("Ask", ASK),
            ("Load", "-r, --rate QPS   --outstanding N   -c, --clients N"),
            ("Length", "-l, --duration TIME   --queries N"),
            ("Judge", JUDGE),
            ("Keep", "--records FOLDER   --format text|markdown|json|csv"),
        ],
    ),
    (
        "compare",
        &[
            (
                "Runs",
                "--a COMMAND   --b COMMAND   --repeat N   --records FOLDER",
            ),
            (
                "Noise",
                "--noise FOLDER   --same-within PERCENT   --metrics METRIC,...",
            ),
            (
                "Judge",
                "--fail-if 'p99 > +10%'   --fail-if slower   --undecided fail   --junit FILE",
            ),
            ("Keep", "--format text|markdown|json|csv   --force"),
        ],
    ),
    (
        "trace",
        &[
            ("Aim", "-s, --server HOST[:PORT]   --allow-public"),
            ("Ask", "NAME   --type A   --dnssec   --no-recursion"),
            (
                "Length",
                "--max-hops N   --first-hop N   --probes N   --timeout TIME",
            ),
            ("Keep", "--format text|json"),
        ],
    ),
    (
        "doctor",
        &[
            (
                "Host",
                "-c, --clients N   --server   --interface NAME   --root FOLDER   --ceiling",
            ),
            ("Records", "RECORD or FOLDER, one or more"),
            ("Keep", "--format text|json"),
        ],
    ),
    (
        "fit",
        &[
            (
                "Read",
                "--capture-format pcap|bind|...   --port PORT   --client address|port",
            ),
            ("Keep", "-o, --output FILE   --keep-names"),
        ],
    ),
    (
        "line",
        &[
            (
                "Ends",
                "--between NEAR,FAR   --join   --near-addresses IP,IP   --far-addresses IP,IP",
            ),
            (
                "Line",
                "--delay TIME   --jitter TIME   --loss SHARE   --reorder SHARE   \
                 --duplicate SHARE   --rate BITS   --queue PACKETS",
            ),
            ("Length", "--duration TIME, or as long as COMMAND runs"),
            ("Keep", "-o, --output FILE   --format text|json"),
        ],
    ),
    (
        "ping",
        &[
            ("Aim", AIM),
            ("Ask", "NAME   --type A,AAAA   --dnssec   --no-recursion"),
            ("Load", "--count N   --interval TIME   --timeout TIME"),
            ("Keep", "--record FILE   --format text|json|csv"),
        ],
    ),
    (
        "eval",
        &[
            (
                "Aim",
                "-s, --server HOST, repeated   --servers FILE   -t, --transport dot",
            ),
            ("Ask", "NAME   --type A,AAAA   --dnssec   --no-recursion"),
            ("Load", "--count N   --interval TIME   --timeout TIME"),
            ("Keep", "--sorted   --format text|json|csv|markdown"),
        ],
    ),
    (
        "responder",
        &[
            (
                "Listen",
                "--listen udp:127.0.0.1:5300, repeated   --allow-public",
            ),
            (
                "Answer",
                "--zone FILE   --rcodes NXDOMAIN=0.1   --ttl SECONDS",
            ),
            (
                "Disturb",
                "--delay TIME   --loss SHARE   --truncate SHARE   --ceiling QPS   --stall STALL",
            ),
            (
                "Limit",
                "--tcp-clients N   --idle-timeout TIME   --rate-limit RATE",
            ),
            (
                "Keep",
                "--counters FILE   --metrics ADDRESS:PORT   --duration TIME",
            ),
        ],
    ),
];

/// Topics that are the flags of `throng run` under a heading.
pub(super) const FLAG_TOPICS: &[(&str, &str)] = &[
    ("target", "Target"),
    ("questions", "Questions"),
    ("load", "Load"),
    ("length", "Length"),
    ("population", "Population"),
    ("stub", "Stub resolver"),
    ("connections", "Connections"),
    ("tls", "TLS"),
    ("https", "DNS over HTTPS"),
    ("generator", "Generator"),
    ("conditions", "Conditions"),
    ("output", "Output"),
    ("simulation", "Simulation (--driver sim)"),
    ("behaviour", "Built-in responder (self-test and simulation)"),
];

/// Topics that are texts.
pub(super) const TOPICS: &[(&str, &str)] = &[
    (
        "units",
        "\
Numbers  20000, 50k, 1.5M, 1e6, 1,000
Times    500us, 20ms, 90s, 1m30s, 2h; a number alone is seconds, for --duration only
Shares   0.01 is 1 %
Servers  HOST, HOST:PORT, ADDRESS, [IPV6]:PORT, fe80::1%eth0, or a URI (throng help transports)
",
    ),
    (
        "transports",
        "\
--transport  URI of --server       port  DNS over
udp          udp://HOST            53    UDP (RFC 1035)
tcp          tcp://HOST            53    TCP (RFC 7766)
dot          tls://HOST            853   TLS (RFC 7858)
doh2         https://HOST/PATH     443   HTTPS, HTTP/2 (RFC 8484)
doh3         h3://HOST/PATH        443   HTTPS, HTTP/3 (RFC 8484, RFC 9114)
doq          quic://HOST           853   QUIC (RFC 9250)

Without a transport it is UDP. --tls-ca FILE names the CA of a certificate that the
system does not know; `throng help tls` and `throng help connections` have the other flags.
",
    ),
    (
        "latency",
        "\
Latency is the time from the instant at which a query was due to its response. A query that left
late counts with its delay: a server or generator that stalls cannot hide it.

Open loop    --rate QPS: queries are due at that rate, whatever the server does. Measures the
             latency at a rate.
Closed loop  without --rate: --outstanding N queries are in flight; when one is answered, the next
             leaves. Measures the highest rate. Its mean latency is N divided by the rate, however
             fast the server is.

A query without a response within --timeout is lost and has no latency. Percentiles (p50, p90, p99,
p99.9) are of all responses of the measured part, without the warm-up. With --timestamps kernel the
result splits latency into this host's part and the server's.
",
    ),
    (
        "verdict",
        "\
Each run ends with a limit, its evidence, and advice.

server       the target: its CPU, a queue, a limit on rates or connections, an outage
generator    Throng or its host: a CPU that was used up or busy with others, files, memory, ports
network      drops on the path
outstanding  the number of queries or clients allowed at a time: give more
rate         the rate was held, and answered on time: give a higher one
unknown      the record does not show it, and the evidence says why

With --observe auto the server's own counters are evidence. `throng doctor RECORD` prints all
findings; `throng schema verdict` prints the rules.
",
    ),
    (
        "exit-codes",
        "\
0    done
1    it ran and failed: no response at all, a file that could not be written
2    it could not start: wrong usage, bad input, no such target; no query was sent
3    a condition of --fail-if or --require was not met, --undecided fail and the result is
     undecided, or `throng doctor` found a problem
4    a condition of --abort-if ended the run early; its result is complete until then
129, 130, 143  a signal ended it (SIGHUP, SIGINT, SIGTERM); the result is printed and recorded
",
    ),
    (
        "configuration",
        "\
Defaults for flags; later ones win, and what is typed wins over all:

1. throng/throng.toml in $XDG_CONFIG_HOME, or ~/.config
2. throng.toml in the working directory; it may set load, target, conditions and format only
3. environment variables: THRONG_TIMEOUT=2s is --timeout 2s, THRONG_QUIET=1 is --quiet

  [all]                      # all commands that have the flag
  timeout = \"2s\"
  [run]                      # one command; [experiment.run] is `throng experiment run`
  server = [\"192.0.2.1\", \"192.0.2.2\"]
  quiet = true

THRONG_CONFIG=FILE reads that file only, THRONG_CONFIG=none reads none. `throng --no-defaults
COMMAND` ignores files and variables. A default that contradicts what is typed, or what a scenario
says, is left out. Sides of `compare`, cells of experiments and agents have no defaults.
`throng config` shows the defaults in force.
",
    ),
    (
        "ci",
        "\
A condition is a metric, `<` or `>`, and a value: 'p99 > 5ms', 'loss > 0.1%', 'qps < 50k'. Where one
is not met the exit code is 3 (throng help exit-codes).

  throng run --server 192.0.2.1 --names names.txt --rate 5k --fail-if 'p99 > 5ms' --junit run.xml
  throng compare --a COMMAND --b COMMAND --fail-if slower --junit compare.xml

The second one alternates runs of two commands on the same runner, and tells a difference from
noise. A condition is undecided if a difference may be noise, or the metric was not measured. It
fails nothing; `--undecided fail` ends the command with code 3, also for conditions of a run whose
limit was the generator or is unknown, and for results of capacity, ramp and compare-transports
that do not show what the target can do. `throng experiment claims --fail-if not-supported` fails
if a published statement is not supported. `throng schema metrics` lists the metrics.
",
    ),
];
