//! One GET or POST over HTTP/1.0 (RFC 1945), the version in which an answer ends with its
//! connection: no state between requests. HAProxy sends chunks nevertheless. TLS where the URL has
//! `https`.

use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use proto::tls::rustls::ClientConfig;
use proto::tls::{ClientCertificate, ClientTlsOptions, Roots, client_config};

use crate::gap::Gap;
use crate::network::Network;
use crate::stream::{Allowance, Limits, Timed};

/// Octets of the head of an answer, at most.
const HEAD_OCTETS_MAX: usize = 64 << 10;

/// Characters of a server's own words, at most.
const REASON_CHARS_MAX: usize = 300;

/// Octets of a token's file, at most.
const TOKEN_OCTETS_MAX: u64 = 64 << 10;

/// `http://host:port/path?query`, or `unix:SOCKET:/path?query`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Url {
    is_tls: bool,
    /// A Unix socket, at which the server is asked instead of the host.
    socket: Option<PathBuf>,
    host: String,
    port: u16,
    path: String,
    query: Option<String>,
}

impl Url {
    /// Reads one; without a scheme it is `http`.
    pub(crate) fn parse(text: &str) -> Result<Url, String> {
        if let Some(rest) = text.strip_prefix("unix:") {
            let (socket, path) = rest.split_once(":/").unwrap_or((rest, ""));
            if !socket.starts_with('/') {
                return Err(format!("`{text}` is not unix:/SOCKET:/PATH"));
            }
            let url = Url::parse(&format!("http://localhost/{path}"))?;
            return Ok(Url {
                socket: Some(socket.into()),
                ..url
            });
        }
        let (is_tls, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some((scheme, _)) => return Err(format!("`{scheme}` is neither http nor https")),
            None => (false, text),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            return Err("a URL has no password here; give a token instead".to_owned());
        }
        if target.chars().any(|c| !c.is_ascii_graphic()) {
            return Err(format!("`{target}` has to be percent-encoded"));
        }
        let (host, port) = authority_parts(authority, if is_tls { 443 } else { 80 })?;
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        Ok(Url {
            is_tls,
            socket: None,
            host,
            port,
            path: path.to_owned(),
            query,
        })
    }

    /// True if it ends with its host.
    pub(crate) fn has_no_path(&self) -> bool {
        self.path.trim_matches('/').is_empty()
    }

    /// The root of the same server.
    pub(crate) fn at_root(&self) -> Url {
        Url {
            path: String::new(),
            query: None,
            ..self.clone()
        }
    }

    /// The same place with another path, behind what is there.
    pub(crate) fn below(&self, path: &str) -> Url {
        Url {
            path: format!("{}{path}", self.path.trim_end_matches('/')),
            ..self.clone()
        }
    }

    /// The same place with this query.
    pub(crate) fn with_query(&self, query: String) -> Url {
        Url {
            query: Some(query),
            ..self.clone()
        }
    }

    fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// Host and port, the brackets around an IPv6 address taken off.
pub(crate) fn authority_parts(text: &str, default_port: u16) -> Result<(String, u16), String> {
    let wrong = || format!("`{text}` is not a host and a port");
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(wrong)?;
            (host, rest.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() || host.chars().any(|c| !c.is_ascii_graphic()) {
        return Err(wrong());
    }
    let port = port.map_or(Ok(default_port), |port| port.parse().map_err(|_| wrong()))?;
    Ok((host.to_owned(), port))
}

impl fmt::Display for Url {
    /// Without its query, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(socket) = &self.socket {
            return write!(f, "unix:{}:{}", socket.display(), self.path);
        }
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where credentials are: files, read when they are needed and never kept in a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// A bearer token, or an API key.
    pub token: Option<PathBuf>,
    /// Authorities that are trusted, PEM; Mozilla's without it.
    pub authorities: Option<PathBuf>,
    /// Our own certificate, PEM.
    pub certificate: Option<PathBuf>,
    /// Its key, PEM.
    pub key: Option<PathBuf>,
}

/// Asks one server repeatedly.
pub(crate) struct Client {
    credentials: Credentials,
    network: Network,
    tls: Option<Arc<ClientConfig>>,
}

impl Client {
    pub(crate) fn new(credentials: Credentials, network: Network) -> Client {
        Client {
            credentials,
            network,
            tls: None,
        }
    }

