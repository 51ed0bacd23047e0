//! What is asked of a line in one word: `10ms,0.1%`, or `10ms/50ms,jitter=1ms,rate=10M,seed=7`.

use std::time::Duration;

use measure::line::Impairment;
use responder::behaviour::{parse_duration, parse_share};

use super::{check_direction, parse_bit_rate};
use crate::run::RunError;

const HINT: &str = "write delay and loss, then others by name, each once or as THERE/BACK: \
                    10ms,0.1%,jitter=1ms,reorder=1%,reorder-by=1ms,duplicate=1%,rate=10M,\
                    queue=1000,seed=7";
/// Names of the first values, which stand without them.
const FIRST: [&str; 2] = ["delay", "loss"];

/// A line as `throng line` lays it, but for its ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// To the server, and back.
    pub asked: [Impairment; 2],
    /// Of all chances.
    pub seed: u64,
}

impl Default for Shape {
    /// As `throng line` has it where nothing is given.
    fn default() -> Shape {
        let asked = Impairment {
            reorder_by_ns: 1_000_000,
            queue: 1_000,
            ..Impairment::default()
        };
        Shape {
            asked: [asked; 2],
            seed: 1,
        }
    }
}

impl Shape {
    /// Reads the word.
    ///
    /// # Errors
    /// What is wrong, with its cure.
    pub fn parse(text: &str) -> Result<Shape, RunError> {
        let mut shape = Shape::default();
        let mut known = Vec::new();
        for (at, word) in text.split(',').enumerate() {
            let (name, value) = match (word.split_once('='), FIRST.get(at)) {
                (Some(pair), _) => pair,
                (None, Some(name)) => (*name, word),
                (None, None) => return Err(wrong(format!("`{word}` has no name"))),
            };
            if known.contains(&name) {
                return Err(wrong(format!("`{name}` is given twice")));
            }
            known.push(name);
            shape.set(name, value)?;
        }
        shape.asked.iter().try_for_each(check_direction)?;
        Ok(shape)
    }

    /// The least that a query and its response take, ns.
    pub fn round_trip_ns(&self) -> u64 {
        self.asked.iter().map(|way| way.delay_ns).sum()
    }

    /// True if packets may be lost.
    pub fn loses(&self) -> bool {
        let mut ways = self.asked.iter();
        ways.any(|way| way.loss > 0.0 || way.rate_bps.is_some())
    }

    /// Flags of `throng line` that say the same.
    pub fn arguments(&self) -> Vec<String> {
        let [there, back] = &self.asked;
        let each = |name: &str, value: &dyn Fn(&Impairment) -> String| {
            format!("--{name}={},{}", value(there), value(back))
        };
        let time = |ns: u64| humantime::format_duration(Duration::from_nanos(ns)).to_string();
        let time = |ns: u64| time(ns).replace(' ', "");
        let mut all = vec![
            each("delay", &|it| time(it.delay_ns)),
            each("jitter", &|it| time(it.jitter_ns)),
            each("loss", &|it| it.loss.to_string()),
            each("reorder", &|it| it.reorder.to_string()),
            each("reorder-by", &|it| time(it.reorder_by_ns)),
            each("duplicate", &|it| it.duplicate.to_string()),
            format!("--seed={}", self.seed),
        ];
        if there.rate_bps.is_some() {
            let rate = |it: &Impairment| it.rate_bps.unwrap_or_default().to_string();
            all.push(each("rate", &rate));
            all.push(each("queue", &|it| it.queue.to_string()));
        }
        all
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), RunError> {
        if name == "seed" {
            let seed = value.parse();
            self.seed = seed.map_err(|_| wrong(format!("seed: `{value}` is not a number")))?;
            return Ok(());
        }
        let (there, back) = value.split_once('/').unwrap_or((value, value));
        for (way, value) in self.asked.iter_mut().zip([there, back]) {
            set_way(way, name, value).map_err(|what| wrong(format!("{name}: {what}")))?;
        }
        Ok(())
    }
}

fn set_way(way: &mut Impairment, name: &str, value: &str) -> Result<(), String> {
    match name {
        "delay" => way.delay_ns = time(value)?,
        "jitter" => way.jitter_ns = time(value)?,
        "reorder-by" => way.reorder_by_ns = time(value)?,
        "loss" => way.loss = share(value)?,
        "reorder" => way.reorder = share(value)?,
        "duplicate" => way.duplicate = share(value)?,
        "rate" => {
            let rate = parse_bit_rate(value);
            way.rate_bps = Some(rate.ok_or_else(|| format!("`{value}` is not a rate"))?);
        }
        "queue" => {
            let queue = value.parse();
            way.queue = queue.map_err(|_| format!("`{value}` is not a number of packets"))?;
        }
        _ => return Err("a line has nothing of that name".to_owned()),
    }
    Ok(())
}

fn time(text: &str) -> Result<u64, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    u64::try_from(time.as_nanos()).map_err(|_| format!("`{text}` is too long"))
}

/// Reads `0.1%`, or a number from 0 to 1.
///
/// # Errors
/// It is neither.
pub fn share(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%') {
        None => parse_share(text).map_err(|error| error.to_string()),
        Some(percent) => {
            let share = percent.parse().map(|percent: f64| percent / 100.0).ok();
            let share = share.filter(|share| (0.0..=1.0).contains(share));
            share.ok_or_else(|| format!("`{text}` is not a share"))
        }
    }
}

fn wrong(what: String) -> RunError {
    RunError::new(format!("line: {what}"), HINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_from_one_word() {
        let shape = Shape::parse("10ms,0.1%").unwrap();
        let [there, back] = &shape.asked;
        assert_eq!(there, back);
        assert_eq!((there.delay_ns, there.loss), (10_000_000, 0.001));
        assert_eq!(shape.round_trip_ns(), 20_000_000);
        let shape = Shape::parse("10ms/7ms,rate=10M/512k,jitter=1ms,loss=0.5,seed=9").unwrap();
        let [there, back] = &shape.asked;
        assert_eq!((there.delay_ns, back.delay_ns), (10_000_000, 7_000_000));
        assert_eq!(
            (there.rate_bps, back.rate_bps),
            (Some(10_000_000), Some(512_000))
        );
        assert_eq!(
            (there.jitter_ns, back.loss, shape.seed),
            (1_000_000, 0.5, 9)
        );
        assert_eq!(shape.arguments()[0], "--delay=10ms,7ms");
        assert_eq!(Shape::parse("loss=1%").unwrap().asked[0].loss, 0.01);
    }

    #[test]
    fn what_is_no_line_is_said_with_the_cure() {
        for (text, what) in [
            ("", "delay: "),
            ("soon", "delay: "),
            ("10ms,2", "loss: "),
            ("10ms,200%", "not a share"),
            ("10ms,0,1ms", "`1ms` has no name"),
            ("10ms,delay=1ms", "given twice"),
            ("10ms,speed=1", "nothing of that name"),
            ("10ms,rate=fast", "not a rate"),
            ("10ms,rate=0", "0 bits"),
            ("20s", "too long"),
            ("10ms,seed=-1", "not a number"),
            ("10ms,rate=1M,queue=9999999", "too many"),
        ] {
            let error = Shape::parse(text).unwrap_err();
            assert!(error.to_string().contains(what), "{text}: {error}");
        }
    }
}
