//! HTTP/3 as h3 speaks it, grease included.

use super::*;
use crate::doh::{DohRequest, Method, decode_message};
use bytes::{Buf, Bytes};

const ALPN: &[u8] = b"h3";
const MEDIA_TYPE: &str = "application/dns-message";

type Resolver = h3::server::RequestResolver<h3_quinn::Connection, Bytes>;

async fn answer(resolver: Resolver) {
    let (request, mut stream) = resolver.resolve_request().await.unwrap();
    assert_eq!(request.uri().path(), "/dns-query");
    assert_eq!(request.headers()["accept"], MEDIA_TYPE);
    let mut message = Vec::new();
    while let Some(mut data) = stream.recv_data().await.unwrap() {
        message.extend_from_slice(&data.copy_to_bytes(data.remaining()));
    }
    if request.method() == http::Method::GET {
        let encoded = request.uri().query().unwrap().strip_prefix("dns=").unwrap();
        assert!(message.is_empty() && decode_message(encoded.as_bytes(), &mut message));
    } else {
        assert_eq!(request.headers()["content-type"], MEDIA_TYPE);
        let length: usize = request.headers()["content-length"]
            .to_str()
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(length, message.len());
    }
    let response = http::Response::builder()
        .status(200)
        .header("content-type", MEDIA_TYPE)
        .header("x-long", "y".repeat(300));
    stream
        .send_response(response.body(()).unwrap())
        .await
        .unwrap();
    // Responses in several DATA frames, and some with trailers.
    let body = long_response_to(&message);
    let has_trailers = body.len() > 1_000;
    for piece in body.chunks(9_000) {
        stream
            .send_data(Bytes::copy_from_slice(piece))
            .await
            .unwrap();
    }
    if has_trailers {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("x-trailer", http::HeaderValue::from_static("1"));
        stream.send_trailers(trailers).await.unwrap();
    }
    stream.finish().await.unwrap();
}

async fn serve_connection(incoming: quinn::Incoming) {
    let connection = h3_quinn::Connection::new(incoming.await.unwrap());
    let mut connection = h3::server::builder()
        .send_grease(true)
        .build(connection)
        .await
        .unwrap();
    while let Ok(Some(resolver)) = connection.accept().await {
        tokio::spawn(answer(resolver));
    }
}

fn our_client_is_understood(method: Method) {
    block_on(async move {
        let certificates = certificates();
        let server = quinn_server(&certificates, ALPN);
        let target = server.local_addr().unwrap();
        tokio::spawn(async move {
            while let Some(incoming) = server.accept().await {
                tokio::spawn(serve_connection(incoming));
            }
        });
        let extra = [("x-extra".to_owned(), "1".to_owned())];
        let request = DohRequest::new(method, "https://dns.example/dns-query", &extra);
        let protocol = ClientProtocol::Http3(Arc::new(request.unwrap()));
        ask_all(protocol, client_tls(&certificates, false), target).await;
    });
}

#[test]
fn our_get_requests_are_understood_by_h3() {
    our_client_is_understood(Method::Get);
}

#[test]
fn our_post_requests_are_understood_by_h3() {
    our_client_is_understood(Method::Post);
}

type SendRequest = h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>;

async fn ask(mut requests: SendRequest, number: u32) {
    let mut message = query(number);
    message[..2].fill(0);
    let is_get = number.is_multiple_of(2);
    let encoded = data_encoding::BASE64URL_NOPAD.encode(&message);
    let (method, path) = match is_get {
        true => ("GET", format!("/dns-query?dns={encoded}")),
        false => ("POST", "/dns-query".to_owned()),
    };
    let request = http::Request::builder()
        .method(method)
        .uri(format!("https://dns.example{path}"))
        .header("accept", MEDIA_TYPE)
        .header("content-type", MEDIA_TYPE);
    let mut stream = requests
        .send_request(request.body(()).unwrap())
        .await
        .unwrap();
    if !is_get {
        for piece in message.chunks(20) {
            stream
                .send_data(Bytes::copy_from_slice(piece))
                .await
                .unwrap();
        }
    }
    stream.finish().await.unwrap();
    let response = stream.recv_response().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], MEDIA_TYPE);
    assert_eq!(response.headers()["cache-control"], "max-age=60");
    let mut body = Vec::new();
    while let Some(mut data) = stream.recv_data().await.unwrap() {
        body.extend_from_slice(&data.copy_to_bytes(data.remaining()));
    }
    assert_eq!(body, long_response_to(&message));
}

#[test]
fn our_server_is_understood_by_h3() {
    block_on(async {
        let certificates = certificates();
        let path = "/dns-query".into();
        let target = start(&certificates, ServerProtocol::Http3 { path }).await;
        let client = quinn_client(&certificates, ALPN);
        let connecting = client.connect(target, "dns.example").unwrap();
        let connection = h3_quinn::Connection::new(connecting.await.unwrap());
        let mut builder = h3::client::builder();
        let built = builder.send_grease(true).build(connection).await;
        let (mut driver, requests): (_, SendRequest) = built.unwrap();
        let driver = tokio::spawn(async move {
            std::future::poll_fn(|context| driver.poll_close(context)).await
        });
        for first in (0..QUERIES).step_by(AT_ONCE as usize) {
            let asked: Vec<_> = (first..(first + AT_ONCE).min(QUERIES))
                .map(|number| tokio::spawn(ask(requests.clone(), number)))
                .collect();
            for asked in asked {
                asked.await.unwrap();
            }
        }
        assert!(!driver.is_finished(), "no error on the control stream");
    });
}