    /// Fetches one page.
    pub(crate) fn get(&mut self, url: &Url, allowance: &Allowance) -> Result<Vec<u8>, Gap> {
        let request = self.request(url)?;
        self.exchange(url, &request, allowance)
    }

    /// Sends a request; the body of its answer.
    fn exchange(
        &mut self,
        url: &Url,
        request: &[u8],
        allowance: &Allowance,
    ) -> Result<Vec<u8>, Gap> {
        let mut socket = match &url.socket {
            Some(path) => Timed::unix(path, None, allowance)?,
            None => Timed::tcp(&self.network, (&url.host, url.port), allowance)?,
        };
        let answer = match url.is_tls {
            false => {
                let sent = socket.write_all(request).and_then(|()| socket.flush());
                sent.map_err(|error| allowance.gap(&error))?;
                allowance.read_all(socket)?
            }
            true => {
                let mut stream = socket.with_tls(&self.tls()?, &url.host)?;
                let sent = stream.write_all(request).and_then(|()| stream.flush());
                sent.map_err(|error| allowance.gap(&error))?;
                allowance.read_all(stream)?
            }
        };
        body(answer)
    }

    /// The request. The token is read each time, because it may be replaced while a run goes on.
    fn request(&self, url: &Url) -> Result<Vec<u8>, Gap> {
        let mut request = head("GET", url);
        if let Some(file) = &self.credentials.token {
            let octets = crate::files::read_limited(file, TOKEN_OCTETS_MAX)
                .map_err(|what| Gap::Refused(format!("the token cannot be read: {what}")))?;
            let token = String::from_utf8_lossy(&octets);
            let token = token.trim();
            if !is_token(token) {
                let file = file.display();
                return Err(Gap::Refused(format!("`{file}` has no token on one line")));
            }
            // dnsdist and PowerDNS want it as an API key, everybody else as a bearer's.
            request += &format!("Authorization: Bearer {token}\r\nX-API-Key: {token}\r\n");
        }
        request += "\r\n";
        Ok(request.into_bytes())
    }

    fn tls(&mut self) -> Result<Arc<ClientConfig>, Gap> {
        if let Some(config) = &self.tls {
            return Ok(config.clone());
        }
        let config = tls_config(&self.credentials, None)?;
        self.tls = Some(config.clone());
        Ok(config)
    }
}

/// The first lines of a request.
fn head(method: &str, url: &Url) -> String {
    let path = if url.path.is_empty() { "/" } else { &url.path };
    let query = url.query.as_ref().map(|query| format!("?{query}"));
    format!(
        "{method} {path}{} HTTP/1.0\r\nHost: {}\r\nAccept: */*\r\nConnection: close\r\n",
        query.unwrap_or_default(),
        url.authority()
    )
}

/// True if it may be in a header field.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic())
}

/// Sends JSON to one path of a server, each time over a connection that ends with its answer.
pub struct JsonPost {
    url: Url,
    token: Option<String>,
    client: Client,
}

impl JsonPost {
    /// To `path` below the URL of the server, with a bearer token if it is given.
    ///
    /// # Errors
    /// The URL or the token cannot be one: what is wrong with it.
    pub fn new(url: &str, path: &str, token: Option<String>) -> Result<JsonPost, String> {
        if token.as_deref().is_some_and(|token| !is_token(token)) {
            return Err("the token has characters that no token has".to_owned());
        }
        Ok(JsonPost {
            url: Url::parse(url)?.below(path),
            token,
            client: Client::new(Credentials::default(), Network::default()),
        })
    }

    /// Sends one document.
    ///
    /// # Errors
    /// The server did not take it, or not in time.
    pub fn send(&mut self, json: &serde_json::Value, limits: Limits) -> Result<(), Gap> {
        let body = json.to_string();
        let mut request = head("POST", &self.url);
        if let Some(token) = &self.token {
            request += &format!("Authorization: Bearer {token}\r\n");
        }
        request += &format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let allowance = Allowance::starting_now(limits);
        self.client
            .exchange(&self.url, request.as_bytes(), &allowance)
            .map(drop)
    }
}

