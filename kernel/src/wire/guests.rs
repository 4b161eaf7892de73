//! Who is connected: a seat for each connection, and what those may hold that have not shown the key.
//!
//! Anybody who can connect takes a seat. When all of a socket's are taken, a stranger makes room for whoever comes, and
//! nobody who has shown the key ever does, so connections without it can keep no front end out. What strangers have
//! sent and not finished is on one account, for all sockets together; when that is overdrawn, whoever holds most goes.
use super::bad;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The most connections of one socket: what they hold open must leave descriptors for compilers and files.
pub const SEATS: usize = 128;

/// What all strangers together may have in memory.
const STRANGERS_MEMORY: usize = 64 << 20;

/// How long a stranger may take over one message.
pub const STRANGERS_TIME: Duration = if cfg!(test) { Duration::from_millis(20) } else { Duration::from_secs(30) };

/// Numbers the connections of all sockets in the order in which they came, so that none is taken for one of another
/// socket.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// What strangers hold, on all sockets of a kernel.
#[derive(Clone, Default)]
pub struct Account(Arc<Mutex<Vec<Debt>>>);

struct Debt {
    bytes: usize,
    guest: Arc<Guest>,
}

/// The seats of one socket.
pub struct Door {
    channel: &'static str,
    account: Account,
    /// In the order in which they came.
    seats: Mutex<Vec<Arc<Guest>>>,
}

struct Guest {
    number: u64,
    standing: AtomicU8,
    /// The first number that nobody had when it showed the key.
    known: AtomicU64,
    leave: Notify,
}

/// What is known of a guest; kept in one byte.
const CAME: u8 = 0;
const SHAKEN: u8 = 1;
const VERIFIED: u8 = 2;
const SENT_AWAY: u8 = 3;

impl Guest {
    fn is(&self, standing: u8) -> bool {
        self.standing.load(Ordering::Relaxed) == standing
    }

