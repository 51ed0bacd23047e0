//! The table of metrics. A new figure of runs is a row here: CSV, the summary of a record,
//! conditions, histories and comparisons take theirs from it.
//!
//! A row is the variant; the name as in conditions; the key as in CSV and JSON, with `{}` where the
//! unit of a time stands; the unit; in brackets whether the summary of a record has it, of what it
//! tells, and which direction is better; what it is; its value, none where it was not measured; and
//! what a run needs for it, where that is not a matter of course.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scope::{count, max, mean, min, percentile};
use super::{About, Better, Rank, Row, Unit};
use crate::experience::ClientExperience;
use crate::record::RunRecord;

const OBSERVED: &str = "--observe";
const EVENT: &str = "an experiment with `operation`";
const STAMPS: &str = "a run over UDP with --timestamps";

macro_rules! metrics {
    ($(
        $variant:ident $name:tt $key:tt $unit:ident [$rank:ident $about:ident $better:ident]
        $meaning:tt: $value:expr $(, needs $needs:expr)?;
    )*) => {
        /// A figure of a run.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema,
        )]
        pub enum Metric {
            $(
                #[doc = $meaning]
                #[serde(rename = $name)]
                $variant,
            )*
        }

        impl Metric {
            /// All metrics there are.
            pub const ALL: &'static [Metric] = &[$(Metric::$variant),*];
        }

        /// One for each of [`Metric::ALL`], in the same order.
        pub(super) const ROWS: &[Row] = &[
            $(
                Row {
                    name: $name,
                    key: $key,
                    unit: Unit::$unit,
                    rank: Rank::$rank,
                    about: About::$about,
                    better: Better::$better,
                    meaning: $meaning,
                    value: $value,
                    needs: &[$($needs)?],
                },
            )*
        ];
    };
}