impl fmt::Display for JsonPost {
    /// Where it sends to.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.url, f)
    }
}

impl fmt::Debug for JsonPost {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JsonPost").field(&self.url).finish()
    }
}

/// The configuration of TLS; with `pinned`, a certificate in PEM, the server has to have its key.
pub(crate) fn tls_config(
    credentials: &Credentials,
    pinned: Option<&std::path::Path>,
) -> Result<Arc<ClientConfig>, Gap> {
    let read = |file: &PathBuf| {
        crate::files::read_limited(file, crate::files::PEM_OCTETS_MAX).map_err(Gap::Refused)
    };
    let roots = credentials.authorities.as_ref().map(read).transpose()?;
    let certificate = match (&credentials.certificate, &credentials.key) {
        (Some(chain), Some(key)) => Some(ClientCertificate {
            chain_pem: read(chain)?,
            key_pem: read(key)?,
        }),
        _ => None,
    };
    let pins = match pinned {
        Some(file) => vec![crate::files::pin_of(file).map_err(Gap::Refused)?],
        None => Vec::new(),
    };
    let options = ClientTlsOptions {
        roots: roots.map_or(Roots::WebPki, Roots::Pem),
        verify: pins.is_empty(),
        pins,
        certificate,
        stock_records: true,
        ..ClientTlsOptions::default()
    };
    client_config(&options).map_err(|error| Gap::Refused(format!("TLS: {error}")))
}

/// The body of an answer that is complete and says that all went well.
fn body(answer: Vec<u8>) -> Result<Vec<u8>, Gap> {
    let head = &answer[..answer.len().min(HEAD_OCTETS_MAX)];
    let end = head.windows(4).position(|four| four == b"\r\n\r\n");
    let malformed = |what: &str| Gap::Malformed(what.to_owned());
    let end = end.ok_or_else(|| malformed("no head of HTTP/1"))?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    let code = status
        .strip_prefix("HTTP/1.")
        .and_then(|it| it.split(' ').nth(1));
    match code {
        Some("200") => {}
        Some(code) if code.len() == 3 && code.bytes().all(|it| it.is_ascii_digit()) => {
            let why = reason(&answer[end + 4..]);
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            return Err(Gap::Refused(format!("HTTP status {code}{why}")));
        }
        _ => return Err(malformed("no head of HTTP/1")),
    }
    let (mut length, mut is_chunked): (Option<usize>, _) = (None, false);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        match name.trim().to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok(),
            "transfer-encoding" if value.trim().eq_ignore_ascii_case("chunked") => {
                is_chunked = true;
            }
            "transfer-encoding" | "content-encoding" if value.trim() != "identity" => {
                return Err(malformed("it has an encoding that was not requested"));
            }
            _ => {}
        }
    }
    let mut body = answer;
    body.drain(..end + 4);
    if is_chunked {
        return unchunked(&body).ok_or_else(|| malformed("its chunks are cut off"));
    }
    match length {
        Some(length) if body.len() < length => Err(Gap::Malformed(format!(
            "it ends after {} of {length} bytes",
            body.len()
        ))),
        Some(length) => {
            body.truncate(length);
            Ok(body)
        }
        None => Ok(body),
    }
}

/// Why a server refused, where it says so in JSON: an API server in `message`, a Prometheus in
/// `error`.
fn reason(body: &[u8]) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let text = body
        .get("message")
        .or_else(|| body.get("error"))?
        .as_str()?;
    let printed = text.chars().filter(|c| !c.is_control());
    Some(printed.take(REASON_CHARS_MAX).collect())
}

