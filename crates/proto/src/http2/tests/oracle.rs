//! The crate h2 at the other end, in both directions, over a pipe in memory.

use super::*;
use bytes::Bytes;
use std::pin::Pin;
use std::task::Poll;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// Requests of each run.
const REQUESTS: u32 = 10_000;

/// What differs between the runs.
#[derive(Clone, Copy, Debug)]
struct Setup {
    method: Method,
    /// Octets that the pipe holds.
    pipe_octets: usize,
    /// Windows of streams and of h2's end of the connection.
    window_octets: u32,
    streams_max: u32,
    /// HPACK tables of both ends.
    table_octets: u32,
}

const SETUPS: [Setup; 4] = [
    Setup {
        method: Method::Post,
        pipe_octets: 1 << 20,
        window_octets: 1 << 17,
        streams_max: 100,
        table_octets: 0,
    },
    Setup {
        method: Method::Get,
        pipe_octets: 1 << 20,
        window_octets: 1 << 17,
        streams_max: 100,
        table_octets: 4_096,
    },
    Setup {
        method: Method::Post,
        pipe_octets: 777,
        window_octets: 13,
        streams_max: 7,
        table_octets: 200,
    },
    Setup {
        method: Method::Get,
        pipe_octets: 100,
        window_octets: 30,
        streams_max: 3,
        table_octets: 100,
    },
];

/// The message of request `number`; its length goes round.
fn message(number: u32) -> Vec<u8> {
    let mut message = number.to_be_bytes().to_vec();
    message.extend((0..number % 97).map(|octet| octet as u8));
    message
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    { runtime }.build().unwrap().block_on(test);
}

