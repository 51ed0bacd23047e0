//! What went wrong in scripts: how often, and the first distinct messages.

/// Distinct messages kept; the rest is counted.
pub const MESSAGES_MAX: usize = 8;

/// Failures of clients, counted, with the first distinct messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// All of them.
    pub total: u64,
    /// The first [`MESSAGES_MAX`] distinct messages, each with its place, and how often it came.
    pub messages: Vec<(String, u64)>,
}

impl Failures {
    /// Counts `times` failures with the same message.
    pub fn add(&mut self, message: &str, times: u64) {
        self.total += times;
        let known = self.messages.iter().position(|(text, _)| text == message);
        match known {
            Some(index) => self.messages[index].1 += times,
            None if self.messages.len() < MESSAGES_MAX => {
                self.messages.push((message.to_owned(), times));
            }
            None => {}
        }
    }

    /// Adds those of another worker.
    pub fn merge(&mut self, other: &Failures) {
        let before = self.total + other.total;
        for (message, times) in &other.messages {
            self.add(message, *times);
        }
        self.total = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_eight_messages_are_kept_and_all_are_counted() {
        let mut failures = Failures::default();
        for number in 0..100 {
            failures.add(&format!("message {}", number % 10), 1);
        }
        assert_eq!(failures.total, 100);
        assert_eq!(failures.messages.len(), MESSAGES_MAX);
        assert!(failures.messages.iter().all(|(_, times)| *times == 10));
        let mut both = failures.clone();
        both.merge(&failures);
        assert_eq!((both.total, both.messages[0].1), (200, 20));
    }
}
