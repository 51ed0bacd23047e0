//! Transports and servers.

pub(super) const TABLE: &str = "
run -t dnscrypt           | unknown transport `dnscrypt`   | udp, tcp, dot
run -t doh1               | unknown transport `doh1`       | doh2
run -t UDP4               | unknown transport `UDP4`       | udp
run -t                    | a value is required            | --transport
run -s                    | a value is required            | --server
run -s a,b                | `a,b` is more than one server  | --server a --server b
run -s 192.0.2.1,192.0.2.2 -n NAMES | more than one server | --server 192.0.2.2
run -s 192.0.2.1#ns.example -n NAMES | is not a port       | --tls-name
run -s 192.0.2.1:dns -n NAMES | `dns` is not a port        | HOST:PORT
run -s 192.0.2.1:99999 -n NAMES | `99999` is not a port    | HOST:PORT
run -s 192.0.2.1:0 -n NAMES | has port 0                   | give the port
run -s ::1:5300 -n NAMES  | an address without a port      | [::1]:5300
run -s fe80::1 -n NAMES   | link-local                     | fe80::1%INTERFACE
run -s [fe80::1]:53 -n NAMES | link-local                  | fe80::1%INTERFACE
run -s 255.255.255.255 -n NAMES | the broadcast address    | one server
run -s 224.0.0.251 -n NAMES | a multicast address          | one server
run -s 224.0.0.251 -n NAMES --allow-public | a multicast address | one server
run -s ff02::fb -n NAMES  | a multicast address            | one server
run -s udp://224.0.0.251:5353 -n NAMES | a multicast address | one server
run -s ::ffff:224.0.0.1 -n NAMES | a multicast address     | one server
run -s bücher.example -n NAMES | outside ASCII             | xn--
run -s ftp://192.0.2.1 -n NAMES | `ftp` is not a scheme    | tls://192.0.2.1
run -s sdns://AgcAAAAA -n NAMES | DNS stamps               | tls://
run -s tls://192.0.2.1/q -n NAMES | has a path             | https://192.0.2.1/q
run -s udp://192.0.2.1 -t tcp -n NAMES | says udp, and --transport tcp | leave out one
run -s quic://192.0.2.1 -t dot -n NAMES | says doq, and --transport dot | leave out one
run -s https://192.0.2.1/q -t udp -n NAMES | is a URI, and transport udp | --transport doh2
run -s http://192.0.2.1/q -t doh3 -n NAMES | HTTP/3 has no http:// | https://
run -s https://u@192.0.2.1/q -n NAMES | a user name        | --doh-header
run -s udp://192.0.2.1 -s tcp://192.0.2.2 -n NAMES | one transport | one scheme
run -s 9.9.9.9 -n NAMES   | is a public address            | --allow-public
run -s @9.9.9.9 -n NAMES  | is a public address            | --allow-public
run -s 9.9.9.9#53 -n NAMES | is a public address           | --allow-public
run -s 9.9.9.9@53 -n NAMES | is a public address           | --allow-public
run -s udp://9.9.9.9 -n NAMES | is a public address        | --allow-public
run -s tls://9.9.9.9 -n NAMES | is a public address        | --allow-public
run -s 192.0.2.1          | no questions                   | throng names records
run -s 192.0.2.1 -n missing.txt | cannot read missing.txt  | check that the file
run 127.0.0.1             | no scenario file `127.0.0.1`   | --server 127.0.0.1
run 9.9.9.9:53            | no scenario file `9.9.9.9:53`  | --server 9.9.9.9:53
run dns.example           | no scenario file `dns.example` | --server dns.example
run localhost             | no scenario file `localhost`   | --server localhost
run tls://192.0.2.1       | no scenario file               | --server tls://192.0.2.1
run missing.toml          | no scenario file `missing.toml` | TOML file
capacity 127.0.0.1        | unknown argument `127.0.0.1`   | --server 127.0.0.1
ramp dns.example          | unknown argument `dns.example` | --server dns.example
compare-transports ::1    | unknown argument `::1`         | --server ::1
compare-transports -t udp | several are compared           | --transports
compare-transports --record x | several records            | --records FOLDER
compare-transports --transports udp,foo | unknown transport `foo` | udp, tcp
compare-transports --transports tls,dot | dot twice        | each transport once
compare-transports -s tls://192.0.2.1 | names one transport | dot=192.0.2.1
compare-transports -s udp=tls://192.0.2.1 | says dot       | leave out
compare-transports -s 192.0.2.1,192.0.2.2 | two servers    | udp=192.0.2.1
ping 192.0.2.1            | --server is missing            | NAME --server 192.0.2.1
ping @192.0.2.1           | `@192.0.2.1` is a server       | NAME --server 192.0.2.1
ping @192.0.2.1 a.example | unknown argument `a.example`   | --server HOST
ping a.example @192.0.2.1 | unknown argument `@192.0.2.1`  | --server 192.0.2.1
ping a.example AAAA       | unknown argument `AAAA`        | --type AAAA
ping bücher.example -s 192.0.2.1 | outside ASCII           | xn--
ping a.example -s 192.0.2.1 --type FOO | unknown type `FOO` | AAAA
ping a.example -s 192.0.2.1 -s 192.0.2.2 | more than once  | throng eval
eval a.example            | --server is missing            | --servers FILE
eval a.example 192.0.2.1  | unknown argument `192.0.2.1`   | --server 192.0.2.1
trace a.example           | one server                     | --server HOST
trace a.example -s a,b    | more than one server           | --server a
responder --listen 127.0.0.1:5300 | `127.0.0.1:5300` has no transport | udp:127.0.0.1:5300
responder --listen :53    | unknown transport              | udp
responder --listen udp:5300 | not of the form              | udp:127.0.0.1:5300
";
