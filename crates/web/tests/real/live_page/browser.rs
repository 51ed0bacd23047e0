//! What a browser does of HTTP, on a blocking socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// The whole response to a request whose connection ends with it.
pub(crate) fn answer(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    let mut text = Vec::new();
    let sent = stream.write_all(request.as_bytes());
    let _ = sent.and_then(|()| stream.read_to_end(&mut text));
    String::from_utf8(text).unwrap()
}

pub(crate) fn get(address: SocketAddr, path: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    answer(address, &head)
}

/// 0 where there is no response.
pub(crate) fn status(response: &str) -> u16 {
    let word = response.split(' ').nth(1);
    word.and_then(|it| it.parse().ok()).unwrap_or(0)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// A server-sent event.
#[derive(Debug, Default)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: Option<u64>,
    pub(crate) data: String,
}

impl Event {
    /// How many snapshots it says were missed before it.
    pub(crate) fn missed(&self) -> u64 {
        let found = self.data.split("data-count=\"").nth(1);
        let number = found.and_then(|it| it.split('"').next());
        number.map_or(0, |it| it.parse().unwrap())
    }
}

/// A connection that reads events.
pub(crate) struct Browser {
    stream: BufReader<TcpStream>,
    /// Of the chunk that is being read.
    chunk: Vec<u8>,
}

impl Browser {
    /// Asks for events; its response is read with the first.
    pub(crate) fn open(address: SocketAddr, path: &str, headers: &str) -> Browser {
        let mut stream = connect(address);
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut browser = Browser {
            stream: BufReader::new(stream),
            chunk: Vec::new(),
        };
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(browser.stream.read_line(&mut head).unwrap() > 0, "{head}");
        }
        assert_eq!(status(&head), 200, "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        browser
    }

    /// The next event.
    pub(crate) fn event(&mut self) -> Event {
        let mut event = Event::default();
        loop {
            let line = self.line().expect("no end before the event");
            match line
                .split_once(": ")
                .unwrap_or((line.trim_end_matches(':'), ""))
            {
                ("event", name) => event.name = name.to_owned(),
                ("id", id) => event.id = Some(id.parse().unwrap()),
                ("data", data) if event.data.is_empty() => event.data = data.to_owned(),
                ("data", data) => event.data = format!("{}\n{data}", event.data),
                ("", _) if !event.data.is_empty() => return event,
                _ => {}
            }
        }
    }

    /// Reads until the event of that number.
    pub(crate) fn until(&mut self, number: u64) {
        while self.event().id != Some(number) {}
    }

    /// True if nothing follows.
    pub(crate) fn is_over(&mut self) -> bool {
        self.line().is_none()
    }

    /// The next line of the body, which is in chunks; none at its end.
    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.chunk.iter().position(|it| *it == b'\n') {
                let line: Vec<u8> = self.chunk.drain(..=end).collect();
                let line = String::from_utf8(line).unwrap();
                return Some(line.trim_end_matches('\n').to_owned());
            }
            let mut size = String::new();
            self.stream.read_line(&mut size).unwrap();
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).unwrap();
            if size == 0 {
                return None;
            }
            self.chunk.extend_from_slice(&chunk[..size]);
        }
    }
}
