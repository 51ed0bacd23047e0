//! The tables: what other programs call it, and what it is here.

/// Words of other programs, the flag that a command must have for the cure to apply, and the cure.
/// Of several rows with a word, the first that applies counts.
pub(super) const FLAGS: &[(&[&str], &str, &str)] = &[
    // Load
    (
        &["-Q"],
        "rate",
        "give --rate QPS (open loop), or --max-rate QPS to limit a closed loop as dnsperf's -Q",
    ),
    (RATE, "rate", "give --rate QPS"),
    (RATE, "to", "the rate grows to --to QPS"),
    (
        RATE,
        "max",
        "the search decides the rate: give --start QPS and --max QPS",
    ),
    (
        RATE,
        "speed",
        "the capture has the rate: --speed FACTOR changes it",
    ),
    (RATE, "", "the rate follows from --interval TIME"),
    (MAX_RATE, "max-rate", "give --max-rate QPS"),
    (MAX_RATE, "to", "give --to QPS"),
    (MAX_RATE, "max", "give --max QPS"),
    (
        &[
            "--in-flight",
            "--inflight",
            "--window",
            "--queue-depth",
            "--max-outstanding",
            "--outstanding-queries",
            "--queue",
        ],
        "outstanding",
        "give --outstanding N",
    ),
    (
        &[
            "--concurrency",
            "--connections",
            "--concurrent",
            "--parallel",
            "--sockets",
            "--users",
            "--vus",
            "--conns",
            "--num-clients",
            "--client",
        ],
        "clients",
        "give --clients N, each with its own socket or connection",
    ),
    (
        &["--threads", "--thread", "--cores", "--jobs", "-j"],
        "workers",
        "give --workers N",
    ),
    (
        &["--cpu", "--affinity", "--pin", "-F"],
        "cpus",
        "give --cpus N[,N...]",
    ),
    // Length
    (LENGTH, "duration", "give --duration TIME, such as 30s"),
    (LENGTH, "trial-duration", "give --trial-duration TIME"),
    (
        LENGTH,
        "over",
        "give --over TIME, and --sustain TIME for the rate at its end",
    ),
    (
        LENGTH,
        "count",
        "give --count N, with a query each --interval TIME",
    ),
    (
        &["--warm-up", "--rampup", "--ramp-up", "--stages"],
        "warmup",
        "give --warmup TIME; a rate that grows is `throng ramp`",
    ),
    (
        &[
            "--requests",
            "--number",
            "--count",
            "--num-queries",
            "--iterations",
            "-N",
        ],
        "queries",
        "give --queries N",
    ),
    (
        &["--requests", "--number", "--queries", "--num-queries", "-N"],
        "count",
        "give --count N",
    ),
    (
        &["--repeat", "--runs", "--cycles", "--passes"],
        "loops",
        "to ask all names N times give --loops N",
    ),
    (
        &["--deadline", "--wait", "--max-time", "-W", "-w"],
        "timeout",
        "give --timeout TIME",
    ),
    // Target
    (
        &["--port", "-p", "--dport"],
        "server",
        "give the port with the server: --server HOST:PORT",
    ),
    (
        &[
            "--host",
            "--target",
            "--address",
            "--addr",
            "--ip",
            "--nameserver",
            "--resolver",
            "--url",
            "--dns-server",
            "--endpoint",
            "--hostname",
        ],
        "server",
        "give --server HOST[:PORT]",
    ),
    (
        &[
            "-4", "-6", "--ipv4", "--ipv6", "--inet", "--inet6", "-f", "--family",
        ],
        "server",
        "the address of --server decides between IPv4 and IPv6",
    ),
    (&["--udp"], "transport", "give --transport udp"),
    (&["--tcp", "--vc"], "transport", "give --transport tcp"),
    (
        &["--tls", "--dot", "--dns-over-tls"],
        "transport",
        "give --transport dot",
    ),
    (
        &["--https", "--doh", "--h2", "--http2", "--dns-over-https"],
        "transport",
        "give --transport doh2",
    ),
    (
        &["--h3", "--http3", "--doh3"],
        "transport",
        "give --transport doh3",
    ),
    (
        &["--quic", "--doq", "-U"],
        "transport",
        "give --transport doq",
    ),
    (
        &["--protocol", "--proto", "--mode", "--type-of-transport"],
        "transport",
        "give --transport udp|tcp|dot|doh2|doh3|doq",
    ),
    (
        &["--yes", "--public", "--allow-internet"],
        "allow-public",
        "give --allow-public, only where you have permission to send load",
    ),
    // Questions
    (
        &[
            "--file",
            "--data",
            "--datafile",
            "--data-file",
            "--input",
            "--queries-file",
            "--domains",
            "--queryfile",
            "--domain-file",
            "--list",
        ],
        "names",
        "give --names FILE",
    ),
    (
        &[
            "--qtype",
            "--type",
            "--rrtype",
            "--query-type",
            "--record-type",
        ],
        "qtypes",
        "give --qtypes A=60,AAAA=40, or the type of each name in --names FILE",
    ),
    (
        &["--qtype", "--qtypes", "--rrtype"],
        "type",
        "give --type A,AAAA",
    ),
    (
        &[
            "--domain",
            "--zone",
            "--name",
            "--query",
            "--qname",
            "--question",
        ],
        "names",
        "give --names FILE, or --random-labels ZONE for new names below a zone",
    ),
    (
        &["-R", "--random", "--shuffle", "--randomize"],
        "question-order",
        "give --question-order shuffled",
    ),
    (
        &["--edns", "--bufsize", "-e", "--edns-buffer"],
        "edns-size",
        "give --edns-size 1232",
    ),
    (
        &["--edns-opt", "--opt", "-E", "--ednsopt"],
        "edns-option",
        "give --edns-option CODE:HEX",
    ),
    (
        &["--do", "--do-bit", "--dnssec-ok", "--with-dnssec"],
        "dnssec",
        "give --dnssec",
    ),
    (
        &["--rd", "--norecurse", "--no-recurse", "--norec", "--no-rd"],
        "no-recursion",
        "give --no-recursion",
    ),
    (
        &["--key-file", "--keyfile", "--tsig-key-file"],
        "tsig-file",
        "give --tsig-file FILE",
    ),
    (
        &["-u", "--update", "--updates"],
        "",
        "updates are sent by `throng dnsperf -u`",
    ),
    (
        &["--ecs", "--subnet", "--client-subnet"],
        "names",
        "write +ecs=ADDRESS/BITS behind each name in --names FILE",
    ),
    (
        &["--infile", "--input", "--input-file", "--names-file", "-g"],
        "names",
        "give --names FILE, or names that are made: throng help questions",
    ),
    (
        &["--targets", "--servers", "--server-list", "--target-list"],
        "server",
        "repeat --server HOST for clients that use several, or compare them with `throng eval`",
    ),
    (
        &["--retries", "--tries", "--retry-count", "--attempts"],
        "retry",
        "give --retry with the timeout of each attempt, such as --retry 3s,3s",
    ),
    (
        &["--cookie", "--cookies"],
        "edns-option",
        "give --edns-option 10:HEX, with a client cookie of 8 bytes",
    ),
    (
        &["--class", "--qclass"],
        "names",
        "the class is IN; other messages are read with --names FILE --names-format stream",
    ),
    (
        &["--batch", "--batch-size"],
        "burst",
        "queries are batched as they are due; give --burst N for several due at once",
    ),
    // Sockets
    (
        &[
            "--source",
            "--bind",
            "--source-address",
            "--src",
            "--local-ip",
            "--bind-address",
            "-L",
        ],
        "local-address",
        "give --local-address ADDRESS",
    ),
    (
        &["--source-port", "--sport"],
        "local-port",
        "give --local-port PORT",
    ),
    (
        &["-b", "--buffer", "--rcvbuf", "--buffer-size", "-B"],
        "socket-buffer",
        "give --socket-buffer BYTES; a source address is --local-address, a burst --burst N",
    ),
    (
        &["--nic", "--dev", "--device", "--iface"],
        "interface",
        "give --interface NAME, with --driver xdp",
    ),
    (
        &["--xdp", "--af-xdp"],
        "driver",
        "give --driver xdp --interface NAME",
    ),
    (
        &["--io-uring", "--uring", "--iouring"],
        "driver",
        "give --driver uring",
    ),
    // TLS and DoH
    (
        &[
            "-k",
            "--insecure",
            "--no-verify",
            "--skip-verify",
            "--tls-skip-verify",
        ],
        "tls-insecure",
        "give --tls-insecure to accept any certificate; a TSIG key is --tsig-file FILE",
    ),
    (
        &["--ca", "--cacert", "--ca-file", "--tls-cacert", "--cafile"],
        "tls-ca",
        "give --tls-ca FILE",
    ),
    (
        &["--cert", "--client-cert"],
        "tls-cert",
        "give --tls-cert FILE with --tls-key FILE",
    ),
    (
        &["--key", "--client-key"],
        "tls-key",
        "give --tls-key FILE with --tls-cert FILE",
    ),
    (
        &[
            "--sni",
            "--tls-hostname",
            "--tls-host",
            "--server-name",
            "--tls-sni",
        ],
        "tls-name",
        "give --tls-name NAME",
    ),
    (&["--alpn"], "tls-alpn", "give --tls-alpn NAME"),
    (
        &["--path", "--doh-uri", "--uri-path"],
        "doh-path",
        "give --doh-path PATH, or --server https://HOST/PATH",
    ),
    (
        &["--method", "-M", "--doh-post", "--doh-get"],
        "doh-method",
        "give --doh-method get|post",
    ),
    (
        &["--header", "-H"],
        "doh-header",
        "give --doh-header 'NAME: VALUE'",
    ),
    // Output
    (
        &[
            "-v",
            "--verbose",
            "--debug",
            "-vv",
            "--detail",
            "--full",
            "--log-level",
            "--percentiles",
            "--histogram",
            "--latency-histogram",
        ],
        "details",
        "give --details to print all of the result",
    ),
    (
        &["-V", "--version"],
        "",
        "print the version with `throng --version`",
    ),
    (
        &["--silent", "--no-progress", "--no-color", "--quite"],
        "quiet",
        "give --quiet to show no progress",
    ),
    (
        &["-o", "--output", "--out", "--save", "--records", "--log"],
        "record",
        "give --record FILE",
    ),
    (
        &["-o", "--output", "--out", "--save", "--record"],
        "records",
        "give --records FOLDER",
    ),
    (&["--json"], "format", "give --format json"),
    (&["--csv"], "format", "give --format csv"),
    (
        &["--html", "--chart"],
        "record",
        "give --record FILE, then `throng report FILE -o page.html`",
    ),
    (
        &["-S", "--stats-interval", "--report-interval", "--every"],
        "interval",
        "give --interval TIME",
    ),
    (
        &["--fail-on", "--assert", "--threshold", "--max-p99"],
        "fail-if",
        "give --fail-if 'p99 > 5ms'",
    ),
    (
        &["--prometheus", "--listen-metrics", "--metrics-port"],
        "metrics",
        "give --metrics 127.0.0.1:9350",
    ),
    (
        &["--config", "--scenario", "--conf"],
        "rate",
        "give the scenario file as a word: `throng run FILE`",
    ),
    (
        &["-O"],
        "",
        "options of dnsperf's -O belong to `throng dnsperf`",
    ),
];

