//! Numbers, times and shares.

pub(super) const TABLE: &str = "
run --rate 1,5           | `1,5` is not a rate            | 50k
run --rate 5m            | `5m` is not a rate             | 1.5M
run --rate 10qps         | `10qps` is not a rate          | queries a second
run --rate 1e6k          | `1e6k` is not a rate           | 20000
run --rate 1.000.000     | is not a rate                  | 1.5M
run --rate 0             | cannot be offered              | rates go from
run --rate 2G            | cannot be offered              | rates go from
run --rate -5            | `-5`                           | above zero
run --rate fast          | `fast` is not a rate           | queries a second
run --max-rate 1,00      | `1,00` is not a rate           | 50k
run -t tcp --connect-rate x | `x` is not a rate              | 50k
run --rate               | a value is required            | --rate <QPS>
run --rate 5 --rate 6    | multiple times                 | leave out
run -c 10m               | `10m` is not a number          | 10k
run -c 1.5               | `1.5` is not a whole number    | whole number
run -c 1,00              | `1,00` is not a number         | whole number
run -c 1e99              | too large                      | whole number
run -c 5G                | too large                      | whole number
run -c ten               | `ten` is not a number          | 500
run -c 0                 | must not be zero               | 1 or more
run -c -1                | `-1`                           | above zero
run --queries 0          | --queries: must not be zero    | 1 or more
run --queries 0.5        | not a whole number             | whole number
run --loops 0            | '--loops <N>': it must not be  | 1 or more
run --loops x            | '--loops <N>': `x` is not a    | whole number
run --outstanding 0      | must not be zero               | 1 or more
run --outstanding many   | `many` is not a number         | whole number
run --workers 0          | must not be zero               | 1 or more
run --workers auto       | `auto` is not a number         | whole number
run --agents 0           | must not be zero               | 1 or more
run --agents 5000        | 5000 is not in 1..=1024        | from 1 to 1024
run --edns-size 100      | 100 is not in 512..=65535      | from 512 to 65535
run --edns-size big      | `big` is not a number          | whole number
run --seed abc           | `abc` is not a whole number    | digits
run --cpus all           | `all` is not a whole number    | digits
run --local-port 99999   | 99999 is not in 0..=65535      | from 0 to 65535
run --socket-buffer 4MB  | `4MB` is not a number          | 1.5M
run --metrics 9350       | `9350` is not an address       | 127.0.0.1:9350
run -l 1m30              | `1m30` is not a duration       | 1m30s
run -l 10x               | `10x` is not a duration        | ms, s, m or h
run -l 30s1m             | `30s1m` is not a duration      | 1m30s
run -l 10sec             | `10sec` is not a duration      | ms, s, m or h
run -l 0                 | must not be zero               | above zero
run -l -5                | `-5`                           | above zero
run --timeout 5          | `5` has no unit                | 5s for seconds
run --timeout forever    | `forever` is not a duration    | 500ms
run --warmup 10          | `10` has no unit               | 10s for seconds
run --interval 1         | `1` has no unit                | 1s for seconds
run --join-after 3       | `3` has no unit                | 3s for seconds
run --delay 5            | `5` is not a delay             | 5ms
run --loss 5             | `5` is not a share             | from 0 to 1
run --truncate 10        | `10` is not a share            | from 0 to 1
run --per-client 5       | is not a way of sending        | constant:2
run --burst 0            | --burst has no effect          | --rate
capacity --start 10q     | --start 10q: not a number      | 20k
capacity --max 1,5       | --max 1,5: not a number        | 1.5M
capacity --max-p99 10    | `10` has no unit               | 10ms for milliseconds
capacity --max-loss 5    | `5` is not a share             | 0.1%
capacity --repeat 0      | must not be zero               | 1 or more
capacity --repeat 500    | 500 is not in 1..=100          | from 1 to 100
capacity --trial-duration 2 | `2` has no unit             | 2s for seconds
capacity --precision x   | `x` is not a share             | 0.1%
ramp --to 1,5            | --to: `1,5` is not a rate      | 50k
ramp --over 60           | `60` has no unit               | 60s for seconds
ramp --sustain 1m30      | `1m30` is not a duration       | 1m30s
ramp --max-outstanding 0 | must not be zero               | 1 or more
replay x --speed fast    | `fast` is not a number         | digits
replay x --from 10       | `10` has no unit               | 10s for seconds
ping a.example --count x | `x` is not a number            | whole number
ping a.example --interval 1 | `1` has no unit             | 1s for seconds
eval a.example --count 0 | must not be zero               | 1 or more
eval a.example --count 5k | 5000 is not in 1..=1000       | from 1 to 1000
trace a.example --max-hops 300 | 300 is not in 1..=255    | from 1 to 255
trace a.example --probes 0 | 0 is not in 1..=10           | from 1 to 10
compare-transports --repeat 0 | must not be zero          | 1 or more
compare --a x --b y --repeat 5000 | 5000 is not in 1..=1000 | from 1 to 1000
experiment plan x --repeat 0 | must not be zero      | 1 or more
history list --last few  | `few` is not a number          | whole number
responder --duration 10x | `10x` is not a duration        | 1m30s
responder --delay 5      | `5` is not a delay             | 5ms
responder --listen udp:127.0.0.1:0 --ceiling 1,5 | `5` is not part of a ceiling   | 37000
responder --processes 0  | must not be zero               | 1 or more
names records --count 1,5 | `1,5` is not a number         | whole number
names records --count 0  | --count: 0 records             | from 1
fleet run --agents 0     | must not be zero               | 1 or more
fleet run --min-agents 0 | must not be zero               | 1 or more
";
