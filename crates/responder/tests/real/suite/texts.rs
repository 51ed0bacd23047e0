//! The notation of behaviours, and the display of counters.

use std::time::Duration;

use proto::Transport;
use responder::behaviour::{
    BehaviourError, parse_connection_end, parse_delay, parse_duration, parse_http_status_shares,
    parse_rcode_shares, parse_share, parse_stall, validate,
};
use responder::{Behaviour, ConnectionEnd, Counters, Delay, Stall};

use crate::network::{Target, ms, query};

#[test]
fn durations_have_units() {
    let cases = [
        ("5ms", Duration::from_millis(5)),
        ("1.5s", Duration::from_millis(1500)),
        ("200us", Duration::from_micros(200)),
        ("7ns", Duration::from_nanos(7)),
        ("2m", Duration::from_secs(120)),
        ("1h", Duration::from_secs(3600)),
        ("0", Duration::ZERO),
        ("0.3ms", Duration::from_micros(300)),
        ("1m30s", Duration::from_secs(90)),
        ("1h1m1.5s", Duration::from_millis(3_661_500)),
        ("1,500ms", Duration::from_millis(1_500)),
    ];
    for (text, duration) in cases {
        assert_eq!(parse_duration(text), Ok(duration), "{text}");
    }
    for text in [
        "",
        "5",
        "ms",
        "-1s",
        "1..2s",
        "5 ms",
        "1e3s",
        "99999999999h",
        "inf",
        "30s1m",
        "1m30",
        "1s1s",
        "277777h3600s",
    ] {
        assert_eq!(
            parse_duration(text),
            Err(BehaviourError::Duration(text.to_owned()))
        );
    }
}

#[test]
fn delays_are_read() {
    let cases = [
        ("none", Delay::None),
        ("0", Delay::None),
        ("5ms", Delay::Constant(ms(5))),
        ("constant:5ms", Delay::Constant(ms(5))),
        (
            "uniform:1ms..10ms",
            Delay::Uniform {
                min: ms(1),
                max: ms(10),
            },
        ),
        ("exponential:5ms", Delay::Exponential { mean: ms(5) }),
    ];
    for (text, delay) in cases {
        assert_eq!(parse_delay(text), Ok(delay), "{text}");
    }
    let wrong = parse_delay("normal:5ms").unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "`normal:5ms` is not a delay: expected `5ms`, `uniform:1ms..10ms` or `exponential:5ms`"
    );
    let reversed = parse_delay("uniform:10ms..1ms").unwrap_err();
    assert_eq!(
        reversed.to_string(),
        "uniform delay: 10ms is more than 1ms; put the lesser first"
    );
    assert!(parse_delay("uniform:5ms").is_err());
}

#[test]
fn stalls_are_read() {
    let once = Stall {
        at: Duration::from_secs(3),
        length: Duration::from_secs(1),
        every: None,
    };
    assert_eq!(parse_stall("at=3s,for=1s"), Ok(once));
    let periodic = Stall {
        every: Some(Duration::from_secs(10)),
        ..once
    };
    assert_eq!(parse_stall("for=1s, every=10s, at=3s"), Ok(periodic));
    let error = |text: &str| parse_stall(text).unwrap_err();
    assert_eq!(error("at=3s"), BehaviourError::StallWithout("for"));
    assert_eq!(error("for=3s"), BehaviourError::StallWithout("at"));
    assert_eq!(
        error("at=3s,for=1s,at=1s"),
        BehaviourError::StallPart("at=1s".to_owned())
    );
    assert_eq!(
        error("at=3s,len=1s"),
        BehaviourError::StallPart("len=1s".to_owned())
    );
    assert_eq!(
        error("at=3,for=1s"),
        BehaviourError::Duration("3".to_owned())
    );
    assert_eq!(
        error("at=0,for=2s,every=2s").to_string(),
        "a stall of 2s every 2s never ends; make `every` longer"
    );
}