const RATE: &[&str] = &[
    "-Q",
    "--qps",
    "--rps",
    "--pps",
    "--queries-per-second",
    "--requests-per-second",
    "--speed",
    "--tps",
];
const MAX_RATE: &[&str] = &[
    "--max-qps",
    "--rate-limit",
    "--limit",
    "--qps-limit",
    "--max-rps",
];
const LENGTH: &[&str] = &[
    "--time",
    "--seconds",
    "--length",
    "--runtime",
    "--run-time",
    "--test-time",
    "--duration",
];

/// Words that mean something else for one command.
pub(super) const OF_COMMAND: &[(&str, &[&str], &str)] = &[
    (
        "history",
        &["--records", "--in", "--where", "--format", "--last"],
        "the command comes first: `throng history list --records FOLDER`",
    ),
    (
        "names",
        &["--count", "--zone", "--format", "--seed"],
        "the set comes first: `throng names records --count N`",
    ),
    (
        "responder",
        &[
            "--port",
            "-p",
            "--server",
            "-s",
            "--address",
            "--bind",
            "-l",
            "--udp",
            "--tcp",
        ],
        "give --listen TRANSPORT:ADDRESS:PORT, such as udp:127.0.0.1:5300",
    ),
    ("responder", &["--latency", "--sleep"], "give --delay TIME"),
    ("responder", &["--rcode"], "give --rcodes SERVFAIL=0.1"),
    (
        "responder",
        &["--workers", "--threads", "-T"],
        "give --cpus N[,N...], with a worker on each",
    ),
    ("responder", &["--rate", "--qps"], "give --ceiling QPS"),
    (
        "responder",
        &["--cert"],
        "give --tls-cert FILE with --tls-key FILE",
    ),
    (
        "lab",
        &["--port", "-p"],
        "the server chooses free ports: `throng lab list` shows them",
    ),
    ("compare", &["--runs", "-n", "--count"], "give --repeat N"),
    (
        "compare",
        &["--threshold", "--tolerance"],
        "give --same-within 2%",
    ),
    (
        "compare",
        &["--output", "-o"],
        "redirect standard output, or give --junit FILE",
    ),
    (
        "compare",
        &["--html"],
        "give both to `throng report A B -o page.html`",
    ),
    (
        "compare-transports",
        &["--rounds", "--runs", "-n", "--count"],
        "give --repeat N",
    ),
    ("capacity", &["--runs"], "give --repeat N"),
    (
        "capacity",
        &["--p99", "--latency", "--slo"],
        "give --max-p99 TIME",
    ),
    ("capacity", &["--loss"], "give --max-loss SHARE"),
    (
        "experiment",
        &["--rounds", "--runs", "-n"],
        "give --repeat N",
    ),
    (
        "experiment",
        &["--dry-run"],
        "show the plan with `throng experiment plan FILE`",
    ),
    (
        "experiment",
        &["--records", "--out"],
        "give --output FOLDER",
    ),
    ("history", &["--folder", "--dir"], "give --records FOLDER"),
    ("history", &["--filter"], "give --where NAME=VALUE"),
    ("history", &["--limit", "-n", "--tail"], "give --last N"),
    (
        "history",
        &["--json", "--csv"],
        "give --format json or --format csv",
    ),
    (
        "serve",
        &["--listen"],
        "it shows run records; `throng responder --listen` answers queries",
    ),
    (
        "serve",
        &["--port", "-p", "--bind", "--address", "--addr", "--host"],
        "give --web ADDRESS:PORT",
    ),
    (
        "serve",
        &["--records", "--folder", "--dir", "--in"],
        "give the folder alone: `throng serve FOLDER`",
    ),
    ("report", &["--html"], "give --format html, or -o page.html"),
    ("report", &["--json"], "give --format json"),
    ("report", &["--csv"], "give --format csv"),
    ("report", &["--markdown", "--md"], "give --format markdown"),
    ("report", &["--out", "--record"], "give --output FILE"),
    ("merge", &["--out"], "give --record FILE"),
    ("fit", &["--record", "--out"], "give --output FILE"),
    (
        "names",
        &["--output", "-o"],
        "redirect standard output: `throng names ... > names.txt`",
    ),
    ("names", &["--json", "--csv"], "give --format names|zone"),
    ("names", &["-n", "--number", "--num"], "give --count N"),
    ("names", &["--domain", "--origin"], "give --zone NAME"),
    (
        "fleet",
        &["--replicas", "--pods", "--nodes", "--workers"],
        "give --agents N",
    ),
    (
        "fleet",
        &["--server", "-s", "--rate", "-r"],
        "flags of the run go behind its command: `throng fleet run ... -- run --server HOST`",
    ),
    ("ping", &["-T", "--qtype"], "give --type A,AAAA"),
    ("trace", &["-f", "--first-ttl"], "give --first-hop N"),
    ("trace", &["--max-ttl", "--hops"], "give --max-hops N"),
    (
        "doctor",
        &["--fix"],
        "the output has the commands that fix each problem",
    ),
];

