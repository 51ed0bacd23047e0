//! Peers that do what no server should.
//!
//! What `throng responder` can do by its flags is not here.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use proto::Transport;
use proto::tls::rustls::{ServerConfig, ServerConnection, StreamOwned};
use proto::tls::{ServerTlsOptions, server_config_with};
use responder::certificate::{SelfSigned, self_signed};

use super::stage::Event;

/// What a peer does.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Peer {
    /// With each connection, below TLS.
    Stream(Conduct),
    /// With each connection once its handshake is done, where the transport has one.
    InTls(Conduct),
    /// As [`Peer::InTls`], with a server that knows no ALPN.
    WithoutAlpn(Conduct),
    /// A listener whose queue is full.
    Unaccepted,
    /// With datagrams.
    Datagrams(Manner),
}

/// What becomes of a connection.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Conduct {
    /// It is closed at once.
    Close,
    /// It is reset as soon as something has come.
    Reset,
    /// Nothing is read or written.
    Hold,
    /// This is sent at once, so often, and nothing is read.
    Send(&'static [u8], usize),
    /// As [`Conduct::Send`], when something has come.
    Reply(&'static [u8]),
    /// Queries are answered one octet at a time.
    Trickle,
    /// Half of the first response, then a close.
    CutOff,
    /// Queries are answered, each after a frame that is no response.
    After(&'static [u8]),
    /// Queries are answered, and each response promises more octets than it has.
    Overlong,
}

/// What becomes of a datagram.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Manner {
    /// Nothing.
    Silence,
    /// The response comes from another port.
    OtherPort,
    /// It is sent back as it is.
    Echo,
    /// This is sent back, so often, and then the response.
    Before(&'static [u8], usize),
    /// This is sent back and nothing else.
    Instead(&'static [u8]),
}

/// How long a peer waits at most before it looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Connections that a listener's queue may hold at most.
const BACKLOG_MAX: usize = 5_000;

/// A peer at work; ends when dropped.
pub(crate) struct Hostile {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
    /// A listener that accepts nothing, and what fills its queue.
    _full: Option<(TcpListener, Vec<TcpStream>)>,
}

#[derive(Default)]
struct State {
    met: AtomicU64,
    /// Gets a message for each that is met.
    events: Mutex<Option<Sender<Event>>>,
    is_over: Mutex<bool>,
    ended: Condvar,
}

impl State {
    fn is_over(&self) -> bool {
        *self.is_over.lock().unwrap()
    }

    fn wait_until_over(&self) {
        let is_over = self.is_over.lock().unwrap();
        drop(self.ended.wait_while(is_over, |it| !*it).unwrap());
    }

    fn end(&self) {
        *self.is_over.lock().unwrap() = true;
        self.ended.notify_all();
    }

    fn meet(&self) {
        self.met.fetch_add(1, Ordering::SeqCst);
        if let Some(events) = &*self.events.lock().unwrap() {
            // A run that has ended hears nothing more.
            let _ = events.send(Event::Met);
        }
    }
}

impl Hostile {
    pub(crate) fn start(peer: Peer, address: Ipv4Addr, transport: Transport) -> Hostile {
        let state = Arc::<State>::default();
        let (tls, conduct) = match peer {
            Peer::Datagrams(manner) => {
                let socket = UdpSocket::bind((address, 0)).unwrap();
                let address = socket.local_addr().unwrap();
                let of_thread = Arc::clone(&state);
                let work = move || of_datagrams(&socket, manner, &of_thread);
                return Hostile::of(address, state, work);
            }
            Peer::Unaccepted => return Hostile::unaccepted(address),
            Peer::Stream(conduct) => (None, conduct),
            Peer::InTls(conduct) => (tls_of(transport, true), conduct),
            Peer::WithoutAlpn(conduct) => (tls_of(transport, false), conduct),
        };
        let listener = TcpListener::bind((address, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let of_thread = Arc::clone(&state);
        let work = move || of_connections(&listener, tls.as_ref(), conduct, &of_thread);
        Hostile::of(address, state, work)
    }

    fn of(address: SocketAddr, state: Arc<State>, work: impl FnOnce() + Send + 'static) -> Hostile {
        Hostile {
            address,
            state,
            thread: Some(thread::spawn(work)),
            _full: None,
        }
    }

    fn unaccepted(address: Ipv4Addr) -> Hostile {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        let mut refused = 0;
        while refused < 3 {
            match TcpStream::connect_timeout(&address, LOOK_EVERY) {
                Ok(stream) => waiting.push(stream),
                Err(_) => refused += 1,
            }
            assert!(waiting.len() < BACKLOG_MAX, "it takes any number");
        }
        Hostile {
            address,
            state: Arc::default(),
            thread: None,
            _full: Some((listener, waiting)),
        }
    }

    /// Sends [`Event::Met`] for each connection or datagram from now on.
    pub(crate) fn report_to(&self, events: Sender<Event>) {
        *self.state.events.lock().unwrap() = Some(events);
    }

    /// Connections, or datagrams that were not empty, until now.
    pub(crate) fn met(&self) -> u64 {
        self.state.met.load(Ordering::SeqCst)
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.state.end();
        // Wakes one that accepts; one that receives wakes by itself.
        drop(TcpStream::connect_timeout(&self.address, LOOK_EVERY));
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// What the transport's handshake needs; none for one without.
fn tls_of(transport: Transport, has_alpn: bool) -> Option<Arc<ServerConfig>> {
    if !matches!(transport, Transport::Dot | Transport::Doh2) {
        return None;
    }
    let identity = self_signed(&SelfSigned::default()).unwrap();
    let options = ServerTlsOptions::default();
    Some(match has_alpn {
        true => identity.config(transport, &options).unwrap(),
        false => {
            let (chain, key) = (&identity.certificate_pem, &identity.key_pem);
            server_config_with(chain.as_bytes(), key.as_bytes(), &options).unwrap()
        }
    })
}

fn of_connections(
    listener: &TcpListener,
    tls: Option<&Arc<ServerConfig>>,
    conduct: Conduct,
    state: &State,
) {
    thread::scope(|scope| {
        while let Ok((stream, _)) = listener.accept() {
            if state.is_over() {
                return;
            }
            state.meet();
            scope.spawn(move || {
                // What the other end makes of it is what is tested.
                let _ = of_connection(stream, tls, conduct, state);
            });
        }
    });
}

fn of_connection(
    mut stream: TcpStream,
    tls: Option<&Arc<ServerConfig>>,
    conduct: Conduct,
    state: &State,
) -> Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    stream.set_write_timeout(Some(LOOK_EVERY))?;
    if conduct == Conduct::Reset && tls.is_none() {
        // What is closed with octets that nobody has read is reset.
        while let Err(error) = stream.peek(&mut [0]) {
            give_up(error, state)?;
        }
        return Ok(());
    }
    let Some(tls) = tls else {
        let closed = stream.try_clone()?;
        conducted(&mut stream, conduct, state)?;
        return closed.shutdown(Shutdown::Write);
    };
    let connection = ServerConnection::new(Arc::clone(tls)).map_err(std::io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    while stream.conn.is_handshaking() {
        if let Err(error) = stream.conn.complete_io(&mut stream.sock) {
            give_up(error, state)?;
        }
    }
    conducted(&mut stream, conduct, state)
}

fn conducted(stream: &mut (impl Read + Write), conduct: Conduct, state: &State) -> Result<()> {
    match conduct {
        Conduct::Close | Conduct::Reset => return Ok(()),
        Conduct::Hold => {}
        Conduct::Send(octets, times) => {
            for _ in 0..times {
                write(stream, octets, state)?;
            }
        }
        Conduct::Reply(octets) => {
            read(stream, &mut [0], state)?;
            write(stream, octets, state)?;
        }
        Conduct::Trickle | Conduct::CutOff | Conduct::After(_) | Conduct::Overlong => loop {
            let response = response(&next_frame(stream, state)?);
            let length = u16::try_from(response.len()).unwrap();
            let framed = [&length.to_be_bytes()[..], &response].concat();
            match conduct {
                Conduct::CutOff => return write(stream, &framed[..framed.len() / 2], state),
                Conduct::After(octets) => write(stream, &[octets, &framed].concat(), state)?,
                Conduct::Overlong => {
                    let promised = u16::MAX.to_be_bytes();
                    write(stream, &[&promised[..], &response].concat(), state)?;
                }
                _ => {
                    for octet in framed.chunks(1) {
                        write(stream, octet, state)?;
                    }
                }
            }
        },
    }
    // Held until the run is over.
    state.wait_until_over();
    Ok(())
}

/// Passes on an error that is more than a wait, and any when it is over.
fn give_up(error: std::io::Error, state: &State) -> Result<()> {
    let is_wait = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    match is_wait && !state.is_over() {
        true => Ok(()),
        false => Err(error),
    }
}

fn read(stream: &mut impl Read, mut octets: &mut [u8], state: &State) -> Result<()> {
    while !octets.is_empty() {
        match stream.read(octets) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => octets = &mut octets[count..],
            Err(error) => give_up(error, state)?,
        }
    }
    Ok(())
}

fn write(stream: &mut impl Write, mut octets: &[u8], state: &State) -> Result<()> {
    while !octets.is_empty() {
        match stream.write(octets) {
            Ok(count) => octets = &octets[count..],
            Err(error) => give_up(error, state)?,
        }
    }
    loop {
        match stream.flush() {
            Ok(()) => return Ok(()),
            Err(error) => give_up(error, state)?,
        }
    }
}

/// The next query of DNS over a stream.
fn next_frame(stream: &mut impl Read, state: &State) -> Result<Vec<u8>> {
    let mut length = [0; 2];
    read(stream, &mut length, state)?;
    let mut query = vec![0; u16::from_be_bytes(length).into()];
    read(stream, &mut query, state)?;
    Ok(query)
}

/// NODATA: the query with QR set.
fn response(query: &[u8]) -> Vec<u8> {
    let mut response = query.to_vec();
    if let Some(flags) = response.get_mut(2) {
        *flags |= 0x80;
    }
    response
}

fn of_datagrams(socket: &UdpSocket, manner: Manner, state: &State) {
    socket.set_read_timeout(Some(LOOK_EVERY)).unwrap();
    let other = UdpSocket::bind((socket.local_addr().unwrap().ip(), 0)).unwrap();
    let mut octets = vec![0; 65_536];
    while !state.is_over() {
        // Whoever has gone already may be told of by an error.
        let Ok((count, source)) = socket.recv_from(&mut octets) else {
            continue;
        };
        let query = &octets[..count];
        if query.is_empty() {
            continue;
        }
        state.meet();
        let _ = match manner {
            Manner::Silence => Ok(0),
            Manner::OtherPort => other.send_to(&response(query), source),
            Manner::Echo => socket.send_to(query, source),
            Manner::Instead(octets) => socket.send_to(octets, source),
            Manner::Before(octets, times) => {
                for _ in 0..times {
                    let _ = socket.send_to(octets, source);
                }
                socket.send_to(&response(query), source)
            }
        };
    }
}
