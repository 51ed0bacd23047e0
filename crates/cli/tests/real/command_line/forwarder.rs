//! A forwarder between agents and the lead that they dial: it carries connections, counts what the
//! lead says on them, and breaks some.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    /// It is carried until both sides have ended it.
    Carried,
    /// The same, with one bit of the lead's octet at this offset flipped.
    Flipped(usize),
    /// It is closed without a word.
    Closed,
    /// It is closed when the agent, which has heard who the lead is, says who it is.
    ClosedInHandshake,
}

/// The forwarder.
pub(crate) struct Forwarder {
    pub(crate) address: SocketAddr,
    carries: JoinHandle<Vec<usize>>,
}

impl Forwarder {
    /// Takes as many connections as there are fates, in their order.
    pub(crate) fn new<const N: usize>(lead: SocketAddr, fates: [Fate; N]) -> Forwarder {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let carries = thread::spawn(move || {
            let all = fates.map(|fate| {
                let (agent, _) = listener.accept().unwrap();
                thread::spawn(move || carry(&agent, lead, fate))
            });
            all.map(|it| it.join().unwrap()).to_vec()
        });
        Forwarder { address, carries }
    }

    /// Waits until all connections have come and ended: the octets that each had from the lead.
    pub(crate) fn carried(self) -> Vec<usize> {
        self.carries.join().unwrap()
    }
}

fn carry(agent: &TcpStream, lead: SocketAddr, fate: Fate) -> usize {
    if fate == Fate::Closed {
        return 0;
    }
    let lead = &TcpStream::connect(lead).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut is_hello = true;
            pass(agent, lead, |_, _| {
                let goes_on = is_hello || fate != Fate::ClosedInHandshake;
                is_hello = false;
                if !goes_on {
                    // The other thread ends by it.
                    let _ = agent.shutdown(Shutdown::Both);
                    let _ = lead.shutdown(Shutdown::Both);
                }
            })
        });
        pass(lead, agent, |from, octets| {
            if let Fate::Flipped(at) = fate
                && let Some(at) = at.checked_sub(from)
                && let Some(octet) = octets.get_mut(at)
            {
                *octet ^= 1;
            }
        })
    })
}

/// Passes on what one side says, as long as the other one listens; the number of octets. `change`
/// gets those that have come, and how many came before them.
fn pass(
    mut from: &TcpStream,
    mut to: &TcpStream,
    mut change: impl FnMut(usize, &mut [u8]),
) -> usize {
    let mut octets = vec![0; 64 << 10];
    let mut passed = 0;
    while let Ok(read @ 1..) = from.read(&mut octets) {
        change(passed, &mut octets[..read]);
        if to.write_all(&octets[..read]).is_err() {
            break;
        }
        passed += read;
    }
    // The side that has ended cannot be told.
    let _ = to.shutdown(Shutdown::Write);
    passed
}