/// Commands by their meaning.
pub(super) const COMMANDS: &[(&[&str], &str)] = &[
    (
        &["version", "ver"],
        "print the version with `throng --version`",
    ),
    (
        &[
            "bench",
            "benchmark",
            "test",
            "load",
            "attack",
            "start",
            "measure",
            "perf",
            "loadtest",
            "send",
            "flame",
            "flamethrower",
            "kxdpgun",
            "query",
            "queries",
            "execute",
            "exec",
            "flood",
        ],
        "send load with `throng run --server HOST --names FILE`",
    ),
    (
        &["stress", "rampup", "ramp-up"],
        "raise the rate until the server fails with `throng ramp`",
    ),
    (
        &["max", "limit", "limits", "search", "find", "maximum"],
        "find the highest rate with `throng capacity`",
    ),
    (
        &["server", "mock", "listen", "respond", "echo"],
        "answer queries with `throng responder`",
    ),
    (
        &["diff", "ab", "cmp"],
        "compare two records with `throng compare A B`",
    ),
    (
        &["gen", "generate", "domains", "zone"],
        "generate names with `throng names records`",
    ),
    (
        &["dig", "lookup", "dnsping", "resolve", "host"],
        "query a server with `throng ping NAME --server HOST`",
    ),
    (
        &["traceroute", "mtr", "dnstraceroute", "path"],
        "show the path with `throng trace NAME --server HOST`",
    ),
    (
        &["dnseval", "rank"],
        "compare servers with `throng eval NAME --server A --server B`",
    ),
    (
        &["tcpreplay", "pcap", "play"],
        "replay a capture with `throng replay FILE --server HOST`",
    ),
    (
        &[
            "plot", "graph", "chart", "html", "show", "summary", "result", "results",
        ],
        "show a record with `throng report RECORD`",
    ),
    (
        &["list", "ls", "log", "runs"],
        "list recorded runs with `throng history list`",
    ),
    (
        &["k8s", "kubernetes", "cluster", "agent", "agents"],
        "use several hosts with `throng fleet`",
    ),
    (
        &["check", "diagnose", "status", "info"],
        "check this host with `throng doctor`",
    ),
    (
        &["sweep", "matrix", "campaign", "experiments"],
        "run a matrix with `throng experiment run FILE`",
    ),
    (
        &["manual", "manpage"],
        "print the manual page with `throng man`",
    ),
    (
        &["completion", "complete"],
        "print completions with `throng completions SHELL`",
    ),
    (
        &["up", "down", "servers"],
        "start and end servers with `throng lab up` and `throng lab down`",
    ),
    (
        &["netem", "delay", "tc"],
        "delay packets with `throng line`",
    ),
    (
        &["profile", "learn"],
        "fit a profile with `throng fit CAPTURE`",
    ),
];