metrics! {
    // Queries and their outcomes.
    OfferedQueries "offered_queries" "offered_queries" Count [Main Load Neither]
        "Queries scheduled": |it| count(it.counts().offered);
    Offered "offered" "offered_qps" PerSecond [Main Load Higher]
        "Queries scheduled": |it| it.rate(it.counts().offered, RunRecord::offered_qps);
    SentQueries "sent_queries" "sent_queries" Count [Main Load Neither]
        "Queries handed to the network": |it| count(it.counts().sent);
    Sent "sent" "sent_qps" PerSecond [Detail Load Neither]
        "Queries handed to the network":
        |it| it.rate(it.counts().sent, RunRecord::sent_qps);
    Responses "responses" "responses" Count [Main Target Higher]
        "Queries that got a response": |it| count(it.counts().responses);
    Qps "qps" "achieved_qps" PerSecond [Main Target Higher]
        "Responses achieved": |it| it.rate(it.counts().responses, RunRecord::achieved_qps);
    GoodputResponses "goodput_responses" "goodput_responses" Count [Main Target Higher]
        "Whole responses with an RCODE of the goodput set": |it| count(it.goodput());
    Goodput "goodput" "goodput_qps" PerSecond [Main Target Higher]
        "Whole responses with an RCODE of the goodput set":
        |it| it.rate(it.goodput(), RunRecord::goodput_qps);
    Answered "answered" "answered_share" Share [Main Target Higher]
        "Queries that got a response, of those offered":
        |it| it.share_of_ends(it.counts().responses);
    Timeouts "timeouts" "timeouts" Count [Detail Target Lower]
        "Queries without response within the timeout": |it| count(it.counts().timeouts);
    ConnectionLosses "connection_losses" "connection_losses" Count [Detail Target Lower]
        "Queries lost with their connection": |it| count(it.counts().connection_losses);
    ExchangeFailures "exchange_failures" "exchange_failures" Count [Detail Target Lower]
        "Queries that HTTP or their stream ended without a DNS message":
        |it| count(it.counts().exchange_failures.total());
    Interrupted "interrupted" "interrupted" Count [Detail Load Lower]
        "Queries still open when the run was interrupted, which are not lost":
        |it| count(it.counts().interrupted);
    NotSent "not_sent" "not_sent" Count [Detail Load Lower]
        "Queries scheduled and never sent": |it| count(it.counts().not_sent.total());
    LostQueries "lost_queries" "lost_queries" Count [Main Target Lower]
        "Queries without a response, whatever the cause": |it| count(it.counts().lost());
    Loss "loss" "lost_share" Share [Main Target Lower]
        "Queries without a response, of those offered": |it| it.share_of_ends(it.counts().lost());

    // Responses and other messages.
    Noerror "noerror_responses" "noerror_responses" Count [Detail Target Neither]
        "Responses with RCODE NOERROR": |it| it.of_rcode(0);
    Nodata "nodata_responses" "nodata_responses" Count [Detail Target Neither]
        "Responses with RCODE NOERROR and no record of the type asked for":
        |it| count(it.counts().nodata);
    Nxdomain "nxdomain_responses" "nxdomain_responses" Count [Detail Target Neither]
        "Responses with RCODE NXDOMAIN": |it| it.of_rcode(3);
    Servfail "servfail_responses" "servfail_responses" Count [Detail Target Lower]
        "Responses with RCODE SERVFAIL": |it| it.of_rcode(2);
    Refused "refused_responses" "refused_responses" Count [Detail Target Lower]
        "Responses with RCODE REFUSED": |it| it.of_rcode(5);
    OtherRcodes "other_responses" "other_responses" Count [Detail Target Lower]
        "Responses with any other RCODE": |it| it.of_rcodes_beside([0, 2, 3, 5]);
    Truncated "truncated_responses" "truncated_responses" Count [Detail Target Lower]
        "Responses with the TC bit": |it| count(it.counts().truncated);
    TruncatedShare "truncated" "truncated_share" Share [Detail Target Lower]
        "Responses with the TC bit, of all responses":
        |it| it.share_of_responses(it.counts().truncated);
    RcodeNoerror "rcode.noerror" "rcode_noerror_share" Share [Detail Target Neither]
        "Responses with RCODE NOERROR, of all responses": |it| it.share_of_rcode(0);
    RcodeFormerr "rcode.formerr" "rcode_formerr_share" Share [Detail Target Lower]
        "Responses with RCODE FORMERR, of all responses": |it| it.share_of_rcode(1);
    RcodeServfail "rcode.servfail" "rcode_servfail_share" Share [Detail Target Lower]
        "Responses with RCODE SERVFAIL, of all responses": |it| it.share_of_rcode(2);
    RcodeNxdomain "rcode.nxdomain" "rcode_nxdomain_share" Share [Detail Target Neither]
        "Responses with RCODE NXDOMAIN, of all responses": |it| it.share_of_rcode(3);
    RcodeNotimp "rcode.notimp" "rcode_notimp_share" Share [Detail Target Lower]
        "Responses with RCODE NOTIMP, of all responses": |it| it.share_of_rcode(4);
    RcodeRefused "rcode.refused" "rcode_refused_share" Share [Detail Target Lower]
        "Responses with RCODE REFUSED, of all responses": |it| it.share_of_rcode(5);
    RcodeYxdomain "rcode.yxdomain" "rcode_yxdomain_share" Share [Detail Target Lower]
        "Responses with RCODE YXDOMAIN, of all responses": |it| it.share_of_rcode(6);
    RcodeYxrrset "rcode.yxrrset" "rcode_yxrrset_share" Share [Detail Target Lower]
        "Responses with RCODE YXRRSET, of all responses": |it| it.share_of_rcode(7);
    RcodeNxrrset "rcode.nxrrset" "rcode_nxrrset_share" Share [Detail Target Lower]
        "Responses with RCODE NXRRSET, of all responses": |it| it.share_of_rcode(8);
    RcodeNotauth "rcode.notauth" "rcode_notauth_share" Share [Detail Target Lower]
        "Responses with RCODE NOTAUTH, of all responses": |it| it.share_of_rcode(9);
    RcodeNotzone "rcode.notzone" "rcode_notzone_share" Share [Detail Target Lower]
        "Responses with RCODE NOTZONE, of all responses": |it| it.share_of_rcode(10);
    RcodeDsotypeni "rcode.dsotypeni" "rcode_dsotypeni_share" Share [Detail Target Lower]
        "Responses with RCODE DSOTYPENI, of all responses": |it| it.share_of_rcode(11);
    RcodeBadvers "rcode.badvers" "rcode_badvers_share" Share [Detail Target Lower]
        "Responses with RCODE BADVERS, of all responses": |it| it.share_of_rcode(16);
    RcodeBadkey "rcode.badkey" "rcode_badkey_share" Share [Detail Target Lower]
        "Responses with RCODE BADKEY, of all responses": |it| it.share_of_rcode(17);
    RcodeBadtime "rcode.badtime" "rcode_badtime_share" Share [Detail Target Lower]
        "Responses with RCODE BADTIME, of all responses": |it| it.share_of_rcode(18);
    RcodeBadmode "rcode.badmode" "rcode_badmode_share" Share [Detail Target Lower]
        "Responses with RCODE BADMODE, of all responses": |it| it.share_of_rcode(19);
    RcodeBadname "rcode.badname" "rcode_badname_share" Share [Detail Target Lower]
        "Responses with RCODE BADNAME, of all responses": |it| it.share_of_rcode(20);
    RcodeBadalg "rcode.badalg" "rcode_badalg_share" Share [Detail Target Lower]
        "Responses with RCODE BADALG, of all responses": |it| it.share_of_rcode(21);
    RcodeBadtrunc "rcode.badtrunc" "rcode_badtrunc_share" Share [Detail Target Lower]
        "Responses with RCODE BADTRUNC, of all responses": |it| it.share_of_rcode(22);
    RcodeBadcookie "rcode.badcookie" "rcode_badcookie_share" Share [Detail Target Lower]
        "Responses with RCODE BADCOOKIE, of all responses": |it| it.share_of_rcode(23);
    Late "late_responses" "late_responses" Count [Detail Target Lower]
        "Responses to queries that had timed out": |it| count(it.counts().late);
    Duplicate "duplicate_responses" "duplicate_responses" Count [Detail Target Lower]
        "Further responses to one query": |it| count(it.counts().duplicate);
    Unexpected "unexpected_messages" "unexpected_messages" Count [Detail Target Lower]
        "Messages received that match no query": |it| count(it.counts().unexpected.total());
    SentOctets "sent_octets" "sent_octets" Octets [Detail Load Neither]
        "Bytes of queries, without framing": |it| count(it.counts().sent_octets);
    ReceivedOctets "received_octets" "received_octets" Octets [Detail Target Neither]
        "Bytes of responses, without framing": |it| count(it.counts().received_octets);

    // Clients that ask again.
    Retransmitted "retransmitted" "retransmitted" Count [Detail Target Lower]
        "Messages sent beside the first one of each query, by clients that ask again":
        |it| count(it.counts().stub.retransmitted);
    SecondAttempt "responses_attempt_2" "responses_attempt_2" Count [Detail Target Lower]
        "Responses that came when the query had been sent twice": |it| it.at_attempts(1, 1);
    ThirdAttempt "responses_attempt_3" "responses_attempt_3" Count [Detail Target Lower]
        "Responses that came when the query had been sent three times": |it| it.at_attempts(2, 1);
    LaterAttempts "responses_attempt_4_up" "responses_attempt_4_up" Count [Detail Target Lower]
        "Responses that came when the query had been sent more often":
        |it| it.at_attempts(3, usize::MAX);
    Failovers "failovers" "failovers" Count [Detail Target Lower]
        "Times that a client went on to another server":
        |it| count(it.counts().stub.failovers.total());

    // Load and connections.
    InFlight "in_flight" "in_flight_mean_queries" Number [Detail Load Neither]
        "Mean number of queries in flight": |it| it.in_flight();
    QpsPerClient "qps_per_client" "qps_per_client" Number [Detail Target Higher]
        "Responses a second and client": |it| it.of_run(|run| {
            Some(run.achieved_qps() / run.scenario.clients.max(1) as f64)
        });
    Attempted "connections_attempted" "connections_attempted" Count [Detail Load Neither]
        "Attempts to connect": |it| count(it.connections().attempted);
    Opened "connections_opened" "connections_opened" Count [Detail Target Neither]
        "Connections that became usable": |it| it.usable();
    Failed "connections_failed" "connections_failed" Count [Detail Target Lower]
        "Attempts to connect that never became usable": |it| count(it.connections().failed.total());
    Open "connections_open" "connections_open" Count [Detail Load Neither]
        "Usable connections at the end of an interval; of a run, the most of any":
        |it| count(it.interval().connections_open);
    OpenMax "connections_open_max" "connections_open_max" Count [Detail Load Neither]
        "The most connections that were usable at one time, of each worker":
        |it| count(it.interval().most_open());
    Active "connections_active" "connections_active" Count [Detail Load Neither]
        "Connections that carried a query; of a run, the most of any interval":
        |it| count(it.interval().connections_active);
    Ended "connections_ended" "connections_ended" Count [Detail Target Neither]
        "Usable connections that ended": |it| count(it.connections().ended());
    FullHandshakes "handshakes_full" "handshakes_full" Count [Detail Target Neither]
        "TLS or QUIC handshakes with a certificate":
        |it| count(it.connections().handshakes.with_certificate());
    ResumedHandshakes "handshakes_resumed" "handshakes_resumed" Count [Detail Target Neither]
        "TLS or QUIC handshakes of a session": |it| count(it.connections().handshakes.resumed);
    EarlyAccepted "early_data_accepted" "early_data_accepted" Count [Detail Target Neither]
        "Connections whose early data was accepted":
        |it| count(it.connections().early_data.accepted);
    EarlyRejected "early_data_rejected" "early_data_rejected" Count [Detail Target Lower]
        "Connections whose early data was rejected":
        |it| count(it.connections().early_data.rejected);
    HandshakeOctets "handshake_octets" "handshake_octets" Octets [Detail Target Neither]
        "Bytes of handshakes, sent and received": |it| count(it.connections().handshake_octets());

    WireOctets "wire_octets" "wire_octets_per_query" Number [Detail Target Lower]
        "Bytes of IP packets both ways for each query, with all headers and handshakes":
        |it| it.wire_octets_per_query();

    // What it cost the generator.
    CpuTime "cpu_time" "cpu_s" Seconds [Detail Generator Lower]
        "CPU time of all workers": |it| Some(it.interval().cpu_ns as f64 / 1e9);
    Cpu "cpu" "cpu_{}_per_response" Nanoseconds [Main Generator Lower]
        "CPU time of the generator for each response": |it| it.cpu_ns_per_response();
    GeneratorCpu "generator_cpu" "generator_cpu_share" Share [Detail Generator Lower]
        "Share of its CPU that the busiest worker used": |it| it.of_run(|run| {
            let shares = run.workers.iter().map(|worker| worker.busy_share());
            shares.reduce(f64::max)
        });

    // Latency.
    Min "min" "latency_min_{}" Nanoseconds [Main Target Lower]
        "Shortest latency from the scheduled instant": |it| min(it.latency());
    Mean "mean" "latency_mean_{}" Nanoseconds [Main Target Lower]
        "Mean latency from the scheduled instant": |it| mean(it.latency());
    Stddev "stddev" "latency_stddev_{}" Nanoseconds [Detail Target Lower]
        "Standard deviation of that latency": |it| it.latency().stddev_ns();
    P50 "p50" "latency_p50_{}" Nanoseconds [Main Target Lower]
        "Median of that latency": |it| percentile(it.latency(), 0.5);
    P90 "p90" "latency_p90_{}" Nanoseconds [Main Target Lower]
        "90th percentile of that latency": |it| percentile(it.latency(), 0.9);
    P95 "p95" "latency_p95_{}" Nanoseconds [Main Target Lower]
        "95th percentile of that latency": |it| percentile(it.latency(), 0.95);
    P99 "p99" "latency_p99_{}" Nanoseconds [Main Target Lower]
        "99th percentile of that latency": |it| percentile(it.latency(), 0.99);
    P999 "p99.9" "latency_p99_9_{}" Nanoseconds [Main Target Lower]
        "99.9th percentile of that latency": |it| percentile(it.latency(), 0.999);
    P9999 "p99.99" "latency_p99_99_{}" Nanoseconds [Detail Target Lower]
        "99.99th percentile of that latency": |it| percentile(it.latency(), 0.999_9);
    Max "max" "latency_max_{}" Nanoseconds [Main Target Lower]
        "Longest latency from the scheduled instant": |it| max(it.latency());
    ServiceMean "service.mean" "service_mean_{}" Nanoseconds [Detail Target Lower]
        "Mean latency from the instant of sending": |it| mean(&it.distributions().service);
    ServiceP50 "service.p50" "service_p50_{}" Nanoseconds [Detail Target Lower]
        "Median latency from the instant of sending":
        |it| percentile(&it.distributions().service, 0.5);
    ServiceP99 "service.p99" "service_p99_{}" Nanoseconds [Detail Target Lower]
        "99th percentile of the latency from the instant of sending":
        |it| percentile(&it.distributions().service, 0.99);
    LatenessP99 "lateness.p99" "send_lateness_p99_{}" Nanoseconds [Detail Generator Lower]
        "99th percentile of the time by which queries left late":
        |it| percentile(&it.distributions().send_lateness, 0.99);

    // Its parts, by timestamps.
    GeneratorMin "generator.min" "generator_min_{}" Nanoseconds [Detail Generator Lower]
        "Shortest time from the scheduled instant until a query left":
        |it| min(&it.path().generator), needs STAMPS;
    GeneratorMean "generator.mean" "generator_mean_{}" Nanoseconds [Detail Generator Lower]
        "Mean time from the scheduled instant until a query left":
        |it| mean(&it.path().generator), needs STAMPS;
    GeneratorP50 "generator.p50" "generator_p50_{}" Nanoseconds [Detail Generator Lower]
        "Median of the time from the scheduled instant until a query left":
        |it| percentile(&it.path().generator, 0.5), needs STAMPS;
    GeneratorP90 "generator.p90" "generator_p90_{}" Nanoseconds [Detail Generator Lower]
        "90th percentile of the time from the scheduled instant until a query left":
        |it| percentile(&it.path().generator, 0.9), needs STAMPS;
    GeneratorP95 "generator.p95" "generator_p95_{}" Nanoseconds [Detail Generator Lower]
        "95th percentile of the time from the scheduled instant until a query left":
        |it| percentile(&it.path().generator, 0.95), needs STAMPS;
    GeneratorP99 "generator.p99" "generator_p99_{}" Nanoseconds [Detail Generator Lower]
        "99th percentile of the time from the scheduled instant until a query left":
        |it| percentile(&it.path().generator, 0.99), needs STAMPS;
    GeneratorP999 "generator.p99.9" "generator_p99_9_{}" Nanoseconds [Detail Generator Lower]
        "99.9th percentile of the time from the scheduled instant until a query left":
        |it| percentile(&it.path().generator, 0.999), needs STAMPS;
    GeneratorMax "generator.max" "generator_max_{}" Nanoseconds [Detail Generator Lower]
        "Longest time from the scheduled instant until a query left":
        |it| max(&it.path().generator), needs STAMPS;
    WireMin "wire.min" "wire_min_{}" Nanoseconds [Detail Target Lower]
        "Shortest time on wire and server, until the response arrived":
        |it| min(&it.path().network), needs STAMPS;
    WireMean "wire.mean" "wire_mean_{}" Nanoseconds [Detail Target Lower]
        "Mean time on wire and server, until the response arrived":
        |it| mean(&it.path().network), needs STAMPS;
    WireP50 "wire.p50" "wire_p50_{}" Nanoseconds [Detail Target Lower]
        "Median of the time on wire and server, until the response arrived":
        |it| percentile(&it.path().network, 0.5), needs STAMPS;
    WireP90 "wire.p90" "wire_p90_{}" Nanoseconds [Detail Target Lower]
        "90th percentile of the time on wire and server, until the response arrived":
        |it| percentile(&it.path().network, 0.9), needs STAMPS;
    WireP95 "wire.p95" "wire_p95_{}" Nanoseconds [Detail Target Lower]
        "95th percentile of the time on wire and server, until the response arrived":
        |it| percentile(&it.path().network, 0.95), needs STAMPS;
    WireP99 "wire.p99" "wire_p99_{}" Nanoseconds [Detail Target Lower]
        "99th percentile of the time on wire and server, until the response arrived":
        |it| percentile(&it.path().network, 0.99), needs STAMPS;
    WireP999 "wire.p99.9" "wire_p99_9_{}" Nanoseconds [Detail Target Lower]
        "99.9th percentile of the time on wire and server, until the response arrived":
        |it| percentile(&it.path().network, 0.999), needs STAMPS;
    WireMax "wire.max" "wire_max_{}" Nanoseconds [Detail Target Lower]
        "Longest time on wire and server, until the response arrived":
        |it| max(&it.path().network), needs STAMPS;
    ReaderMin "reader.min" "reader_min_{}" Nanoseconds [Detail Generator Lower]
        "Shortest time until a response that had arrived was read":
        |it| min(&it.path().reader), needs STAMPS;
    ReaderMean "reader.mean" "reader_mean_{}" Nanoseconds [Detail Generator Lower]
        "Mean time until a response that had arrived was read":
        |it| mean(&it.path().reader), needs STAMPS;
    ReaderP50 "reader.p50" "reader_p50_{}" Nanoseconds [Detail Generator Lower]
        "Median of the time until a response that had arrived was read":
        |it| percentile(&it.path().reader, 0.5), needs STAMPS;
    ReaderP90 "reader.p90" "reader_p90_{}" Nanoseconds [Detail Generator Lower]
        "90th percentile of the time until a response that had arrived was read":
        |it| percentile(&it.path().reader, 0.9), needs STAMPS;
    ReaderP95 "reader.p95" "reader_p95_{}" Nanoseconds [Detail Generator Lower]
        "95th percentile of the time until a response that had arrived was read":
        |it| percentile(&it.path().reader, 0.95), needs STAMPS;
    ReaderP99 "reader.p99" "reader_p99_{}" Nanoseconds [Detail Generator Lower]
        "99th percentile of the time until a response that had arrived was read":
        |it| percentile(&it.path().reader, 0.99), needs STAMPS;
    ReaderP999 "reader.p99.9" "reader_p99_9_{}" Nanoseconds [Detail Generator Lower]
        "99.9th percentile of the time until a response that had arrived was read":
        |it| percentile(&it.path().reader, 0.999), needs STAMPS;
    ReaderMax "reader.max" "reader_max_{}" Nanoseconds [Detail Generator Lower]
        "Longest time until a response that had arrived was read":
        |it| max(&it.path().reader), needs STAMPS;
    StampsMissing "stamps_missing" "stamps_missing" Count [Detail Generator Lower]
        "Responses whose timestamps do not show the parts of the latency":
        |it| it.stamps_missing(), needs STAMPS;

    // Setting up connections; of a run, those before it and of its warm-up too.
    Connect "connect" "connect_p50_{}" Nanoseconds [Main Target Lower]
        "Median of TCP connection set-up": |it| it.set_up(|times| [&times.tcp_connect; 2]);
    Handshake "handshake" "handshake_p50_{}" Nanoseconds [Main Target Lower]
        "Median of full TLS or QUIC handshakes":
        |it| it.set_up(|times| [&times.tls_handshake, &times.quic_handshake]);
    Resumption "handshake_resumed" "handshake_resumed_p50_{}" Nanoseconds [Detail Target Lower]
        "Median of resumed TLS or QUIC handshakes":
        |it| it.set_up(|times| [&times.tls_handshake_resumed, &times.quic_handshake_resumed]);
    FirstQuery "first_query" "first_query_p50_{}" Nanoseconds [Detail Target Lower]
        "Median service time of the first query of each connection":
        |it| it.set_up(|times| [&times.first_query; 2]);

    // Over clients, each of them one value.
    ClientsP50P99 "clients_p50.p99" "clients_p50_p99_{}" Nanoseconds [Detail Target Lower]
        "Over clients, the 99th percentile of each client's own median":
        |it| it.of_clients(|all| percentile(&all.latency.p50, 0.99));
    ClientsP99P50 "clients_p99.p50" "clients_p99_p50_{}" Nanoseconds [Detail Target Lower]
        "Over clients, the median of each client's own 99th percentile":
        |it| it.of_clients(|all| percentile(&all.latency.p99, 0.5));
    ClientsP99P99 "clients_p99.p99" "clients_p99_p99_{}" Nanoseconds [Detail Target Lower]
        "Over clients, the 99th percentile of each client's own 99th percentile":
        |it| it.of_clients(|all| percentile(&all.latency.p99, 0.99));
    Fairness "fairness" "clients_fairness" Share [Detail Target Higher]
        "Jain's index of the responses to each client":
        |it| it.of_clients(ClientExperience::fairness);

    // Whether a run ended as it began.
    DriftQps "drift.qps" "qps_drift" Times [Detail Target Neither]
        "Response rate in the last quarter of the run, of that in the first":
        |it| it.drift(Metric::Qps);
    DriftP50 "drift.p50" "p50_drift" Times [Detail Target Lower]
        "Median of the latency in the last quarter of the run, of that in the first":
        |it| it.drift(Metric::P50);
    DriftP95 "drift.p95" "p95_drift" Times [Detail Target Lower]
        "95th percentile of the latency in the last quarter of the run, of that in the first":
        |it| it.drift(Metric::P95);
    DriftP99 "drift.p99" "p99_drift" Times [Detail Target Lower]
        "99th percentile of the latency in the last quarter of the run, of that in the first":
        |it| it.drift(Metric::P99);

    AcceptsFailed "accepts_failed" "responder_accepts_failed" Count [Detail Generator Lower]
        "Times that the responder of a self-test could not accept a connection":
        |it| it.of_run(|run| count(run.responder?.accepts_failed)), needs "a self-test";

    // Around the first of the operations in mid-run: from the interval in which it began until a
    // second after its end.
    EventTime "event.time" "event_{}" Nanoseconds [Detail Target Lower]
        "Time that the operation in mid-run took":
        |it| it.of_run(|run| Some(run.events.first()?.length_ns() as f64)), needs EVENT;
    EventSilence "event.silence" "event_silence_{}" Nanoseconds [Detail Target Lower]
        "Longest time without a response around that operation":
        |it| it.of_run(|run| Some(run.first_event()?.1.silence_ns as f64)), needs EVENT;
    EventLost "event.lost" "event_lost_queries" Count [Detail Target Lower]
        "Queries due around that operation that got no response":
        |it| it.of_run(|run| count(run.first_event()?.1.around.lost)), needs EVENT;
    EventP99 "event.p99" "event_latency_p99_{}" Nanoseconds [Detail Target Lower]
        "99th percentile of the latency around that operation":
        |it| it.of_run(|run| Some(run.first_event()?.1.around.p99_ns? as f64)), needs EVENT;

    // The server's own side.
    ServerCpus "server.cpus" "server_cpus" Number [Detail Target Neither]
        "CPUs' worth of time that the observed server used":
        |it| it.of_run(|run| Some(run.programs().first()?.cpus_used)), needs OBSERVED;
    ServerCpu "server.cpu" "server_cpu_share" Share [Main Target Neither]
        "CPU that the observed server used, of what it may use":
        |it| it.of_run(|run| run.programs().first()?.cpu_share()), needs OBSERVED;
    ServerCpuPerQuery "server.cpu_per_query" "server_cpu_{}_per_query" Nanoseconds
        [Main Target Lower] "CPU time of the observed server for each response":
        |it| it.of_run(RunRecord::server_cpu_ns_per_response), needs OBSERVED;
    ServerThrottled "server.throttled" "server_throttled_share" Share [Detail Target Lower]
        "Periods in which its CPU quota stopped the observed server":
        |it| it.of_run(|run| run.programs().first()?.throttled_share), needs OBSERVED;
    ServerDrops "server.drops" "server_drops" Count [Detail Target Lower]
        "Datagrams that the sockets of the observed server had no room for":
        |it| it.of_run(|run| count(run.programs().first()?.udp_drops)), needs OBSERVED;
    ServerListenDrops "server.listen_drops" "server_listen_drops" Count [Detail Target Lower]
        "Connections for which a listen queue beside the observed server was full":
        |it| it.of_run(|run| count(run.programs().first()?.listen_overflows)), needs OBSERVED;
    ServerQueries "server.queries" "server_queries" Count [Detail Target Neither]
        "Queries that the observed server counted":
        |it| it.of_run(|run| Some(run.servers().first()?.queries)), needs OBSERVED;
    ServerCacheHits "server.cache_hits" "server_cache_hit_share" Share [Detail Target Neither]
        "Lookups that the cache of the observed server answered":
        |it| it.of_run(|run| run.servers().first()?.cache_hit_share), needs OBSERVED;
}
