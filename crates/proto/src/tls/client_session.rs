//! TLS sessions kept for each simulated client, so that it resumes only its own (RFC 8446, section
//! 2.2; RFC 5077).
//!
//! rustls asks one store, shared by all sessions of a configuration, by the name of the server.
//! Here that store has nothing of its own: it hands on to the client whose turn it is on this
//! thread, and there is one only within [`ClientSession::remember`]. Beyond it nothing is resumed.

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use std::cell::RefCell;
use std::fmt;

/// The memory of one simulated client: its newest ticket and the group its server took.
///
/// Owned by the client across its connections, all of them to one server by one name. 8 bytes
/// until there is something to remember. A ticket of TLS 1.3 is used once (RFC 8446, appendix
/// C.4): of several that a server sends, the last is kept.
#[derive(Default)]
pub struct ClientSession(Option<Box<Memory>>);

#[derive(Default)]
struct Memory {
    group: Option<NamedGroup>,
    session: Option<Session>,
}

enum Session {
    Tls12(Tls12ClientSessionValue),
    Tls13(Tls13ClientSessionValue),
}

/// The client whose turn it is.
struct Turn {
    memory: Option<Box<Memory>>,
    resume: bool,
}

thread_local! {
    static TURN: RefCell<Option<Turn>> = const { RefCell::new(None) };
}

impl ClientSession {
    /// True if the next connection can resume a session.
    pub fn has_ticket(&self) -> bool {
        let memory = self.0.as_ref();
        memory.is_some_and(|memory| memory.session.is_some())
    }

    /// Runs `act`, in which rustls works for this client: tickets that come are kept here.
    ///
    /// With `resume`, a connection that `act` begins offers the ticket; without, it is that of a
    /// client that remembers nothing. O(1), without a lock; allocates for what is kept only.
    pub fn remember<R>(&mut self, resume: bool, act: impl FnOnce() -> R) -> R {
        let turn = Turn {
            memory: self.0.take(),
            resume,
        };
        let _taking_turns = TakingTurns {
            outer: TURN.replace(Some(turn)),
            session: self,
        };
        act()
    }
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the secrets.
        f.debug_struct("ClientSession")
            .field("has_ticket", &self.has_ticket())
            .finish()
    }
}

/// Gives the client its memory back when its turn ends, also by a panic.
struct TakingTurns<'a> {
    session: &'a mut ClientSession,
    outer: Option<Turn>,
}

impl Drop for TakingTurns<'_> {
    fn drop(&mut self) {
        let turn = TURN.replace(self.outer.take());
        self.session.0 = turn.and_then(|turn| turn.memory);
    }
}

/// The store of all configurations that resume.
#[derive(Debug)]
pub(super) struct OwnSessions;

/// The memory of the client whose turn it is, if its connection is to resume.
fn resuming<R>(look: impl FnOnce(&mut Memory) -> Option<R>) -> Option<R> {
    TURN.with_borrow_mut(|turn| {
        let turn = turn.as_mut().filter(|turn| turn.resume)?;
        look(turn.memory.as_mut()?)
    })
}

fn keep(change: impl FnOnce(&mut Memory)) {
    TURN.with_borrow_mut(|turn| {
        if let Some(turn) = turn {
            change(turn.memory.get_or_insert_default());
        }
    });
}

impl ClientSessionStore for OwnSessions {
    fn set_kx_hint(&self, _server_name: ServerName<'static>, group: NamedGroup) {
        keep(|memory| memory.group = Some(group));
    }

    fn kx_hint(&self, _server_name: &ServerName<'_>) -> Option<NamedGroup> {
        resuming(|memory| memory.group)
    }

    fn set_tls12_session(&self, _server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        keep(|memory| memory.session = Some(Session::Tls12(value)));
    }

    fn tls12_session(&self, _server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        resuming(|memory| match &memory.session {
            Some(Session::Tls12(value)) => Some(value.clone()),
            _ => None,
        })
    }

    fn remove_tls12_session(&self, _server_name: &ServerName<'static>) {
        TURN.with_borrow_mut(|turn| {
            let memory = turn.as_mut().and_then(|turn| turn.memory.as_mut());
            if let Some(memory) = memory
                && matches!(memory.session, Some(Session::Tls12(_)))
            {
                memory.session = None;
            }
        });
    }

    fn insert_tls13_ticket(
        &self,
        _server_name: ServerName<'static>,
        value: Tls13ClientSessionValue,
    ) {
        keep(|memory| memory.session = Some(Session::Tls13(value)));
    }

    fn take_tls13_ticket(
        &self,
        _server_name: &ServerName<'static>,
    ) -> Option<Tls13ClientSessionValue> {
        resuming(|memory| match memory.session.take() {
            Some(Session::Tls13(value)) => Some(value),
            other => {
                memory.session = other;
                None
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_of_a_turn_nothing_is_kept_and_within_it_by_the_one_whose_it_is() {
        let name = || ServerName::try_from("dns.example").unwrap();
        let (mut first, mut second) = (ClientSession::default(), ClientSession::default());
        OwnSessions.set_kx_hint(name(), NamedGroup::X25519);
        first.remember(true, || {
            OwnSessions.set_kx_hint(name(), NamedGroup::secp256r1);
            second.remember(true, || {
                assert_eq!(OwnSessions.kx_hint(&name()), None, "the inner one's turn");
            });
            assert_eq!(OwnSessions.kx_hint(&name()), Some(NamedGroup::secp256r1));
        });
        assert_eq!(OwnSessions.kx_hint(&name()), None);
        first.remember(false, || {
            assert_eq!(OwnSessions.kx_hint(&name()), None, "not to be resumed");
        });
        assert!(!first.has_ticket() && second.0.is_none());
    }

    #[test]
    fn an_empty_memory_is_a_pointer() {
        assert_eq!(size_of::<ClientSession>(), size_of::<usize>());
    }
}
