//! What is replayed is what was asked.

use proptest::prelude::*;

use super::*;
use crate::tests::address;

fn observed(at_ns: u64, client: &str, name: &[u8], qtype: u16) -> Observed {
    Observed {
        at_ns,
        client: address(client),
        server: None,
        transport: Transport::Udp,
        connection: None,
        question: Question {
            name: name.into(),
            qtype,
            qclass: 1,
        },
        flags: QueryFlags::default(),
        response: None,
    }
}

const ONE: &str = "192.0.2.1:1000";
const TWO: &str = "[2001:db8::2]:2000";

fn list(filter: ReplayFilter, queries: &[Observed]) -> Result<ReplayList, ReplayError> {
    let mut builder = ReplayBuilder::new(filter)?;
    for query in queries {
        builder.add(query);
    }
    builder.finish()
}

fn samples() -> Vec<Observed> {
    vec![
        observed(1_000, ONE, b"\x01a\0", 1),
        observed(3_000, TWO, b"\x01b\0", 28),
        observed(2_000, "192.0.2.1:1001", b"\x01a\0", 1),
        observed(9_000, ONE, b"\x01a\0", 28),
    ]
}

fn times(list: &ReplayList) -> Vec<(u64, u32, u32)> {
    let queries = list.queries.iter();
    queries
        .map(|query| (query.at_ns, query.client, query.question))
        .collect()
}

#[test]
fn each_client_asks_what_it_asked_when_it_asked() {
    let list = list(ReplayFilter::default(), &samples()).unwrap();
    assert_eq!(
        times(&list),
        [(0, 0, 0), (1_000, 0, 0), (2_000, 1, 1), (8_000, 0, 2)]
    );
    assert_eq!((list.clients, list.questions.len()), (2, 3));
    assert_eq!((list.filtered, list.beyond_limit), (0, 0));
    assert_eq!(size_of::<ReplayQuery>(), 16);
}

#[test]
fn filters_hold_back_and_count() {
    let with = |change: &dyn Fn(&mut ReplayFilter)| {
        let mut filter = ReplayFilter::default();
        change(&mut filter);
        list(filter, &samples()).map(|list| (times(&list), list.filtered, list.beyond_limit))
    };
    let two = vec![(0, 0, 0)];
    let found = with(&|filter| filter.clients = vec!["2001:db8::/32".parse().unwrap()]);
    assert_eq!(found.unwrap(), (two.clone(), 3, 0));
    let found = with(&|filter| filter.qtypes = vec![28]);
    assert_eq!(found.unwrap(), (vec![(0, 0, 0), (6_000, 1, 1)], 2, 0));
    let found = with(&|filter| (filter.from_ns, filter.until_ns) = (1_000, Some(2_000)));
    assert_eq!(found.unwrap(), (two.clone(), 3, 0));
    let found = with(&|filter| filter.limit = 1);
    assert_eq!(found.unwrap(), (two, 0, 3));
    let found = with(&|filter| filter.transports = vec![Transport::Tcp]);
    assert_eq!(found.unwrap_err(), ReplayError::NoQueries(4));
    let found = with(&|filter| filter.identity = ClientIdentity::AddressAndPort);
    assert_eq!(found.unwrap().0[1].1, 2, "another port is another client");
}

#[test]
fn speed_divides_times_and_must_be_one() {
    let with = |speed| {
        let filter = ReplayFilter {
            speed,
            ..ReplayFilter::default()
        };
        list(filter, &samples()).map(|list| list.queries.last().map(|query| query.at_ns))
    };
    assert_eq!(with(4.0), Ok(Some(2_000)));
    assert_eq!(with(0.5), Ok(Some(16_000)));
    for speed in [0.0, -1.0, f64::INFINITY] {
        assert_eq!(with(speed), Err(ReplayError::Speed(speed)));
    }
    assert!(matches!(with(f64::NAN), Err(ReplayError::Speed(_))));
    assert_eq!(
        list(ReplayFilter::default(), &[]).unwrap_err(),
        ReplayError::NoQueries(0)
    );
    for error in [
        ReplayError::Speed(0.0),
        ReplayError::NoQueries(0),
        ReplayError::NoQueries(1),
    ] {
        assert!(!error.cure().is_empty() && !error.to_string().is_empty());
    }
}

#[test]
fn templates_ask_with_the_bits_of_the_query() {
    let mut asked = samples().swap_remove(0);
    let mut messages = Vec::new();
    for flags in [
        QueryFlags::default(),
        QueryFlags {
            recursion_desired: true,
            checking_disabled: true,
            edns: true,
            dnssec_ok: true,
        },
    ] {
        asked.flags = flags;
        let list = list(ReplayFilter::default(), &[asked.clone()]).unwrap();
        let template = list.questions.get(0);
        assert_eq!(template.question_octets, 7);
        let read = crate::message::read(template.message).unwrap();
        assert_eq!(
            (read.flags, read.question),
            (flags, Some(asked.question.clone()))
        );
        messages.push(template.message.to_vec());
    }
    assert_ne!(messages[0], messages[1]);
}

#[test]
fn prefixes_hold_addresses_of_their_version() {
    for (prefix, address, holds) in [
        ("192.0.2.0/24", "192.0.2.255", true),
        ("192.0.2.0/24", "192.0.3.0", false),
        ("0.0.0.0/0", "255.0.0.1", true),
        ("0.0.0.0/0", "::1", false),
        ("::/0", "2001:db8::1", true),
        ("2001:db8::/33", "2001:db8:8000::", false),
        ("192.0.2.1", "192.0.2.1", true),
        ("192.0.2.1", "192.0.2.2", false),
        ("::1", "::1", true),
    ] {
        let parsed: Prefix = prefix.parse().unwrap();
        assert_eq!(
            parsed.contains(address.parse().unwrap()),
            holds,
            "{prefix} {address}"
        );
    }
    for wrong in [
        "",
        "192.0.2.0/33",
        "192.0.2.0/",
        "x/8",
        "::/129",
        "192.0.2.0/-1",
    ] {
        assert!(wrong.parse::<Prefix>().is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn order_and_gaps_of_each_client_are_kept(
        gaps in prop::collection::vec((0_u64..1_000_000_000, 1_u16..20, 1_u8..30), 1..100),
    ) {
        let mut at_ns = 1_795_255_200_000_000_000;
        let mut queries = Vec::new();
        for (gap_ns, port, letter) in gaps {
            at_ns += gap_ns;
            let client = format!("192.0.2.{port}:53");
            queries.push(observed(at_ns, &client, &[1, letter, 0], 1));
        }
        let list = list(ReplayFilter::default(), &queries).unwrap();
        prop_assert_eq!(list.queries.len(), queries.len());
        for (replayed, asked) in list.queries.iter().zip(&queries) {
            prop_assert_eq!(replayed.at_ns, asked.at_ns - queries[0].at_ns);
            let template = list.questions.get(replayed.question as usize).message;
            prop_assert_eq!(&template[12..15], &asked.question.name[..]);
        }
        for (one, first) in list.queries.iter().zip(&queries) {
            for (other, second) in list.queries.iter().zip(&queries) {
                prop_assert_eq!(one.client == other.client, first.client == second.client);
            }
        }
    }
}
