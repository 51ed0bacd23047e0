//! `--tui`: the screen of a terminal, which the crate `tui` draws.
//!
//! A thread reads [`Live`] and keys, and draws five times a second at most. It has a low priority.
//! [`terminal`] owns the terminal: whatever else needs it ends the screen first.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use ::tui::{Action, Encoder, Screen};
use lab::live::{Live, yield_to_workers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};

use crate::{streams, terminal};

/// Between two frames.
const FRAME: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};
/// How long the end of a command waits for the thread, which a slow terminal may delay.
const PATIENCE: Duration = Duration::from_secs(1);
/// Columns and rows of a terminal that does not say how many it has.
const SIZE: (u16, u16) = (80, 24);

/// Shows the screen until it is dropped.
pub(super) struct Viewing {
    /// Its end wakes the thread.
    stop: Option<UnixStream>,
    /// Closed when the thread has ended.
    ended: Receiver<()>,
}

/// Shows what `command` publishes from now on, if that is wanted; on what is no terminal, a note
/// that it is not shown.
pub(super) fn begin(live: &Live, is_wanted: bool, command: &str) -> Option<Viewing> {
    if !is_wanted {
        return None;
    }
    let viewing = streams::keyboard().and_then(|input| start(live, input, command));
    if viewing.is_none() {
        tell!(
            "note: --tui needs a terminal in the foreground as standard input and standard error: \
             progress is shown as without it"
        );
    }
    viewing
}

/// None where the system gives no further file or thread.
fn start(live: &Live, input: OwnedFd, command: &str) -> Option<Viewing> {
    let (stop, stopped) = UnixStream::pair().ok()?;
    let (ends, ended) = channel();
    let thread = Thread {
        live: live.clone(),
        number: live.newest(),
        input: input.try_clone().ok()?,
        stopped,
        screen: Screen::new(command),
        encoder: Encoder::new(streams::error_has_colors()),
        _ends: ends,
    };
    terminal::take_screen(input).ok()?;
    live.want_groups();
    live.want_verdicts();
    let started = Builder::new().name("tui".to_owned());
    if started.spawn(move || thread.run()).is_err() {
        terminal::leave_screen();
        return None;
    }
    Some(Viewing {
        stop: Some(stop),
        ended,
    })
}

impl Drop for Viewing {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.ended.recv_timeout(PATIENCE);
        terminal::leave_screen();
    }
}

/// The thread that reads and draws.
struct Thread {
    live: Live,
    /// Of the newest snapshot that was read.
    number: u64,
    input: OwnedFd,
    stopped: UnixStream,
    screen: Screen,
    encoder: Encoder,
    _ends: Sender<()>,
}

/// What was waited for.
enum Event {
    Frame,
    Keys,
    Stop,
}

impl Thread {
    fn run(mut self) {
        yield_to_workers();
        while self.show() {
            match self.wait() {
                Event::Frame => {}
                Event::Keys if self.press() => {}
                Event::Keys | Event::Stop => break,
            }
        }
        terminal::leave_screen();
    }

    /// Reads what is published and draws; false if there will be no more, or the terminal is not
    /// this thread's any more.
    fn show(&mut self) -> bool {
        if !self.screen.is_frozen() {
            let next = self.live.after(self.number, Duration::ZERO);
            self.number = next.snapshots.last().map_or(self.number, |it| it.number);
            self.screen.read(&next);
        }
        if self.live.after(u64::MAX, Duration::ZERO).is_over {
            return false;
        }
        // One that takes no more bytes, such as after Ctrl-S, is drawn on later.
        if !streams::error_takes_bytes() {
            return terminal::has_screen();
        }
        let size = streams::size_of_error().filter(|size| size.0 > 0 && size.1 > 0);
        let frame = (self.screen).draw(size.unwrap_or(SIZE), &terminal::newest_note());
        terminal::draw_screen(&self.encoder.encode(frame))
    }

    fn wait(&self) -> Event {
        let mut watched = [
            PollFd::from_borrowed_fd(self.stopped.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.input.as_fd(), PollFlags::IN),
        ];
        // Interrupted by a signal: nothing is ready.
        let _ = poll(&mut watched, Some(&FRAME));
        match watched.map(|fd| !fd.revents().is_empty()) {
            [true, _] => Event::Stop,
            [false, true] => Event::Keys,
            [false, false] => Event::Frame,
        }
    }

    /// Does what the keys ask for; false if the terminal was closed.
    fn press(&mut self) -> bool {
        let mut bytes = [0; 64];
        match rustix::io::read(&self.input, &mut bytes) {
            Ok(0) => false,
            Ok(read) => {
                if let Some(Action::EndRun) = self.screen.press(&bytes[..read]) {
                    // As the terminal does for Ctrl-C.
                    let _ = kill_process(getpid(), Signal::INT);
                }
                true
            }
            Err(error) => error == rustix::io::Errno::INTR,
        }
    }
}