/// The same of commands that have commands.
pub(super) const SUBCOMMANDS: &[(&str, &[&str], &str)] = &[
    (
        "lab",
        &["start", "run", "create", "launch"],
        "start a server with `throng lab up PRODUCT`",
    ),
    (
        "lab",
        &["stop", "kill", "rm", "end", "remove", "delete"],
        "end a server with `throng lab down NAME`",
    ),
    (
        "lab",
        &["ps", "ls", "status", "show"],
        "list servers with `throng lab list`",
    ),
    (
        "lab",
        &["log", "tail"],
        "print a server's log with `throng lab logs NAME`",
    ),
    (
        "experiment",
        &["start", "resume", "continue", "execute"],
        "run it with `throng experiment run FILE`; what is done is not repeated",
    ),
    (
        "experiment",
        &["compare", "report", "show", "analyse", "analyze", "result"],
        "compare cells with `throng experiment results FOLDER`",
    ),
    (
        "experiment",
        &["dry-run", "list", "check"],
        "show the runs with `throng experiment plan FILE`",
    ),
    (
        "history",
        &["ls", "log", "runs"],
        "list runs with `throng history list`",
    ),
    (
        "history",
        &["get", "view", "cat"],
        "show a run with `throng history show RUN`",
    ),
    (
        "history",
        &["plot", "graph", "compare"],
        "follow a metric with `throng history trend METRIC`",
    ),
    (
        "fleet",
        &["start", "up", "deploy", "apply"],
        "start agents with `throng fleet run`",
    ),
    (
        "fleet",
        &["ls", "list", "ps"],
        "show the agents with `throng fleet status`",
    ),
    (
        "names",
        &["generate", "gen", "random", "make"],
        "generate names with `throng names records --zone ZONE`",
    ),
    (
        "names",
        &["random-order", "sort"],
        "change the order with `throng names shuffle FILE`",
    ),
    (
        "script",
        &["run", "test"],
        "try it with `throng script check FILE`; `throng run --script FILE` sends load",
    ),
];
