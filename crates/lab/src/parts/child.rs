//! The side of a part: what the parent says, and how to answer it.
//!
//! One thread reads what the parent says for as long as this process lives: [`receive`] has it
//! while nothing is done, and during a run or a service whoever [`hears`] it. A part whose parent
//! has gone ends at once.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::wire::{self, Message};

/// What is done with a message in a run.
type Hearer = Box<dyn FnMut(&str, &str) + Send>;

/// The ways to the parent and from it.
struct Channel {
    to: Mutex<Box<dyn Write + Send>>,
    /// Messages are deflated: it is on another host.
    travels: bool,
    inbox: Mutex<Inbox>,
    came: Condvar,
}

#[derive(Default)]
struct Inbox {
    hearer: Option<Hearer>,
    waiting: VecDeque<Message>,
}

/// The word of a message that says that there is no parent, and never was: nobody has started this
/// process as a part.
pub const GONE: &str = "gone";

static CHANNEL: OnceLock<Channel> = OnceLock::new();

fn channel() -> &'static Channel {
    CHANNEL
        .get()
        .expect("a part knows its parent before it does anything")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A hearer that panics ends the process.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The parent talks through standard input and output.
pub fn talk_through_pipes(is_elsewhere: bool) {
    talk(std::io::stdin(), std::io::stdout(), is_elsewhere);
}

/// From now on the parent is at the other end of these. Once in a process.
pub fn talk(from: impl Read + Send + 'static, to: impl Write + Send + 'static, is_elsewhere: bool) {
    let made = CHANNEL.set(Channel {
        to: Mutex::new(Box::new(to)),
        travels: is_elsewhere,
        inbox: Mutex::default(),
        came: Condvar::new(),
    });
    assert!(made.is_ok(), "a part has one parent");
    std::thread::spawn(move || {
        let mut from = std::io::BufReader::new(from);
        let mut has_heard = false;
        while let Ok(Some(message)) = wire::read(&mut from) {
            if message.word == "end" {
                std::process::exit(0);
            }
            has_heard = true;
            take(message);
        }
        // A parent on another host may have gone before it said anything; one here says something.
        if has_heard || is_elsewhere {
            std::process::exit(1);
        }
        take(Message {
            word: GONE.to_owned(),
            about: Vec::new(),
        });
    });
}

fn take(message: Message) {
    let channel = channel();
    let mut inbox = lock(&channel.inbox);
    match &mut inbox.hearer {
        Some(hearer) => {
            let (word, text) = message.into_text();
            hearer(&word, &text);
        }
        None => {
            inbox.waiting.push_back(message);
            channel.came.notify_all();
        }
    }
}

/// The next message of the parent; none if there is none within that time.
pub fn receive(patience: Duration) -> Option<Message> {
    let channel = channel();
    let inbox = lock(&channel.inbox);
    let is_empty = |inbox: &mut Inbox| inbox.waiting.is_empty();
    let waited = channel.came.wait_timeout_while(inbox, patience, is_empty);
    let (mut inbox, _) = waited.unwrap_or_else(PoisonError::into_inner);
    inbox.waiting.pop_front()
}

/// Somebody hears what the parent says, until this is dropped.
#[must_use]
pub struct Hearing(());

impl Drop for Hearing {
    fn drop(&mut self) {
        lock(&channel().inbox).hearer = None;
    }
}

/// Hands every message of the parent to `hearer`, also those that nobody has received yet: its word
/// and the rest.
pub fn hears(mut hearer: impl FnMut(&str, &str) + Send + 'static) -> Hearing {
    let mut inbox = lock(&channel().inbox);
    for message in std::mem::take(&mut inbox.waiting) {
        let (word, text) = message.into_text();
        hearer(&word, &text);
    }
    inbox.hearer = Some(Box::new(hearer));
    Hearing(())
}

/// Says something to the parent; without a parent this process exits.
pub fn say(word: &str, text: &str) {
    let channel = channel();
    let frame = wire::frame(word, text.as_bytes(), channel.travels);
    let mut to = lock(&channel.to);
    let said = frame.and_then(|frame| to.write_all(&frame).and_then(|()| to.flush()));
    if said.is_err() {
        std::process::exit(1);
    }
}
