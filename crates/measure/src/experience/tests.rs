use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::interval::Interval;

const MS: u64 = 1_000_000;

/// A client with this number of queries, of which those with a latency got a NOERROR response.
fn client(queries: u64, latencies: &[u64]) -> ClientFigures {
    let mut figures = ClientFigures {
        queries,
        ..ClientFigures::default()
    };
    latencies
        .iter()
        .for_each(|&latency_ns| figures.respond(latency_ns, 0));
    figures
}

/// How long each of them was there.
const PRESENT_NS: u64 = 2_500 * MS;

fn experience<'a>(clients: impl IntoIterator<Item = &'a ClientFigures>) -> ClientExperience {
    let mut experience = ClientExperience::default();
    clients
        .into_iter()
        .for_each(|client| experience.record(client, PRESENT_NS));
    experience
}

fn any_client() -> impl Strategy<Value = ClientFigures> {
    let responses = vec((1_000_u64..1 << 35, 0_u16..6), 0..20);
    (responses, 0_u64..10, 0_u32..4).prop_map(|(responses, unanswered, connections)| {
        let mut figures = client(responses.len() as u64 + unanswered, &[]);
        for (latency_ns, rcode) in responses {
            figures.respond(latency_ns, rcode);
        }
        figures.connections = connections;
        figures.set_up_ns = u64::from(connections) * 3 * MS;
        figures
    })
}

proptest! {
    #[test]
    fn shares_of_the_clients_merge_to_what_all_of_them_are(
        clients in vec(any_client(), 0..40),
        cuts in (0_usize..40, 0_usize..40),
    ) {
        let first = cuts.0.min(cuts.1).min(clients.len());
        let second = cuts.0.max(cuts.1).min(clients.len());
        let [a, b, c] = [&clients[..first], &clients[first..second], &clients[second..]]
            .map(experience);
        let two = |a: &ClientExperience, b: &ClientExperience| {
            let mut both = a.clone();
            both.merge(b);
            both
        };
        let all = experience(&clients);
        prop_assert_eq!(&two(&two(&a, &b), &c), &all);
        prop_assert_eq!(&two(&a, &two(&b, &c)), &all);
        prop_assert_eq!(all.check(), Ok(()));
        prop_assert_eq!(all.clients(), clients.len() as u64);
        let json = serde_json::to_string(&all).expect("serializes");
        let back: ClientExperience = serde_json::from_str(&json).expect("reads its own output");
        prop_assert_eq!(back, all);
    }
}

#[test]
fn percentiles_are_of_clients_and_not_of_responses() {
    // Ninety clients with many fast responses, ten with few slow ones: of all responses not even
    // one in a hundred is slow.
    let fast = client(1_000, &[MS; 1_000]);
    let slow = client(50, &[80 * MS; 50]);
    let clients = std::iter::repeat_n(&fast, 90).chain(std::iter::repeat_n(&slow, 10));
    let experience = experience(clients);
    let near = |found: Option<u64>, wanted: u64| {
        let error = found.expect("has values").abs_diff(wanted) as f64 / wanted as f64;
        assert!(error < 0.08, "{found:?} for {wanted}");
    };
    near(experience.latency.p99.percentile(0.5), MS);
    near(experience.latency.p50.percentile(0.95), 80 * MS);
    near(experience.worst_percent_p99_ns(), 80 * MS);
    assert_eq!(experience.latency.max.min_ns(), Some(MS));
    let worst: Vec<u64> = experience.worst.iter().map(|worst| worst.client).collect();
    assert_eq!(worst, (90..98).collect::<Vec<_>>());
}

#[test]
fn fairness_is_one_where_all_get_as_much_and_one_nth_where_one_gets_all() {
    let check = |responses: &[usize], wanted: Option<f64>| {
        let clients: Vec<ClientFigures> = responses
            .iter()
            .map(|&responses| client(9, &vec![MS; responses]))
            .collect();
        let fairness = experience(&clients).fairness();
        let is_near = fairness
            .zip(wanted)
            .is_none_or(|(found, wanted)| (found - wanted).abs() < 1e-12);
        assert!(
            is_near && fairness.is_some() == wanted.is_some(),
            "{fairness:?}"
        );
    };
    check(&[7, 7, 7, 7], Some(1.0));
    check(&[9, 0, 0, 0], Some(0.25));
    // (1 + 2 + 3)^2 / (3 * (1 + 4 + 9))
    check(&[1, 2, 3], Some(36.0 / 42.0));
    check(&[0, 0], None);
    check(&[], None);
}

#[test]
fn shares_are_rounded_up_so_that_only_nothing_is_zero() {
    assert_eq!((ppm(0, 7), ppm(7, 7)), (0, PPM));
    assert_eq!((ppm(1, 3), ppm(1, u64::MAX)), (333_334, 1));
    let mut refused = client(4, &[MS]);
    refused.respond(MS, 5);
    refused.respond(MS, 3);
    let experience = experience([&refused]);
    assert_eq!(experience.unanswered_ppm.max_ns(), Some(250_000));
    assert_eq!(experience.unsuccessful_ppm.max_ns(), Some(500_000));
}

