use super::*;

fn balanced() -> Counts {
    let mut counts = Counts {
        offered: 110,
        sent: 105,
        responses: 100,
        timeouts: 3,
        connection_losses: 2,
        not_sent: NotSent {
            no_free_id: 1,
            run_ended: 4,
            ..NotSent::default()
        },
        ..Counts::default()
    };
    (0..60).for_each(|_| counts.rcodes.record(0));
    (0..30).for_each(|_| counts.rcodes.record(3));
    (0..9).for_each(|_| counts.rcodes.record(12));
    counts.rcodes.record(4_095);
    counts
}

#[test]
fn rcodes_are_a_map_of_names_without_zeroes() {
    let json = serde_json::to_string(&balanced().rcodes).expect("serializes");
    assert_eq!(
        json,
        r#"{"NOERROR":60,"NXDOMAIN":30,"RCODE12":9,"other":1}"#
    );
    let back: Rcodes = serde_json::from_str(&json).expect("reads its own output");
    assert_eq!(back, balanced().rcodes);
}

#[test]
fn unknown_rcode_name_is_refused() {
    let error = serde_json::from_str::<Rcodes>(r#"{"NOEROR":1}"#).expect_err("misspelt");
    assert!(
        error
            .to_string()
            .contains("`NOEROR` is not the name of an RCODE")
    );
}

#[test]
fn identity_holds_for_balanced_counts() {
    assert_eq!(balanced().check_identity(), Ok(()));
    assert_eq!(balanced().lost(), 10);
}

#[test]
fn broken_identity_names_both_sides_with_numbers() {
    let mut counts = balanced();
    counts.timeouts = 4;
    let expected = "sent 105 is not responses 100 + timeouts 4 + connection_losses 2 = 106";
    assert_eq!(counts.check_identity(), Err(expected.into()));
    let mut counts = balanced();
    counts.offered = 111;
    let expected = "offered 111 is not sent 105 + not_sent 5 = 110";
    assert_eq!(counts.check_identity(), Err(expected.into()));
    let mut counts = balanced();
    counts.tcp_fallback.sent = 1;
    assert!(
        counts
            .check_identity()
            .expect_err("one is missing")
            .starts_with("tcp_fallback.sent 1")
    );
}

#[test]
fn goodput_counts_the_allowed_rcodes_only() {
    assert_eq!(balanced().goodput(&[0, 3]), 90);
    assert_eq!(balanced().goodput(&[0]), 60);
    assert_eq!(balanced().goodput(&[4_095]), 0);
}

#[test]
fn adding_doubles_every_number_at_every_depth() {
    // Every number of the structure is made different from zero by way of its JSON form.
    fn fill(value: &mut serde_json::Value, next: &mut u64) {
        match value {
            serde_json::Value::Object(map) => map.values_mut().for_each(|v| fill(v, next)),
            number => {
                *next += 1;
                *number = (*next).into();
            }
        }
    }
    fn double(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(map) => map.values_mut().for_each(double),
            number => *number = (2 * number.as_u64().expect("counts are numbers")).into(),
        }
    }
    let mut json = serde_json::to_value(balanced()).expect("serializes");
    fill(&mut json, &mut 0);
    let counts: Counts = serde_json::from_value(json.clone()).expect("same structure");
    let mut sum = counts.clone();
    sum.add(&counts);
    double(&mut json);
    assert_eq!(serde_json::to_value(&sum).expect("serializes"), json);
}

#[test]
fn rcode_names_follow_the_registry() {
    let names = [0, 2, 5, 11, 15, 16, 23, 24].map(rcode_name);
    let expected = [
        "NOERROR",
        "SERVFAIL",
        "REFUSED",
        "DSOTYPENI",
        "RCODE15",
        "BADVERS",
        "BADCOOKIE",
        "other",
    ];
    assert_eq!(names, expected);
}