    fn send_away(&self) {
        self.standing.store(SENT_AWAY, Ordering::Relaxed);
        self.leave.notify_one();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Door {
    pub fn new(channel: &'static str, account: Account) -> Arc<Door> {
        Arc::new(Door { channel, account, seats: Mutex::default() })
    }

    /// A seat for a connection that has come, if need be a stranger's; none where all are taken by those with the key.
    pub fn enter(self: &Arc<Door>) -> Option<Seat> {
        let mut seats = locked(&self.seats);
        if seats.len() >= SEATS {
            let Some(at) = who_goes(&seats) else {
                super::log_stranger(format_args!("{}: a connection was refused: there are {SEATS}", self.channel));
                return None;
            };
            super::log_stranger(format_args!(
                "{}: there are {SEATS} connections; one that has not shown the key makes room for a new one",
                self.channel
            ));
            seats.remove(at).send_away();
        }
        let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let guest = Arc::new(Guest {
            number,
            standing: AtomicU8::new(CAME),
            known: AtomicU64::new(u64::MAX),
            leave: Notify::new(),
        });
        seats.push(guest.clone());
        Some(Seat { door: self.clone(), guest })
    }
}

impl Door {
    /// The connections that came just before or after another one, on whatever socket.
    pub fn beside(&self, number: u64) -> Vec<u64> {
        // A front end has five sockets, and several may come at once.
        const NEAR: u64 = 8;
        locked(&self.seats).iter().map(|g| g.number).filter(|n| n.abs_diff(number) <= NEAR).collect()
    }
}

/// Which of the strangers leaves. First one that has not even finished its handshake. Of the others, the half that came
/// first stays and the rest take turns: a crowd can push out neither the front end that was there before it, nor at once
/// the one that comes after it.
fn who_goes(seats: &[Arc<Guest>]) -> Option<usize> {
    let of = |standing| seats.iter().enumerate().filter(move |(_, g)| g.is(standing)).map(|(at, _)| at);
    let shaken = of(SHAKEN).count();
    of(CAME).next().or_else(|| of(SHAKEN).nth(shaken / 2))
}

/// A connection's seat; it is given up with this.
pub struct Seat {
    door: Arc<Door>,
    guest: Arc<Guest>,
}

impl Seat {
    /// Among the connections of all sockets.
    pub fn number(&self) -> u64 {
        self.guest.number
    }

    pub fn has_shaken(&self) {
        let _ = self.guest.standing.compare_exchange(CAME, SHAKEN, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// It has the key.
    pub fn is_verified(&self) -> bool {
        self.guest.is(VERIFIED)
    }

    /// It has shown the key: it stays, and its memory is its own affair.
    pub fn has_shown_the_key(&self) {
        if !self.guest.is(SENT_AWAY) && !self.is_verified() {
            self.guest.known.store(CONNECTIONS.load(Ordering::Relaxed), Ordering::Relaxed);
            self.guest.standing.store(VERIFIED, Ordering::Relaxed);
            self.release();
        }
    }

    /// The number of the first connection that came after this one had shown the key.
    pub fn known(&self) -> u64 {
        self.guest.known.load(Ordering::Relaxed)
    }

    /// Returns when it has to leave.
    pub async fn sent_away(&self) {
        self.guest.leave.notified().await;
    }

    /// Puts bytes on the account before they are taken, where the guest is a stranger.
    pub fn hold(&self, bytes: usize) -> io::Result<()> {
        if self.is_verified() {
            return Ok(());
        }
        let mut debts = locked(&self.door.account.0);
        if self.guest.is(SENT_AWAY) {
            // That has been said already.
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        match debts.iter_mut().find(|d| Arc::ptr_eq(&d.guest, &self.guest)) {
            Some(debt) => debt.bytes += bytes,
            None => debts.push(Debt { bytes, guest: self.guest.clone() }),
        }
        while debts.iter().map(|d| d.bytes).sum::<usize>() > STRANGERS_MEMORY {
            let Some(most) = (0..debts.len()).max_by_key(|n| debts[*n].bytes) else { break };
            let most = debts.swap_remove(most);
            if Arc::ptr_eq(&most.guest, &self.guest) {
                let limit = STRANGERS_MEMORY >> 20;
                return Err(bad(&format!(
                    "those who have not shown the key hold more than {limit} MB, and it the most"
                )));
            }
            most.guest.send_away();
        }
        Ok(())
    }

    /// Nothing is held any more.
    pub fn release(&self) {
        locked(&self.door.account.0).retain(|d| !Arc::ptr_eq(&d.guest, &self.guest));
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.release();
        locked(&self.door.seats).retain(|g| !Arc::ptr_eq(g, &self.guest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crowd(door: &Arc<Door>, count: usize) -> Vec<Seat> {
        let one = |_| {
            let seat = door.enter().unwrap();
            seat.has_shaken();
            seat
        };
        (0..count).map(one).collect()
    }

    fn left(seat: &Seat) -> bool {
        seat.guest.is(SENT_AWAY)
    }

    #[test]
    fn a_crowd_of_strangers_pushes_nobody_out_who_has_shown_the_key() {
        let door = Door::new("shell", Account::default());
        let owner = crowd(&door, 3);
        owner.iter().for_each(Seat::has_shown_the_key);
        let mut all = Vec::new();
        for _ in 0..10 {
            all.extend(crowd(&door, SEATS));
            let late = door.enter().unwrap();
            late.has_shaken();
            late.has_shown_the_key();
            all.push(late);
        }
        assert!(owner.iter().chain(all.iter().filter(|p| p.is_verified())).all(|p| !left(p)));
        assert_eq!(all.iter().filter(|p| p.is_verified()).count(), 10);
        assert_eq!(locked(&door.seats).len(), SEATS);
        drop(all);
        assert_eq!(locked(&door.seats).len(), owner.len());
    }

    #[test]
    fn where_nobody_can_show_a_key_a_crowd_pushes_out_neither_the_first_nor_at_once_the_last() {
        let door = Door::new("iopub", Account::default());
        let owner = crowd(&door, 1);
        let idle: Vec<Seat> = (0..SEATS).map(|_| door.enter().unwrap()).collect();
        let _shaken = crowd(&door, SEATS);
        assert!(idle.iter().all(left), "who has not shaken hands goes first");
        let late = crowd(&door, 1);
        let _more = crowd(&door, SEATS / 2 - 2);
        assert!(!left(&owner[0]) && !left(&late[0]));
        let _again = crowd(&door, 10 * SEATS);
        assert!(!left(&owner[0]));
    }

    #[test]
    fn all_places_with_the_key_are_all_places() {
        let door = Door::new("shell", Account::default());
        let all = crowd(&door, SEATS);
        all.iter().for_each(Seat::has_shown_the_key);
        assert!(door.enter().is_none());
        drop(all);
        assert!(door.enter().is_some());
    }

    #[test]
    fn strangers_share_their_memory_and_the_largest_goes() {
        let account = Account::default();
        let doors = [Door::new("shell", account.clone()), Door::new("iopub", account.clone())];
        let large = doors[0].enter().unwrap();
        large.hold(STRANGERS_MEMORY - 100).unwrap();
        let small = doors[1].enter().unwrap();
        small.hold(200).unwrap();
        assert!(left(&large), "what is there for all is for the small one too");
        assert!(large.hold(1).is_err());
        assert!(small.hold(STRANGERS_MEMORY).is_err(), "one alone cannot have more than all");
        let owner = doors[0].enter().unwrap();
        owner.has_shown_the_key();
        owner.hold(10 * STRANGERS_MEMORY).unwrap();
        assert!(!left(&small) || small.hold(1).is_err());
        drop((large, small));
        assert!(locked(&account.0).is_empty());
    }
}