#[test]
fn client_without_queries_and_client_without_responses_are_told_apart() {
    let experience = experience([&client(0, &[]), &client(5, &[]), &client(5, &[MS])]);
    let numbers = (
        experience.clients(),
        experience.asked(),
        experience.answered(),
    );
    assert_eq!(numbers, (3, 2, 1));
    assert_eq!(experience.rate_qps(1.0, 2.5), Some(2.0));
    // No response at all is worse than any latency.
    assert_eq!(experience.worst[0].client, 1);
    assert_eq!(experience.worst[0].p99_ns, None);
}

#[test]
fn rate_of_a_client_is_that_of_the_time_in_which_it_was_there() {
    let mut early = ClientExperience::default();
    early.record(&client(100, &[]), 10_000 * MS);
    let mut late = ClientExperience::default();
    late.record(&client(100, &[]), 2_500 * MS);
    // Left before the measured run.
    late.record(&client(0, &[]), 0);
    early.merge(&late);
    assert_eq!(early.check(), Ok(()));
    assert_eq!((early.clients(), early.rate_mqps.count()), (3, 2));
    let rates = [0.0, 1.0].map(|p| early.rate_qps(p, 10.0));
    assert_eq!(rates, [Some(10.0), Some(40.0)]);
    // 7 queries in 3 s are 2.333 a second.
    assert_eq!(rate_mqps(7, 3_000 * MS), 2_333);
    assert_eq!(rate_mqps(u64::MAX, 1), u64::MAX);
}

#[test]
fn record_that_does_not_tell_rates_is_read_as_if_all_had_been_there() {
    let experience = experience([&client(5, &[])]);
    let mut json = serde_json::to_value(&experience).unwrap();
    json.as_object_mut().unwrap().remove("rate_mqps");
    let old: ClientExperience = serde_json::from_value(json).unwrap();
    assert_eq!(old.check(), Ok(()));
    assert_eq!(old.rate_qps(0.5, 10.0), Some(0.5));
}

#[test]
fn set_up_is_a_mean_of_each_client_and_only_of_those_that_connected() {
    let mut often = client(2, &[MS, MS]);
    (often.connections, often.set_up_ns) = (4, 8 * MS);
    let experience = experience([&often, &client(1, &[])]);
    assert_eq!(experience.set_up_mean.count(), 1);
    assert_eq!(experience.set_up_mean.max_ns(), Some(2 * MS));
    assert_eq!(experience.connections.count(), 2);
}

fn group(name: &str, clients: &[ClientFigures]) -> GroupRecord {
    let experience = experience(clients);
    let mut total = Interval::default();
    total.counts.responses = experience.responses.sum_ns() as u64;
    let latency = &mut total.distributions.latency;
    latency.record_many(MS, total.counts.responses);
    GroupRecord {
        name: name.into(),
        clients: clients.len() as u64,
        scenario: crate::example::scenario(MS),
        total,
        timeline: None,
        experience: Some(experience),
        script: None,
    }
}

#[test]
fn groups_merge_by_name_and_keep_the_order_of_the_first() {
    let one = [client(3, &[MS, MS])];
    let mut groups = vec![group("dot", &one), group("udp", &one)];
    merge_groups(&mut groups, vec![group("udp", &one), group("doq", &one)]);
    let named: Vec<(&str, u64)> = groups
        .iter()
        .map(|group| (group.name.as_str(), group.total.counts.responses))
        .collect();
    assert_eq!(named, [("dot", 2), ("udp", 4), ("doq", 2)]);
    groups
        .iter()
        .for_each(|group| assert_eq!(group.check(), Ok(())));
    let mut unknown = group("udp", &one);
    unknown.experience = None;
    merge_groups(&mut groups, vec![unknown]);
    assert_eq!((groups[1].clients, &groups[1].experience), (3, &None));
}

#[test]
fn warm_latency_is_what_is_left_without_the_queries_after_idleness() {
    let mut group = group("clients", &[client(3, &[MS, MS])]);
    group.total.distributions.latency.record(9 * MS);
    group.total.counts.responses += 1;
    let experience = group.experience.as_mut().expect("was made");
    experience.first_after_idle.record(9 * MS);
    let warm = group.warm_latency().expect("is known");
    assert_eq!((warm.count(), warm.min_ns()), (2, Some(MS)));
}

#[test]
fn group_that_contradicts_itself_is_refused_by_name() {
    let check = |change: fn(&mut GroupRecord), message: &str| {
        let mut group = group("slow", &[client(3, &[MS, MS]), client(1, &[])]);
        change(&mut group);
        let error = group.check().expect_err(message);
        assert!(error.starts_with("group slow: "), "{error}");
        assert!(error.contains(message), "{error}");
    };
    fn own(group: &mut GroupRecord) -> &mut ClientExperience {
        group.experience.as_mut().expect("was made")
    }
    check(
        |group| group.total.counts.responses = 7,
        "7 responses, but 2 to its clients",
    );
    check(|group| group.clients = 5, "5 clients, but figures of 2");
    check(
        |group| own(group).first_after_idle.record_many(MS, 3),
        "2 responses, but 3 to queries after idleness",
    );
    check(
        |group| own(group).connections.record(1),
        "queries of 2 clients, but responses of 2 and connections of 3",
    );
    check(
        |group| own(group).latency.p50.record(1),
        "of 2 clients 2 asked and 1 got responses",
    );
    check(
        |group| own(group).worst.reverse(),
        "the worst clients are not the 8 worst of 2",
    );
}
