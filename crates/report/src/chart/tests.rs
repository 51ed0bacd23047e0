use super::scale::Range;
use super::*;

fn words(scale: &Scale, unit: Unit, ends: (f64, f64)) -> Vec<String> {
    let range = Range::of(scale, unit, [ends.0, ends.1].into_iter(), true);
    range.ticks(6).into_iter().map(|(_, words)| words).collect()
}

#[test]
fn bars_and_rates_begin_at_zero_and_end_at_a_round_number() {
    let ticks = words(&Scale::FromZero, Unit::Number, (250_000.0, 304_266.0));
    assert_eq!(ticks, ["0", "100k", "200k", "300k", "400k"]);
    let ticks = words(&Scale::FromZero, Unit::Percent, (0.0, 0.7));
    assert_eq!(ticks.first().map(String::as_str), Some("0 %"));
    assert_eq!(
        words(&Scale::FromZero, Unit::Number, (0.0, 0.0))
            .first()
            .unwrap(),
        "0"
    );
}

#[test]
fn log_axis_has_ticks_at_round_values_of_its_unit() {
    let ticks = words(&Scale::Log, Unit::Nanoseconds, (209_000.0, 7_200_000.0));
    assert_eq!(ticks, ["200 us", "500 us", "1 ms", "2 ms", "5 ms", "10 ms"]);
    let ticks = words(&Scale::Log, Unit::Number, (1.0, 24_000.0));
    assert_eq!(ticks.first().map(String::as_str), Some("1"));
    assert!(ticks.len() <= 6, "{ticks:?}");
}

#[test]
fn share_axis_gives_each_nine_as_much_room() {
    let range = Range::of(&Scale::Tail, Unit::Number, [0.9999].into_iter(), false);
    let place = |share| (100.0 * range.place(share)).round();
    assert_eq!(
        [0.0, 0.9, 0.99, 0.999, 0.9999].map(place),
        [0.0, 25.0, 50.0, 75.0, 100.0]
    );
}

#[test]
fn nothing_and_a_single_value_are_drawn_without_a_fault() {
    for scale in [Scale::FromZero, Scale::Even, Scale::Log, Scale::Tail] {
        for values in [vec![], vec![0.0], vec![5.0], vec![f64::NAN]] {
            let points = values.iter().map(|value| Point::new(*value, *value));
            let chart = Chart {
                id: "a".into(),
                title: "b".into(),
                description: "c".into(),
                x: Axis::new("x", scale.clone(), Unit::Number),
                y: Axis::new("y", scale.clone(), Unit::Nanoseconds),
                series: vec![Series {
                    name: "s".into(),
                    form: Form::Marked,
                    look: 0,
                    points: points.collect(),
                }],
                marks: Vec::new(),
                sheet: Sheet::default(),
                notes: Vec::new(),
            };
            let svg = draw(&chart);
            assert!(
                !svg.contains("NaN") && !svg.contains("inf"),
                "{scale:?} {values:?}\n{svg}"
            );
            assert!(!chart.is_worthwhile());
        }
    }
}

#[test]
fn names_that_would_run_into_each_other_do_not_fit() {
    let names = |each: &[&str]| -> Vec<String> { each.iter().map(|it| (*it).to_owned()).collect() };
    assert!(names_fit(&names(&["UDP", "TCP", "DoT", "DoH (HTTP/2)"])));
    assert!(!names_fit(&names(&["UDP, as installed"; 9])));
}

#[test]
fn each_of_twelve_lines_has_a_look_of_its_own() {
    let looks: std::collections::BTreeSet<String> = (0..SERIES_MAX)
        .map(|look| sample(Form::Marked, look))
        .collect();
    assert_eq!(looks.len(), 12);
}
