//! Keys made ready for work, shared by all sessions of a thread.
//!
//! A key that is ready holds round keys and tables: some 600 bytes in the memory of aws-lc, too
//! much for each of very many clients that are idle. So a session keeps the octets of its keys, and
//! a thread makes a limited number of them ready: those in use. The limit is beyond what a worker's
//! busy clients need as a rule; beyond it a record costs a key set-up more, about 150 ns.

use aws_lc_rs::aead::LessSafeKey;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys that a thread has ready at most: two each of 2,048 clients, 2.5 MB.
pub(super) const READY_MAX: usize = 4_096;

/// Numbers the keys of the process, so that none is taken for another, on any thread.
static KEYS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static READY: RefCell<ReadyKeys> = const { RefCell::new(ReadyKeys::new()) };
}

/// What finds a key among those that are ready; it frees the place when it is dropped.
#[derive(Debug)]
pub(super) struct KeyHandle {
    number: u64,
    /// Where it was last.
    at: u32,
}

impl KeyHandle {
    /// That of a key which is not ready.
    pub(super) fn new() -> KeyHandle {
        KeyHandle {
            number: KEYS.fetch_add(1, Ordering::Relaxed),
            at: u32::MAX,
        }
    }

    /// Lets `act` work with the key, which `make` makes ready if it is not.
    #[inline]
    pub(super) fn with<R>(
        &mut self,
        make: impl FnOnce() -> LessSafeKey,
        act: impl FnOnce(&LessSafeKey) -> R,
    ) -> R {
        READY.with_borrow_mut(|ready| act(ready.key(self, make)))
    }
}

impl Drop for KeyHandle {
    fn drop(&mut self) {
        // A thread that ends has freed them all.
        let _ = READY.try_with(|ready| ready.borrow_mut().release(self));
    }
}

struct Ready {
    number: u64,
    key: LessSafeKey,
}

struct ReadyKeys {
    slots: Vec<Option<Ready>>,
    free: Vec<u32>,
    /// How often a key had to give way.
    evictions: u64,
}

impl ReadyKeys {
    const fn new() -> Self {
        ReadyKeys {
            slots: Vec::new(),
            free: Vec::new(),
            evictions: 0,
        }
    }

    #[inline]
    fn key(&mut self, place: &mut KeyHandle, make: impl FnOnce() -> LessSafeKey) -> &LessSafeKey {
        if !self.is_at(place) {
            place.at = self.admit(Ready {
                number: place.number,
                key: make(),
            });
        }
        let ready = self.slots[place.at as usize].as_ref();
        &ready.expect("it was found or put there above").key
    }

    #[inline]
    fn is_at(&self, place: &KeyHandle) -> bool {
        let slot = self.slots.get(place.at as usize).and_then(Option::as_ref);
        slot.is_some_and(|ready| ready.number == place.number)
    }

    #[cold]
    fn admit(&mut self, ready: Ready) -> u32 {
        let at = match self.free.pop() {
            Some(at) => at,
            None if self.slots.len() < READY_MAX => {
                self.slots.push(None);
                (self.slots.len() - 1) as u32
            }
            None => self.victim(),
        };
        self.slots[at as usize] = Some(ready);
        at
    }

    /// The place of any key. With the oldest, clients that take turns would never find theirs.
    fn victim(&mut self) -> u32 {
        self.evictions += 1;
        // The high bits of a multiplicative hash: spread evenly, and the same in every run.
        let spread = self.evictions.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (spread ^ (spread >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed >> 32) as usize % READY_MAX) as u32
    }

    fn release(&mut self, place: &KeyHandle) {
        if self.is_at(place) {
            self.slots[place.at as usize] = None;
            self.free.push(place.at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::aead::{AES_128_GCM, UnboundKey};
    use std::cell::Cell;

    fn key() -> LessSafeKey {
        LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[7; 16]).unwrap())
    }

    fn made_by(place: &mut KeyHandle) -> bool {
        let made = Cell::new(false);
        let make = || {
            made.set(true);
            key()
        };
        place.with(make, |_| ());
        made.get()
    }

    #[test]
    fn key_is_made_ready_once_and_again_only_after_it_had_to_give_way() {
        let mut first = KeyHandle::new();
        assert!(made_by(&mut first));
        assert!(!made_by(&mut first));
        let mut others: Vec<_> = (0..READY_MAX * 8).map(|_| KeyHandle::new()).collect();
        assert!(others.iter_mut().all(made_by));
        let len = READY.with_borrow(|ready| ready.slots.len());
        assert_eq!(len, READY_MAX);
        // Each is found or made anew, and never mistaken for another.
        for place in &mut others {
            place.with(key, |_| ());
            let number = place.number;
            READY.with_borrow(|ready| {
                let slot = ready.slots[place.at as usize].as_ref();
                assert_eq!(slot.unwrap().number, number);
            });
        }
        drop(others);
        let left = READY.with_borrow(|ready| ready.slots.iter().flatten().count());
        assert!(left <= 1, "{left} keys without an owner");
    }
}
