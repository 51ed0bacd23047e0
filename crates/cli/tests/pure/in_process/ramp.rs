//! `throng ramp`: what it shows, where it stops.

use std::fs;

use measure::ramp::{Ramp, Stop};
use testing::folder::Folder;

use crate::call::throng;

fn ramp(flags: &str) -> Ramp {
    let stdout = throng(&format!("ramp --quiet --format json {flags}")).succeeded();
    serde_json::from_str(&stdout).unwrap_or_else(|reason| panic!("{flags}: {reason}"))
}

#[test]
fn peak_of_a_ramp_is_the_ceiling_of_the_target() {
    let flags = "--driver sim --to 6000 --over 4s --sustain 1s";
    for then in ["drop", "delay,queue=100"] {
        let shown = ramp(&format!("{flags} --ceiling 3000,then={then}"));
        let peak = shown.peak.unwrap();
        assert!(
            (peak.responses_qps / 3_000.0 - 1.0).abs() < 0.02,
            "{peak:?}"
        );
        assert_eq!(shown.ended_by, Stop::Completed);
        assert_eq!(shown.points.len(), 10);
        assert!((shown.sent as f64 / 18_000.0 - 1.0).abs() < 0.01);
        // Up to half of the ramp, nothing is lost, and at its end half is.
        assert!(
            shown.points[..4]
                .iter()
                .all(|point| point.lost_share < 0.01)
        );
        assert!((shown.points[9].lost_share - 0.5).abs() < 0.02);
    }
    // Before that the target still answers all.
    let shown = ramp(&format!("{flags} --ceiling 3000,then=drop --max-loss 5%"));
    let peak = shown.peak.unwrap();
    assert!((2_500.0..3_050.0).contains(&peak.responses_qps), "{peak:?}");
    assert!(matches!(shown.ended_by, Stop::Lost(share) if share > 0.05));
    assert!(shown.points.len() < 10);
}

#[test]
fn responses_that_come_in_a_later_point_are_not_lost() {
    let flags = "--driver sim --to 6000 --over 4s --sustain 1s --delay 20ms";
    let shown = ramp(flags);
    assert_eq!(shown.lost, 0);
    assert!(shown.points.iter().all(|point| point.lost_share == 0.0));
    // What is lost is lost when it was due, although its timeout comes after the end.
    let shown = ramp(&format!("{flags} --loss 0.1 --timeout 10s"));
    let later = &shown.points[2..];
    assert!(!later.is_empty());
    assert!(
        later
            .iter()
            .all(|point| (point.lost_share - 0.1).abs() < 0.05),
        "{later:?}"
    );
}

#[test]
fn ramp_stops_when_too_many_queries_are_outstanding() {
    // Every tenth is answered, so that there is something to show.
    let flags = "--driver sim --loss 0.9 --to 4000 --over 20s --max-outstanding 200 --timeout 2s \
                 --max-behind 0";
    let shown = ramp(flags).ended_by;
    assert!(matches!(shown, Stop::Outstanding(200..210)), "{shown:?}");
}

#[test]
fn forms_show_the_same_points_and_the_plot_is_that_of_resperf() {
    let folder = Folder::new("ramp-forms");
    let plot = folder.path("plot.txt");
    let flags = format!(
        "ramp --quiet --driver sim --to 2000 --over 2s --ceiling 1500,then=drop --plot {plot}"
    );
    let text = throng(&flags).succeeded();
    for words in [
        "SIMULATION in virtual time, ramp of 192.0.2.53:53 over udp\n",
        "  load       0 to 2,000 qps within 2.0 s\n",
        "\nRamp\n  peak           ",
        "\n  ended because  the ramp was complete\n",
        "\nOver time\n   from ",
        "note: a ramp is at every rate for a moment only",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let csv = throng(&format!("{flags} --format csv")).succeeded();
    assert_eq!(csv.lines().count(), 5, "{csv}");
    let plot = fs::read_to_string(plot).unwrap();
    let lines: Vec<&str> = plot.lines().collect();
    assert_eq!(
        lines[0],
        "# time target_qps actual_qps responses_per_sec failures_per_sec avg_latency connections \
         conn_avg_latency"
    );
    assert!(lines[1].starts_with("  0.250   250.00   25"), "{plot}");
    assert_eq!(lines.len(), 5);
    assert!(
        lines
            .iter()
            .skip(1)
            .all(|line| line.len() == lines[1].len())
    );
}

#[test]
fn ramp_that_makes_no_sense_is_refused() {
    for (flags, what, cure) in [
        ("--rate 5k", "--rate cannot be used", "--to"),
        ("--duration 5s", "--duration cannot be used", "--over"),
        ("--over 0s", "both zero", "--over 60s"),
        ("--to lots", "--to: `lots` is not a rate", "50k"),
        ("--plot /nowhere/plot", "cannot write", "--plot"),
        ("--max-loss 2", "not a share", "give a share"),
    ] {
        throng(&format!("ramp --quiet {flags}")).refused_with(what, cure);
    }
}
