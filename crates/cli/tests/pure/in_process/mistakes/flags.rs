//! Flags and letters of other programs.

pub(super) const TABLE: &str = "
run -q 100               | -q is --quiet here             | --outstanding 100
run --ecs 192.0.2.0/24   | unknown argument `--ecs`       | +ecs=ADDRESS/BITS
run --infile x           | unknown argument `--infile`    | --names FILE
run -g file              | unknown argument `-g`          | --names FILE
run --targets x          | unknown argument `--targets`   | repeat --server HOST
run --retries 3          | unknown argument `--retries`   | --retry 3s,3s
run --cookie             | unknown argument `--cookie`    | --edns-option 10:HEX
run --class CH           | unknown argument `--class`     | --names-format stream
run --batch 10           | unknown argument `--batch`     | --burst N
run --log-level debug    | unknown argument `--log-level` | --details
run --percentiles 99     | unknown argument `--percentiles` | --details
run --stages 10s         | unknown argument `--stages`    | throng ramp
run +dnssec              | `+dnssec` is an option of dig  | --dnssec
run +tcp                 | `+tcp` is an option of dig     | --transport tcp
run +short               | `+short` is an option of dig   | --names FILE
ping a.example +tcp      | unknown argument `+tcp`        | --transport tcp
run @192.0.2.1           | no scenario file               | --server 192.0.2.1
run a.toml @192.0.2.1    | unknown argument `@192.0.2.1`  | --server 192.0.2.1
run --rate max           | `max` is not a rate            | leave it out
run --rate unlimited     | `unlimited` is not a rate      | leave it out
flood -s 192.0.2.1       | `flood` is not a command       | throng run --server
run -q100                | -q is --quiet here             | --outstanding 100
run -Q 100               | unknown argument `-Q`          | --rate QPS
run -Q100                | unknown argument `-Q`          | --max-rate QPS
run -t 5                 | -t is --transport here         | --timeout 5s
run -t5                  | -t is --transport here         | --duration 5s
run -t 10s               | -t is --transport here         | --timeout 10s
run -n 5                 | -n is --names here             | --loops 5
run -m 1000              | -m is --transport here         | --rate 1000
run -l 192.0.2.1         | -l is --duration here          | --local-address 192.0.2.1
run -p 53                | unknown argument `-p`          | --server HOST:PORT
run -k                   | unknown argument `-k`          | --tls-insecure
run -e                   | unknown argument `-e`          | --edns-size
run -E 10:00             | unknown argument `-E`          | --edns-option
run -b 32                | unknown argument `-b`          | --socket-buffer
run -f inet              | unknown argument `-f`          | IPv4 and IPv6
run -4                   | `-4`                           | IPv4 and IPv6
run -S 1                 | unknown argument `-S`          | --interval
run -u                   | unknown argument `-u`          | throng dnsperf -u
run -v                   | unknown argument `-v`          | --details
run -V                   | unknown argument `-V`          | throng --version
run -o x.json            | unknown argument `-o`          | --record
run -U                   | unknown argument `-U`          | --transport doq
run -M GET               | unknown argument `-M`          | --doh-method
run -R                   | unknown argument `-R`          | --question-order shuffled
run -O x                 | unknown argument `-O`          | throng dnsperf
run --qps 5              | unknown argument `--qps`       | give --rate
run --max-qps 5          | unknown argument `--max-qps`   | --max-rate
run --threads 4          | unknown argument `--threads`   | give --workers
run --port 53            | unknown argument `--port`      | --server HOST:PORT
run --tcp                | unknown argument `--tcp`       | --transport tcp
run --tls                | unknown argument `--tls`       | --transport dot
run --doh                | unknown argument `--doh`       | --transport doh2
run --quic               | unknown argument `--quic`      | --transport doq
run --protocol tcp       | unknown argument `--protocol`  | give --transport
run --verbose            | unknown argument `--verbose`   | --details
run --time 10            | unknown argument `--time`      | --duration TIME
run --concurrency 5      | unknown argument `--concurrency` | --clients N
run --connections 5      | unknown argument `--connections` | --clients N
run --vus 5              | unknown argument `--vus`       | --clients N
run --in-flight 5        | unknown argument `--in-flight` | --outstanding N
run --requests 5         | unknown argument `--requests`  | --queries N
run --file x             | unknown argument `--file`      | --names FILE
run --host x             | unknown argument `--host`      | --server HOST
run --target x           | unknown argument `--target`    | --server HOST
run --json               | unknown argument `--json`      | --format json
run --output x           | unknown argument `--output`    | --record FILE
run --insecure           | unknown argument `--insecure`  | --tls-insecure
run --sni x              | unknown argument `--sni`       | --tls-name
run --bind 127.0.0.1     | unknown argument `--bind`      | --local-address
run --path /q            | unknown argument `--path`      | --doh-path
run --zone x             | unknown argument `--zone`      | --random-labels
run --config x           | unknown argument `--config`    | throng run FILE
run --version            | unknown argument `--version`   | throng --version
run --fromat json        | '--fromat'                     | --format
run --format xml         | invalid value 'xml'            | text, json, csv
run --driver dpdk        | invalid value 'dpdk'           | 'xdp'
run --arrival random     | invalid value 'random'         | constant, poisson
run --goodput ALL        | unknown RCODE `ALL`            | NXDOMAIN
run --label x            | `x` is not of the form cpu=2   | KEY=VALUE
run --fail-if fast       | unknown metric `fast`          | p99
run --abort-if p99       | no comparison                  | p99 > 5ms
capacity --qps 5         | unknown argument `--qps`       | --start QPS
capacity --rate 5        | --rate cannot be used          | --start and --max
capacity -r 5            | --rate cannot be used          | --start and --max
capacity -q 100          | -q is --quiet here             | --outstanding
capacity --time 5        | unknown argument `--time`      | --trial-duration
capacity --p99 5ms       | unknown argument `--p99`       | --max-p99
capacity --runs 5        | unknown argument `--runs`      | --repeat N
ramp --qps 5             | unknown argument `--qps`       | --to QPS
ramp -m 1000             | -m is --transport here         | --to 1000
ramp --time 5            | unknown argument `--time`      | --over TIME
replay x --qps 5         | unknown argument `--qps`       | --speed
replay x -q 5            | -q is --quiet here             | --outstanding
ping a.example -c 5      | -c is --clients here           | --count 5
ping a.example -n 5      | -n is --names here             | --count 5
ping a.example -i 1      | -i is --names here             | --interval 1s
ping a.example -p 53     | unknown argument `-p`          | HOST:PORT
ping a.example --tcp     | unknown argument `--tcp`       | --transport tcp
ping a.example --qps 5   | unknown argument `--qps`       | --interval
eval a.example -c 5      | -c is --clients here           | --count 5
trace a.example -q 3     | -q is --quiet here             | --probes 3
trace a.example -m 30    | -m is --transport here         | --max-hops 30
trace a.example -f 3     | unknown argument `-f`          | --first-hop
compare --runs 5         | unknown argument `--runs`      | --repeat N
compare a b c            | unknown argument `c`           | two
compare-transports --runs 3 | unknown argument `--runs`   | --repeat N
experiment run x --rounds 5 | unknown argument `--rounds`    | --repeat N
experiment run x --dry-run | unknown argument `--dry-run` | experiment plan
history list --folder x  | unknown argument `--folder`    | --records FOLDER
history list --limit 5   | unknown argument `--limit`     | --last N
history --records .      | unknown argument `--records`   | history list --records
history list --where x   | not of the form NAME=VALUE     | transport=tcp
history trend speed      | not a metric                   | qps
serve . --port 80        | unknown argument `--port`      | --web ADDRESS:PORT
serve --listen udp:x     | unknown argument `--listen`    | throng responder
serve --records x        | unknown argument `--records`   | throng serve FOLDER
serve . --web here       | not an address with a port     | 127.0.0.1:9350
report --html            | unknown argument `--html`      | --format html
report --record x        | unknown argument `--record`    | --output FILE
fleet run --replicas 5   | unknown argument `--replicas`  | --agents N
fleet run --server x     | unknown argument `--server`    | behind its command
responder --port 53      | unknown argument `--port`      | udp:127.0.0.1:5300
responder --rcode X      | unknown argument `--rcode`     | --rcodes
responder --rate 5       | unknown argument `--rate`      | --ceiling
lab up bind --port 53    | unknown argument `--port`      | free ports
lab up nosuch            | no product `nosuch`            | bind, unbound
names records --json     | unknown argument `--json`      | --format
names records --output x | unknown argument `--output`    | names.txt
names --count 5          | unknown argument `--count`     | names records --count
";
