use super::*;

fn seconds(instant: Instant) -> f64 {
    instant.as_nanos() as f64 / 1e9
}

fn after(text: &str, from_s: f64, work_s: f64) -> f64 {
    let from = Instant::from_nanos((from_s * 1e9) as u64);
    seconds(Shape::parse(text).unwrap().advance(from, work_s))
}

#[test]
fn steps_change_the_pace_at_once() {
    let text = "steps:0s=1,10s=4,20s=0,30s=2";
    assert!((after(text, 2.0, 3.0) - 5.0).abs() < 1e-6);
    // 2 s at 1, then 1 s of work at 4.
    assert!((after(text, 8.0, 3.0) - 10.25).abs() < 1e-6);
    // Nothing happens between 20 s and 30 s.
    assert!((after(text, 20.0, 1.0) - 30.5).abs() < 1e-6);
    assert!((after(text, 100.0, 1.0) - 100.5).abs() < 1e-6);
}

#[test]
fn linear_change_is_added_up_exactly() {
    // The factor is t / 60: after t seconds, t^2 / 120 of work is done.
    let done_at = after("linear:0s=0,60s=1", 0.0, 7.5);
    assert!((done_at - 30.0).abs() < 1e-6, "{done_at}");
    let falling = after("linear:0s=1,10s=0", 0.0, 5.0);
    assert!((falling - 10.0).abs() < 1e-3, "{falling}");
    let never = Shape::parse("linear:0s=1,10s=0").unwrap();
    assert_eq!(never.advance(Instant::ZERO, 6.0), Instant::FAR_FUTURE);
}

#[test]
fn diurnal_shape_repeats_itself() {
    let shape = Shape::parse("diurnal:24h=0.2..1").unwrap();
    assert!((shape.factor(0.0) - 0.2).abs() < 1e-9);
    assert!((shape.factor(12.0 * 3600.0) - 1.0).abs() < 1e-9);
    assert!((shape.factor(36.0 * 3600.0) - 1.0).abs() < 1e-9);
    // A day's work is a day at the mean factor.
    let day = after("diurnal:24h=0.2..1", 0.0, 0.6 * 24.0 * 3600.0);
    assert!((day - 24.0 * 3600.0).abs() < 1.0, "{day}");
    let noon = after("diurnal:24h=0.2..1", 36.0 * 3600.0, 10.0);
    assert!((noon - 36.0 * 3600.0 - 10.0).abs() < 0.1, "{noon}");
}

#[test]
fn shape_counts_from_the_start_of_the_run() {
    let start = Instant::from_nanos(50_000_000_000);
    let shape = Shape::parse("steps:0s=1,10s=2").unwrap().starting_at(start);
    let due = shape.advance(start + Duration::from_secs(10), 2.0);
    assert!((seconds(due) - 61.0).abs() < 1e-6);
}

#[test]
fn what_is_not_understood_is_named() {
    for (text, what) in [
        ("wave:1s=1", "`wave` is not a shape"),
        ("steps:", "`` is not a point"),
        ("steps:1s", "`1s` is not a point"),
        ("steps:5s=1,1s=2", "its times are not in order"),
        ("steps:0s=0", "its factor must not always be zero"),
        ("linear:0s=-1,1s=1", "a factor is not within 0 to 1000000"),
        ("diurnal:24h", "`24h` is not PERIOD=LOW..HIGH"),
        ("diurnal:0s=1..2", "its period must not be zero"),
    ] {
        assert_eq!(Shape::parse(text).unwrap_err().what, what, "{text}");
    }
}
