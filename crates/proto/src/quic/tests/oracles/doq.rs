//! DoQ as quinn and a few lines speak it (RFC 9250, section 4.2).

use super::*;

const ALPN: &[u8] = b"doq";

async fn answer(mut send: quinn::SendStream, mut receive: quinn::RecvStream) {
    let octets = receive.read_to_end(70_000).await.unwrap();
    let (prefix, query) = octets.split_first_chunk().unwrap();
    assert_eq!(usize::from(u16::from_be_bytes(*prefix)), query.len());
    assert_eq!(query[..2], [0, 0], "the ID");
    let response = long_response_to(query);
    let length = u16::try_from(response.len()).unwrap();
    send.write_all(&length.to_be_bytes()).await.unwrap();
    send.write_all(&response).await.unwrap();
    send.finish().unwrap();
}

async fn serve_connection(incoming: quinn::Incoming) {
    let connection = incoming.await.unwrap();
    while let Ok((send, receive)) = connection.accept_bi().await {
        tokio::spawn(answer(send, receive));
    }
}

#[test]
fn our_client_is_understood_by_quinn() {
    block_on(async {
        let certificates = certificates();
        let server = quinn_server(&certificates, ALPN);
        let target = server.local_addr().unwrap();
        tokio::spawn(async move {
            while let Some(incoming) = server.accept().await {
                tokio::spawn(serve_connection(incoming));
            }
        });
        let tls = client_tls(&certificates, false);
        ask_all(ClientProtocol::Doq, tls, target).await;
    });
}

/// Reads the query and not its FIN, as hickory 0.26 does: dropping the stream then sends
/// STOP_SENDING, together with the complete response.
async fn answer_and_stop(mut send: quinn::SendStream, mut receive: quinn::RecvStream) {
    let mut prefix = [0; 2];
    receive.read_exact(&mut prefix).await.unwrap();
    let mut query = vec![0; u16::from_be_bytes(prefix).into()];
    receive.read_exact(&mut query).await.unwrap();
    let mut framed = Vec::new();
    crate::framing::write_message(&long_response_to(&query), &mut framed);
    // The client may have closed the connection because of another stream.
    if send.write_all(&framed).await.is_ok() {
        let _ = send.finish();
    }
    let _ = receive.stop(0_u32.into());
}

#[test]
fn rfc9250_4_3_3_stop_sending_ends_a_connection_unless_it_is_allowed() {
    let broken = |is_allowed: bool| {
        block_on(async move {
            let certificates = certificates();
            let server = quinn_server(&certificates, ALPN);
            let target = server.local_addr().unwrap();
            tokio::spawn(async move {
                while let Some(incoming) = server.accept().await {
                    let connection = incoming.await.unwrap();
                    while let Ok((send, receive)) = connection.accept_bi().await {
                        tokio::spawn(answer_and_stop(send, receive));
                    }
                }
            });
            let (clock, now) = clock();
            let mut client = QuicClient::new(QuicClientOptions {
                clock,
                ..client_options(ClientProtocol::Doq)
            });
            if is_allowed {
                client.allow_stop_sending();
            }
            let tls = client_tls(&certificates, false);
            // One at a time: STOP_SENDING for a stream that is acknowledged before means nothing.
            let broken = ask_all_of(client, now, (&tls, target), 1).await;
            let rule = ("STOP_SENDING from a server", "RFC 9250, section 4.3.3");
            assert_eq!(broken, (!is_allowed).then_some(rule));
        });
    };
    broken(false);
    broken(true);
}

async fn ask(connection: quinn::Connection, number: u32) {
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    let mut message = query(number);
    message[..2].fill(0);
    let mut framed = Vec::new();
    crate::framing::write_message(&message, &mut framed);
    // In two pieces, which may come in two packets.
    let (first, second) = framed.split_at(number as usize % framed.len());
    send.write_all(first).await.unwrap();
    tokio::task::yield_now().await;
    send.write_all(second).await.unwrap();
    send.finish().unwrap();
    let octets = receive.read_to_end(70_000).await.unwrap();
    let mut expected = Vec::new();
    crate::framing::write_message(&long_response_to(&message), &mut expected);
    assert_eq!(octets, expected);
}

#[test]
fn our_server_is_understood_by_quinn() {
    block_on(async {
        let certificates = certificates();
        let target = start(&certificates, ServerProtocol::Doq).await;
        let client = quinn_client(&certificates, ALPN);
        let connecting = client.connect(target, "dns.example").unwrap();
        let connection = connecting.await.unwrap();
        for first in (0..QUERIES).step_by(AT_ONCE as usize) {
            let asked: Vec<_> = (first..(first + AT_ONCE).min(QUERIES))
                .map(|number| tokio::spawn(ask(connection.clone(), number)))
                .collect();
            for asked in asked {
                asked.await.unwrap();
            }
        }
        connection.close(0_u32.into(), b"");
        client.wait_idle().await;
    });
}

#[test]
fn our_server_resumes_sessions_and_takes_early_data_of_quinn() {
    block_on(async {
        let certificates = certificates();
        let target = start(&certificates, ServerProtocol::Doq).await;
        let mut tls = Arc::unwrap_or_clone(client_tls(&certificates, false));
        tls.alpn_protocols = vec![ALPN.to_vec()];
        tls.enable_early_data = true;
        tls.resumption = rustls::client::Resumption::in_memory_sessions(4);
        let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
        let mut client = quinn::Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        client.set_default_client_config(quinn::ClientConfig::new(Arc::new(crypto)));
        let first = client.connect(target, "dns.example").unwrap();
        let first = first.await.unwrap();
        ask(first.clone(), 1).await;
        first.close(0_u32.into(), b"");
        let second = client.connect(target, "dns.example").unwrap();
        let Ok((second, accepted)) = second.into_0rtt() else {
            panic!("there is a ticket");
        };
        ask(second, 2).await;
        assert!(accepted.await, "early data is taken");
    });
}