/// What is in the chunks (RFC 9112, section 7.1), if the last one is there.
fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::with_capacity(rest.len());
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let line = std::str::from_utf8(&rest[..end]).ok()?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest[size..].strip_prefix(b"\r\n")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_shown_without_what_may_be_secret() {
        for (text, shown) in [
            ("127.0.0.1:8053", "http://127.0.0.1:8053"),
            ("http://[::1]/metrics", "http://[::1]:80/metrics"),
            ("https://a.example/x?key=secret", "https://a.example:443/x"),
            ("unix:/run/a.sock:/x?key=secret", "unix:/run/a.sock:/x"),
            ("unix:/run/a.sock", "unix:/run/a.sock:/"),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!(url.to_string(), shown);
            assert!(!format!("{url:?}").contains("secret"));
        }
        for text in [
            "ftp://a",
            "http://u:p@a/",
            "http://",
            "a:x",
            "[::1",
            "a/b c",
            "unix:a.sock:/x",
            "unix:/a.sock:/b c",
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_answer_is_taken_only_whole_and_plain() {
        let answer = |text: &str| body(text.as_bytes().to_vec());
        assert_eq!(answer("HTTP/1.1 200 OK\r\n\r\nabc").unwrap(), b"abc");
        let exact = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nabc";
        assert_eq!(answer(exact).unwrap(), b"ab");
        let chunked = |chunks: &str| {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            answer(&format!("{head}{chunks}"))
        };
        let chunks = "2\r\nab\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n";
        assert_eq!(chunked(chunks).unwrap(), b"ab0123456789");
        for cut in [
            "",
            "2",
            "2\r\na",
            "2\r\nab",
            "2\r\nab\r\n",
            "ffffffffffffffff\r\na\r\n0\r\n",
            "x\r\n",
        ] {
            let gap = chunked(cut).unwrap_err().to_string();
            assert!(gap.contains("cut off"), "{cut:?}: {gap}");
        }
        for (text, what) in [
            ("", "no head"),
            ("HTTP/2 200\r\n\r\n", "no head"),
            ("HTTP/1.1 401 No\r\n\r\n", "status 401"),
            (
                "HTTP/1.1 403 No\r\n\r\n{\"message\": \"x may not\\n\"}",
                "status 403: x may not",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
                "after 3 of 9",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n0\r\n",
                "an encoding",
            ),
        ] {
            let gap = answer(text).unwrap_err().to_string();
            assert!(gap.contains(what), "{text:?}: {gap}");
        }
    }

    #[test]
    fn json_is_posted_below_the_path_of_a_url_with_its_token() {
        let folder = testing::folder::Folder::new("observe-http-post");
        let path = folder.path("a.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = String::new();
            let mut buffer = [0; 4_096];
            while !request.ends_with("{\"a\":1}") {
                let octets = std::io::Read::read(&mut stream, &mut buffer).unwrap();
                request.push_str(std::str::from_utf8(&buffer[..octets]).unwrap());
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n{}").unwrap();
            request
        });
        let token = || Some("secret".to_owned());
        let url = format!("unix:{path}:/grafana/");
        let mut post = JsonPost::new(&url, "/api/annotations", token()).unwrap();
        assert!(!format!("{post:?} {post}").contains("secret"));
        let limits = Limits {
            time: std::time::Duration::from_secs(60),
            ..Limits::default()
        };
        let json = serde_json::json!({"a": 1});
        post.send(&json, limits).unwrap();
        let request = server.join().unwrap();
        assert!(
            request.starts_with("POST /grafana/api/annotations HTTP/1.0\r\n"),
            "{request}"
        );
        for field in [
            "Authorization: Bearer secret\r\n",
            "Content-Length: 7\r\n\r\n",
        ] {
            assert!(request.contains(field), "{request}");
        }
        let wrong = Some("two\nlines".to_owned());
        assert!(JsonPost::new("http://a", "/", wrong).is_err());
    }

    #[test]
    fn server_is_asked_at_a_unix_socket() {
        let folder = testing::folder::Folder::new("observe-http-unix");
        let path = folder.path("a.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4_096];
            let octets = std::io::Read::read(&mut stream, &mut request).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nabc").unwrap();
            String::from_utf8_lossy(&request[..octets]).into_owned()
        });
        let url = Url::parse(&format!("unix:{path}:/api/x?y=1")).unwrap();
        let mut client = Client::new(Credentials::default(), Network::default());
        let limits = crate::Limits {
            time: std::time::Duration::from_secs(60),
            ..crate::Limits::default()
        };
        let body = client.get(&url, &Allowance::starting_now(limits));
        assert_eq!(body.unwrap(), b"abc");
        let request = server.join().unwrap();
        let head = "GET /api/x?y=1 HTTP/1.0\r\nHost: localhost:80\r\n";
        assert!(request.starts_with(head), "{request}");
    }
}