#[test]
fn rcode_shares_are_read() {
    let shares = parse_rcode_shares("NXDOMAIN=0.1, servfail=0.01");
    assert_eq!(shares, Ok(vec![(3, 0.1), (2, 0.01)]));
    assert_eq!(
        parse_rcode_shares("3"),
        Err(BehaviourError::RcodeShare("3".to_owned()))
    );
    assert_eq!(
        parse_rcode_shares("WHAT=1"),
        Err(BehaviourError::Rcode("WHAT".to_owned()))
    );
    assert_eq!(
        parse_rcode_shares("BADVERS=1"),
        Err(BehaviourError::Rcode("BADVERS".to_owned()))
    );
    assert_eq!(
        parse_rcode_shares("REFUSED=2"),
        Err(BehaviourError::Share("2".to_owned()))
    );
    assert_eq!(
        parse_share("NaN"),
        Err(BehaviourError::Share("NaN".to_owned()))
    );
}

#[test]
fn connection_ends_are_read() {
    assert_eq!(
        parse_connection_end("half-close"),
        Ok(ConnectionEnd::HalfClose)
    );
    assert!(parse_connection_end("slowly").is_err());
}

#[test]
fn a_behaviour_that_contradicts_itself_is_refused() {
    let error = |change: fn(&mut Behaviour)| {
        let mut behaviour = Behaviour::default();
        change(&mut behaviour);
        validate(&behaviour).unwrap_err()
    };
    assert_eq!(validate(&Behaviour::default()), Ok(()));
    let sum = error(|behaviour| {
        behaviour.faults.loss = 0.6;
        behaviour.faults.rcodes = vec![(2, 0.5)];
    });
    assert!(matches!(sum, BehaviourError::SharesSum(_)));
    let negative = error(|behaviour| behaviour.duplicate_share = -0.1);
    assert!(matches!(negative, BehaviourError::Share(_)));
    let none = error(|behaviour| behaviour.end_after = Some((0, ConnectionEnd::Close)));
    assert_eq!(none, BehaviourError::EndAfterNone);
    let rate = error(|behaviour| behaviour.rate_qps_max = Some(0.0));
    assert_eq!(rate, BehaviourError::Rate(0.0));
    let status = error(|behaviour| behaviour.faults.http_statuses = vec![(199, 0.5)]);
    assert_eq!(status, BehaviourError::HttpStatus("199".to_owned()));
    let reset = error(|behaviour| behaviour.faults.reset = 1.5);
    assert!(matches!(reset, BehaviourError::Share(_)));
    let rcode = error(|behaviour| behaviour.faults.rcodes = vec![(16, 0.5)]);
    assert_eq!(rcode, BehaviourError::Rcode("16".to_owned()));
}

#[test]
fn http_statuses_are_read_with_their_shares() {
    let read = parse_http_status_shares("429=0.1, 503 = 0.01");
    assert_eq!(read, Ok(vec![(429, 0.1), (503, 0.01)]));
    for (text, error) in [
        (
            "429",
            "`429` is not an HTTP status share: expected `429=0.1,503=0.01`",
        ),
        ("99=0.1", "`99` is not an HTTP status from 200 to 999"),
        ("busy=0.1", "`busy` is not an HTTP status from 200 to 999"),
        (
            "503=2",
            "`2` is not a share: expected a number from 0 to 1, such as 0.01",
        ),
    ] {
        let refused = parse_http_status_shares(text).unwrap_err();
        assert_eq!(refused.to_string(), error);
    }
}

#[test]
fn counters_are_added_and_shown_without_zeros() {
    let mut target = Target::new(|_| {});
    target.send_datagrams(1, &[query(1, "a.example A"), vec![0; 3]]);
    let mut total = Counters::default();
    total += target.worker.counters();
    total += target.worker.counters();
    assert_eq!(total.queries.get(Transport::Udp), 2);
    assert_eq!((total.ignored, total.rcodes[0]), (2, 2));
    let shown = total.to_string();
    let lines: Vec<_> = shown
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let joined: Vec<String> = lines
        .iter()
        .map(|words: &Vec<&str>| words.join(" "))
        .collect();
    assert_eq!(
        joined,
        [
            "queries received 2 (udp 2)",
            "responses sent 2 (udp 2)",
            "bytes received 60 (udp 60)",
            "bytes sent 86 (udp 86)",
            "messages ignored 2",
            "NOERROR 2",
        ]
    );
}