/// Writes what it can of `out` and waits for octets to read; none at the end.
async fn step(pipe: &mut DuplexStream, out: &mut Vec<u8>) -> Vec<u8> {
    std::future::poll_fn(|context| {
        while !out.is_empty() {
            match Pin::new(&mut *pipe).poll_write(context, out) {
                Poll::Ready(written) => drop(out.drain(..written.unwrap_or(out.len()))),
                Poll::Pending => break,
            }
        }
        let mut room = [0; 4_096];
        let mut read = ReadBuf::new(&mut room);
        match Pin::new(&mut *pipe).poll_read(context, &mut read) {
            Poll::Ready(_) => Poll::Ready(read.filled().to_vec()),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Sends all requests with our client, as many at once as may be.
async fn our_client(mut pipe: DuplexStream, setup: Setup) {
    let options = Http2Options {
        table_octets: setup.table_octets,
        stream_window_octets: setup.window_octets,
        connection_window_octets: 65_535,
        ..Http2Options::default()
    };
    let mut client = Client::with(setup.method, &options);
    let mut waiting: std::collections::VecDeque<u32> = (0..REQUESTS).collect();
    let mut ended = vec![false; REQUESTS as usize];
    while ended.contains(&false) {
        while client.http2.streams_free() > 0
            && let Some(number) = waiting.pop_front()
        {
            client.request(&message(number), number).unwrap();
        }
        let octets = step(&mut pipe, &mut client.out).await;
        assert!(!octets.is_empty(), "h2 has hung up");
        assert_eq!(client.receive(&octets), Ok(Continuation::Continues));
        for (token, end) in client.take_ends() {
            if end == End::NotProcessed && token < 100 {
                // Refused, because the limit on streams was not known yet.
                waiting.push_back(token);
                continue;
            }
            assert_eq!(end, End::Message(reversed(&message(token))), "{setup:?}");
            assert!(!std::mem::replace(&mut ended[token as usize], true));
        }
        assert!(client.http2.open_streams() <= setup.streams_max.max(100) as usize);
    }
    assert_eq!(client.http2.open_streams(), 0);
    client.http2.close(&mut client.out);
    while !step(&mut pipe, &mut client.out).await.is_empty() {}
}

/// Reads the content of one side of an h2 stream.
async fn content(mut stream: h2::RecvStream) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some(chunk) = stream.data().await {
        let chunk = chunk.unwrap();
        stream.flow_control().release_capacity(chunk.len()).unwrap();
        content.extend_from_slice(&chunk);
    }
    content
}

/// Answers one request with its message in reverse, in one piece or in two.
async fn answer_as_h2(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
) {
    let (parts, body) = request.into_parts();
    assert_eq!(parts.headers["accept"], "application/dns-message");
    assert_eq!(parts.uri.authority().unwrap(), "dns.example");
    let mut message = content(body).await;
    if parts.method == http::Method::GET {
        let query = parts.uri.query().unwrap().strip_prefix("dns=").unwrap();
        assert!(crate::doh::decode_message(query.as_bytes(), &mut message));
    } else {
        assert_eq!(parts.headers["content-type"], "application/dns-message");
        assert_eq!(parts.headers["content-length"], message.len().to_string());
    }
    let response = http::Response::builder()
        .header("content-type", "application/dns-message")
        .header("cache-control", format!("max-age={}", message.len()))
        .header("server", "oracle");
    let mut stream = respond
        .send_response(response.body(()).unwrap(), false)
        .unwrap();
    let octets = Bytes::from(reversed(&message));
    let half = if message.len() % 3 == 0 {
        octets.len() / 2
    } else {
        0
    };
    stream.send_data(octets.slice(..half), false).unwrap();
    stream.send_data(octets.slice(half..), true).unwrap();
}

#[test]
fn our_client_and_an_h2_server_exchange_every_message() {
    for setup in SETUPS {
        run(async move {
            let (ours, theirs) = tokio::io::duplex(setup.pipe_octets);
            let server = tokio::spawn(async move {
                let mut builder = h2::server::Builder::new();
                builder
                    .initial_window_size(setup.window_octets)
                    .header_table_size(setup.table_octets)
                    .max_concurrent_streams(setup.streams_max);
                let mut connection = builder.handshake(theirs).await.unwrap();
                let mut answered = 0;
                while let Some(request) = connection.accept().await {
                    let (request, respond) = request.unwrap();
                    tokio::spawn(answer_as_h2(request, respond));
                    answered += 1;
                }
                answered
            });
            our_client(ours, setup).await;
            assert_eq!(server.await.unwrap(), REQUESTS, "{setup:?}");
        });
    }
}

/// Answers with our server until the other end hangs up.
async fn our_server(mut pipe: DuplexStream, setup: Setup) -> usize {
    let mut server = Server::with(Http2ServerOptions {
        streams_max: setup.streams_max,
        http2: Http2Options {
            table_octets: setup.table_octets,
            stream_window_octets: setup.window_octets,
            connection_window_octets: 65_535,
            ..Http2Options::default()
        },
        ..Http2ServerOptions::default()
    });
    let mut answered = 0;
    loop {
        let octets = step(&mut pipe, &mut server.out).await;
        if octets.is_empty() {
            assert_eq!(server.http2.open_streams(), 0);
            return answered;
        }
        server.receive(&octets).unwrap();
        let methods = server
            .requests
            .iter()
            .map(|(_, request)| request.as_ref().unwrap().0);
        assert!({ methods }.all(|method| method == setup.method));
        answered += server.requests.len();
        server.answer_all(Some(answered as u32 % 1_000));
    }
}

/// Sends request `number` with h2 and reads its response.
async fn ask_with_h2(mut sender: h2::client::SendRequest<Bytes>, number: u32, method: Method) {
    let message = message(number);
    let mut path = "https://dns.example/dns-query".to_owned();
    if method == Method::Get {
        path += "?dns=";
        path += &data_encoding::BASE64URL_NOPAD.encode(&message);
    }
    let mut request = http::Request::builder().method(method.name()).uri(path);
    if method == Method::Post {
        request = request.header("content-type", "application/dns-message");
    }
    let is_get = method == Method::Get;
    let request = request.body(()).unwrap();
    let (response, mut stream) = sender.send_request(request, is_get).unwrap();
    if !is_get {
        stream
            .send_data(Bytes::from(message.clone()), true)
            .unwrap();
    }
    let response = response.await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(
        response.headers()["content-type"],
        "application/dns-message"
    );
    assert_eq!(
        response.headers()["content-length"],
        message.len().to_string()
    );
    assert_eq!(content(response.into_body()).await, reversed(&message));
}

#[test]
fn an_h2_client_and_our_server_exchange_every_message() {
    for setup in SETUPS {
        run(async move {
            let (ours, theirs) = tokio::io::duplex(setup.pipe_octets);
            let server = tokio::spawn(our_server(ours, setup));
            let mut builder = h2::client::Builder::new();
            builder
                .initial_window_size(setup.window_octets)
                .header_table_size(setup.table_octets)
                .initial_max_send_streams(1);
            let (sender, connection) = builder.handshake(theirs).await.unwrap();
            let connection = tokio::spawn(connection);
            let mut open = std::collections::VecDeque::new();
            let mut sender = sender;
            for number in 0..REQUESTS {
                sender = sender.ready().await.unwrap();
                let asked = ask_with_h2(sender.clone(), number, setup.method);
                open.push_back(tokio::spawn(asked));
                if open.len() >= setup.streams_max as usize {
                    open.pop_front().unwrap().await.unwrap();
                }
            }
            for asked in open {
                asked.await.unwrap();
            }
            drop(sender);
            connection.await.unwrap().unwrap();
            assert_eq!(server.await.unwrap(), REQUESTS as usize, "{setup:?}");
        });
    }
}
